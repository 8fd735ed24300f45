"""Probabilities, margins, outlier scores, exemplars and boundary points of the RLS family."""

import dataclasses
import pickle

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array

import fastmmc
from fastmmc.data import memberships
from fastmmc.kernels.factors import make_factor
from fastmmc.kernels.gram import Kernel, evenly, kernel_product
from fastmmc.kernels.nystroem import check_form
from fastmmc.rls import known, outliers, source, task
from tests.rls import naive

# max_iter=0 keeps given labels, and says that it stopped.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


PRECOMPUTED = Kernel("precomputed")


def gram_of(X, sigma=1.5):
    return kernel_product(Kernel("rbf", sigma=sigma), X, X, np.eye(len(X)))


@pytest.fixture
def result(overlapping):
    return fastmmc.umc_rls(overlapping, 3, lam=0.1, sigma=1.5, n_init=2, random_state=0)


@pytest.fixture
def random_scores(rng):
    return rng.standard_normal((200, 4)), rng.integers(0, 4, 200)


def of_label(values, labels):
    return values[np.arange(labels.size), labels]


def test_leave_one_out_scores_equal_refitting(overlapping, result):
    K = gram_of(overlapping)
    expected = naive.leave_one_out_scores(K, 0.1, result.labels, 3)
    np.testing.assert_allclose(result.loo_scores, expected, atol=1e-10)
    errors = (naive.codes(result.labels, 3) - expected) ** 2
    assert errors.mean() == pytest.approx(result.loo_mse, rel=1e-9)
    expected = naive.outlier_scores(K, 0.1, np.arange(60), np.ones(60))
    np.testing.assert_allclose(result.outlier_scores, expected, atol=1e-12)


@pytest.fixture
def scored(monkeypatch):
    """Which factors' points were scored."""
    seen, score = [], outliers.score_outliers
    monkeypatch.setattr(outliers, "score_outliers", lambda *told: seen.append(1) or score(*told))
    return seen


def test_outlier_scores_are_made_once_for_a_factor(overlapping, scored):
    factor = fastmmc.factor(overlapping, lam=0.1)
    first, other = (fastmmc.umc_rls(factor, k, n_init=1, random_state=0) for k in (2, 3))
    assert len(scored) == 1
    np.testing.assert_array_equal(first.outlier_scores, other.outlier_scores)
    first.outlier_scores[:] = 0.0
    assert other.outlier_scores.min() > 0.0


@pytest.mark.jit
def test_outlier_scores_are_those_of_the_labels_that_win(overlapping, scored):
    assert fastmmc.cluster(overlapping, 3, random_state=0).outlier_scores.shape == (60,)
    assert len(scored) == 1


@pytest.mark.parametrize("weights", [None, np.repeat([1.0, 0.0], [50, 10])])
def test_trimming_scores_all_points_and_not_the_rest_again(overlapping, monkeypatch, weights):
    sizes, score = [], outliers.score_outliers

    def count(points, *told):
        sizes.append(len(points))
        return score(points, *told)

    for module in (outliers, task):
        monkeypatch.setattr(module, "score_outliers", count)
    told = {"n_init": 1, "sizes": "equal", "random_state": 0, "sample_weight": weights}
    result = fastmmc.umc_rls(overlapping, 3, trim=5, **told)
    assert sizes == [60 if weights is None else 50]
    assert result.outlier_scores[result.labels < 0].min() == np.sort(result.outlier_scores)[-5]


@pytest.mark.parametrize("weights", [None, np.arange(1, 61) / 30.0], ids=["alike", "weighted"])
@pytest.mark.parametrize("most", [{"SAMPLE": 25}, {"PRODUCTS": 60 * 25**2}], ids=str)
def test_outlier_scores_of_a_sample_and_each_point(overlapping, weights, most, monkeypatch):
    for name, value in most.items():
        monkeypatch.setattr(outliers, name, value)
    found = outliers.score_outliers(overlapping, Kernel("rbf", sigma=1.5), 0.1, weights)
    weights = np.ones(60) if weights is None else weights
    K, sample = gram_of(overlapping), evenly(60, 25)
    np.testing.assert_allclose(found, naive.outlier_scores(K, 0.1, sample, weights), atol=1e-12)


