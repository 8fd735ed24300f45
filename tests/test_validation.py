"""Bad input: a clear error that names the parameter, and the input untouched."""

import dataclasses
import inspect
import sys
import types
import warnings
from functools import partial

import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix

import fastmmc
from fastmmc.core import parameters, validation
from fastmmc.kernels.gram import Kernel
from fastmmc.registry import METHODS

X = np.random.default_rng(0).standard_normal((12, 3))
GRAM = X @ X.T


def changed(i, value, dtype=float):
    Z = X.astype(dtype)
    Z[i] = value
    return Z


BAD_POINTS = [
    (changed(3, np.nan), ValueError, "NaN"),
    (changed(3, np.inf), ValueError, "infinity"),
    (np.empty((0, 3)), ValueError, "0 sample"),
    (np.empty((3, 0)), ValueError, "0 feature"),
    (X[:, 0], ValueError, "2D array"),
    (X[None], ValueError, "dim 3|3D|dimension"),
    (X + 1j, ValueError, r"\bX\b.*[Cc]omplex"),
    (np.full((12, 3), "a"), ValueError, r"\bX\b.*(could not convert|numeric)"),
    ([["a", "b"]] * 12, ValueError, r"\bX\b.*(could not convert|numeric)"),
    ([[1.0, 2.0], [3.0]], ValueError, "X must be an array; got rows of different lengths"),
    ([[10**400, 1]] * 12, ValueError, "X must be finite; got a number beyond double precision"),
    ([[{}, {}]] * 12, TypeError, r"\bX\b.*(dict|real number)"),
    (None, ValueError, r"\bX\b.*(2D array|None)"),
    (np.ma.masked_greater(X, np.median(X)), ValueError, "X has masked values"),
    (
        np.where(X > np.median(X), np.datetime64("NaT"), np.datetime64("2024-01-01")),
        ValueError,
        "X holds NaT",
    ),
]


@pytest.mark.parametrize(
    "call",
    [
        lambda name, value: fastmmc.cluster(X, 2, **{name: value}),
        lambda name, value: fastmmc.umc_rls(X, 2, **{name: value}),
    ],
    ids=["cluster", "umc_rls"],
)
@pytest.mark.parametrize("name", ["known_labels", "sample_weight", "must_link", "cannot_link"])
def test_masks_are_not_dropped(call, name):
    value = np.ma.masked_equal(np.arange(12) % 2, 1)
    with pytest.raises(ValueError, match=f"{name} has masked values"):
        call(name, value)


def test_masks_of_what_fit_and_partial_fit_are_told():
    masked = np.ma.masked_equal(np.arange(12) % 2, 1)
    pairs = np.ma.array([[0, 1]], mask=[[False, True]])
    learner = fastmmc.CRPCL(2, semi_supervised=True)
    for call in (learner.fit, learner.partial_fit):
        with pytest.raises(ValueError, match="y has masked values"):
            call(X, masked)
        with pytest.raises(ValueError, match="must_link has masked values"):
            call(X, must_link=pairs)
    with pytest.raises(ValueError, match="rows has masked values"):
        fastmmc.keep_numbers(fastmmc.wta(X, 2), masked.data, rows=masked)


@pytest.mark.parametrize("name", ["umc-rls", "evo-mmc", "iter-svr", "sdp-mmc", "gmmc", "wta"])
def test_models_keep_points_of_their_own(name):
    pytest.importorskip("cvxpy")
    method = fastmmc.METHODS[name]
    given = X.copy()
    k = {} if method.binary else {"k": 2}
    seed = {"random_state": 0} if "random_state" in method.parameters else {}
    result = method.function(given, **k, **seed)
    before = result.decision_function(X)
    given[:] = given[::-1].copy()
    np.testing.assert_array_equal(result.decision_function(X), before)


def test_factors_keep_points_of_their_own():
    given = X.copy()
    factor = fastmmc.factor(given)
    before = fastmmc.umc_rls(factor, 2, random_state=0).decision_function(X)
    given[:] = given[::-1].copy()
    after = fastmmc.umc_rls(factor, 2, random_state=0).decision_function(X)
    np.testing.assert_array_equal(after, before)


