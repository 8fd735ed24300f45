"""The choice that links make between the usual labels and those of kernel k-means."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

import fastmmc
from fastmmc import Status
from fastmmc.distributed import fit_restarts
from fastmmc.execution import OutOfTime
from fastmmc.links import Links
from fastmmc.rls import link_choice, methods
from tests.rls.test_linked import broken, some_links

NO_LINKS = Links(np.empty((0, 2), dtype=int), np.empty((0, 2), dtype=int))
BORDERS = [0] * 30 + [1] * 30
OTHER_BORDERS = [0] * 28 + [1] * 32
OTHERS = [0, 1] * 30


def nine_gaussians():
    """Return clusters that overlap, and links of them."""
    X, y = fastmmc.datasets.make_nine_gaussians(270, random_state=0)
    return X, some_links(y, 0, 27)


def usual(monkeypatch, *args, **params):
    """Return the result of a call without the choice."""
    with monkeypatch.context() as patch:
        patch.setattr(methods, "is_open", lambda *args: False)
        return fastmmc.umc_rls(*args, **params)


@pytest.mark.jit
def test_labels_of_kernel_k_means_that_win_have_the_usual_model(monkeypatch):
    X, links = nine_gaussians()
    monkeypatch.setattr(link_choice, "_wins", lambda *args: True)
    factor = fastmmc.factor(X, k=9)
    res = fastmmc.umc_rls(factor, 9, random_state=0, **links)
    assert res.params["lam"] == 270 and broken(res.labels, **links) == 0
    smooth = fastmmc.factor(X, lam=270.0, sigma=factor.kernel.sigma)
    own = fastmmc.umc_rls(smooth, 9, sizes="free", random_state=0, **links)
    np.testing.assert_array_equal(res.labels, own.labels)
    assert res.objective == own.objective == res.history[-1]
    scores = factor.R @ (2.0 * (res.labels[:, None] == np.arange(9)) - 1.0)
    np.testing.assert_allclose(res.decision_function(X), scores, atol=1e-8)
    expected = usual(monkeypatch, factor, 9, random_state=0, **links)
    np.testing.assert_array_equal(res.outlier_scores, expected.outlier_scores)


@pytest.mark.jit
def test_the_usual_labels_stay_where_they_win(monkeypatch):
    X, links = nine_gaussians()
    expected = usual(monkeypatch, X, 9, random_state=0, **links)
    monkeypatch.setattr(link_choice, "_wins", lambda *args: False)
    res = fastmmc.umc_rls(X, 9, random_state=0, **links)
    np.testing.assert_array_equal(res.labels, expected.labels)
    assert res.params == expected.params and res.objective == expected.objective


@pytest.mark.jit
def test_links_decide_on_overlapping_and_on_curved_clusters(monkeypatch):
    X, y = fastmmc.datasets.make_nine_gaussians(270, random_state=0)
    links = some_links(y, 0, 54)
    res = fastmmc.umc_rls(X, 9, random_state=0, **links)
    without = usual(monkeypatch, X, 9, random_state=0, **links)
    assert res.params["lam"] == 270
    assert adjusted_rand_score(y, res.labels) > adjusted_rand_score(y, without.labels)
    X, y = fastmmc.datasets.load("iris")
    links = some_links(y, 0, 30)
    res = fastmmc.umc_rls(X, 3, random_state=0, **links)
    assert res.params["lam"] == 0.25 and adjusted_rand_score(y, res.labels) > 0.85


@pytest.mark.parametrize(
    ("labels", "held_usual", "held_smooth", "wins"),
    [
        (OTHERS, "1110", "1111", True),  # keeps more
        (OTHERS, "1111", "1111", False),  # no more, of other clusters
        (OTHER_BORDERS, "1111", "1111", True),
        (OTHER_BORDERS, "1111", "0111", True),  # within the standard error
        (OTHER_BORDERS, "1111", "0011", False),
        (OTHER_BORDERS, "1110", "0001", True),  # 3 lost and 1 gained: 2 <= sqrt(4)
        (OTHER_BORDERS, "11111", "00001", False),
    ],
)
def test_what_wins(monkeypatch, labels, held_usual, held_smooth, wins):
    held = {"usual": held_usual, "smooth": held_smooth}
    monkeypatch.setattr(
        link_choice, "_held", lambda factor, *args: np.array([c == "1" for c in held[factor]])
    )
    one = SimpleNamespace(labels=np.array(BORDERS), n_violations=0)
    other = SimpleNamespace(labels=np.array(labels), n_violations=0)
    assert link_choice._wins("smooth", other, "usual", one, None) == wins
    other.n_violations = 1
    assert not link_choice._wins("smooth", other, "usual", one, None)


def test_links_that_hold_are_told():
    links = Links(np.array([[0, 1], [1, 2]]), np.array([[0, 2], [0, 3]]))
    labels = np.array([0, 0, 1, 0])
    np.testing.assert_array_equal(links.hold(labels), [True, False, True, False])
    assert links.n_violations(labels) == 2 and NO_LINKS.n_violations(labels) == 0


@pytest.mark.jit
@pytest.mark.parametrize(
    "told",
    [
        {"sizes": "free"},
        {"sizes": "equal"},
        {"max_size": 70},
        {"balance": 0.3},
        {"init": "kmeans"},
        {"sample_weight": np.ones(150) + np.arange(150) % 2},
        {"known_labels": np.where(np.arange(150) % 20, -1, 0)},
        {"link_penalty": 1.0},
        {"rank": 40},
    ],
    ids=lambda told: next(iter(told)),
)
def test_what_is_told_is_not_chosen(monkeypatch, told):
    X, y = fastmmc.datasets.load("iris")

    def refuse(*args):
        raise AssertionError("links have chosen")

    monkeypatch.setattr(methods, "search_smooth_too", refuse)
    links = {"cannot_link": [(1, 51), (2, 101), (52, 102)]}
    assert fastmmc.umc_rls(X, 3, random_state=0, **told, **links).n_violations == 0


@pytest.mark.jit
@pytest.mark.parametrize(
    ("reason", "status"),
    [(OutOfTime, Status.TIME_LIMIT), (KeyboardInterrupt, Status.INTERRUPTED)],
)
@pytest.mark.parametrize("where", ["make_factor", "_held"])
def test_a_stop_before_the_choice_keeps_the_usual_labels(monkeypatch, reason, status, where):
    X, links = nine_gaussians()
    expected = usual(monkeypatch, X, 9, random_state=0, **links)

    def stop(*args):
        raise reason

    monkeypatch.setattr(link_choice, where, stop)
    with pytest.warns(ConvergenceWarning, match="stopped before the end"):
        res = fastmmc.umc_rls(X, 9, random_state=0, **links)
    assert res.status == status
    np.testing.assert_array_equal(res.labels, expected.labels)


@pytest.mark.jit
def test_a_stop_in_the_second_search_keeps_the_usual_labels(monkeypatch):
    X, links = nine_gaussians()
    expected = usual(monkeypatch, X, 9, random_state=0, **links)
    search = methods.search_labels

    def stopped_late(seed, factor, plan, control):
        result = search(seed, factor, plan, control)
        return result if plan.near is not None else replace(result, status=Status.CALLBACK)

    monkeypatch.setattr(methods, "search_labels", stopped_late)
    monkeypatch.setattr(link_choice, "_wins", lambda *args: True)
    with pytest.warns(ConvergenceWarning, match="stopped before the end"):
        res = fastmmc.umc_rls(X, 9, random_state=0, **links)
    assert res.status == Status.CALLBACK
    np.testing.assert_array_equal(res.labels, expected.labels)


@pytest.mark.jit
def test_progress_rises_over_both_searches():
    X, links = nine_gaussians()
    seen = []
    fastmmc.umc_rls(X, 9, random_state=0, callback=lambda p: seen.append(p.fraction), **links)
    assert seen == sorted(seen) and seen[-1] <= 1.0


@pytest.mark.jit
def test_restarts_are_compared_at_the_larger_lam_if_some_chose_it(monkeypatch):
    X, links = nine_gaussians()
    answers = iter([False, True, False])
    monkeypatch.setattr(link_choice, "_wins", lambda *args: next(answers))
    res = fit_restarts("umc-rls", X, 9, n_init=3, random_state=0, n_jobs=1, **links)
    assert res.best_init == 1 and res.params["lam"] == 270


@pytest.mark.jit
@pytest.mark.parametrize("kernel", ["linear", "precomputed", "laplacian"])
def test_any_kernel_may_be_smoothed(kernel):
    X, y = fastmmc.datasets.load("iris")
    links = some_links(y, 0, 30)
    points = X.astype(np.float32) if kernel == "laplacian" else X
    if kernel == "precomputed":
        points = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 4.0)
    res = fastmmc.umc_rls(points, 3, kernel=kernel, random_state=0, **links)
    assert res.converged and broken(res.labels, **links) == 0


@pytest.mark.jit
def test_equal_points_and_as_many_clusters_as_points_are_searched():
    X = np.repeat(np.arange(3.0), 10)[:, None]
    links = {"must_link": [(0, 10)], "cannot_link": [(0, 20), (1, 11)]}
    assert broken(fastmmc.umc_rls(X, 3, random_state=0, **links).labels, **links) == 0
    with pytest.warns(ConvergenceWarning, match="no point tells the cluster of another"):
        res = fastmmc.umc_rls(np.arange(5.0)[:, None], 5, cannot_link=[(0, 1)], random_state=0)
    assert sorted(res.labels) == list(range(5))
