"""Weights of points in UMC-RLS: as many equal rows, weighted least squares, sizes, zero weights."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

import fastmmc
from fastmmc.rls import planning
from fastmmc.rls.engine import coarse
from tests.rls import naive
from tests.rls.test_linked import broken, some_links

# Whole searches take minutes without the compiler.
pytestmark = pytest.mark.jit

K, SIGMA, LAM = 3, 2.5, 0.25


@pytest.fixture(scope="module")
def iris():
    X, y = fastmmc.datasets.load("iris")
    return X, y, np.random.default_rng(0).integers(1, 4, 150)


def gram(X, Z):
    return np.exp(-np.sum((X[:, None] - Z) ** 2, axis=2) / SIGMA**2)


FORMS = {
    "free": {"sizes": "free"},
    "memetic": {"method": "memetic"},
    "shaking": {"method": "shaking", "n_init": 3},
    "chosen": {},
}


@pytest.mark.parametrize("rank", [None, 40])
@pytest.mark.parametrize("form", FORMS)
def test_integer_weights_are_so_many_equal_rows(iris, form, rank):
    X, _, w = iris
    shape = {"rank": None} if rank is None else {"landmarks": X[::4]}
    told = {"sigma": SIGMA, "random_state": 0, "bound": form == "free"} | shape | FORMS[form]
    res = fastmmc.umc_rls(X, K, sample_weight=w, **told)
    rows, labels = np.repeat(X, w, axis=0), np.repeat(res.labels, w)
    F = fastmmc.factor(rows, lam=LAM, sigma=SIGMA, **shape)
    R = F.R if rank is None else F.Z @ F.Z.T
    objective = naive.risk if res.params["sizes"] == "equal" else naive.free_cost
    assert res.objective == pytest.approx(objective(R, labels, K), rel=1e-8)
    with pytest.warns(ConvergenceWarning):
        same = fastmmc.umc_rls(F, K, sizes="equal", method="steepest", init=labels, max_iter=0)
    np.testing.assert_array_equal(same.labels, labels)
    np.testing.assert_allclose(
        res.decision_function(X), same.decision_function(X), rtol=1e-7, atol=1e-9
    )
    if form == "free":
        assert 0 < res.bound <= res.objective


COPIES = {
    "plain": {},
    "free": {"sizes": "free"},
    "low rank": {"rank": 20, "bound": True},
    "k-means++": {"rank": 30, "landmarks": "k-means++", "init": "kmeans"},
    "standardised": {"standardize": True},
    "Laplace": {"kernel": "laplacian", "sigma": 2.0},
    "bound": {"bound": True, "n_init": 2},
}


def repeated_and_weighted(X, w, told):
    """Return a call's arguments with rows repeated, and with weights in another order."""
    order = np.random.default_rng(1).permutation(len(X))
    rows = {name: np.repeat(value, w) for name, value in told.items() if np.ndim(value) == 1}
    some = {name: value[order] for name, value in told.items() if np.ndim(value) == 1}
    weighted = told | some | {"X": X[order], "sample_weight": w[order]}
    return order, told | rows | {"X": np.repeat(X, w, axis=0)}, weighted


def check_copies(solver, k, X, w, **told):
    """Check that a weight and as many copies give one result; return it with copies."""
    order, copies, weighted = repeated_and_weighted(X, w, told)
    of_copies = solver(k=k, random_state=0, **copies)
    result = solver(k=k, random_state=0, **weighted)
    back = np.argsort(order)
    for name in ("labels", "loo_scores", "outlier_scores", "margins", "probabilities"):
        found, wanted = np.repeat(getattr(result, name)[back], w, axis=0), getattr(of_copies, name)
        np.testing.assert_allclose(found, wanted, atol=1e-9, err_msg=name)
    for name in ("objective", "loo_mse", "bound"):
        assert getattr(result, name) == pytest.approx(getattr(of_copies, name), abs=1e-9)
    for name in ("decision_function", "predict_proba"):
        found, wanted = getattr(result, name)(X), getattr(of_copies, name)(X)
        np.testing.assert_allclose(found, wanted, atol=1e-9, err_msg=name)
    return of_copies


@pytest.mark.parametrize("form", COPIES)
def test_equal_rows_are_one_row_with_a_weight(iris, form):
    X = np.unique(iris[0], axis=0)
    w = np.random.default_rng(0).integers(0, 4, len(X))
    res = check_copies(fastmmc.umc_rls, K, X, w, **COPIES[form])
    assert res.sample_weight is None and len(res.labels) == w.sum()
    np.testing.assert_array_equal(res.sizes, np.bincount(res.labels))
    if "rank" not in COPIES[form]:
        assert len(res.model.points) == w.sum()