@pytest.mark.parametrize(("points", "error", "message"), BAD_POINTS)
@pytest.mark.parametrize(
    "call",
    [
        lambda Z: fastmmc.umc_rls(Z, 2, sizes="equal"),
        lambda Z: fastmmc.factor(Z),
        lambda Z: fastmmc.umc_rls_path(Z, 2, [0.1], sizes="equal"),
        lambda Z: fastmmc.UMCRLS(2, sizes="equal").fit(Z),
    ],
    ids=["function", "factor", "path", "estimator"],
)
def test_bad_points(points, error, message, call):
    with pytest.raises(error, match=message):
        call(points)


BAD_PARAMETERS = [
    ({"k": 0}, ValueError, "k must be at least 1"),
    ({"k": -2}, ValueError, "k must be at least 1"),
    ({"k": 13}, ValueError, "k must be at most 12, the number of points; got 13"),
    ({"k": 2.0}, TypeError, "k must be an integer"),
    ({"k": "2"}, TypeError, "k must be an integer"),
    ({"k": True}, TypeError, "k must be an integer"),
    ({"k": None}, TypeError, "k must be an integer"),
    ({"lam": 0}, ValueError, "lam must be greater than 0"),
    ({"lam": -1.0}, ValueError, "lam must be greater than 0"),
    ({"lam": np.nan}, ValueError, "lam must be finite"),
    ({"lam": np.inf}, ValueError, "lam must be finite"),
    ({"lam": "1"}, TypeError, "lam must be a real number"),
    ({"lam": None}, TypeError, "lam must be a real number"),
    ({"sigma": 0.0}, ValueError, "sigma must be greater than 0"),
    ({"sigma": -1.0}, ValueError, "sigma must be greater than 0"),
    ({"sigma": np.nan}, ValueError, "sigma must be finite"),
    ({"sigma": "auto"}, TypeError, "sigma must be a real number"),
    ({"gamma": 0.0}, ValueError, "gamma must be greater than 0"),
    ({"sigma": 1.0, "gamma": 1.0}, ValueError, "sigma or gamma, not both"),
    ({"kernel": "gauss"}, ValueError, "kernel must be one of 'rbf'.*got 'gauss'"),
    ({"kernel": 3}, ValueError, "kernel must be one of"),
    ({"kernel": "poly", "degree": 0}, ValueError, "degree must be at least 1"),
    ({"kernel": "poly", "degree": 1.5}, TypeError, "degree must be an integer"),
    ({"kernel": "linear", "coef0": np.nan}, ValueError, "coef0 must be finite"),
    ({"kernel": "linear", "coef0": -1.0}, ValueError, "coef0 must be at least 0"),
    ({"kernel_params": {"a": 1}}, ValueError, "kernel_params are the arguments of a kernel given"),
    ({"kernel_params": 3}, TypeError, "kernel_params must be a dict"),
    ({"kernel": "precomputed"}, ValueError, "square matrix.*shape \\(12, 3\\)"),
    ({"method": "greedy"}, ValueError, "method must be one of 'auto', 'shaking'"),
    ({"method": None}, ValueError, "method must be one of"),
    ({"init": "kmeans++"}, ValueError, "init must be one of 'random', 'kmeans'"),
    ({"init": [0, 1]}, ValueError, "init must have one label for each of the 12 points"),
    ({"init": np.full(12, 2)}, ValueError, "init: labels must be 0..1"),
    ({"init": np.full(12, -1)}, ValueError, "init: labels must be 0..1"),
    ({"init": np.full(12, 0.5)}, ValueError, "init must hold integers"),
    ({"init": np.full(12, "a")}, ValueError, "init must hold integers"),
    ({"known_labels": np.full(12, 2)}, ValueError, "known_labels must hold integers 0..1.*got 2"),
    ({"known_labels": np.full(12, -2)}, ValueError, "known_labels must hold.*got -2"),
    ({"known_labels": np.full(11, -1)}, ValueError, "known_labels must have one label for each"),
    ({"known_labels": np.full(12, 0.5)}, ValueError, "known_labels must hold integers.*got 0.5"),
    ({"n_rounds": 0}, ValueError, "n_rounds must be at least 1"),
    ({"start_round": 21}, ValueError, "start_round must be at most 20, the last round"),
    ({"start_round": -1}, ValueError, "start_round must be at least 0"),
    ({"polish": "yes"}, TypeError, "polish must be True or False"),
    ({"keep_best": 1}, TypeError, "keep_best must be True or False"),
    ({"max_iter": -1}, ValueError, "max_iter must be at least 0"),
    ({"balance": -0.1}, ValueError, "balance must be at least 0"),
    ({"balance": np.nan}, ValueError, "balance must be finite"),
    ({"balance": 0.1, "k": 5, "min_size": 3}, ValueError, "min_size must be at most 2"),
    ({"min_size": 7}, ValueError, "min_size must be at most 6"),
    ({"min_size": -1}, ValueError, "min_size must be at least 0"),
    ({"target_sizes": [6, 7]}, ValueError, "target_sizes.*sum to 13"),
    ({"target_sizes": [12]}, ValueError, "target_sizes must be 2 integers"),
    ({"n_init": 0}, ValueError, "n_init must be at least 1"),
    ({"n_init": 1.5}, TypeError, "n_init must be an integer"),
    ({"n_jobs": 0}, ValueError, "n_jobs must not be 0"),
    ({"n_jobs": "all"}, TypeError, "n_jobs must be an integer"),
    ({"max_time": 0}, ValueError, "max_time must be greater than 0"),
    *(
        ({name: [[0, 1], [1]]}, ValueError, f"{name} must be an array; got rows of different len")
        for name in ("init", "known_labels", "landmarks", "target_sizes")
    ),
    ({"callback": 3}, TypeError, "callback must be callable"),
    ({"verbose": -1}, ValueError, "verbose must be at least 0"),
    ({"random_state": -1}, ValueError, "random_state"),
    ({"dtype": "float16"}, ValueError, "dtype must be 'float32', 'float64' or None"),
    ({"dtype": "double precision"}, ValueError, "dtype must be"),
]


