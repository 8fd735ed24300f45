"""LCVQE and CVQE against their twins; k-means where no constraint is violated."""

import numpy as np
import pytest
from sklearn.cluster import KMeans

from fastmmc import Status
from fastmmc.competitive.batch import BatchSearch
from fastmmc.competitive.methods import cvqe, lcvqe
from fastmmc.competitive.space import Plan
from fastmmc.data.links import Links
from tests.competitive import naive
from tests.competitive.test_online import random_case

BUDGET = 2**62


def search(X, centers, cannot, must, pairwise, max_iter=1):
    plan = Plan(len(centers), centers, max_iter, Links(must, cannot), pairwise)
    return BatchSearch(plan, X, np.random.default_rng(0))


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("k", [1, 2, 4])
def test_a_round_of_lcvqe(seed, k):
    X, centers, _, cannot, must = random_case(seed, k=k)
    one = search(X, centers, cannot, must, False)
    assert one.step(BUDGET)
    labels = naive.lcvqe_labels(X, centers, must, cannot)
    np.testing.assert_array_equal(one.labels, labels)
    moved = naive.lcvqe_centers(X, centers, labels, must, cannot)
    np.testing.assert_allclose(one.centers, moved, rtol=1e-12)
    expected = naive.lcvqe_objective(X, moved, labels, must, cannot)
    assert one.objective == pytest.approx(expected, rel=1e-12)