def test_outlier_scores_of_weights_are_those_of_as_many_copies(overlapping):
    counts, kernel = 1 + np.arange(60) % 4, Kernel("rbf", sigma=1.5)
    copies = outliers.score_outliers(np.repeat(overlapping, counts, axis=0), kernel, 0.1)
    found = outliers.score_outliers(overlapping, kernel, 0.1, counts.astype(float))
    np.testing.assert_allclose(np.repeat(found, counts), copies, atol=1e-12)


@pytest.mark.parametrize(
    "kernel",
    [
        Kernel("rbf", sigma=1.5),
        Kernel("laplacian", sigma=1.5),
        Kernel("poly", gamma=0.1),
        Kernel("callable", function=lambda X, Z: X @ Z.T + 1.0),
    ],
    ids=lambda kernel: kernel.name,
)
def test_outlier_scores_by_any_kernel_and_of_points_in_any_form(kernel, overlapping, monkeypatch):
    monkeypatch.setattr(outliers, "SAMPLE", 25)
    expected = outliers.score_outliers(overlapping, kernel, 0.1)
    given = outliers.score_outliers(kernel.block(overlapping, overlapping), PRECOMPUTED, 0.1)
    np.testing.assert_allclose(given, expected, atol=1e-10)
    wide = csr_array(np.hstack((overlapping, np.zeros((60, 1_000)))))
    np.testing.assert_allclose(outliers.score_outliers(wide, kernel, 0.1), expected, atol=1e-10)
    single = outliers.score_outliers(overlapping.astype(np.float32), kernel, 0.1)
    np.testing.assert_allclose(single, expected, atol=1e-3)


def test_outlier_scores_where_lam_is_lost_in_rounding_or_the_kernel_is_indefinite(rng):
    K = rng.standard_normal((40, 40))
    for lam in (1e-14, 0.1):
        for gram in (K + K.T, np.ones((40, 40)), np.zeros((40, 40))):
            found = outliers.score_outliers(gram, PRECOMPUTED, lam)
            assert np.isfinite(found).all() and found.min() >= 0 and found.max() <= 1


@pytest.mark.jit
def test_points_far_from_all_landmarks_are_outliers():
    X = np.vstack([np.random.default_rng(0).standard_normal((400, 2)), [[9.0, 9.0], [-9.0, 8.0]]])
    res = fastmmc.umc_rls(X, 2, rank=20, landmarks=np.arange(20), n_init=1, random_state=0)
    assert set(np.argsort(res.outlier_scores)[-2:]) == {400, 401}


def test_outlier_scores_of_a_lone_point_and_of_many_equal_ones():
    X = np.vstack([np.zeros((9, 2)), [[50.0, 0.0]]])
    res = fastmmc.umc_rls(X, 2, sigma=1.0, n_init=1, random_state=0)
    np.testing.assert_allclose(res.outlier_scores, [*[1 / (1 + np.sqrt(8))] * 9, 1.0])


def test_low_rank_equals_dense_where_it_leaves_nothing_out(overlapping, result):
    told = {"lam": 0.1, "sigma": 1.5, "init": result.labels, "method": "steepest", "max_iter": 0}
    low = fastmmc.umc_rls(overlapping, 3, rank=60, landmarks=np.arange(60), **told)
    np.testing.assert_array_equal(low.labels, result.labels)
    for name in ("loo_scores", "outlier_scores", "probabilities", "margins"):
        np.testing.assert_allclose(getattr(low, name), getattr(result, name), atol=1e-5)


def test_sharpness_equals_the_naive_one(random_scores):
    scores, labels = random_scores
    scores[np.arange(200), labels] += 2.0
    for scale in (0.01, 1.0, 50.0):  # the probabilities do not depend on the units of the scores
        found = memberships.find_sharpness(scale * scores, labels)
        assert found == pytest.approx(naive.sharpness(scores, labels) / scale, rel=1e-5)