# Numbers beyond double precision, or beyond what compiled loops count to.
HUGE = 10**400


@pytest.mark.parametrize("name", sorted(METHODS))
def test_huge_integers_are_refused_by_name(name):
    method = METHODS[name]
    defaults = {n: p.default for n, p in inspect.signature(method.function).parameters.items()}
    counts = {
        "n_init",
        "patience",
        "max_iter",
        "degree",
        "n_rounds",
        "flips",
        "min_size",
    }
    numeric = counts | {n for n, v in defaults.items() if type(v) in (int, float)} - {"verbose"}
    numeric |= {"max_time", "sigma", "gamma"}
    k = () if method.binary else (2,)
    space = {"features": "nystroem"} if "features" in defaults else {}
    for parameter in sorted(numeric & set(defaults)):
        with pytest.raises(ValueError, match=rf"\b{parameter}\b"):
            method.function(X, *k, **space, **{parameter: HUGE})


@pytest.mark.parametrize(
    ("weights", "message"),
    [([HUGE] * 12, "finite; got a number beyond"), ([[0, 1], [1]], "an array; got rows of diff")],
)
def test_weights_that_are_no_array_of_floats(weights, message):
    with pytest.raises(ValueError, match=f"sample_weight must be {message}"):
        fastmmc.umc_rls(X, 2, sample_weight=weights)


WEIGHTED = [method for method in METHODS.values() if "sample_weight" in method.parameters]


@pytest.mark.parametrize("weight", [1e300, 1e101, 1e-101, 1e-320])
@pytest.mark.parametrize("method", WEIGHTED, ids=lambda method: method.name)
def test_weights_whose_squares_leave_double_precision(method, weight):
    k = {} if method.binary else {"k": 2}
    weights = np.ones(len(X))
    weights[[3, 5]] = weight
    message = r"sample_weight must be 0, or from 1e-100 to 1e\+100; got .*e.* in rows 3, 5: divide"
    with pytest.raises(ValueError, match=message):
        method.function(X, sample_weight=weights, **k)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("scale", [3e99, 1e-100])
@pytest.mark.parametrize("method", WEIGHTED, ids=lambda method: method.name)
def test_weights_within_their_limits_give_no_warnings_of_numpy(method, scale):
    k = {} if method.binary else {"k": 2}
    # What a kernel machine or a hat matrix cannot be made of is refused by name.
    scaled = {"C": 1.0 / scale} if "C" in method.parameters else {}
    scaled |= {"lam": scale} if "lam" in method.parameters else {}
    if "method_params" in method.parameters:
        scaled["method_params"] = {"C": 1.0 / scale}
    weights = scale * (1.0 + np.arange(len(X)) % 3)
    result = method.function(X, sample_weight=weights, random_state=0, **k, **scaled)
    assert result.sizes.sum() == len(X)


