"""Points far from all others are in the nearest cluster, whatever the kernel still says of them."""

import functools
import inspect
import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

import fastmmc
from fastmmc.kernels.gram import kernel_product
from fastmmc.kernels.models import INTERCEPT_FADES, KERNEL_FADES, KernelModel
from fastmmc.registry import METHODS

# It is meant that they are that far.
pytestmark = pytest.mark.filterwarnings("ignore:.* times as far from the centre:UserWarning")

METRICS = {"rbf": "sqeuclidean", "laplacian": "cityblock"}
# Their machines are those of other methods, and their programs are slow.
SDP = {"gmmc", "sdp_mmc"}


def uneven_clusters():
    """Return points of a large and a small cluster, around (0, 0) and (8, 8)."""
    rng = np.random.default_rng(0)
    return np.vstack((rng.normal(0, 1, (300, 2)), rng.normal(8, 1, (60, 2))))


def cases():
    """Yield calls whose models have kernels that vanish: all pairs of kernel, rank and width."""
    for method in METHODS.values():
        accepted = inspect.signature(method.function).parameters
        needed = {"kernel", "sigma"} <= set(accepted)
        if not needed or "features" in accepted or method.function.__name__ in SDP:
            continue
        name, has_rank = method.function.__name__, "rank" in accepted
        for at, kernel in enumerate(METRICS):
            for turn, sigma in enumerate((0.5, 12.0)):
                rank = 30 if has_rank and (at + turn) % 2 else None
                yield pytest.param(name, kernel, rank, sigma, id=f"{name}-{kernel}-{rank}-{sigma}")


every_case = pytest.mark.parametrize(("name", "kernel", "rank", "sigma"), list(cases()))
wide = [case for case in cases() if case.values[-1] == 12.0]


@functools.cache
def fitted(name, kernel, rank, sigma, dtype=np.float64):
    """Return a result on the uneven clusters."""
    X = uneven_clusters().astype(dtype)
    function = getattr(fastmmc, name)
    # Soft margins, which machines reach soon.
    wanted = {"k": 2, "C": 1.0} | ({} if rank is None else {"rank": rank})
    accepted = inspect.signature(function).parameters
    given = {key: value for key, value in wanted.items() if key in accepted}
    with warnings.catch_warnings():
        # Whether a search has converged is not what is tested.
        warnings.simplefilter("ignore")
        return function(X, kernel=kernel, sigma=sigma, random_state=0, **given)


def rays(seed=1):
    """Return points in all directions, from 10 to 10^6 deviations away."""
    angles = np.random.default_rng(seed).uniform(0, 2 * np.pi, 200)
    directions = np.column_stack((np.cos(angles), np.sin(angles)))
    return np.vstack([4.0 + r * directions for r in 10.0 ** np.arange(1, 6.5, 0.5)])


def log_kernel(model, X):
    """Return log k(x, b), from distances of another make."""
    power = 2 if model.kernel.name == "rbf" else 1
    distances = cdist(X, model.basis.astype(float), METRICS[model.kernel.name])
    return -distances / model.kernel.sigma**power


def raw_scores(model, X):
    """Return the scores by the formula."""
    f = kernel_product(model.kernel, X, model.basis, model.coef) + model.intercept
    return np.hstack((-f, f)) if model.binary else f


@pytest.mark.parametrize(
    ("name", "kernel", "rank", "sigma", "dtype"),
    [
        pytest.param(*case.values, dtype, id=f"{case.id}-{dtype.__name__}")
        for dtype, some in ((np.float64, list(cases())), (np.float32, wide))
        for case in some
    ],
)
def test_far_points_are_in_the_nearest_cluster(name, kernel, rank, sigma, dtype):
    res = fitted(name, kernel, rank, sigma, dtype)
    X = rays().astype(dtype)
    values = log_kernel(res.model, X.astype(float))
    far = values.max(axis=1) < 2 * np.log(KERNEL_FADES)
    owners = raw_scores(res.model, res.model.basis).argmax(axis=1)
    best = [values[:, owners == h].max(axis=1, initial=-np.inf) for h in range(len(res.sizes))]
    # Where two clusters are about equally near, rounding and the rest of the kernel decide.
    gap = np.ptp(np.sort(best, axis=0)[-2:], axis=0)
    clear = far & (gap > 1e-6 * (1 + np.abs(values).max(axis=1)) * (dtype != np.float64) + 1e-6)
    assert clear.sum() > 200
    np.testing.assert_array_equal(res.predict(X[clear]), np.argmax(best, axis=0)[clear])