def test_what_is_known_of_copies_is_known_of_their_row(iris):
    X, first = np.unique(iris[0], axis=0, return_index=True)
    y = iris[1][first]
    w = np.random.default_rng(0).integers(1, 4, len(X))
    known = np.where(np.arange(len(X)) % 9 == 0, y, -1)
    check_copies(fastmmc.umc_rls, K, X, w, known_labels=known)
    check_copies(fastmmc.umc_rls, K, X, w, known_labels=known, known_trust=0.7)
    check_copies(fastmmc.cluster, K, X, w, known_labels=known)
    check_copies(fastmmc.umc_rls, K, X, w, init=y)
    # Copies of which different labels are known stay apart.
    rows, labels = np.repeat(X, 2, axis=0), np.full(2 * len(X), -1)
    labels[:4] = 0, 1, 2, 2
    for solver in (fastmmc.umc_rls, fastmmc.cluster):
        res = solver(rows, K, known_labels=labels, random_state=0)
        np.testing.assert_array_equal(res.labels[:4], labels[:4])
        assert (res.labels[4::2] == res.labels[5::2]).all()


@pytest.mark.parametrize("k", [K, "auto"])
def test_cluster_takes_equal_rows_for_one_with_a_weight(iris, k):
    X = np.unique(iris[0], axis=0)
    w = np.random.default_rng(0).integers(0, 4, len(X))
    res = check_copies(fastmmc.cluster, k, X, w)
    again = fastmmc.umc_rls(np.repeat(X, w, axis=0), len(res.sizes), **res.chosen)
    assert (again.labels == res.labels).mean() > 0.99
    assert len(res.cells) == len(res.labels)


@pytest.mark.parametrize("sizes", [{"min_size": 2}, {"max_size": 200}, {"balance": 0.3}], ids=str)
def test_copies_stay_together_where_sizes_leave_room(iris, sizes):
    X = np.unique(iris[0], axis=0)
    w = np.random.default_rng(0).integers(0, 4, len(X))
    for form in ({}, {"sizes": "free"}):
        res = check_copies(fastmmc.umc_rls, K, X, w, **sizes, **form)
        assert res.sizes.min() >= sizes.get("min_size", 1)
        assert res.sizes.max() <= sizes.get("max_size", (1 + sizes.get("balance", 2)) * w.sum() / K)
    # A bound that changes nothing changes nothing.
    if "balance" not in sizes:
        bits = np.random.default_rng(0).integers(0, 2, (300, 6))
        plain, bounded = (fastmmc.umc_rls(bits, 3, random_state=0, **s) for s in ({}, sizes))
        np.testing.assert_array_equal(plain.labels, bounded.labels)


def test_an_unknown_number_of_clusters_keeps_to_sizes_asked_for():
    bits = np.random.default_rng(0).integers(0, 2, (300, 4))
    res = fastmmc.cluster(bits, random_state=0, max_size=100)
    assert len(res.sizes) > 2 and res.sizes.max() <= 100


def test_copies_are_parted_where_sizes_or_clusters_ask_for_it():
    X = np.random.default_rng(0).standard_normal((40, 2))
    X[:25] = X[0]
    assert np.ptp(fastmmc.umc_rls(X, 3, random_state=0).labels[:25]) == 0
    res = fastmmc.umc_rls(X, 3, max_size=14, random_state=0)
    assert res.sizes.max() <= 14 and np.ptp(res.labels[:25]) > 0
    paper = fastmmc.umc_rls(X, 3, method="shaking", sigma=3.0, random_state=0)
    assert paper.sizes.max() <= 20 and np.ptp(paper.labels[:25]) > 0
    with pytest.warns(ConvergenceWarning, match="2 distinct points"):
        assert fastmmc.umc_rls(X[20:27][[0, 1, 2, 6, 6]], 3, random_state=0).sizes.min() == 1


@pytest.mark.parametrize("solver", [fastmmc.umc_rls, fastmmc.cluster])
def test_many_rows_of_few_kinds_are_few_points(solver):
    kinds = np.random.default_rng(0).standard_normal((40, 3))
    members = np.random.default_rng(1).permutation(np.arange(12_000) % 40)
    res = solver(kinds[members], 3, random_state=0)
    assert res.model.points.shape == (40, 3)
    np.testing.assert_array_equal(res.predict(kinds)[members], res.labels)
    with pytest.raises(ValueError, match="does not remember its points"):
        fastmmc.plotting.ClusterDisplay.from_result(res)
    if solver is fastmmc.cluster:
        # Copies go on one by one, so their labels may change.
        again = fastmmc.umc_rls(kinds[members], 3, **res.chosen)
        assert again.params["rank"] == 40 and again.objective <= res.objective + 1e-9
    few = solver(kinds[members[:9_000]], 3, random_state=0)
    np.testing.assert_array_equal(few.model.points, kinds[members[:9_000]])