def test_scores_that_say_nothing_make_all_clusters_equally_likely(random_scores):
    scores, labels = random_scores
    against = scores.copy()
    against[np.arange(200), labels] -= 5.0
    for useless in (np.zeros((200, 4)), against):
        assert memberships.find_sharpness(useless, labels) == 0.0
    p = memberships.probabilities(against, labels, 0.0)
    np.testing.assert_array_equal(p, 0.25)


def test_scores_that_tell_all_make_probabilities_of_0_and_1():
    labels = np.arange(12) % 3
    p = memberships.probabilities(
        codes := naive.codes(labels, 3), labels, memberships.find_sharpness(codes, labels)
    )
    np.testing.assert_allclose(p, (codes + 1) / 2, atol=1e-6)


def test_tied_scores_end_the_search_for_a_sharpness():
    """Two of three clusters are never told apart, so no sharpness is sure enough."""
    scores = np.array([[1.0, 1.0, -2.0]] * 6)
    found = memberships.find_sharpness(scores, np.zeros(6, dtype=np.int64))
    p = memberships.probabilities(scores, np.zeros(6, dtype=np.int64), found)
    np.testing.assert_allclose(p, [[0.5, 0.5, 0.0]] * 6, atol=1e-6)


def test_no_probability_is_above_that_of_the_label(random_scores):
    scores, labels = random_scores
    soft = naive.soften(scores, 1.3)
    p = memberships.probabilities(scores, labels, 1.3)
    expected = [naive.share_with_own(row, own) for row, own in zip(soft, labels, strict=True)]
    np.testing.assert_allclose(p, expected, atol=1e-14)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_array_equal(p.argmax(axis=1), labels)


def test_the_probabilities_are_the_nearest_that_agree_with_the_label():
    scores = np.array([[0.5, 1.0, 0.9, -1.0]])
    soft = naive.soften(scores, 2.0)[0]
    nearest = minimize(
        lambda p: np.sum((p - soft) ** 2),
        np.full(4, 0.25),
        constraints=[
            {"type": "eq", "fun": lambda p: p.sum() - 1},
            {"type": "ineq", "fun": lambda p: p[0] - p[1:]},
        ],
        tol=1e-12,
    )
    found = memberships.probabilities(scores, np.array([0]), 2.0)[0]
    np.testing.assert_allclose(found, nearest.x, atol=1e-5)
    assert found[0] > found[1] == found[2] > found[0] - 1e-15


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"balance": 0.0},
        {"sizes": "free"},
        {"rank": 12},
        {"dtype": "float32"},
        {"kernel": "linear"},
        {"lam": 100.0},
    ],
    ids=str,
)
def test_probabilities_agree_with_the_labels(overlapping, told):
    res = fastmmc.umc_rls(overlapping, 4, n_init=2, random_state=0, **told)
    p = res.probabilities
    assert p.shape == (60, 4) and p.dtype == np.float64
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_array_equal(p.argmax(axis=1), res.labels)
    np.testing.assert_array_equal(
        res.margins < 0,
        of_label(res.loo_scores, res.labels)
        < np.where(np.eye(4, dtype=bool)[res.labels], -np.inf, res.loo_scores).max(axis=1),
    )
    differs = res.predict(overlapping) != res.labels
    assert (res.margins[differs] < 1e-9).all()


def test_a_converged_descent_without_size_rules_leaves_no_margin_below_zero(overlapping):
    res = fastmmc.umc_rls(overlapping, 3, lam=0.1, sigma=1.5, method="steepest", random_state=0)
    assert res.converged and (res.margins > -1e-9).all()
    np.testing.assert_array_equal(res.predict(overlapping), res.labels)


def test_new_points_are_predicted_with_the_same_sharpness(overlapping, result, rng):
    X = rng.standard_normal((30, 3))
    p = result.predict_proba(X)
    b = naive.sharpness(result.loo_scores, result.labels)
    np.testing.assert_allclose(p, naive.soften(result.decision_function(X), b), rtol=1e-4)
    np.testing.assert_array_equal(p.argmax(axis=1), result.predict(X))
    np.testing.assert_allclose(result.predict_proba(np.full((1, 3), 1e3)), 1 / 3, atol=1e-3)