@pytest.mark.parametrize("call", [fastmmc.wta, fastmmc.sammc])
def test_lists_of_prototypes_of_different_lengths(call):
    with pytest.raises(ValueError, match="init must be an array; got rows of different lengths"):
        call(X, 2, init=[[0, 1], [1]])


@pytest.mark.jit
@pytest.mark.parametrize("name", sorted(METHODS))
def test_a_huge_time_limit_is_none(name):
    method = METHODS[name]
    k = () if method.binary else (2,)
    assert method.function(X, *k, max_time=10**39).labels.size == 12


@pytest.mark.parametrize(
    "params", [{"n_init": 10**7}, {"n_rounds": 10**6}, {"population": 10**6}, {"max_iter": 2**60}]
)
def test_counts_are_bounded(params):
    with pytest.raises(ValueError, match=f"{next(iter(params))} must be at most"):
        fastmmc.umc_rls(X, 2, **params, sizes="equal")


@pytest.mark.parametrize(("params", "error", "message"), BAD_PARAMETERS)
def test_bad_parameters(params, error, message):
    before = X.copy()
    params = {"k": 2} | params
    k = params.pop("k")
    with pytest.raises(error, match=message):
        fastmmc.umc_rls(X, k, **params, sizes="equal")
    if "known_labels" not in params:
        with pytest.raises(error, match=message):
            fastmmc.UMCRLS(k, **params, sizes="equal").fit(X)
    np.testing.assert_array_equal(X, before)


def test_parameters_are_checked_before_the_costly_part(monkeypatch):
    monkeypatch.setattr("fastmmc.rls.source.make_factor", None)
    for params, error, message in BAD_PARAMETERS:
        params = {"k": 2} | params
        if "random_state" in params:
            continue
        with pytest.raises(error, match=message):
            fastmmc.umc_rls(X, params.pop("k"), **params)


@pytest.mark.parametrize("params", [{"random_state": -1}, {"random_state": "a"}])
def test_a_bad_seed_is_found_before_the_costly_part(monkeypatch, params):
    monkeypatch.setattr("fastmmc.rls.source.make_factor", None)
    with pytest.raises((ValueError, TypeError), match="random_state"):
        fastmmc.umc_rls(X, 2, **params, sizes="equal")


@pytest.mark.parametrize("lams", [[], [0.0], [0.1, np.nan], "0.1", 0.1, [[0.1]]])
def test_bad_lams(lams):
    with pytest.raises((ValueError, TypeError), match="lams"):
        fastmmc.umc_rls_path(X, 2, lams, sizes="equal")


def test_asymmetric_gram():
    K = GRAM.copy()
    K[2, 5] += 1e-3
    with pytest.raises(ValueError, match=r"symmetric.*up to 0\.001"):
        fastmmc.umc_rls(K, 2, kernel="precomputed", sizes="equal")


def test_precomputed_refuses_kmeans():
    with pytest.raises(ValueError, match="init='kmeans' needs points"):
        fastmmc.umc_rls(GRAM, 2, kernel="precomputed", init="kmeans")


@pytest.mark.parametrize(
    "params",
    [
        {"lam": 0.5},
        {"sigma": 1.0},
        {"gamma": 1.0},
        {"kernel": "linear"},
        {"degree": 4},
        {"coef0": 2.0},
        {"rank_tol": 0.1},
    ],
)
def test_a_factor_brings_its_own_kernel(params):
    F = fastmmc.factor(X, lam=0.1)
    with pytest.raises(ValueError, match="X is a factor"):
        fastmmc.umc_rls(F, 2, **params, sizes="equal")


def test_a_path_needs_points():
    with pytest.raises(TypeError, match="give the points"):
        fastmmc.umc_rls_path(fastmmc.factor(X), 2, [0.1], sizes="equal")


