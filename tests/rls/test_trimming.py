"""Points that are left out of a search and get no label."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.spatial.distance import pdist, squareform
from sklearn.metrics import adjusted_rand_score

import fastmmc
from fastmmc.kernels.gram import Kernel, kernel_product

# Whole searches take minutes without the compiler. The clusters here have other sizes.
pytestmark = [pytest.mark.jit, pytest.mark.filterwarnings("ignore:clusters of free sizes")]

QUICK = {"n_init": 2, "random_state": 0}


@pytest.fixture
def noisy(blobs, rng):
    """Three clusters with ten points of noise, and which these are."""
    X = blobs[0]
    noise = rng.uniform(3 * X.min(axis=0), 3 * X.max(axis=0), (10, X.shape[1]))
    return np.vstack([X, noise]), np.arange(len(X) + 10) >= len(X)


def rest_of(result):
    return np.flatnonzero(result.labels >= 0)


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"sizes": "free"},
        {"rank": 20},
        {"method": "shaking", "balance": 0.2},
        {"dtype": "float32", "min_size": 20},
    ],
    ids=str,
)
def test_the_others_are_clustered_as_if_they_were_all(noisy, told):
    X, _ = noisy
    res = fastmmc.umc_rls(X, 3, trim=10, **QUICK, **told)
    rest = rest_of(res)
    other = fastmmc.umc_rls(X[rest], 3, **QUICK, **told)
    np.testing.assert_array_equal(res.labels[rest], other.labels)
    np.testing.assert_array_equal(res.sizes, other.sizes)
    np.testing.assert_array_equal(res.predict(X), other.predict(X))
    np.testing.assert_array_equal(res.predict_proba(X), other.predict_proba(X))
    assert res.objective == other.objective and res.loo_mse == other.loo_mse
    for name in ("loo_scores", "probabilities", "margins"):
        np.testing.assert_array_equal(getattr(res, name)[rest], getattr(other, name))
    for mine, theirs in zip(res.exemplars, other.exemplars, strict=True):
        assert set(mine) == set(rest[theirs])
    np.testing.assert_array_equal(res.boundary_points, rest[other.boundary_points])


@pytest.mark.parametrize("metric", ["cosine", "precomputed"])
def test_a_factor_of_another_metric_keeps_it(noisy, metric):
    X = noisy[0] if metric == "cosine" else squareform(pdist(noisy[0]))
    how = {"metric": metric, "rank": None, "sigma": 2.0, "lam": 0.25}
    of_factor = fastmmc.umc_rls(fastmmc.factor(X, **how), 3, trim=10, **QUICK)
    of_points = fastmmc.umc_rls(X, 3, trim=10, **QUICK, **how)
    np.testing.assert_array_equal(of_factor.labels, of_points.labels)
    np.testing.assert_array_equal(of_factor.predict_proba(X), of_points.predict_proba(X))


def test_the_highest_scores_are_left_out(noisy):
    X, is_noise = noisy
    res = fastmmc.umc_rls(X, 3, trim=10, **QUICK)
    whole = fastmmc.umc_rls(X, 3, **QUICK)
    np.testing.assert_array_equal(res.outlier_scores, whole.outlier_scores)
    out = res.labels < 0
    assert out.sum() == 10 and res.outlier_scores[out].min() >= res.outlier_scores[~out].max()
    np.testing.assert_array_equal(out, is_noise)
    assert "left out   10 points" in str(res) and res.params["trim"] == 10


def test_what_a_point_is_told_that_was_left_out(noisy):
    X, _ = noisy
    res = fastmmc.umc_rls(X, 3, trim=0.1, **QUICK)
    out = np.flatnonzero(res.labels < 0)
    assert out.size == 8  # of 85
    np.testing.assert_array_equal(res.loo_scores[out], res.decision_function(X[out]))
    np.testing.assert_allclose(res.probabilities[out], res.predict_proba(X[out]))
    ranked = np.sort(res.loo_scores[out], axis=1)
    np.testing.assert_allclose(res.margins[out], (ranked[:, -1] - ranked[:, -2]) / 2)
    assert not np.isin(out, res.boundary_points).any()


@pytest.mark.parametrize("told", [{}, {"landmarks": np.r_[:6, 75:80], "rank": 11}])
def test_precomputed_kernel_and_factor(noisy, told):
    X, _ = noisy
    K = kernel_product(Kernel("rbf", sigma=4.0), X, X, np.eye(len(X)))
    points = fastmmc.umc_rls(X, 3, sigma=4.0, trim=10, **QUICK, **told)
    gram = fastmmc.umc_rls(K, 3, kernel="precomputed", trim=10, **QUICK, **told)
    factor = fastmmc.factor(X, sigma=4.0, random_state=0, **told)
    given = fastmmc.umc_rls(factor, 3, trim=10, **QUICK)
    for res, new in ((gram, K), (given, X)):
        np.testing.assert_array_equal(res.labels < 0, points.labels < 0)
        assert adjusted_rand_score(res.labels, points.labels) == 1.0
        # Kernel values do not tell which cluster is nearest to points far from all.
        told_of = points.labels >= 0 if res is gram else slice(None)
        predicted = res.predict(new)[told_of], points.predict(X)[told_of]
        assert adjusted_rand_score(*predicted) == 1.0


def test_landmarks_that_are_all_left_out(noisy):
    X, is_noise = noisy
    with pytest.raises(ValueError, match="none of the 3 landmarks is among the 75 points"):
        fastmmc.umc_rls(X, 3, landmarks=np.flatnonzero(is_noise)[:3], trim=10, **QUICK)


def test_points_with_known_labels_stay(noisy):
    X, _ = noisy
    known = np.full(len(X), None, dtype=object)
    known[[0, 80, 84]] = "far", "odd", "odd"
    res = fastmmc.umc_rls(X, 3, trim=8, known_labels=list(known), **QUICK)
    assert list(res.classes[res.labels[[0, 80, 84]]]) == ["far", "odd", "odd"]
    assert (res.labels < 0).sum() == 8
    trust = np.linspace(0.6, 1.0, len(X))
    res = fastmmc.umc_rls(X, 3, trim=8, known_labels=list(known), known_trust=trust, **QUICK)
    assert (res.labels[[0, 80, 84]] >= 0).all()
    with pytest.raises(ValueError, match="trim=83 leaves out 83 of 85 points, and at most 82"):
        fastmmc.umc_rls(X, 3, trim=83, known_labels=list(known), **QUICK)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # of max_iter=0
def test_labels_to_start_from_and_sizes_are_those_of_the_rest(noisy):
    X, _ = noisy
    init = np.arange(len(X)) % 3
    res = fastmmc.umc_rls(X, 3, trim=10, init=init, method="steepest", max_iter=0, balance=3.0)
    rest = rest_of(res)
    np.testing.assert_array_equal(res.labels[rest], init[rest])
    res = fastmmc.umc_rls(X, 3, trim=10, target_sizes=[30, 25, 20], balance=0, **QUICK)
    np.testing.assert_array_equal(res.sizes, [30, 25, 20])
    assert res.at_size_bound.all()


def test_path_estimator_choice_and_units(noisy):
    X, _ = noisy
    path = fastmmc.umc_rls_path(X, 3, [0.1, 1.0], trim=10, **QUICK)
    assert [res.sizes.sum() for res in path] == [75, 75]
    model = fastmmc.UMCRLS(3, trim=10, **QUICK).fit(X)
    assert (model.labels_ < 0).sum() == 10 and model.predict(X[-1:]).shape == (1,)
    res = fastmmc.cluster(X, 3, trim=10, random_state=0)
    rest = rest_of(res)
    other = fastmmc.cluster(X[rest], 3, random_state=0)
    np.testing.assert_array_equal(res.labels[rest], other.labels)
    again = fastmmc.umc_rls(X[rest], 3, **res.chosen)
    np.testing.assert_array_equal(again.labels, res.labels[rest])
    scaled = fastmmc.umc_rls(X * [1.0, 9.0, 1.0, 1.0], 3, trim=10, standardize=True, **QUICK)
    assert scaled.sizes.sum() == 75 and scaled.predict(X).shape == (85,)


@pytest.mark.parametrize("function", [fastmmc.umc_rls, fastmmc.cluster])
def test_a_share_of_less_than_a_point_leaves_out_none(noisy, function):
    X = noisy[0][:30]
    result, whole = (function(X, 3, trim=trim, random_state=0) for trim in (0.02, 0))
    np.testing.assert_array_equal(result.labels, whole.labels)
    np.testing.assert_array_equal(result.loo_scores, whole.loo_scores)
    assert result.params["trim"] == 0.02 and result.labels.min() == 0


def test_sparse_points_and_any_number_of_clusters(noisy):
    X, _ = noisy
    sparse = fastmmc.umc_rls(csr_array(X), 3, rank=20, trim=10, **QUICK)
    dense = fastmmc.umc_rls(X, 3, rank=20, trim=10, **QUICK)
    np.testing.assert_array_equal(sparse.labels, dense.labels)
    res = fastmmc.cluster(csr_array(X), trim=10, max_k=4, random_state=0)
    assert (res.labels < 0).sum() == 10


def test_it_is_saved(noisy, tmp_path):
    X, _ = noisy
    res = fastmmc.umc_rls(X, 3, trim=10, **QUICK)
    res.save(tmp_path / "result.npz")
    same = fastmmc.load(tmp_path / "result.npz")
    np.testing.assert_array_equal(same.labels, res.labels)
    np.testing.assert_array_equal(same.probabilities, res.probabilities)


def test_it_is_drawn(noisy):
    plt = pytest.importorskip("matplotlib.pyplot")
    from fastmmc.plotting import ClusterDisplay, MarginDisplay

    X, _ = noisy
    res = fastmmc.umc_rls(X, 3, trim=10, **QUICK)
    drawn = ClusterDisplay.from_result(res, X).ax_.collections
    assert [len(c.get_offsets()) for c in drawn] == [10, *res.sizes]
    MarginDisplay.from_result(res)
    with pytest.raises(ValueError, match="no points that were left out"):
        ClusterDisplay.from_result(res)
    plt.close("all")


@pytest.mark.parametrize("trim", [1.0, -0.1, -1, np.nan, 83, 0.999])
def test_a_wrong_number_is_refused(noisy, trim):
    with pytest.raises(ValueError, match="trim"):
        fastmmc.umc_rls(noisy[0], 3, trim=trim)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("X", [np.zeros((6, 2)), np.repeat(np.eye(2), 3, axis=0)], ids=len)
def test_equal_points(X):
    res = fastmmc.umc_rls(X, 2, trim=2, random_state=0)
    assert (res.labels < 0).sum() == 2 and np.isfinite(res.outlier_scores).all()
    assert fastmmc.umc_rls(X, 1, trim=5, random_state=0).sizes.tolist() == [1]


def test_weights_trim_as_copies_do(noisy):
    X, is_noise = noisy
    weights = np.ones(len(X), dtype=int)
    weights[is_noise] = [0, 0, 0, 3, 3, 3, 1, 1, 1, 1]
    given = {"sizes": "free", "sigma": 3.0, "trim": 4} | QUICK
    result = fastmmc.umc_rls(X, 3, sample_weight=weights, **given)
    rows = np.repeat(np.arange(len(X)), weights)
    copies = fastmmc.umc_rls(X[rows], 3, **given)
    np.testing.assert_allclose(result.outlier_scores[rows], copies.outlier_scores)
    left_out = np.flatnonzero(result.labels < 0)
    assert left_out.size == 4 and set(rows[copies.labels < 0]) <= set(left_out)


@pytest.mark.parametrize("method", [fastmmc.umc_rls, fastmmc.cluster])
def test_points_of_weight_0_are_not_trimmed(noisy, method):
    X, is_noise = noisy
    weights = np.ones(len(X))
    weights[np.flatnonzero(is_noise)[:3]] = 0
    given = {"sizes": "free"} if method is fastmmc.umc_rls else {}
    result = method(X, 3, sample_weight=weights, trim=4, random_state=0, **given)
    without = method(X[weights > 0], 3, trim=4, random_state=0, **given)
    np.testing.assert_array_equal(result.labels[weights > 0], without.labels)
    np.testing.assert_array_equal(result.outlier_scores[weights > 0], without.outlier_scores)
    assert (result.labels[weights == 0] >= 0).all()
    assert (result.outlier_scores[weights == 0] == 0).all()


def test_a_path_leaves_out_the_same_points_whatever_the_order(noisy):
    X, _ = noisy
    there = fastmmc.umc_rls_path(X, 3, iter([0.01, 10.0]), trim=8, **QUICK)
    back = fastmmc.umc_rls_path(X, 3, [10.0, 0.01], trim=8, **QUICK)
    for one, same in zip(there, back[::-1], strict=True):
        assert one.params["lam"] == same.params["lam"] and one.loo_mse == same.loo_mse
        np.testing.assert_array_equal(one.labels, same.labels)
        np.testing.assert_array_equal(one.labels < 0, there[0].labels < 0)


@pytest.mark.parametrize("trim", [0, 1])
def test_labels_to_begin_with_are_checked_before_points_are_left_out(trim):
    X, weights = np.random.default_rng(0).normal(size=(12, 2)), np.r_[0.0, np.ones(11)]
    with pytest.raises(ValueError, match="init must have one label for each of the 12 points"):
        fastmmc.umc_rls(X, 2, sample_weight=weights, trim=trim, init=np.zeros(11, dtype=int))


def test_two_kinds_of_points_that_take_turns_are_trimmed_alike():
    """Scores are by a sample of the points, which an equal step would take from one kind alone."""
    kinds = np.arange(2000) % 2
    X = np.random.default_rng(0).normal(size=(2000, 2))
    X[:, 0] += 8.0 * kinds
    result = fastmmc.umc_rls(X, 2, trim=100, random_state=0)
    trimmed = np.bincount(kinds[result.labels < 0], minlength=2)
    assert trimmed.sum() == 100 and trimmed.min() > 35