def test_a_point_predicts_as_if_it_was_left_out(overlapping, result):
    """What predict_proba says of a point when the others were clustered so."""
    rest = np.arange(1, 60)
    told = {"lam": 0.1, "sigma": 1.5, "method": "steepest", "max_iter": 0}
    other = fastmmc.umc_rls(overlapping[rest], 3, init=result.labels[rest], **told)
    np.testing.assert_allclose(
        other.decision_function(overlapping[:1])[0], result.loo_scores[0], atol=1e-10
    )


def test_outlier_scores_find_what_lies_far_away(blobs):
    X = np.vstack([blobs[0], [[60.0, -60.0, 60.0, -60.0]]])
    res = fastmmc.umc_rls(X, 3, n_init=2, random_state=0)
    assert res.outlier_scores.argmax() == 75
    assert res.probabilities[75].max() < np.median(res.probabilities.max(axis=1))


def test_exemplars_and_boundary_points(result):
    ratio = result.margins / result.outlier_scores
    for h, members in enumerate(result.exemplars):
        np.testing.assert_array_equal(np.sort(members), np.flatnonzero(result.labels == h))
        assert (np.diff(ratio[members]) <= 0).all()
    order = result.boundary_points
    np.testing.assert_array_equal(np.sort(order), np.arange(60))
    assert (np.diff(result.margins[order]) >= 0).all()


@pytest.mark.parametrize(
    ("X", "k"),
    [
        (np.zeros((1, 2)), 1),
        (np.zeros((4, 2)), 2),
        (np.arange(5.0)[:, None], 5),
        (np.arange(6.0)[:, None], 1),
        (np.repeat(np.eye(3), 4, axis=0), 3),
    ],
    ids=["one point", "equal points", "single points", "one cluster", "duplicates"],
)
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.filterwarnings("ignore")
def test_degenerate_points(X, k, kernel):
    res = fastmmc.umc_rls(X, k, kernel=kernel, n_init=2, random_state=0)
    p = res.probabilities
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert (of_label(p, res.labels) == p.max(axis=1)).all()
    assert np.isfinite(res.margins).all() and np.isfinite(res.outlier_scores).all()
    np.testing.assert_array_equal(np.sort(np.concatenate(res.exemplars)), np.arange(len(X)))
    if k == 1:
        np.testing.assert_array_equal(p, 1.0)


@pytest.mark.parametrize("solve", [fastmmc.evo_mmc, fastmmc.fast_evo_mmc])
def test_two_clusters_of_an_evolution(overlapping, solve):
    res = solve(overlapping, n_init=2, random_state=0)
    K = gram_of(overlapping, res.params["sigma"])
    if solve is fastmmc.evo_mmc:
        expected = naive.leave_one_out_scores(K, 0.5, res.labels, 2)
        np.testing.assert_allclose(res.loo_scores, expected, atol=1e-9)
    assert (of_label(res.probabilities, res.labels) >= 0.5).all()


def test_precomputed_and_sparse(overlapping, result):
    K = gram_of(overlapping)
    told = {"lam": 0.1, "init": result.labels, "method": "steepest", "max_iter": 0}
    same = fastmmc.umc_rls(K, 3, kernel="precomputed", **told)
    np.testing.assert_allclose(same.probabilities, result.probabilities, atol=1e-6)
    np.testing.assert_allclose(same.predict_proba(K), result.predict_proba(overlapping), atol=1e-6)
    sparse = fastmmc.umc_rls(csr_array(overlapping), 3, rank=20, random_state=0)
    assert sparse.predict_proba(csr_array(overlapping)).shape == (60, 3)


def test_the_estimator_shows_what_the_result_has(overlapping):
    model = fastmmc.UMCRLS(3, n_init=2, random_state=0)
    assert not hasattr(model, "probabilities_")
    model.fit(overlapping)
    assert not {"probabilities", "margins"} & set(vars(model.result_))  # not before they are wanted
    np.testing.assert_array_equal(model.probabilities_, model.result_.probabilities)
    assert model.probabilities_ is model.probabilities_
    np.testing.assert_array_equal(model.outlier_scores_, model.result_.outlier_scores)
    np.testing.assert_array_equal(model.boundary_points_, model.result_.boundary_points)
    assert len(model.exemplars_) == 3 and model.margins_.shape == (60,)
    p = model.predict_proba(overlapping)
    np.testing.assert_array_equal(p, model.result_.predict_proba(overlapping))
    copied = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copied.predict_proba(overlapping), p)
    for name in ("probabilities_", "outlier_scores_", "exemplars_", "boundary_points_"):
        assert f"\n{name} : " in type(model).__doc__
    assert dataclasses.replace(model.result_).probabilities is not model.probabilities_


