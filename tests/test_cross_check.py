"""No method finds what is better than the best of all labellings of a tiny set."""

from dataclasses import dataclass

import numpy as np
import pytest

import fastmmc
from fastmmc.data.sizes import binary_bounds
from fastmmc.kernels.factors import hat_matrix
from fastmmc.kernels.gram import Kernel
from fastmmc.sdp.machine import centre, train_soft
from tests.rls import naive

N = 12
SIGMA, LAM, C, BALANCE = 1.5, 0.1, 1.0, 0.2
SHARED = {"sigma": SIGMA, "balance": BALANCE, "random_state": 0}

HEURISTICS = {
    "umc_rls": lambda X: fastmmc.umc_rls(X, 2, lam=LAM, **SHARED, sizes="equal"),
    "umc_rls, memetic": lambda X: fastmmc.umc_rls(X, 2, lam=LAM, method="memetic", **SHARED),
    "evo_mmc": lambda X: fastmmc.evo_mmc(X, lam=LAM, **SHARED),
    "fast_evo_mmc": lambda X: fastmmc.fast_evo_mmc(X, lam=LAM, rank=N, **SHARED),
    "iter_svr": lambda X: fastmmc.iter_svr(X, C=C, **SHARED),
    "iter_svm": lambda X: fastmmc.iter_svm(X, C=C, **SHARED),
    "iter_ls_svm": lambda X: fastmmc.iter_ls_svm(X, C=C, **SHARED),
}
# Their objective is Q itself, or half of it.
RLS = {"umc_rls": 1.0, "umc_rls, memetic": 1.0, "evo_mmc": 2.0, "fast_evo_mmc": 2.0}


@dataclass(frozen=True)
class Tiny:
    """Points, and what the best labels of allowed sizes are worth."""

    X: np.ndarray
    K: np.ndarray
    R: np.ndarray
    sizes: tuple
    least_value: float
    least_risk: float


@pytest.fixture(scope="module", params=range(2))
def tiny(request):
    X = np.random.default_rng(request.param).standard_normal((N, 2))
    lower, upper = binary_bounds(N, BALANCE, None, 1)
    codes = np.arange(2 ** (N - 1))[:, None] >> np.arange(N) & 1  # the last point stays in 0
    labellings = codes[(lower <= codes.sum(axis=1)) & (codes.sum(axis=1) <= upper)]
    kernel = Kernel("rbf", sigma=SIGMA)
    K, R = centre(kernel.block(X, X)), hat_matrix(kernel, X, LAM)
    least_value = min(svm_value(K, labels) for labels in labellings)
    least_risk = min(naive.risk(R, labels, 2) for labels in labellings)
    return Tiny(X, K, R, (lower, upper), least_value, least_risk)


def svm_value(K, labels):
    return train_soft(K, np.where(labels == 1, 1.0, -1.0), C).value


def test_svm_values(tiny):
    reached = {}
    for name, run in HEURISTICS.items():
        result = run(tiny.X)
        assert tiny.sizes[0] <= result.sizes.min(), name
        reached[name] = svm_value(tiny.K, result.labels)
        assert reached[name] >= tiny.least_value - 1e-6, name
    # Some find labels that are near the best ones; the comparison means something.
    assert min(reached.values()) < 1.2 * tiny.least_value


def test_the_bound_of_the_semidefinite_program(tiny):
    pytest.importorskip("cvxpy")
    result = fastmmc.sdp_mmc(tiny.X, C=C, sigma=SIGMA, balance=BALANCE)
    assert 0.5 * tiny.least_value < result.bound <= tiny.least_value * (1 + 1e-6)
    assert result.objective >= tiny.least_value - 1e-6
    assert result.objective == pytest.approx(svm_value(tiny.K, result.labels))
    assert tiny.sizes[0] <= result.sizes.min()


def test_risks_of_regularised_least_squares(tiny):
    for name, run in HEURISTICS.items():
        result = run(tiny.X)
        risk = naive.risk(tiny.R, result.labels, 2)
        assert risk >= tiny.least_risk - 1e-9, name
        if name in RLS:
            assert RLS[name] * result.objective == pytest.approx(risk)
    labels = HEURISTICS["evo_mmc"](tiny.X).labels
    assert naive.risk(tiny.R, labels, 2) == pytest.approx(tiny.least_risk)
