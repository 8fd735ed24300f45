"""Known labels: they are kept, they name clusters, and few of them do not make a result worse."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

import fastmmc
from fastmmc.core.status import Status
from fastmmc.rls import known as known_labels
from tests.rls import naive

# Whole searches, which take minutes without the compiler.
pytestmark = pytest.mark.jit

METHODS = ["shaking", "steepest", "stochastic", "memetic"]


def blobs(sizes, spread=6.0):
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    return spread * np.eye(len(sizes))[y] + rng.standard_normal((len(y), len(sizes))), y


def tell(y, count, seed=0):
    """Return the labels of so many points a class, -1 elsewhere."""
    rng = np.random.default_rng(seed)
    known = np.full(y.size, -1)
    for h in np.unique(y):
        known[rng.choice(np.flatnonzero(y == h), count, replace=False)] = h
    return known


def ari_of_the_rest(y, labels, known):
    return adjusted_rand_score(y[known < 0], labels[known < 0])


@pytest.mark.parametrize("sizes", ["equal", "free"])
@pytest.mark.parametrize("method", METHODS)
def test_known_labels_are_kept_and_name_the_clusters(method, sizes):
    X, y = blobs([40, 50, 45, 42])
    names = np.array([2, 0, 3, 1])[y]
    known = tell(names, 1)
    bounds = {"balance": 0.5} if sizes == "equal" else {}
    result = fastmmc.umc_rls(
        X, 4, method=method, sizes=sizes, known_labels=known, n_init=3, random_state=0, **bounds
    )
    np.testing.assert_array_equal(result.labels[known >= 0], known[known >= 0])
    assert np.mean(result.labels == names) > 0.97


@pytest.mark.parametrize("sizes", ["equal", "free"])
def test_a_single_label_a_class_changes_no_other_label(digits, sizes):
    """They led the search astray when known points began in clusters that were numbered by chance.

    One label a class is too few for a classifier, whose labels have the higher objective.
    """
    X, y = digits
    F = fastmmc.factor(X[:600])
    options = {"sizes": sizes, "random_state": 0}
    alone = fastmmc.umc_rls(F, 10, **options)
    for seed in range(4):
        known = tell(y[:600], 1, seed)
        labels = fastmmc.umc_rls(F, 10, known_labels=known, **options).labels
        np.testing.assert_array_equal(labels[known >= 0], known[known >= 0])
        base = ari_of_the_rest(y[:600], alone.labels, known)
        assert ari_of_the_rest(y[:600], labels, known) > base - 0.02


@pytest.mark.parametrize("rank", [None, 150])
@pytest.mark.parametrize("sizes", ["equal", "free"])
def test_many_labels_lead_where_clusters_cannot(digits, sizes, rank):
    X, y = digits
    X, y = X[::2], y[::2]
    F = fastmmc.factor(X, rank=rank, random_state=0)
    options = {"sizes": sizes, "random_state": 0, "n_init": 2}
    alone = fastmmc.umc_rls(F, 10, **options)
    known = tell(y, 15)
    result = fastmmc.umc_rls(F, 10, known_labels=known, **options)
    assert ari_of_the_rest(y, result.labels, known) > 0.88
    assert ari_of_the_rest(y, result.labels, known) >= ari_of_the_rest(y, alone.labels, known)


def test_classes_without_a_known_label_are_new_clusters():
    X, y = blobs([45, 45, 45, 45])
    known = np.where(y < 2, tell(y, 5), -1)
    for rule in ({"balance": 0.5}, {"sizes": "free"}):
        labels = fastmmc.umc_rls(X, 4, known_labels=known, random_state=0, **rule).labels
        assert adjusted_rand_score(y, labels) > 0.97
        assert np.mean(labels[y < 2] == y[y < 2]) > 0.97


def test_the_classifier_is_kernel_least_squares_on_the_known_labels(rng):
    X = rng.standard_normal((60, 3))
    known = np.where(np.arange(60) < 24, np.arange(60) % 3, -1)
    plan = fastmmc.rls.planning._make_plan
    F = fastmmc.factor(X, lam=0.1, sigma=1.5)
    call = fastmmc.rls.methods._UMCRLSCall(X=F, k=3, known_labels=known, balance=1.0)
    plan = plan(call, fastmmc.rls.source.check_source(call))
    labels, *n_wrong = known_labels.classify(F, plan, np.zeros(60, dtype=np.int64))
    scores = naive.classifier_scores(X, known, 3, 0.1, 1.5)
    expected = np.where(known >= 0, known, scores.argmax(axis=1))
    np.testing.assert_array_equal(labels, expected)
    n_left_out = 0
    for row in np.flatnonzero(known >= 0):
        others = np.where(np.arange(60) == row, -1, known)
        scores = naive.classifier_scores(X, others, 3, 0.1, 1.5)
        n_left_out += scores[row].argmax() != known[row]
    assert n_wrong == [n_left_out, np.count_nonzero(known > 0)]


def test_a_class_with_one_known_label_is_not_counted():
    X, y = blobs([20, 20])
    known = np.full(40, -1)
    known[[0, 1, 30]] = y[[0, 1, 30]]
    F = fastmmc.factor(X)
    call = fastmmc.rls.methods._UMCRLSCall(X=F, k=2, known_labels=known)
    plan = fastmmc.rls.planning._make_plan(call, fastmmc.rls.source.check_source(call))
    assert known_labels.classify(F, plan, 1 - y)[2] == 2


def test_labels_lead_where_clusters_lie_across_the_classes():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (400, 2)) * [6.0, 1.0]
    y = (X[:, 1] > 0).astype(int)
    alone = fastmmc.umc_rls(X, 2, random_state=0)
    assert adjusted_rand_score(y, alone.labels) < 0.1
    result = fastmmc.umc_rls(X, 2, known_labels=tell(y, 40), random_state=0)
    assert result.objective > alone.objective
    assert adjusted_rand_score(y, result.labels) > 0.7


@pytest.mark.parametrize("sizes", ["equal", "free"])
@pytest.mark.parametrize("count, n_errors", [(1, 0), (8, 0), (8, 1)])
def test_the_better_of_two_searches_is_returned(digits, sizes, count, n_errors, monkeypatch):
    """That from the classifier alone is made if it errs on fewer known labels."""

    classify = known_labels.classify
    monkeypatch.setattr(known_labels, "classify", lambda *args: (classify(*args)[0], 0, n_errors))
    X, y = digits
    X, y = X[:400], y[:400]
    make, found = fastmmc.rls.search.best_result, []

    def noted(*args, **kwargs):
        found.append(make(*args, **kwargs))
        return found[-1]

    monkeypatch.setattr(fastmmc.rls.search, "best_result", noted)
    options = {"sizes": sizes, "n_init": 1, "random_state": 0}
    result = fastmmc.umc_rls(X, 10, known_labels=tell(y, count), **options)
    assert len(found) == (2 if n_errors else 3)
    best = min(found[1:], key=lambda one: one.objective)
    assert result.objective == best.objective
    np.testing.assert_array_equal(result.labels, best.labels)


def test_only_the_search_that_won_gives_its_warnings(monkeypatch):
    X, y = blobs([50, 60, 55], spread=1.0)
    judge, given = fastmmc.rls.source._warn_if_unpredictable, []

    def warn(*args):
        judge(*args)
        given.append(f"search {len(given)}")
        fastmmc.core.execution.warn_user(given[-1])

    monkeypatch.setattr(fastmmc.rls.source, "_warn_if_unpredictable", warn)
    classify = known_labels.classify
    monkeypatch.setattr(known_labels, "classify", lambda *args: (classify(*args)[0], 0, 0))
    with pytest.warns(ConvergenceWarning) as warned:
        fastmmc.umc_rls(X, 3, known_labels=tell(y, 5), n_init=1, random_state=0)
    assert len(given) == 3 and len(warned) == 1
    assert str(warned[0].message) in given[1:] and warned[0].filename == __file__


def test_stand_ins_for_classes_without_labels():
    known = np.array([0, 0, 0, 1, -1, -1, -1, -1, -1])
    clusters = np.array([0, 0, 2, 1, 2, 2, 2, 2, 1])
    told = known_labels._with_stand_ins(known, clusters, 3)
    assert told[:4].tolist() == [0, 0, 0, 1] and told[8] == -1
    # As many as the median class has known labels, one of each half.
    assert sorted(told[4:6]) == sorted(told[6:8]) == [-1, 2]


def test_of_very_many_labels_some_of_each_class_make_the_classifier(monkeypatch):
    monkeypatch.setattr(known_labels, "MOST_TOLD", 20)
    known = np.where(np.arange(500) % 5 == 0, np.arange(500) // 125, -1)
    rows = known_labels._told_rows(known)
    assert rows.size == 20 and (np.bincount(known[rows]) == 5).all()


def test_points_of_all_kinds():
    X, y = blobs([60, 50, 55])
    known = tell(y, 4)
    gram = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 25.0)
    calls = [
        {"X": X.astype(np.float32)},
        {"X": sparse.csr_matrix(X), "rank": 40},
        {"X": gram, "kernel": "precomputed"},
        {"X": gram, "kernel": "precomputed", "rank": 40},
        {"X": X, "kernel": lambda X, Z: (1.0 + X @ Z.T) ** 2},
        {"X": X, "init": "kmeans"},
        {"X": X, "lam": 0.01, "kernel": "linear"},
    ]
    for call in calls:
        labels = fastmmc.umc_rls(k=3, known_labels=known, n_init=2, random_state=0, **call).labels
        assert np.mean(labels == y) > 0.9


def test_equal_points_with_unequal_labels():
    X = np.repeat(np.arange(4.0), 10)[:, None]
    known = np.where(np.arange(40) % 10 == 0, np.arange(40) // 10 % 2, -1)
    known[1] = 1
    result = fastmmc.umc_rls(X, 2, known_labels=known, random_state=0)
    np.testing.assert_array_equal(result.labels[known >= 0], known[known >= 0])


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_stop_ends_the_call_with_what_there_is(at, monkeypatch):
    X, y = blobs([50, 60, 55], spread=1.0)
    known = tell(y, 5)
    make, statuses = fastmmc.rls.search.best_result, []

    def stopped(*args, **kwargs):
        result = make(*args, **kwargs)
        statuses.append(Status.CALLBACK if len(statuses) == at else result.status)
        fastmmc.core.execution.warn_if_stopped(statuses[-1], 1, 1)
        return replace(result, status=statuses[-1])

    monkeypatch.setattr(fastmmc.rls.search, "best_result", stopped)
    with pytest.warns(ConvergenceWarning, match="callback asked to stop") as warned:
        result = fastmmc.umc_rls(X, 3, known_labels=known, n_init=3, random_state=0)
    assert result.status == Status.CALLBACK
    assert len(warned) == 1 and len(statuses) == max(2, at + 1)
    np.testing.assert_array_equal(result.labels[known >= 0], known[known >= 0])


def test_progress_goes_from_nothing_to_all():
    X, y = blobs([500, 600, 550], spread=1.0)
    fractions = []
    fastmmc.umc_rls(
        X,
        3,
        known_labels=tell(y, 5),
        random_state=0,
        method="memetic",
        callback=lambda progress: fractions.append(progress.fraction),
    )
    assert fractions == sorted(fractions) and 0 <= fractions[0] <= fractions[-1] <= 1


def test_same_labels_for_any_number_of_threads():
    X, y = blobs([60, 70, 65], spread=1.5)
    known = tell(y, 3)
    one, two = (
        fastmmc.umc_rls(X, 3, known_labels=known, random_state=0, n_jobs=n_jobs).labels
        for n_jobs in (1, 2)
    )
    np.testing.assert_array_equal(one, two)