@pytest.mark.jit
def test_digits_are_calibrated(digits):
    """Against the classes, though no class was told."""
    X, y = digits
    res = fastmmc.umc_rls(X, 10, n_init=3, random_state=0)
    p, sure = res.probabilities, res.probabilities.max(axis=1)
    classes = np.array([np.bincount(y[res.labels == h], minlength=10).argmax() for h in range(10)])
    assert np.unique(classes).size == 10
    right = classes[res.labels] == y
    bins = np.minimum((sure * 15).astype(int), 14)
    error = sum(abs(np.sum(right[bins == b]) - np.sum(sure[bins == b])) for b in range(15)) / y.size
    assert error <= 0.05
    truth = np.argsort(classes)[y]
    hard = 2 * (1 - right.mean())
    assert np.mean(np.sum((p - np.eye(10)[truth]) ** 2, axis=1)) < hard


@pytest.mark.parametrize("weighted", [False, True])
def test_the_error_of_scores_that_are_not_held(monkeypatch, tmp_path, weighted):
    """Of too many scores the mean square is found without them."""
    X = np.random.default_rng(0).standard_normal((70, 3))
    weights = np.random.default_rng(1).uniform(0.5, 2.0, 70) if weighted else None

    def solve():
        given = {} if weights is None else {"sample_weight": weights}
        return fastmmc.umc_rls(X, 5, rank=9, random_state=0, n_init=1, **given)

    whole = solve()
    monkeypatch.setattr(source, "MOST_SCORES", 300)
    part = solve()
    assert part.loo_scores is None
    assert part.loo_mse == pytest.approx(whole.loo_mse, rel=1e-12)
    np.testing.assert_array_equal(part.labels, whole.labels)
    np.testing.assert_array_equal(part.predict(X), whole.predict(X))
    part.save(tmp_path / "part.npz")
    assert fastmmc.load(tmp_path / "part.npz").loo_scores is None
    with pytest.raises(ValueError, match="more than 1e7 scores n k, have no loo_scores"):
        part.margins  # noqa: B018


def test_overruling_says_that_it_needs_the_scores(monkeypatch):
    monkeypatch.setattr(known, "MOST_SCORES", 300)
    X = np.random.default_rng(0).standard_normal((70, 3))
    y = np.r_[0, 1, np.full(68, -1)]
    with pytest.raises(ValueError, match="known_trust below 1 needs the leave-one-out scores"):
        fastmmc.umc_rls(X, 5, known_labels=y, known_trust=0.9)


@pytest.mark.parametrize("rank", [None, 12])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_point_that_is_left_out_takes_equal_ones_with_it(rng, rank, weighted):
    X = rng.normal(size=(12, 2))[rng.integers(0, 12, 40)]
    w = rng.uniform(0.5, 2.0, 40) if weighted else np.ones(40)
    # Sizes that part equal points.
    labels = rng.integers(0, 3, 40)
    kernel = Kernel("rbf", sigma=1.5)
    form = check_form(X, kernel, rank=rank, landmarks="pivoted", rank_tol=0, dtype=None)
    form = dataclasses.replace(form, weights=w if weighted else None)
    factor = make_factor(X, 0.1, kernel, form, np.random.SeedSequence(0))
    _, scores, _ = source.fit_labels(factor, labels, 3)
    K, P = gram_of(X), naive.codes(labels, 3)
    for j in range(40):
        rest = np.flatnonzero((X != X[j]).any(axis=1))
        A = K[np.ix_(rest, rest)] + 0.1 * np.diag(1 / w[rest])
        wanted = K[j, rest] @ np.linalg.solve(A, P[rest])
        np.testing.assert_allclose(scores[j], wanted, atol=1e-6)