def test_landmarks_are_rows_of_the_call(iris):
    X = np.repeat(np.unique(iris[0], axis=0), 2, axis=0)
    told = {"random_state": 0, "sigma": SIGMA}
    res = fastmmc.umc_rls(X, K, landmarks=np.arange(0, 200, 7), **told)
    assert set(res.model.indices) <= set(range(200))
    np.testing.assert_array_equal(X[res.model.indices], res.model.points)
    assert fastmmc.umc_rls(X, K, rank=len(X), **told).params["rank"] == len(X) // 2


def test_the_best_of_repeated_rows_is_found(iris):
    X, _, w = iris
    rows = np.repeat(X, w, axis=0)
    for form in ("free", "memetic"):
        # One population of equal rows may end above the best: these move one by one.
        told = {"sigma": SIGMA, "random_state": 0, "n_init": 3} | FORMS[form]
        weighted = fastmmc.umc_rls(X, K, sample_weight=w, **told)
        repeated = fastmmc.umc_rls(rows, K, **told)
        assert weighted.objective == pytest.approx(repeated.objective, rel=1e-3)


def test_leave_one_out_scores_are_those_of_weighted_fits_without_the_point(iris):
    X, _, w = iris
    X, w = X[::6], 0.3 * w[::6]
    res = fastmmc.umc_rls(X, K, sigma=SIGMA, sample_weight=w, random_state=0)
    P, G = naive.codes(res.labels, K), gram(X, X)
    for j in range(len(X)):
        rest = np.flatnonzero(np.arange(len(X)) != j)
        # Of w (y - K a)^2 + lam a^T K a the least is where (K + lam W^-1) a = y.
        A = G[np.ix_(rest, rest)] + LAM * np.diag(1 / w[rest])
        wanted = G[j, rest] @ np.linalg.solve(A, P[rest])
        np.testing.assert_allclose(res.loo_scores[j], wanted, atol=1e-8)
    errors = np.sum((P - res.loo_scores) ** 2, axis=1)
    assert res.loo_mse == pytest.approx(errors @ w / (K * w.sum()))
    fitted = gram(X, X) @ np.linalg.solve(G + LAM * np.diag(1 / w), P)
    np.testing.assert_allclose(res.decision_function(X), fitted, atol=1e-8)


@pytest.mark.parametrize("form", FORMS)
def test_all_weights_alike_are_another_lam(iris, form):
    X, _, w = iris
    told = {"sigma": SIGMA, "random_state": 0} | FORMS[form]
    one = fastmmc.umc_rls(X, K, sample_weight=0.25 * w, lam=0.25, **told)
    other = fastmmc.umc_rls(X, K, sample_weight=w, lam=1.0, **told)
    assert adjusted_rand_score(one.labels, other.labels) > 0.9
    if adjusted_rand_score(one.labels, other.labels) == 1:
        scale = 0.25 if one.params["sizes"] == "equal" else 1.0
        assert one.objective == pytest.approx(scale * other.objective, rel=1e-6)


@pytest.mark.parametrize("scale", [1, 0.37])
def test_sizes_count_weights(iris, scale):
    X, _, w = iris
    w = scale * w
    for told in ({"balance": 0.1}, {"max_size": int(0.36 * w.sum())}, {"method": "memetic"}):
        for sizes in ("equal", "free"):
            res = fastmmc.umc_rls(X, K, sizes=sizes, sample_weight=w, random_state=0, **told)
            most = {"balance": 1.1 / 3, "max_size": 0.36, "method": 1.4 / 3}[next(iter(told))]
            if sizes == "equal" or "method" not in told:
                assert np.bincount(res.labels, w).max() <= most * w.sum() + 1e-6
            assert res.size_bounds is None
            np.testing.assert_array_equal(res.sizes, np.bincount(res.labels))


def test_target_sizes_may_be_weights(iris):
    X, _, w = iris
    half = w / 2
    targets = np.array([half.sum() - 40, 20, 20]).astype(int)
    half[0] -= half.sum() - targets.sum()
    told = {"balance": 0.0, "random_state": 0, "sample_weight": half}
    counts = fastmmc.umc_rls(X, K, target_sizes=targets, **told)
    shares = fastmmc.umc_rls(X, K, target_sizes=targets / targets.sum(), **told)
    np.testing.assert_array_equal(counts.labels, shares.labels)
    assert np.abs(np.bincount(counts.labels, half) - targets).max() <= half.max()


