"""Columns in different units: the warning, and standardising as an option."""

import pickle
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array, csr_matrix
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_union
from sklearn.preprocessing import StandardScaler

import fastmmc
from fastmmc import plotting
from fastmmc.choice import units
from fastmmc.choice.units import are_better_scaled
from fastmmc.data.columns import CATEGORY_DISTANCE
from fastmmc.data.standardization import fit_scaler
from fastmmc.data.units import have_different_units
from tests.cli.runner import labels_of

MESSAGE = "columns of X seem to have different units"
RUN = {"n_init": 2, "random_state": 0}


@pytest.fixture(scope="module")
def wine():
    return load_wine(return_X_y=True)


def heard(call):
    """Return the warnings of units that a call gives."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        call()
    return [one for one in told if MESSAGE in str(one.message)]


def noisy(wine):
    """Return good points with a column of noise that is a hundred times wider."""
    X = StandardScaler().fit_transform(wine[0])
    return np.c_[X, 100.0 * np.random.default_rng(0).standard_normal(len(X))]


CALLS = {
    "umc_rls": lambda X: fastmmc.umc_rls(X, 3, **RUN, sizes="equal"),
    "umc_rls linear": lambda X: fastmmc.umc_rls(X, 3, kernel="linear", **RUN, sizes="equal"),
    "umc_rls_path": lambda X: fastmmc.umc_rls_path(X, 3, [0.1, 1.0], **RUN, sizes="equal"),
    "UMCRLS": lambda X: fastmmc.UMCRLS(3, **RUN, sizes="equal").fit(X),
    "factor": lambda X: fastmmc.factor(X),
    "evo_mmc": lambda X: fastmmc.evo_mmc(X, **RUN),
    "iter_svr": lambda X: fastmmc.iter_svr(X, **RUN),
    "cpmmc": lambda X: fastmmc.cpmmc(X, max_iter=5, **RUN),
    "sammc": lambda X: fastmmc.sammc(X, 3, random_state=0),
    "wta": lambda X: fastmmc.wta(X, 3, random_state=0),
    "recursive_mmc": lambda X: fastmmc.recursive_mmc(X, 3, random_state=0),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_one_warning_a_call(call, wine):
    (told,) = heard(lambda: call(wine[0]))
    assert told.category is UserWarning
    assert told.filename == __file__
    assert "column 12 spans" in str(told.message)


def test_columns_are_called_by_their_names():
    pytest.importorskip("pandas")
    table = load_wine(as_frame=True).data
    for call in (CALLS["umc_rls"], CALLS["UMCRLS"], lambda X: fastmmc.SAMMC(3).fit(X)):
        (told,) = heard(lambda call=call: call(table))
        assert "'proline' spans" in str(told.message)
        assert "'nonflavanoid_phenols', 'hue', 'ash', " in str(told.message)
        assert ", and 1 more, so the latter" in str(told.message)


@pytest.mark.parametrize(("scale", "times"), [(1e4, r"is \d+,\d+ times"), (1e100, r"is .{4}e\+")])
def test_a_huge_ratio_is_told_in_few_digits(scale, times):
    X = np.random.default_rng(0).random((50, 2)) * [1.0, scale]
    (told,) = heard(lambda: fastmmc.factor(X, lam=1.0))
    assert re.search(times, str(told.message))


def silent_sets():
    rng = np.random.default_rng(0)
    yield "pixels", load_digits().data
    yield "standardised", StandardScaler().fit_transform(load_breast_cancer().data)
    yield "one column", 1e6 * rng.random((50, 1))
    yield "constant columns", np.c_[rng.random((50, 2)), np.full((50, 3), [0.0, 1e6, 1e-6])]
    yield "one-hot, rare", np.eye(200)[rng.zipf(1.3, 1000).clip(1, 200) - 1]
    yield "an outlier", np.r_[rng.random((99, 2)), [[1e6, 0.0]]]
    yield "tails", rng.standard_cauchy((200, 3))
    yield "one lost among ten", rng.random((50, 10)) * np.r_[1e-3, np.ones(9)]
    yield "few points", rng.random((10, 2)) * [1.0, 1e6]
    yield "factor of ten", rng.random((200, 2)) * [1.0, 10.0]


@pytest.mark.parametrize("X", [pytest.param(X, id=name) for name, X in silent_sets()])
def test_columns_in_one_unit_give_no_warning(X):
    assert not heard(lambda: fastmmc.factor(X, lam=1.0, sigma=10.0))


@pytest.mark.parametrize(
    "X",
    [
        load_breast_cancer().data,
        np.random.default_rng(0).random((100, 2)) * [1.0, 1e6],
        np.random.default_rng(0).random((100, 2)).astype(np.float32) * np.float32([1e-6, 1.0]),
        np.c_[np.eye(3)[np.arange(99) % 3], 3e4 * np.random.default_rng(0).random(99)],
    ],
    ids=["wdbc", "two", "single precision", "one-hot and an income"],
)
def test_columns_in_different_units_give_one(X):
    assert len(heard(lambda: fastmmc.factor(X, lam=1.0))) == 1


def test_what_has_no_columns_in_units_is_not_looked_at(wine, rng):
    X = wine[0]
    assert not heard(
        lambda: fastmmc.umc_rls(X @ X.T, 3, kernel="precomputed", lam=100.0, **RUN, sizes="equal")
    )
    assert not heard(
        lambda: fastmmc.umc_rls(X, 3, kernel=lambda X, Z: 1e-6 * X @ Z.T, **RUN, sizes="equal")
    )
    assert not heard(lambda: fastmmc.wta(csr_array(X), 3, random_state=0))
    F = fastmmc.factor(StandardScaler().fit_transform(X))
    assert not heard(lambda: fastmmc.umc_rls(F, 3, **RUN, sizes="equal"))
    image = (rng.random((20, 20, 3)) * [255.0, 255.0, 1.0]).round()
    assert not heard(lambda: fastmmc.segment(image, 2, method="evo_mmc"))


def test_one_wide_noisy_column_is_told_and_standardising_helps(wine):
    X, y = noisy(wine), wine[1]
    with pytest.warns(UserWarning, match="column 13 spans 3.*times the range of columns"):
        raw = fastmmc.umc_rls(X, 3, random_state=0, sizes="equal")
    assert adjusted_rand_score(y, raw.labels) < 0.1
    result = fastmmc.umc_rls(X, 3, standardize=True, random_state=0, sizes="equal")
    assert adjusted_rand_score(y, result.labels) > 0.75


SOLVERS = {
    "umc_rls": lambda X, **told: fastmmc.umc_rls(X, 3, **RUN, **told, sizes="equal"),
    "free": lambda X, **told: fastmmc.umc_rls(X, 3, sizes="free", random_state=0, **told),
    "low rank": lambda X, **told: fastmmc.umc_rls(X, 3, rank=40, **RUN, **told, sizes="equal"),
    "linear": lambda X, **told: fastmmc.umc_rls(
        X, 3, kernel="linear", **RUN, **told, sizes="equal"
    ),
    "path": lambda X, **told: fastmmc.umc_rls_path(X, 3, [0.1, 1.0], **RUN, **told, sizes="equal")[
        1
    ],
    "evo_mmc": lambda X, **told: fastmmc.evo_mmc(X, **RUN, **told),
    "fast_evo_mmc": lambda X, **told: fastmmc.fast_evo_mmc(X, **RUN, **told),
    "cluster": lambda X, **told: fastmmc.cluster(X, 3, random_state=0, **told),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("solve", SOLVERS.values(), ids=SOLVERS)
def test_standardize_is_what_the_scaler_does(solve, dtype, wine):
    X = wine[0].astype(dtype)
    before, scaler = X.copy(), StandardScaler().fit(X)
    expected, result = solve(scaler.transform(X)), solve(X, standardize=True)
    assert_array_equal(X, before)
    assert_array_equal(result.labels, expected.labels)
    assert result.objective == expected.objective
    assert result.params["standardize"] and not expected.params["standardize"]
    new = X[::3] * dtype(1.1)
    # A model in double precision scales the new points in it.
    assert_allclose(
        result.decision_function(new),
        expected.decision_function(scaler.transform(new)),
        atol=1e-12 if dtype is np.float64 else 1e-5,
    )
    assert_array_equal(pickle.loads(pickle.dumps(result)).predict(new), result.predict(new))


def test_predictions_do_not_depend_on_the_output_that_scikit_learn_is_set_to(wine):
    result = fastmmc.umc_rls(wine[0], 3, standardize=True, random_state=0)
    with config_context(transform_output="pandas"):
        assert_array_equal(result.predict(wine[0]), result.labels)


def test_sparse_points_are_divided_only(rng):
    X = csr_matrix(rng.random((60, 5)) * (rng.random((60, 5)) < 0.4) * [1.0, 10.0, 1e3, 1.0, 1.0])
    scaler = StandardScaler(with_mean=False).fit(X)
    told = {"rank": 20, **RUN}
    result = fastmmc.umc_rls(X, 2, standardize=True, **told, sizes="equal")
    expected = fastmmc.umc_rls(scaler.transform(X), 2, **told, sizes="equal")
    # Which of them comes first is a matter of rounding.
    assert adjusted_rand_score(result.labels, expected.labels) == 1.0
    assert_array_equal(result.predict(X), result.predict(X.toarray()))


def test_landmarks_are_scaled_with_the_points(wine):
    X, told = wine[0], {"n_init": 1, "random_state": 0}
    scaler = StandardScaler().fit(X)
    result = fastmmc.umc_rls(X, 3, standardize=True, landmarks=X[::6], **told, sizes="equal")
    Z = scaler.transform(X)
    assert_array_equal(
        result.labels, fastmmc.umc_rls(Z, 3, landmarks=Z[::6], **told, sizes="equal").labels
    )
    with pytest.raises(ValueError, match="landmarks"):
        fastmmc.umc_rls(X, 3, standardize=True, landmarks=X[::6, :4], sizes="equal")


def test_what_was_standardised_as_an_array_predicts_sparse_points(wine):
    result = fastmmc.umc_rls(wine[0], 3, standardize=True, random_state=0)
    rows = wine[0][:9]
    expected = result.decision_function(rows)
    assert_array_equal(result.decision_function(csr_matrix(rows)), expected)
    assert_array_equal(result.predict(csr_matrix(rows)), result.labels[:9])


def test_estimators_standardize(wine):
    X = wine[0]
    for model in (fastmmc.UMCRLS(3, **RUN, sizes="equal"), fastmmc.AutoMMC(3, random_state=0)):
        fitted = clone(model).set_params(standardize=True).fit(X)
        expected = clone(model).fit(StandardScaler().fit_transform(X))
        assert_array_equal(fitted.labels_, expected.labels_)
        assert_array_equal(fitted.predict(X), fitted.labels_)
        assert fitted.score(X) <= 0


def test_the_parameters_chosen_tell_of_it(wine):
    X = wine[0]
    result = fastmmc.cluster(X, 3, standardize=True, random_state=0)
    assert result.chosen["standardize"]
    again = fastmmc.umc_rls(X, 3, **result.chosen)
    assert adjusted_rand_score(again.labels, result.labels) > 0.9


def test_pictures_show_the_points_as_they_were(wine):
    result = fastmmc.umc_rls(wine[0], 3, standardize=True, **RUN, sizes="equal")
    assert_allclose(result.model.points, wine[0], rtol=1e-12)
    plotting.ClusterDisplay.from_result(result)


def test_constant_columns_and_few_points_standardize():
    X = np.c_[np.arange(6.0), np.full(6, 3.0)]
    result = fastmmc.umc_rls(X, 2, standardize=True, random_state=0, sizes="equal")
    assert_array_equal(result.predict(X), result.labels)
    assert fastmmc.umc_rls(X[:1], 1, standardize=True, sizes="equal").labels == [0]
    assert fastmmc.cluster(X, 1, standardize=True).sizes == [6]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda X: fastmmc.umc_rls(fastmmc.factor(X), 2, standardize=True, sizes="equal"),
            "a DenseFactor",
        ),
        (
            lambda X: fastmmc.umc_rls(
                X @ X.T, 2, kernel="precomputed", standardize=True, sizes="equal"
            ),
            "a Gram matrix",
        ),
        (
            lambda X: fastmmc.umc_rls(1e200 * X, 2, standardize=True, sizes="equal"),
            "variance of column 0",
        ),
        (
            lambda X: fastmmc.umc_rls(
                np.where(X > 1, np.nan, X), 2, standardize=True, sizes="equal"
            ),
            "X.*NaN",
        ),
        (
            lambda X: fastmmc.umc_rls(X[0], 2, standardize=True, sizes="equal"),
            "X: Expected 2D array",
        ),
    ],
)
def test_what_cannot_be_standardised_is_refused(call, message, rng):
    with pytest.raises(ValueError, match=message):
        call(rng.standard_normal((30, 3)))
    with pytest.raises(TypeError, match="standardize must be True or False"):
        fastmmc.umc_rls(rng.standard_normal((30, 3)), 2, standardize="auto", sizes="equal")


@pytest.mark.parametrize("name, least", [("wine", 0.85), ("breast_cancer", 0.7)])
def test_the_choice_standardises_columns_in_different_units(name, least):
    X, y = fastmmc.datasets.load(name)
    results = []
    assert not heard(lambda: results.append(fastmmc.cluster(X, y.max() + 1, random_state=0)))
    (result,) = results
    assert adjusted_rand_score(y, result.labels) > least
    assert result.params["standardize"] is True
    told = fastmmc.cluster(X, y.max() + 1, standardize=True, random_state=0)
    assert_array_equal(told.labels, result.labels)
    assert_array_equal(result.predict(X), told.predict(X))


def test_the_choice_leaves_columns_that_share_a_unit():
    X, _ = fastmmc.datasets.load("iris")
    result = fastmmc.cluster(X, 3, random_state=0)
    assert result.params["standardize"] is False
    raw = fastmmc.cluster(X, 3, standardize=False, random_state=0)
    assert_array_equal(raw.labels, result.labels)
    assert fastmmc.AutoMMC(3, random_state=0).fit(csr_array(X)).predict(X[:2]).size == 2


def test_the_choice_standardises_where_clusters_then_agree():
    """The spans differ by less than what is warned of: raw, prices cut the clusters."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=400)
    X = np.c_[rng.normal(size=(400, 3)) + 5.0 * np.eye(3)[y], rng.lognormal(3.0, 1.0, 400).round(2)]
    frame = pd.DataFrame(X, columns=["a", "b", "c", "price"]).assign(id=range(400))
    assert not have_different_units(X)
    with pytest.warns(UserWarning, match="'id' is left out"):
        results = [fastmmc.cluster(given, 3, random_state=0) for given in (X, frame)]
    for result in results:
        assert result.params["standardize"] is True
        assert adjusted_rand_score(y, result.labels) > 0.95
    raw = fastmmc.cluster(X, 3, standardize=False, random_state=0)
    assert adjusted_rand_score(y, raw.labels) < 0.9
    with pytest.warns(ConvergenceWarning, match="time limit"):
        short = fastmmc.cluster(X, 3, random_state=0, max_time=0.02)
    assert short.params["standardize"] is False