@pytest.mark.parametrize(
    ("points", "message"),
    [(X[:, :2], "2 features.*3"), (changed(0, np.nan), "NaN"), (X[0], "2D array")],
)
def test_bad_new_points(points, message):
    result = fastmmc.umc_rls(X, 2, n_init=1, sizes="equal")
    with pytest.raises(ValueError, match=message):
        result.predict(points)


@pytest.mark.parametrize(
    "points",
    [
        np.asfortranarray(X),
        X.tolist(),
        np.repeat(X, 2, axis=0)[::2],
        np.ascontiguousarray(X.T).T,
    ],
    ids=["fortran", "list", "strided", "transposed"],
)
def test_layouts_do_not_matter(points):
    expected = fastmmc.umc_rls(X, 2, n_init=1, random_state=0, sizes="equal")
    np.testing.assert_array_equal(
        fastmmc.umc_rls(points, 2, n_init=1, random_state=0, sizes="equal").labels, expected.labels
    )


def test_integer_and_read_only_points():
    Z = np.round(10 * X).astype(np.int32)
    Z.flags.writeable = False
    result = fastmmc.umc_rls(Z, 2, n_init=1, random_state=0, sizes="equal")
    assert result.model.basis.dtype == np.float64
    read_only = X.copy()
    read_only.flags.writeable = False
    fastmmc.umc_rls(read_only, 3, n_init=1, sizes="equal")


@pytest.mark.parametrize("method", ["shaking", "steepest", "stochastic"])
def test_input_is_never_modified(method):
    points, y = X.copy(), np.array([0, 1] + [-1] * 10)
    init, targets = np.arange(12) % 3, np.array([3, 4, 5])
    kept = [a.copy() for a in (points, y, init, targets)]
    fastmmc.umc_rls(
        points, 3, known_labels=y, init=init, target_sizes=targets, method=method, n_init=2
    )
    K = GRAM.copy()
    fastmmc.umc_rls(K, 3, kernel="precomputed", n_init=1, sizes="equal")
    for a, b in zip((points, y, init, targets), kept, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(K, GRAM)


BINARY = [method for method in fastmmc.METHODS.values() if method.binary]


@pytest.mark.parametrize("method", BINARY, ids=lambda method: method.name)
def test_methods_for_two_clusters_explain_that_they_take_no_number(method, overlapping):
    name = method.function.__name__
    given = ((overlapping, 3), {}), ((overlapping,), {"k": 3}), ((overlapping,), {"n_clusters": 3})
    for args, params in given:
        with pytest.raises(TypeError, match=f"{name} makes two clusters.*got 3.*method='{name}'"):
            method.function(*args, **params)
    for make in (lambda kind: kind(3), lambda kind: kind(n_clusters=3)):
        with pytest.raises(TypeError, match=f"{method.estimator.__name__} makes two.*Recursive"):
            make(method.estimator)
    assert list(inspect.signature(method.function).parameters)[0] == "X"


@pytest.mark.parametrize(
    ("make", "unknown", "meant"),
    [
        (partial(fastmmc.umc_rls, [[0.0], [1.0]]), "n_clusters", "k"),
        (partial(fastmmc.wta, [[0.0], [1.0]], 2), "seed", "random_state"),
        (fastmmc.UMCRLS, "k", "n_clusters"),
        (fastmmc.EvoMMC, "sgima", "sigma"),
        (fastmmc.AutoMMC, "max_clusters", None),
    ],
)
def test_an_unknown_name_is_told_with_the_one_meant(make, unknown, meant):
    advice = f"; did you mean '{meant}'\\?" if meant else ""
    with pytest.raises(TypeError, match=rf"\(\) got an unexpected .*argument '{unknown}'{advice}"):
        make(**{unknown: 2})


def test_docs_of_checked_functions_are_still_run():
    """Doctest passes over functions that are wrapped, unless their module lists them."""
    for method in BINARY:
        function = inspect.unwrap(method.function)
        assert sys.modules[function.__module__].__test__[function.__name__] is function


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_init": "many"}, "n_init must be 'auto' or an integer; got 'many'"),
        ({"rank": "all"}, "rank must be 'auto', an integer, a share of the points or None"),
        ({"landmarks": "some"}, "'pivoted' or an array; got 'some'"),
        ({"init": "zeros"}, "'kmeans' or an array of labels; got 'zeros'"),
    ],
)
def test_messages_name_all_that_is_allowed(params, message, overlapping):
    with pytest.raises(ValueError, match=message):
        fastmmc.umc_rls(overlapping, 3, **params, sizes="equal")