@pytest.mark.parametrize("weight", [0.1, 0.7, 1 / 3])
@pytest.mark.parametrize("solver", [fastmmc.umc_rls, fastmmc.cluster])
def test_sizes_may_use_up_weights_whose_sum_is_rounded(solver, weight):
    X = np.random.default_rng(0).standard_normal((90, 2))
    mean = round(90 * weight) // 3
    for told in ({"target_sizes": [mean] * 3}, {"min_size": mean}, {"max_size": mean}):
        res = solver(X, K, sample_weight=np.full(90, weight), random_state=0, **told)
        assert np.abs(res.sizes - 30).max() <= ("target_sizes" in told)


def test_weights_and_links_go_together(iris):
    X, y, w = iris
    links = some_links(y, 2, 30)
    for weights in (w, 0.1 * w):
        res = fastmmc.umc_rls(X, K, sample_weight=weights, random_state=0, **links)
        assert broken(res.labels, **links) == res.n_violations == 0


def test_points_without_weight_are_labelled_by_the_others(iris):
    X, y, w = iris
    w = np.where(np.arange(150) % 5 == 0, 0, w)
    some = w > 0
    told = {"random_state": 0, "sigma": SIGMA}
    res = fastmmc.umc_rls(X, K, sample_weight=w, **told)
    rest = fastmmc.umc_rls(X[some], K, sample_weight=w[some], **told)
    np.testing.assert_array_equal(res.labels[some], rest.labels)
    np.testing.assert_array_equal(res.labels[~some], rest.predict(X[~some]))
    np.testing.assert_array_equal(res.loo_scores[~some], rest.decision_function(X[~some]))
    assert (res.outlier_scores[~some] == 0).all() and res.sizes.sum() == 150
    K_all = gram(X, X)
    pre = fastmmc.umc_rls(K_all, K, kernel="precomputed", sample_weight=w, random_state=0)
    assert adjusted_rand_score(pre.labels, pre.predict(K_all)) > 0.95
    np.testing.assert_array_equal(pre.labels[~some], pre.predict(K_all)[~some])
    paths = fastmmc.umc_rls_path(X, K, [0.25, 1.0], sample_weight=w, **told)
    np.testing.assert_array_equal(paths[0].labels, res.labels)


@pytest.mark.parametrize("form", [{"rank": 60}, {"rank": None}], ids=str)
@pytest.mark.parametrize("sizes", ["equal", "free"])
def test_weights_of_more_points_than_are_searched(sizes, form, monkeypatch):
    monkeypatch.setattr(planning, "DENSE_CHOICE", 200)
    monkeypatch.setattr(coarse, "CELLS", 150)
    monkeypatch.setattr(coarse, "CELLS_PER_CLUSTER", 1)
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(5), 120)
    X = 12.0 * np.eye(5)[y] + rng.standard_normal((600, 5))
    w = rng.random(600) + 0.2
    res = fastmmc.umc_rls(X, 5, sizes=sizes, n_init=2, random_state=0, sample_weight=w, **form)
    assert adjusted_rand_score(y, res.labels) > 0.95


def test_weights_of_one_are_none(iris):
    X, _, _ = iris
    plain = fastmmc.umc_rls(X, K, random_state=0)
    ones = fastmmc.umc_rls(X, K, random_state=0, sample_weight=np.ones(150))
    np.testing.assert_array_equal(plain.labels, ones.labels)
    assert plain.objective == ones.objective and plain.loo_mse == ones.loo_mse


