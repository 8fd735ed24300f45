"""Degenerate data over all methods: whatever is given, a call ends, and says only what is so.

One table of data, one of what is asked of them, one list of what must hold. Extend the tables.
"""

import faulthandler
import inspect
import re
import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning

import fastmmc
from fastmmc.core.status import Status
from fastmmc.registry import METHODS
from tests.rls import naive

N = 24
RANK = 3
BUDGET = 60.0  # seconds, max_time of a call: time enough for any on a busy machine
GUARD = 60.0  # seconds after which a call is taken for hanging, and the process is ended


def cloud(seed=0, n=N, d=3):
    return np.random.default_rng(seed).standard_normal((n, d))


def frozen(X):
    X.flags.writeable = False
    return X


DATA = {
    "ordinary": lambda: cloud(),
    "identical": lambda: np.ones((N, 3)),
    "zeros": lambda: np.zeros((N, 2)),
    "duplicates": lambda: np.repeat(cloud(n=4), N // 4, axis=0),
    "two places": lambda: np.repeat([[0.0, 0.0], [1.0, 1.0]], N // 2, axis=0),
    "one outlier": lambda: np.vstack((cloud(n=N - 1), np.full((1, 3), 1e8))),
    "three points": lambda: cloud(n=3),
    "two points": lambda: cloud(n=2),
    "one point": lambda: cloud(n=1),
    "constant columns": lambda: np.hstack((np.full((N, 2), 7.0), cloud(d=1))),
    "scale 1e-5": lambda: 1e-5 * cloud(),
    "scale 1e5": lambda: 1e5 * cloud(),
    "scale 1e30": lambda: 1e30 * cloud(),
    "scale 1e-30": lambda: 1e-30 * cloud(),
    "scale 1e200": lambda: 1e200 * cloud(),
    "far from the origin": lambda: cloud() + 1e7,
    "float32": lambda: cloud().astype(np.float32),
    "float32 of scale 1e30": lambda: (1e30 * cloud()).astype(np.float32),
    "float32 duplicates": lambda: np.repeat(cloud(n=3), N // 3, axis=0).astype(np.float32),
    "integers": lambda: np.round(3 * cloud()).astype(np.int32),
    "bool": lambda: cloud() > 0,
    "Fortran order": lambda: np.asfortranarray(cloud()),
    "read-only": lambda: frozen(cloud()),
    "list": lambda: cloud().tolist(),
    "sparse": lambda: sparse.csr_matrix(np.where(cloud() > 0, cloud(), 0.0)),
    "sparse zeros": lambda: sparse.csr_array((N, 3)),
    "one feature": lambda: cloud(d=1),
    "collinear": lambda: cloud(d=1) @ np.array([[1.0, 2.0, -1.0]]),
    "wide": lambda: cloud(d=60),
}
# What is drawn at random: what a seed stands for does not change with the rows below.
DRAWN = tuple(DATA)
DATA |= {
    "squares of 1e300": lambda: 1e150 * np.eye(6),
    "two equal points": lambda: np.zeros((2, 1)),
    "evenly spaced": lambda: np.arange(5.0)[:, None],
    "duplicates of one feature": lambda: np.repeat(cloud(n=5, d=1), [12, 6, 3, 2, 1], axis=0),
    "duplicates far from the origin": lambda: np.repeat(cloud(n=4), N // 4, axis=0) + 1e6,
    "float32 identical": lambda: np.ones((N, 3), dtype=np.float32),
    "float32 constant columns": lambda: np.hstack((np.full((N, 2), 0.1), cloud(d=1))).astype("f"),
    "float32 of one feature": lambda: cloud(d=1).astype(np.float32),
    "float32 far from the origin": lambda: (cloud() + 1e5).astype(np.float32),
}

RLS = ("umc-rls", "evo-mmc", "fast-evo-mmc")
DISTANCES = ("wta", "fscl", "rpcl", "c-rpcl", "o-lcvqe", "lcvqe", "cvqe")
WITHOUT_RANK = (
    *DISTANCES,
    "evo-mmc",
    "sammc",
    "sdp-mmc",
    "gmmc",
    "recursive-mmc",
    "cpmmc",
    "cpm3c",
)

SDP = ("sdp-mmc", "gmmc")
COSTLY = ("cluster", "sammc", *SDP)

# An error must say which of these was wrong.
NAMES = (
    r"\b(X|k|kernel|lam|sigma|gamma|rank|init|n_samples|min_size|balance|target_sizes|"
    r"known_labels|known labels|no sizes of)\b"
)


def partial(n, k):
    """Return known labels of a third of the points, in all clusters."""
    known = np.full(n, -1)
    known[: n // 3] = np.arange(n // 3) % k
    return known


def uneven(n, k):
    """Return sizes that sum to n, the first cluster's the largest."""
    return [n - (k - 1) * max(1, n // (2 * k)), *[max(1, n // (2 * k))] * (k - 1)]


# Rows whose figures overflow without a status that says so.
UNTOLD = {("recursive-mmc", "scale 1e200", "one cluster")}

# What is asked of a method, of n points and k clusters; of those that have all these parameters.
ASKED = {
    "nothing": lambda n, k: {},
    "low rank": lambda n, k: {"rank": RANK},
    "equal sizes": lambda n, k: {"balance": 0},
    "equal sizes of low rank": lambda n, k: {"balance": 0, "rank": RANK},
    "given sizes": lambda n, k: {"balance": 0, "target_sizes": uneven(n, k)},
    "largest least size": lambda n, k: {"min_size": n // k},
    "known labels": lambda n, k: {"known_labels": partial(n, k)},
    "known labels of low rank": lambda n, k: {"known_labels": partial(n, k), "rank": RANK},
    "known labels, balanced": lambda n, k: {"known_labels": partial(n, k), "balance": 0.5},
    "known labels, equal sizes": lambda n, k: {"known_labels": partial(n, k), "balance": 0},
    "known labels, memetic": lambda n, k: {"known_labels": partial(n, k), "method": "memetic"},
    "free sizes": lambda n, k: {"sizes": "free"},
    "free sizes of low rank": lambda n, k: {"sizes": "free", "rank": RANK},
    "free sizes within bounds": lambda n, k: {"sizes": "free", "balance": 0.3},
    "free sizes, known labels": lambda n, k: {"sizes": "free", "known_labels": partial(n, k)},
    "free sizes for all points": lambda n, k: {"sizes": "free", "k": n},
    "one cluster": lambda n, k: {"k": 1},
    "as many clusters as points": lambda n, k: {"k": n},
}


def asked(name, what, n):
    """Return k and the parameters of a row of the table, or None where the method lacks one."""
    accepted = set(inspect.signature(METHODS[name].function).parameters)
    if name in WITHOUT_RANK:
        accepted -= {"rank"}
    k = 2 if METHODS[name].binary or "known" in what else min(3, n)
    params = ASKED[what](n, k)
    return (params.pop("k", k), params) if set(params) <= accepted else None


@pytest.fixture(autouse=True)
def guard():
    """End the process, with a traceback, if a call hangs: compiled loops cannot be interrupted."""
    faulthandler.dump_traceback_later(GUARD, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


def run(name, X, k=2, **params):
    """Call a method as its signature allows; return the result, or None where X was refused."""
    function, accepted = (
        METHODS[name].function,
        inspect.signature(METHODS[name].function).parameters,
    )
    common = {"n_init": 2, "random_state": 0, "max_time": BUDGET, **params}
    given = {key: value for key, value in common.items() if key in accepted}
    before = X.copy() if isinstance(X, np.ndarray) else X
    with warnings.catch_warnings():
        # Nothing may overflow, divide by zero or be lost in a cast behind the user's back.
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)
        try:
            result = function(X, *(() if METHODS[name].binary else (k,)), **given)
        except (ValueError, TypeError) as error:
            assert re.search(NAMES, str(error)), f"names no parameter: {error}"
            return None
    if isinstance(X, np.ndarray):
        np.testing.assert_array_equal(X, before)
    return result


def dense(X):
    X = X.toarray() if sparse.issparse(X) else np.asarray(X)
    return X.astype(np.float64)


def check_labels(result, X, k):
    n = dense(X).shape[0]
    assert result.labels.shape == (n,) and result.labels.dtype == np.int64
    assert result.labels.min() >= 0 and result.labels.max() < len(result.sizes) <= k
    np.testing.assert_array_equal(
        np.bincount(result.labels, minlength=len(result.sizes)), result.sizes
    )


def check_figures(result):
    """Every figure is finite, or the status says that the run went wrong."""
    figures = [result.objective, *result.history, getattr(result, "loo_mse", None) or 0.0]
    assert np.isfinite(figures).all() or result.status == Status.NUMERICAL


def hat_again(result, X):
    """R of the result's own kernel and lam; of low rank that of the same landmarks."""
    p = result.params
    if result.model.indices is None:
        K = fastmmc.kernels.gram.Kernel("rbf", sigma=p["sigma"]).block(dense(X), dense(X))
        return naive.hat_matrix(K, p["lam"])
    landmarks = result.model.indices
    Z = fastmmc.factor(X, lam=p["lam"], sigma=p["sigma"], landmarks=landmarks, random_state=0).Z
    return Z.astype(np.float64) @ Z.T


def objective_again(name, result, X):
    """The objective from the labels alone, or None where there is no twin."""
    if name in DISTANCES or name == "sammc":
        distances = cdist(dense(X), result.centers)[np.arange(len(result.labels)), result.labels]
        if name == "sammc":
            return distances.sum()
        return np.sum(distances**2) / (2.0 if name in ("lcvqe", "cvqe") else 1.0)
    if name not in RLS:
        return None
    R = hat_again(result, X)
    if name == "umc-rls" and result.params["sizes"] != "equal":
        return naive.free_cost(R, result.labels, len(result.sizes))
    if name == "umc-rls":
        return naive.risk(R, result.labels, len(result.sizes))
    y = 2.0 * result.labels - 1.0
    return len(y) - y @ R @ y


def check_objective(name, result, X):
    if result.status == Status.NUMERICAL:
        return
    again = objective_again(name, result, X)
    single = np.asarray(X if sparse.issparse(X) is False else 0.0).dtype == np.float32
    if again is not None:
        # Q of labels that fit is a small difference of numbers of about n.
        slack = len(result.labels) * (1e-4 if single else 1e-7)
        if name in RLS:
            assert result.objective == pytest.approx(again, rel=1e-6, abs=slack)
        else:
            with np.errstate(over="ignore"):
                scale = float(np.sum(dense(X) ** 2)) ** (0.5 if name == "sammc" else 1.0)
            assert result.objective == pytest.approx(
                again, rel=1e-3 if single else 1e-6, abs=1e-9 * scale
            )


def check_sizes(result, n, k, known):
    """Check the sizes against the rule that the call was given."""
    p = result.params
    if "min_size" in p and result.status != Status.NUMERICAL:
        counts = np.bincount(result.labels, minlength=k)
        check_bounds(counts, n, k, known, p["balance"], p["min_size"], p["target_sizes"])


# Data on which every method that takes their kind must return a result.
TAKEN = (
    "ordinary",
    "duplicates",
    "constant columns",
    "scale 1e-5",
    "scale 1e5",
    "float32",
    "integers",
    "Fortran order",
    "read-only",
    "list",
    "one feature",
    "wide",
)
# And which some must take that look at distances, or at few points, only.
ALSO_TAKEN = dict.fromkeys(DISTANCES, ("identical", "two equal points", "squares of 1e300"))
ALSO_TAKEN |= {"evo-mmc": ("identical",)}
ALSO_TAKEN |= dict.fromkeys(SDP, ("identical", "two points", "evenly spaced"))


def seeds(count, slow_from):
    """Draw so many cases, the later ones where there is time."""
    slow = [pytest.param(seed, marks=pytest.mark.slow) for seed in range(slow_from, count)]
    return pytest.mark.parametrize("seed", [*range(slow_from), *slow])


def data_of(name):
    """Return the data of a method, a part of them if it takes long; the others are slow tests."""
    return list(DATA)[::4] if name in COSTLY else list(DATA)


def takers(what):
    """Return the methods that have what is asked."""
    return [name for name in sorted(METHODS) if asked(name, what, N) is not None]


def alternates(what, data):
    """Tell whether data are left to the slow tests, as every other row where one method has it."""
    return len(takers(what)) == 1 and (list(ASKED).index(what) + list(DATA).index(data)) % 2 == 1


def pairs():
    """Return triples that hold all pairs of a method, data and what is asked.

    Every method takes all data as they are, a costly one every fourth row, and what is asked goes
    over all data, each time of the next one of the methods that have it; see :func:`alternates`.
    """
    turns = []
    for at, what in enumerate(ASKED):
        names = takers(what)
        for place, data in enumerate(DATA):
            if alternates(what, data):
                continue
            turn = (place + at) % len(names)
            able = (n for n in (*names[turn:], *names[:turn]) if data in data_of(n))
            turns.append((next(able), data, what))
    plain = {(name, data, "nothing") for name in METHODS for data in data_of(name)}
    rare = {
        (name, data_of(name)[at % len(data_of(name))], what)
        for at, what in enumerate(ASKED)
        for name in COSTLY
        if name in takers(what)
    }
    return plain.union(turns, rare)


PAIRS = pairs()


def test_all_pairs_are_there():
    wanted = {(data, what) for data in DATA for what in ASKED if not alternates(what, data)}
    assert {(data, what) for _, data, what in PAIRS} == wanted
    assert {what for what in ASKED if len(takers(what)) == 1} < {what for _, what in wanted}
    wanted = {(name, data) for name in METHODS for data in data_of(name)}
    assert {(name, data) for name, data, _ in PAIRS} == wanted
    assert {(name, what) for name, _, what in PAIRS} == {(a, b) for b in ASKED for a in takers(b)}


def check_rows(name, data, rows):
    X = DATA[data]()
    for what in rows:
        row = asked(name, what, dense(X).shape[0])
        if row is not None:
            faulthandler.dump_traceback_later(GUARD, exit=True)  # anew for every call
            check_row(name, data, what, X, *row)


def every_pair(data_of):
    pairs = [(name, data) for name in sorted(METHODS) for data in data_of(name)]
    return pytest.mark.parametrize(("name", "data"), pairs)


@pytest.mark.jit
@every_pair(data_of)
def test_degenerate_data(name, data):
    check_rows(name, data, [what for what in ASKED if (name, data, what) in PAIRS])


@pytest.mark.slow
@pytest.mark.jit
@every_pair(lambda name: DATA)
def test_degenerate_data_with_all_that_may_be_asked(name, data):
    check_rows(name, data, [what for what in ASKED if (name, data, what) not in PAIRS])


def check_row(name, data, what, X, k, params):
    n = dense(X).shape[0]
    result = run(name, X, k, **params)
    if result is None:
        must = data in TAKEN or data in ALSO_TAKEN.get(name, ())
        assert not (must and what == "nothing"), "must be taken"
        return
    known = params.get("known_labels")
    check_labels(result, X, k)
    if (name, data, what) not in UNTOLD:
        check_figures(result)
    check_sizes(result, n, k, known)
    if not getattr(result, "n_constraints", 0):
        check_objective(name, result, X)
    if name == "umc-rls" and known is not None:
        np.testing.assert_array_equal(result.labels[known >= 0], known[known >= 0])
    if name in DISTANCES:
        assert np.isfinite(result.all_centers).all()
    if name in SDP:
        assert result.sizes.min() >= 1
        assert result.bound <= result.objective * (1 + 1e-9)


def pick(rng, *choices):
    return choices[rng.integers(len(choices))]


def drawn_known(rng, n, k):
    """Return known labels of some points, None as often as not."""
    if rng.random() < 0.5:
        return None
    known = np.full(n, -1)
    some = rng.permutation(n)[: rng.integers(n + 1)]
    known[some] = rng.integers(0, pick(rng, 1, k), some.size)
    return known


def drawn_sizes(rng, n, k):
    """Return a size rule: bounds that bind, targets, or none."""
    rule = {"balance": pick(rng, None, 0, 0.1, 0.5, 1.0)}
    if rng.random() < 0.3:
        rule["target_sizes"] = rng.multinomial(n, rng.dirichlet(np.ones(k)))
    rule["min_size"] = int(rng.integers(0, n // k + 1))
    return rule


def drawn_factor(rng, X):
    """Return a hat matrix or a factor of it, of either precision."""
    n = len(X)
    low = {"rank": int(rng.integers(1, n + 1)), "landmarks": pick(rng, "uniform", "pivoted")}
    return fastmmc.factor(
        X,
        lam=float(2.0 ** rng.integers(-8, 8)),
        dtype=pick(rng, None, "float32", "float64"),
        random_state=int(rng.integers(1000)),
        **pick(rng, {"rank": None}, low, low),
    )


def entries(factor):
    """Return the hat matrix that a factor stands for, in double precision."""
    if hasattr(factor, "Z"):
        Z = factor.Z.astype(np.float64)
        return Z @ Z.T
    return factor.R.astype(np.float64)


def random_problem(rng):
    """Return a factor of hostile data and a number of clusters, or None if it is refused."""
    what = pick(rng, *(w for w in DRAWN if w not in ("list", "sparse", "sparse zeros", "bool")))
    X = np.asarray(DATA[what]())
    if rng.random() < 0.3:
        X = X[np.arange(rng.integers(2, 60)) % len(X)]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return drawn_factor(rng, X)
    except ValueError as error:
        assert re.search(NAMES, str(error)), error
        return None


# What sizes, known labels and first labels may not ask for together.
REFUSALS = r"no sizes of|known labels|init: cluster|at least 2 points"


def run_random(seed, call):
    """Run ``call(rng, factor)``, which returns a result and what it must keep to."""
    rng = np.random.default_rng(seed)
    factor = random_problem(rng)
    if factor is None:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            result, k, sizes, known = call(rng, factor)
        except ValueError as error:
            assert re.search(
                r"no sizes of|known labels|init: cluster|at least 2 points", str(error)
            ), error
            return
    assert result.status in (Status.CONVERGED, Status.MAX_ITER), result
    counts = np.bincount(result.labels, minlength=k)
    np.testing.assert_array_equal(counts, result.sizes)
    check_bounds(counts, factor.n, k, known, **sizes)
    if known is not None:
        np.testing.assert_array_equal(result.labels[known >= 0], known[known >= 0])
    R = entries(factor)
    if k == 2 and "generations" in result.trace:
        y = 2.0 * result.labels - 1.0
        again = factor.n - y @ R @ y
    else:
        again = naive.risk(R, result.labels, k)
    # Of few points the product Z Z^T is made in the precision of Z.
    rounded = hasattr(factor, "Z") and factor.Z.dtype == np.float32
    tol = 1e-6 if rounded else 1e-9
    assert result.objective == pytest.approx(again, rel=tol, abs=tol * factor.n)


def check_bounds(counts, n, k, known, balance, min_size, target_sizes=None):
    """Check sizes against the rule as the docs state it."""
    assert counts.min() >= min_size
    if balance is not None:
        centre = np.full(k, n / k) if target_sizes is None else np.asarray(target_sizes)
        slack = balance * n / k + 1e-9
        least = np.minimum(np.ceil(centre - slack), np.floor(centre))
        most = np.maximum(np.floor(centre + slack), np.ceil(centre))
        assert (counts >= least).all() and (counts <= most).all()


@pytest.mark.jit
@seeds(150, slow_from=50)
def test_random_options_of_umc_rls(seed):
    """Sizes within their bounds, known labels kept, a risk that is that of the labels."""

    def call(rng, factor):
        n = factor.n
        k = int(rng.integers(1, min(n, 6) + 1))
        known, sizes = drawn_known(rng, n, k), drawn_sizes(rng, n, k)
        result = fastmmc.umc_rls(
            factor,
            k,
            method=pick(rng, "shaking", "steepest", "stochastic", "memetic"),
            init=pick(rng, "random", rng.integers(0, k, n)),
            known_labels=known,
            polish=bool(rng.integers(2)),
            keep_best=bool(rng.integers(2)),
            population=int(rng.integers(2, 5)),
            patience=3,
            start_round=int(rng.integers(3)),
            n_init=int(rng.integers(1, 3)),
            random_state=int(rng.integers(1000)),
            max_time=BUDGET,
            **sizes,
        )
        return result, k, sizes, known

    run_random(seed, call)


@pytest.mark.jit
@seeds(100, slow_from=33)
def test_random_options_of_evolution(seed):
    def call(rng, factor):
        n = factor.n
        sizes = drawn_sizes(rng, n, 2) | {"balance": pick(rng, 0.0, 0.1, 0.5, 0.99)}
        sizes["min_size"] = max(1, sizes["min_size"])
        function = pick(rng, fastmmc.evo_mmc, fastmmc.fast_evo_mmc)
        result = function(
            factor,
            mu=int(rng.integers(1, 5)),
            nu=int(rng.integers(1, 5)),
            flips=pick(rng, None, 1, 2),
            init=pick(rng, "random", rng.integers(0, 2, n)),
            classify=bool(rng.integers(2)),
            distinct=bool(rng.integers(2)),
            polish=bool(rng.integers(2)),
            n_init=int(rng.integers(1, 3)),
            random_state=int(rng.integers(1000)),
            max_time=BUDGET,
            **sizes,
        )
        return result, 2, sizes, None

    run_random(seed, call)


def hostile_points(rng):
    """Return points of a random kind, sometimes repeated until they are many."""
    what = pick(rng, *(w for w in DRAWN if w not in ("list", "bool")))
    X = DATA[what]()
    if not sparse.issparse(X) and rng.random() < 0.3:
        X = np.asarray(X)[np.arange(rng.integers(2, 60)) % len(X)]
    return X


def attempt(function, *args, **kwargs):
    """Return the result, or None if the call was refused with an error that names a reason."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)
        try:
            return function(*args, max_time=BUDGET, **kwargs)
        except (ValueError, TypeError) as error:
            assert re.search(f"{NAMES}|{REFUSALS}|points|known_labels", str(error)), error
            return None


@pytest.mark.jit
@seeds(60, slow_from=20)
def test_random_options_of_alternating_machines(seed):
    rng = np.random.default_rng(seed)
    X = hostile_points(rng)
    n = X.shape[0]
    if n < 2:
        return
    function = pick(rng, fastmmc.iter_svr, fastmmc.iter_svm, fastmmc.iter_ls_svm)
    sizes = drawn_sizes(rng, n, 2) | {"balance": pick(rng, 0.0, 0.1, 0.5, 0.99)}
    sizes["min_size"] = max(1, sizes["min_size"])
    result = attempt(
        function,
        X,
        C=float(10.0 ** rng.integers(-2, 5)),
        init=pick(rng, "farthest", "random", "kmeans"),
        bias=pick(rng, "joint", "tied"),
        rank=pick(rng, None, None, int(rng.integers(1, n + 1))),
        n_init=int(rng.integers(1, 3)),
        random_state=int(rng.integers(1000)),
        **sizes,
    )
    if result is not None:
        check_labels(result, X, 2)
        check_figures(result)
        check_bounds(np.bincount(result.labels, minlength=2), n, 2, None, **sizes)


@pytest.mark.jit
@seeds(60, slow_from=20)
def test_random_options_of_competitive_learning(seed):
    rng = np.random.default_rng(seed)
    X = hostile_points(rng)
    n = X.shape[0]
    k = int(rng.integers(1, min(n, 6) + 1))
    function = pick(rng, fastmmc.c_rpcl, fastmmc.o_lcvqe, fastmmc.lcvqe, fastmmc.cvqe)
    pairs = rng.integers(0, n, (2, int(rng.integers(0, 9)), 2))
    links = [pair[pair[:, 0] != pair[:, 1]] for pair in pairs]
    result = attempt(
        function,
        X,
        k,
        init=pick(rng, "gaussian", "k-means++"),
        known_labels=drawn_known(rng, n, k),
        must_link=links[0],
        cannot_link=links[1],
        on_conflict="warn",
        max_iter=int(rng.integers(1, 30)),
        random_state=int(rng.integers(1000)),
    )
    if result is not None:
        check_labels(result, X, k)
        check_figures(result)
        if result.status != Status.NUMERICAL and not result.n_constraints:
            check_objective(function.__name__.replace("_", "-"), result, X)