def test_must_linked_objects_on_their_prototypes_stay_apart():
    """There alone nothing is cheaper than to leave the constraint violated."""
    X, must = np.array([[0.0], [3.0]]), np.array([(0, 1)])
    one = search(X, X, must[:0], must, False)
    assert one.step(BUDGET)
    np.testing.assert_array_equal(one.labels, [0, 1])
    np.testing.assert_array_equal(naive.lcvqe_labels(X, X, must, must[:0]), [0, 1])


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("k", [1, 2, 4])
def test_a_round_of_cvqe(seed, k):
    X, centers, _, cannot, must = random_case(seed, k=k)
    one = search(X, centers, cannot, must, True)
    assert one.step(BUDGET)
    labels = naive.cvqe_labels(X, centers, must, cannot)
    np.testing.assert_array_equal(one.labels, labels)
    moved = naive.cvqe_centers(X, centers, labels, must, cannot)
    np.testing.assert_allclose(one.centers, moved, rtol=1e-12)
    expected = naive.cvqe_objective(X, moved, labels, must, cannot)
    assert one.objective == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("pairwise", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_rounds_are_those_of_the_twin(seed, pairwise):
    """Of five rounds the one of the least objective, with its prototypes, is kept."""
    X, centers, _, cannot, must = random_case(seed)
    labels_of, centers_of, objective_of = (
        getattr(naive, f"{'cvqe' if pairwise else 'lcvqe'}_{what}")
        for what in ("labels", "centers", "objective")
    )
    rounds = []
    for _ in range(5):
        labels = labels_of(X, centers, must, cannot)
        centers = centers_of(X, centers, labels, must, cannot)
        rounds.append((objective_of(X, centers, labels, must, cannot), labels, centers))
    one = search(X, random_case(seed)[1], cannot, must, pairwise, max_iter=5)
    one.step(BUDGET)
    while one.n_iter < 5 and not one.step(BUDGET):
        pass
    best = min(rounds[: one.n_iter], key=lambda r: r[0])
    assert one.objective == pytest.approx(best[0], rel=1e-12)
    np.testing.assert_array_equal(one.labels, best[1])
    np.testing.assert_allclose(one.centers, best[2], rtol=1e-9)
    np.testing.assert_allclose(
        one._history.arrays("rounds")[0], [r[0] for r in rounds[: one.n_iter]], rtol=1e-12
    )


@pytest.mark.parametrize("seed", range(10))
def test_the_update_minimises_the_objective_for_its_labels(seed):
    """The gradient is 0 where no pair changes which of the two is the farther one."""
    X, centers, _, cannot, must = random_case(seed)
    labels = naive.lcvqe_labels(X, centers, must, cannot)
    D = np.array([naive.distances(x, centers) for x in X])
    best = naive.lcvqe_centers(X, centers, labels, must, cannot)

    def objective(moved):
        """J with the lists of the old prototypes."""
        new = np.array([naive.distances(x, moved) for x in X])
        total = new[np.arange(len(X)), labels].sum()
        for a, b in must:
            if labels[a] != labels[b]:
                total += 0.5 * (new[b, labels[a]] + new[a, labels[b]])
        for a, b in cannot:
            if labels[a] == labels[b]:
                f = b if D[b, labels[a]] > D[a, labels[a]] else a
                total += new[f, naive.second(D[f], labels[a])]
        return 0.5 * total

    step = 1e-5
    for j in range(4):
        for f in range(3):
            ahead, back = best.copy(), best.copy()
            ahead[j, f] += step
            back[j, f] -= step
            assert abs(objective(ahead) - objective(back)) / (2 * step) < 1e-7


@pytest.mark.parametrize("function", [lcvqe, cvqe])
def test_satisfied_constraints_leave_k_means(function, blobs):
    X, _ = blobs
    start = X[[0, 30, 60]]
    means = KMeans(3, init=start, n_init=1, tol=0, algorithm="lloyd").fit(X)
    same = [(int(a), int(b)) for a, b in [(0, 1), (2, 3)]]
    other = [(0, 30), (30, 70), (0, 74)]
    assert all(means.labels_[a] == means.labels_[b] for a, b in same)
    assert all(means.labels_[a] != means.labels_[b] for a, b in other)
    result = function(X, 3, init=start, must_link=same, cannot_link=other)
    np.testing.assert_array_equal(result.labels, means.labels_)
    assert 2 * result.objective == pytest.approx(means.inertia_)
    assert result.status == Status.CONVERGED


@pytest.mark.filterwarnings("ignore:.*cannot-links are between objects")
@pytest.mark.parametrize("function", [lcvqe, cvqe])
@pytest.mark.parametrize("seed", range(5))
def test_the_best_round_is_returned(function, seed):
    X, centers, _, cannot, must = random_case(seed)
    result = function(X, 4, init=centers, cannot_link=cannot, must_link=must, on_conflict="warn")
    assert result.objective == result.history.min()
    if function is lcvqe:
        constraints = (np.array(must), np.array(cannot))
        expected = naive.lcvqe_objective(
            X, result.all_centers, original(result), *map(unique, constraints)
        )
        assert result.objective == pytest.approx(expected, rel=1e-12)


def unique(pairs):
    seen, kept = set(), []
    for a, b in pairs.tolist():
        if frozenset((a, b)) not in seen:
            seen.add(frozenset((a, b)))
            kept.append((a, b))
    return kept


def original(result):
    """Labels by the prototypes with the dropped ones among them."""
    places = [int(np.flatnonzero((result.all_centers == c).all(axis=1))[0]) for c in result.centers]
    return np.array(places)[result.labels]


def test_constraints_change_the_clusters():
    """Two blobs, cut crosswise by constraints: k-means would not."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 2)) * [0.3, 1.0] + np.repeat([[0, 0], [4, 0]], 40, axis=0)
    side = (X[:, 1] > 0).astype(int)
    known = np.full(80, -1)
    known[:40:2] = side[:40:2]
    known[40::2] = 0
    free = lcvqe(X, 2, init=[[0, 0], [4, 0]])
    bound = lcvqe(X, 2, init=[[0, 0], [4, 0]], known_labels=known, labels_as="both")
    assert bound.n_violations == 0 < free_violations(free.labels, known)


def free_violations(labels, known):
    rows = np.flatnonzero(known >= 0)
    a, b = (rows[i] for i in np.triu_indices(rows.size, 1))
    return int(((known[a] == known[b]) != (labels[a] == labels[b])).sum())


def test_rounds_end_at_the_limit(overlapping):
    from sklearn.exceptions import ConvergenceWarning

    with pytest.warns(ConvergenceWarning, match="max_iter"):
        result = lcvqe(overlapping, 5, max_iter=2, random_state=0)
    assert result.status == Status.MAX_ITER and result.n_iter == 2


@pytest.mark.parametrize("function", [lcvqe, cvqe])
@pytest.mark.filterwarnings("ignore:stopped before the end")
def test_the_prototypes_are_those_of_the_labels(function, blobs):
    """Also after a single round: without constraints they are the means."""
    X, _ = blobs
    for max_iter in (1, 2, 500):
        result = function(X, 3, init=X[[0, 1, 2]], max_iter=max_iter)
        means = np.array([X[result.labels == j].mean(axis=0) for j in range(result.n_active)])
        np.testing.assert_allclose(result.centers, means, rtol=1e-12)
        within = ((X - means[result.labels]) ** 2).sum()
        assert 2 * result.objective == pytest.approx(within, rel=1e-12)


def test_a_single_cluster_of_cvqe_is_the_mean(overlapping):
    """Its cannot-links are violated whatever happens, and pull it nowhere."""
    X = overlapping
    result = cvqe(X, 1, init=X[:1], cannot_link=[(i, i + 30) for i in range(30)])
    np.testing.assert_allclose(result.centers, X.mean(axis=0, keepdims=True), atol=1e-12)
    assert result.status == Status.CONVERGED and result.n_iter == 2


@pytest.mark.jit  # where loops are interpreted, they warn of every overflow
@pytest.mark.parametrize("function", [lcvqe, cvqe])
def test_squares_that_overflow_end_the_run(function, overlapping):
    from sklearn.exceptions import ConvergenceWarning

    links = {"cannot_link": [(0, 1)], "must_link": [(2, 3)]}
    with pytest.warns(ConvergenceWarning, match="numerical"):
        result = function(overlapping * 1e160, 3, random_state=0, max_time=5, n_init=2, **links)
    assert result.status == Status.NUMERICAL and result.objective == np.inf
    assert result.labels.shape == (60,) and np.isfinite(result.all_centers).all()