def reachable(value, seen):
    """Yield the dataclasses in an object, and in their fields."""
    if dataclasses.is_dataclass(value) and id(value) not in seen:
        seen.add(id(value))
        yield value
        for field in dataclasses.fields(value):
            yield from reachable(getattr(value, field.name), seen)
    elif isinstance(value, tuple):
        for part in value:
            yield from reachable(part, seen)


def test_objects_that_hold_arrays_print_one_short_line(overlapping):
    X = overlapping[:24]
    made = [
        fastmmc.factor(X),
        fastmmc.factor(X, rank=20, random_state=0),
        fastmmc.factor(csr_matrix(X), rank=20, random_state=0),
        fastmmc.segment(np.arange(24, dtype=np.uint8).reshape(4, 6), 3, random_state=0),
        fastmmc.wta(X, 3, features="nystroem", random_state=0),
        fastmmc.umc_rls(X @ X.T, 3, kernel="precomputed", random_state=0, sizes="equal"),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for method in fastmmc.METHODS.values():
            made.append(method.function(X, **({} if method.binary else {"k": 3})))
    seen = set()
    found = [value for one in made for value in reachable(one, seen)]
    names = {type(value).__name__ for value in found}
    assert {"KernelModel", "TreeModel", "CenterModel", "LowRankFactor"} <= names
    for value in found:
        text = repr(value)
        assert text.startswith(type(value).__name__ + "(")
        assert len(text) < 400 and "\n" not in text and "array(" not in text, text
    F = made[0]
    assert repr(F).startswith("DenseFactor(R=float64[24, 24], lam=0.25, kernel=Kernel(name='rbf'")
    assert "X=sparse float64[24, 3]" in repr(made[2])


def test_small_examples():
    assert validation.check_integer("k", 3, least=1) == 3
    assert validation.check_number("coef0", 1) == 1.0
    assert validation.check_choice("method", "shaking", ("shaking", "steepest")) == "shaking"
    assert validation.check_dtype("dtype", "float32") == np.float32
    assert validation.check_flag("polish", True) is True
    assert parameters.kernel_of(parameters.KernelParameters(sigma=2.0)).sigma == 2.0
    with pytest.raises(ValueError, match="^X: Complex data not supported"):
        with validation.naming("X"):
            raise ValueError("Complex data not supported")
    assert validation.check_matrix([[1, 2]]).tolist() == [[1, 2]]
    X = csr_array(([1.0], [3], [0, 1]), shape=(1, 4))
    assert validation.check_structure(X).toarray().tolist() == [[0, 0, 0, 1]]
    assert validation.check_points([[1, 2]], Kernel("rbf")).dtype == np.float64
    validation.check_square(np.eye(2), "kernel")
    validation.check_symmetric(np.eye(2), "kernel")
    new = validation.check_new_points([[1, 2]], Kernel("rbf"), 2, np.float64)
    assert new.tolist() == [[1.0, 2.0]]
    assert validation.check_sample_weight([1, 2], 2).tolist() == [1.0, 2.0]
    assert validation.check_sample_weight(np.array([1, 2.0], object), 2).dtype == np.float64
    assert validation.counting_points(np.array([1.0, 0.0, 2.0])).tolist() == [0, 2]


class Blocked:
    """What stands for a Dask array where there is no Dask."""

    shape, ndim, dtype, size = (6, 2), 2, np.dtype(np.float64), 12

    def __array__(self, *args, **kwargs):
        raise AssertionError("the blocks have come together")


@pytest.mark.parametrize("name", METHODS)
def test_no_dask_array_is_pulled_into_memory(monkeypatch, name):
    method = METHODS[name]
    monkeypatch.setitem(sys.modules, "dask.array", types.SimpleNamespace(Array=Blocked))
    with pytest.raises(TypeError, match="X is a Dask array"):
        method.estimator().fit(Blocked())
    if method.function.__name__ not in ("cluster", "umc_rls", "fast_evo_mmc", "cpmmc", "sammc"):
        with pytest.raises(TypeError, match="X is a Dask array"):
            method.function(Blocked(), *(() if method.binary else (2,)))