def test_weights_go_with_other_options(iris, tmp_path):
    X, y, w = iris
    known = np.where(np.arange(150) % 10 == 1, y, -1)
    res = fastmmc.umc_rls(X, K, sample_weight=w, known_labels=known, random_state=0)
    assert (res.labels == known)[known >= 0].all()
    left = fastmmc.umc_rls(X, K, sample_weight=w, trim=10, random_state=0)
    assert np.sum(left.labels < 0) == 10
    model = fastmmc.UMCRLS(n_clusters=K, random_state=0).fit(X, sample_weight=w)
    model.save(tmp_path / "model.npz")
    again = fastmmc.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(again.labels_, model.labels_)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("weights", "told", "message"),
    [
        (np.r_[-1.0, np.ones(28), -2.0], {}, r"at least 0; got -1.0 in rows 0, 29"),
        (np.r_[np.ones(29), np.nan], {}, r"finite; got nan in row 29"),
        (np.zeros(30), {}, "every weight .* is zero, in all 30 rows"),
        (np.ones(7), {}, r"30 numbers.*shape \(7,\)"),
        (["a"] * 30, {}, "30 numbers"),
        (np.arange(30) < 2, {}, "above 0 in 2 rows, fewer than k = 3"),
        (np.arange(30.0), {"must_link": [(0, 1)]}, "must_link concerns row 0, whose .* is 0"),
        (np.arange(30.0), {"known_labels": [1] + [-1] * 29}, "known_labels concerns row 0"),
        (np.arange(30.0), {"known_labels": [-1] * 29 + [7]}, "got 7 in row 29"),
        (
            np.arange(30.0),
            {"must_link": [(8, 9)], "cannot_link": [(8, 9)]},
            "rows 8 and 9 are cannot-linked, but must-links or known labels join them: 8 - 9",
        ),
        (np.r_[99.0, np.ones(29)], {"max_size": 60}, "^row 0 is a point of weight 99, .* than 60"),
        (np.full(30, 0.7), {"max_size": 6}, "max_size must be at least 7, the weight of an"),
        (np.full(30, 0.7), {"min_size": 8}, "min_size must be at most 7, the weight of an average"),
        (
            np.full(30, 1e15),
            {},
            "values times weights .* 1e\\+15.*lower sample_weight",
        ),
        (np.full(30, 0.5), {"target_sizes": [10, 10, 10]}, "weight of all points, 15, .*sum to 30"),
        (
            np.full(30, 0.5),
            {"known_labels": [1] * 15 + [-1] * 15, "balance": 0.1, "target_sizes": [5, 5, 5]},
            r"fix \[0, 7.5, 0\] of the weight, 7.5 of them in cluster 1 .* at most 5.5;",
        ),
        (
            np.full(30, 0.5),
            {"balance": 0.1, "target_sizes": [0.0, 0.0, 1.0], "max_size": 9},
            r"weight of all points, 15: at least \[0, 0, 14.5\] .*none of cluster 2",
        ),
    ],
)
def test_wrong_weights_are_refused_with_their_rows(weights, told, message):
    X = np.random.default_rng(0).standard_normal((30, 2))
    with pytest.raises(ValueError, match=message):
        fastmmc.umc_rls(X, K, sample_weight=weights, random_state=0, **told)


@pytest.mark.parametrize("rank", [20, np.int64(20)])
def test_a_rank_may_be_that_of_all_points_if_some_have_no_weight(rank):
    X = np.random.default_rng(0).standard_normal((20, 2))
    weights = np.r_[0.0, np.ones(19)]
    res = fastmmc.umc_rls(X, K, rank=rank, sample_weight=weights, random_state=0)
    assert res.params["rank"] == 19


def test_factors_have_no_weights():
    X = np.random.default_rng(0).standard_normal((30, 2))
    with pytest.raises(ValueError, match="X is a factor"):
        fastmmc.umc_rls(fastmmc.factor(X), K, sample_weight=np.arange(30))


@pytest.mark.parametrize("sizes", ["equal", "free"])
def test_objectives_are_those_of_the_weights_themselves(sizes):
    """Masses are rounded, and here all but one of them is 16 times as large as its weight."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(c, 0.3, (20, 2)) for c in ((0, 0), (9, 0), (0, 9))])
    weights = np.ones(60)
    weights[0] = 1e10
    given = {"sample_weight": weights, "sigma": 2.0, "lam": 0.1, "sizes": sizes}
    result = fastmmc.umc_rls(X, 3, random_state=0, bound=True, **given)
    roots = np.sqrt(weights)
    K = roots[:, None] * np.exp(-cdist(X, X, "sqeuclidean") / 4.0) * roots
    R = np.linalg.solve(K + 0.1 * np.eye(60), K)
    E = roots[:, None] * (result.labels[:, None] == np.arange(3))
    within = np.einsum("nh,nm,mh->h", E, R, E)
    free = np.sum(1 - within / np.bincount(result.labels, weights))
    Q = 3 * weights.sum() + roots @ R @ roots - 4 * within.sum()
    assert result.objective == pytest.approx(free if sizes == "free" else Q, rel=1e-2)
    assert result.bound <= result.objective


@pytest.mark.parametrize("rank", [None, 60])
def test_labels_without_time_are_as_good_with_weights(rank):
    X, y = make_blobs(3000, 3, centers=4, random_state=1)
    weights = np.random.default_rng(0).lognormal(0.0, 1.5, 3000)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        result = fastmmc.umc_rls(
            X, 4, sample_weight=weights, sizes="free", rank=rank, max_time=1e-9, random_state=0
        )
    assert adjusted_rand_score(y, result.labels) > 0.99