@pytest.mark.parametrize("kernel", METRICS)
@pytest.mark.parametrize("rank", [None, 60])
@pytest.mark.parametrize("sigma", [0.5, 3.0])
def test_points_beyond_a_small_cluster_are_in_it(kernel, rank, sigma):
    X = uneven_clusters()
    given = {"kernel": kernel, "rank": rank, "sigma": sigma, "sizes": "free", "random_state": 0}
    res = fastmmc.umc_rls(X, 2, known_labels=np.repeat([0, 1], [300, 60]), **given)
    assert sorted(res.sizes) == [60, 300]
    beyond = np.outer([16.0, 20.0, 40.0, 1e3, 1e6], [1.0, 1.0])
    np.testing.assert_array_equal(res.predict(beyond), res.labels[-1])
    np.testing.assert_array_equal(res.predict(-beyond), res.labels[0])


@every_case
def test_scores_near_the_basis_are_those_of_the_formula(name, kernel, rank, sigma):
    model = fitted(name, kernel, rank, sigma).model
    X = np.random.default_rng(2).uniform(-4, 12, (500, 2))
    largest = np.exp(log_kernel(model, X).max(axis=1))
    start = INTERCEPT_FADES if np.any(model.intercept) else KERNEL_FADES
    near = largest > 1.001 * start
    assert near.sum() > 10
    found, formula = model.decision_function(X), raw_scores(model, X)
    np.testing.assert_array_equal(found[near], formula[near])


@pytest.mark.parametrize(("name", "kernel", "rank", "sigma"), wide)
def test_scores_are_continuous(name, kernel, rank, sigma):
    model = fitted(name, kernel, rank, sigma).model
    ends = [((8.0, 8.0), (600.0, 500.0)), ((-900.0, 300.0), (300.0, -40.0))]
    for start, stop in ends:
        steps = []
        for n in (4_001, 32_001):
            share = np.linspace(0, 1, n)[:, None]
            scores = model.decision_function(np.array(start) * (1 - share) + np.array(stop) * share)
            steps.append(np.abs(np.diff(scores, axis=0)).max())
        # A jump would stay as large as it is; eight times smaller steps make less of a slope.
        assert steps[1] < 0.5 * steps[0]


@pytest.mark.parametrize("kernel", METRICS)
@pytest.mark.parametrize("rank", [None, 30])
def test_probabilities_name_the_cluster_of_far_points(kernel, rank):
    res = fitted("umc_rls", kernel, rank, 0.5)
    X = rays()
    probabilities = res.predict_proba(X)
    np.testing.assert_array_equal(probabilities.argmax(axis=1), res.predict(X))
    assert np.abs(probabilities[-200:] - 0.5).max() < 0.05


def test_the_chosen_clustering_of_uneven_clusters_goes_on():
    res = fastmmc.cluster(uneven_clusters(), 2)
    found = res.predict([[8, 8], [16, 16], [20, 20], [40, 40], [1e6, 1e6], [-1e6, 0]])
    np.testing.assert_array_equal(found, found[0] * np.array([1, 1, 1, 1, 1, 0]))
    assert found[0] == res.labels[-1] == 1


@pytest.mark.parametrize("kernel", METRICS)
@pytest.mark.parametrize("d", [3, 1500])
def test_sparse_far_points_are_as_dense_ones(kernel, d):
    rng = np.random.default_rng(3)
    B, X = rng.normal(size=(40, d)) * (rng.random((40, d)) < 0.1), 30.0 * rng.normal(size=(60, d))
    width = 0.2 if kernel == "rbf" else 0.5
    dense = KernelModel(fastmmc.kernels.gram.Kernel(kernel, sigma=width), B, np.eye(40)[:, :3], d)
    basis = sparse.csr_array(B) if d > 1000 else B
    model = KernelModel(dense.kernel, basis, dense.coef, d)
    expected = dense.decision_function(X)
    np.testing.assert_allclose(model.decision_function(sparse.csr_array(X)), expected, atol=1e-9)
    assert np.abs(expected).max() > 0


@pytest.mark.parametrize("kernel", ["linear", "poly"])
def test_kernels_that_do_not_vanish_have_the_scores_of_the_formula(kernel):
    res = fastmmc.umc_rls(uneven_clusters(), 2, kernel=kernel, sizes="free", random_state=0)
    X = rays()
    np.testing.assert_array_equal(res.decision_function(X), raw_scores(res.model, X))
