"""The warning where clusters of free sizes fit far better than those of a size rule."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

import fastmmc
from fastmmc.data.sizes import size_rule
from fastmmc.rls import other_sizes
from fastmmc.rls.other_sizes import FAR_BETTER, _judge, _sample

pytestmark = pytest.mark.jit


def uneven_blobs(sizes=(900, 80, 20)):
    y = np.repeat(np.arange(len(sizes)), sizes)
    centres = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    X = centres[y] + np.random.default_rng(0).standard_normal((len(y), 2))
    return X, y


@pytest.mark.parametrize("method", ["shaking", "steepest", "stochastic", "memetic"])
def test_clusters_of_other_sizes_that_fit_far_better_are_told(method):
    X, y = uneven_blobs()
    options = {"method": method, "n_init": 1, "random_state": 0}
    with pytest.warns(
        ConvergenceWarning, match="free sizes, about 900, 80, 20 points, fit these 1000"
    ):
        fastmmc.umc_rls(X, 3, **options, sizes="equal")
    with pytest.warns(ConvergenceWarning, match="clusters of free sizes"):
        fastmmc.UMCRLS(3, rank=50, **options, sizes="equal").fit(X)
    result = fastmmc.umc_rls(X, 3, target_sizes=[900, 80, 20], **options)
    if method in ("shaking", "memetic"):
        assert adjusted_rand_score(y, result.labels) > 0.99


@pytest.mark.parametrize("share", [None, 1.5])
def test_equal_points_and_weights_are_counted(share):
    X, _ = uneven_blobs((300, 20, 10))
    w = np.repeat([3, 4, 2], [300, 20, 10])
    told = {"X": np.repeat(X, w, axis=0)}
    if share is not None:
        told = {"X": X, "sample_weight": share * w}
        w = share * w
    sizes = re.escape("{:.0f}, {:.0f}, {:.0f}".format(*(np.array([900, 80, 20]) * w[0] / 3)))
    message = rf"about {sizes} points, fit these {w.sum():.0f} points"
    with pytest.warns(ConvergenceWarning, match=message):
        fastmmc.umc_rls(k=3, random_state=0, **told)


@pytest.mark.parametrize("name", ["evo_mmc", "fast_evo_mmc", "recursive_mmc"])
def test_two_clusters_of_other_sizes_are_told_once(name):
    X, y = uneven_blobs((900, 100))
    more = {"k": 2, "method": "evo_mmc"} if name == "recursive_mmc" else {}
    with pytest.warns(ConvergenceWarning, match="about 900, 100 points, fit") as told:
        getattr(fastmmc, name)(X, random_state=0, **more)
    assert len(told) == 1
    if not more:  # whoever tells sizes means them
        getattr(fastmmc, name)(X, balance=0.1, random_state=0)


def test_the_calls_to_try_are_named_with_both_errors_and_help():
    X, y = uneven_blobs()
    numbers = r"error is (0\.\d+), that of the labels found (0\.\d+)\. "
    calls = r'Try umc_rls\(X, k, sizes="free"\) or fastmmc.cluster\(X, k\), or give target_sizes'
    with pytest.warns(ConvergenceWarning, match=numbers + calls) as told:
        fastmmc.umc_rls(X, 3, n_init=1, random_state=0, sizes="equal")
    least, error = map(float, re.search(numbers, str(told[0].message)).groups())
    assert least < FAR_BETTER * error
    for result in (fastmmc.umc_rls(X, 3, sizes="free"), fastmmc.cluster(X, 3)):
        assert adjusted_rand_score(y, result.labels) == 1.0


def test_the_share_that_counts_as_far_better(monkeypatch):
    """Labels that cut 120 points in halves, of which 30 are apart by more and more."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 2))
    X[90:, 0] += 3.25
    monkeypatch.setattr(other_sizes, "is_first", lambda name: True)  # no other call is under way

    def warn():
        labels = np.zeros(120, dtype=np.int64)
        labels[np.argsort(X[:, 0])[60:]] = 1
        other_sizes.warn_of_other_sizes(fastmmc.factor(X, lam=0.25), labels, 2)

    warn()  # a share of 0.57
    X[90:, 0] += 0.75  # 0.40
    with pytest.warns(ConvergenceWarning, match="clusters of free sizes"):
        warn()


def test_a_gram_matrix_is_not_sent_to_what_takes_points():
    X, _ = uneven_blobs()
    K = np.exp(-cdist(X, X, "sqeuclidean") / 25.0)
    with pytest.warns(ConvergenceWarning, match=r'sizes="free"\), or give target_sizes'):
        fastmmc.umc_rls(K, 3, kernel="precomputed", n_init=1, random_state=0, sizes="equal")


def test_the_error_compared_is_that_of_models_without_a_point(overlapping):
    labels = np.arange(len(overlapping)) % 3
    factor = fastmmc.factor(overlapping, lam=0.1)
    rows, points, _ = _sample(factor)
    assert_array_equal(rows, np.arange(len(overlapping)))
    assert_allclose(points.matrix, factor.R, atol=1e-12)
    K = factor.kernel.block(overlapping, overlapping)
    expected = 0.0
    for h in range(3):
        for i in range(len(labels)):
            rest = np.delete(np.arange(len(labels)), i)
            A = K[np.ix_(rest, rest)] + 0.1 * np.eye(len(rest))
            f = K[i, rest] @ np.linalg.solve(A, (labels[rest] == h).astype(float))
            expected += ((labels[i] == h) - f) ** 2 / np.sum(labels == h) / 3
    cost, error = _judge(points, labels, size_rule(len(labels), 3))
    E = np.eye(3)[labels]
    assert error == pytest.approx(expected)
    assert cost == pytest.approx(3 - np.trace(E.T @ factor.R @ E / E.sum(axis=0)))


@pytest.mark.parametrize("n_features", [2, 10])
@pytest.mark.parametrize("k", [2, 3, 8])
def test_points_without_clusters_give_no_such_warning(n_features, k):
    for draw in ("standard_normal", "random"):
        X = getattr(np.random.default_rng(k), draw)((300, n_features))
        fastmmc.umc_rls(X, k, n_init=5, random_state=0, sizes="equal")
        if k == 2:
            fastmmc.evo_mmc(X, n_init=2, random_state=0)


def test_nothing_is_told_of_labels_that_are_predicted_well_or_of_a_choice(digits):
    X, y = uneven_blobs((120, 100, 80))
    fastmmc.umc_rls(X, 3, n_init=2, random_state=0, sizes="equal")
    fastmmc.cluster(uneven_blobs()[0], 3, random_state=0)
    fastmmc.umc_rls(digits[0], 10, n_init=2, random_state=0, sizes="equal")