def test_units_are_those_of_as_many_rows_as_weights_say(rng):
    y = rng.integers(3, size=150)
    X = np.c_[rng.normal(size=(150, 2)) + 6.0 * np.eye(3, 2)[y], rng.lognormal(3.0, 1.0, 150)]
    weights = rng.integers(3, size=150)
    assert are_better_scaled(X, weights.astype(float), k=3)
    assert are_better_scaled(np.repeat(X, weights, axis=0), k=3)
    assert not are_better_scaled(X, k=1) and not are_better_scaled(X[:19], k=3)
    assert not are_better_scaled(np.where(X > 30, np.inf, X), k=3)
    # Somebody has standardised the columns; those of two values are not tried with less weight.
    X = StandardScaler().fit_transform(np.c_[X, rng.random(150) < 0.2])
    assert not are_better_scaled(X, k=3)


@pytest.mark.jit
def test_an_interrupt_among_units_is_one_of_the_call(monkeypatch):
    def interrupted(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr(units, "vote", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fastmmc.cluster(np.random.default_rng(0).normal(size=(50, 2)), 2)


def coded(*columns):
    """Return columns of 0 and 1, one for each category of each column."""
    return np.hstack([column[:, None] == np.arange(column.max() + 1) for column in columns]) * 1.0


def test_one_wrong_cell_or_a_nearly_constant_column_hides_no_difference(rng):
    X = np.column_stack(
        (7.0 + 0.5 * rng.normal(size=300), 100.0 + 20.0 * rng.normal(size=(300, 4)))
    )
    assert have_different_units(X)
    assert have_different_units(np.column_stack((X, 500.0 * (np.arange(300) == 7))))
    X[3, 0] = 70.0
    assert have_different_units(X)


def test_columns_of_two_values_span_what_a_category_does(rng):
    """Whatever else there is, and in whatever order; others have deviation 1."""
    three, two = rng.integers(3, size=60), rng.integers(2, size=60)
    X = np.column_stack((coded(three)[:, 1:], rng.normal(size=60), 7.0 - 3.0 * two, np.ones(60)))
    scaled = fit_scaler(X).transform(X)
    assert_allclose(np.ptp(scaled, axis=0)[[0, 1, 3, 4]], [*[CATEGORY_DISTANCE / 2**0.5] * 3, 0.0])
    assert_allclose(scaled.std(axis=0)[2], 1.0)
    rare = csr_array(X)
    assert_allclose(fit_scaler(rare).scale, StandardScaler(with_mean=False).fit(rare).scale_)


def test_a_table_of_numbers_is_the_same_however_it_comes(tmp_path, capsys):
    """With an id or a missing cell the coding scales, and the index was 0 in place of 1."""
    rng = np.random.default_rng(0)
    y = rng.choice(3, 300, p=[0.4, 0.35, 0.25])
    told = {"age": [30, 45, 65], "income": [2e4, 6e4, 4e4], "spend": [300, 800, 1500]}
    frame = pd.DataFrame(
        {name: np.array(means)[y] * (1 + rng.normal(0, 0.1, 300)) for name, means in told.items()}
        | {"region": rng.choice(list("nsew"), 300), "member": rng.choice(["yes", "no"], 300)}
    )
    frame = pd.get_dummies(frame, dtype=int, drop_first=True)
    lacking = frame.copy()
    lacking.iloc[3, 0] = np.nan
    frame.to_csv(tmp_path / "table.csv", index=False)
    found = [labels_of(capsys, "cluster", tmp_path / "table.csv", "-k", "3")[0]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the id
        for X in (
            frame,
            frame.to_numpy(),
            frame.iloc[:, ::-1],
            frame.assign(id=range(300)),
            lacking,
        ):
            found.append(fastmmc.cluster(X, 3, random_state=0).labels)
    assert all(adjusted_rand_score(y, labels) > 0.98 for labels in found)


@pytest.mark.parametrize("units", [pytest.param(1.0, marks=pytest.mark.slow), 100.0])
def test_categories_coded_by_the_user_weigh_as_those_of_a_table(units):
    found = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        y = rng.integers(3, size=300)
        numbers = (4.0 * np.eye(3, 4)[y] * 1.5 + rng.normal(size=(300, 4))) * [units, 5, 1, 1]
        X = np.hstack((numbers, coded(rng.integers(5, size=300), rng.integers(3, size=300))))
        for k in ("cluster", "umc_rls"):
            given = {} if k == "cluster" else {"standardize": True}
            labels = getattr(fastmmc, k)(X, 3, random_state=0, **given).labels
            found.append(adjusted_rand_score(y, labels))
    assert np.mean(found) > 0.95


@pytest.mark.parametrize("sparse", [False, True])
def test_weights_make_units_as_copies_do(wine, sparse):
    X = wine[0][:60]
    w = np.random.default_rng(0).integers(0, 4, 60)
    rows = np.repeat(X, w, axis=0)
    if sparse:
        X, rows = csr_array(X), csr_array(rows)
    weighted, copies = fit_scaler(X, w.astype(float)), fit_scaler(rows)
    assert_allclose(weighted.scale, copies.scale)
    assert sparse or assert_allclose(weighted.mean, copies.mean) is None


@pytest.mark.parametrize(("weight", "differ"), [(0.0, False), (1.0, True)])
def test_points_without_weight_make_no_difference_of_units(weight, differ):
    X = np.random.default_rng(0).random((60, 3))
    X[:20, 0] *= 1e3
    weights = np.repeat([weight, 1.0], [20, 40])
    assert have_different_units(X, weights) is differ
    assert have_different_units(X[:19]) is False
    assert have_different_units(X[:19], np.full(19, 2.0)) is False
    assert have_different_units(X[:19], np.arange(19.0)) is True


@pytest.mark.parametrize("step", [10, 150])
def test_marks_of_missing_cells_make_no_difference_of_units(step, tmp_path, capsys):
    """An index of .49 and .64 is what a scaled column of marks leads to."""
    frame = pd.DataFrame(fastmmc.datasets.load("iris")[0], columns=list("abcd"))
    whole = fastmmc.cluster(frame, 3, random_state=0)
    frame.loc[::step, "b"] = np.nan
    result = fastmmc.cluster(frame, 3, random_state=0)
    assert not result.params["standardize"] and not result.coding.is_scaled
    assert adjusted_rand_score(result.labels, whole.labels) > 0.9
    frame.to_csv(tmp_path / "iris.csv", index=False)
    labels, _ = labels_of(capsys, "cluster", tmp_path / "iris.csv", "-k", "3")
    assert_array_equal(labels, result.labels)


def test_columns_with_missing_cells_are_scaled_as_those_without(wine):
    frame = pd.DataFrame(wine[0]).add_prefix("c")
    whole = fastmmc.cluster(frame, 3, random_state=0)
    frame.loc[::30, "c1"] = np.nan
    result = fastmmc.cluster(frame, 3, random_state=0)
    assert result.params["standardize"] and result.coding.is_scaled
    assert adjusted_rand_score(result.labels, whole.labels) > 0.9
    asked = fastmmc.cluster(frame, 3, standardize=True, random_state=0)
    assert_array_equal(asked.labels, result.labels)
    again = fastmmc.umc_rls(frame, 3, **result.chosen)
    assert again.coding.is_scaled and again.objective <= result.objective


def test_columns_of_a_coded_table_are_called_by_their_names(rng):
    columns = {"id": range(100), "age": rng.normal(40, 9, 100), "income": rng.normal(4e4, 9e3, 100)}
    frame = pd.DataFrame(columns | {"height": rng.normal(1.7, 0.1, 100)})
    frame.loc[3, "age"] = np.nan
    with pytest.warns(UserWarning) as caught:
        fastmmc.umc_rls(frame, 3, random_state=0)
    (told,) = [str(one.message) for one in caught if "units" in str(one.message)]
    assert "column 'income' spans" in told and "columns 'height', 'age', so" in told


def test_joblib_is_not_the_users_line():
    X = np.random.default_rng(0).normal(size=(60, 2)) * [1, 1e5]
    with pytest.warns(UserWarning, match="different units") as told:
        make_union(fastmmc.UMCRLS(2, random_state=0)).fit(X)
    assert told[0].filename == __file__


OTHER_UNITS = "their columns seem to have other units, or another scale, than in the fit"


@pytest.mark.parametrize(
    "model",
    [
        fastmmc.AutoMMC(3, random_state=0),
        fastmmc.UMCRLS(3, standardize=True, rank=50, **RUN),
        fastmmc.IterSVR(kernel="laplacian", **RUN),
        fastmmc.RecursiveMMC(3, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_new_points_in_other_units_are_warned_of(wine, model):
    X = StandardScaler().fit_transform(wine[0])
    model = clone(model).fit(X[::2])
    new = X[1::2]
    for other in (1000 * new, wine[0]):
        for predict in (model.predict, model.result_.decision_function):
            with pytest.warns(UserWarning, match=OTHER_UNITS):
                predict(other)
    # No units are told by few points, others of the same kind, shifted ones, or some far ones.
    for other in (1000 * new[:19], new, new + 5.0, np.r_[new, 1000 * new[:50]], new / 1000):
        model.predict(other)


def test_no_units_of_points_that_a_run_leaves_out_itself(wine):
    X = StandardScaler().fit_transform(wine[0])
    X[:30] *= 1e4
    weights = np.r_[np.zeros(30), np.ones(len(X) - 30)]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        fastmmc.umc_rls(X, 3, sample_weight=weights, **RUN)
        fastmmc.umc_rls(X, 3, trim=30, sigma=3.0, **RUN)
    assert not [one for one in told if OTHER_UNITS in str(one.message)]


def test_new_rows_of_a_table_in_other_units_are_warned_of(wine):
    frame = pd.DataFrame(wine[0]).rename(columns=str)
    result = fastmmc.cluster(frame, 3, random_state=0)
    with pytest.warns(UserWarning, match=OTHER_UNITS):
        result.predict(1000 * frame)
