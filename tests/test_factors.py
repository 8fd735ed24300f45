import numpy as np
import pytest
from scipy.linalg import eigvalsh

import fastmmc
from fastmmc.core import memory
from fastmmc.kernels import cholesky, factors, gram
from fastmmc.kernels.gram import Kernel
from tests.rls import naive

RBF = Kernel("rbf", sigma=1.5)


def gram_of(X):
    return RBF.block(X, X)


@pytest.mark.parametrize("lam", [1e-3, 0.25, 10.0])
def test_hat_matrix_is_the_formula(overlapping, lam):
    R = factors.hat_matrix(RBF, overlapping, lam)
    np.testing.assert_allclose(R, naive.hat_matrix(gram_of(overlapping), lam), atol=1e-10)
    np.testing.assert_array_equal(R, R.T)
    assert R.flags.c_contiguous


def test_eigenvalues_of_the_hat_matrix_are_shrinkage_factors(overlapping):
    R = factors.hat_matrix(RBF, overlapping, 0.1)
    w = eigvalsh(gram_of(overlapping))
    np.testing.assert_allclose(eigvalsh(R), w / (w + 0.1), atol=1e-12)


def test_blocks_do_not_show(overlapping, monkeypatch):
    whole = factors.hat_matrix(RBF, overlapping, 0.1)
    monkeypatch.setattr(gram, "BLOCK", 7)
    monkeypatch.setattr(cholesky, "BLOCK", 7)
    monkeypatch.setattr(cholesky, "ROWS", 14)
    np.testing.assert_allclose(factors.hat_matrix(RBF, overlapping, 0.1), whole, atol=1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sigma", [0.1, 0.3, 0.5])
def test_narrow_kernels_make_no_subnormal_numbers(rng, dtype, sigma):
    """Processors are slow with these: products and loops take up to 25 times as long."""
    X = rng.uniform(0, 20, (300, 2)).astype(dtype)
    R = factors.hat_matrix(Kernel("rbf", sigma=sigma), X, 0.25)
    assert (np.abs(R) >= np.finfo(dtype).tiny).all()


def test_both_routes_agree(overlapping):
    w, V = factors.eigh_lower(gram_of(overlapping))
    for lam, R in zip((0.01, 1.0), factors.hat_path(RBF, overlapping, [0.01, 1.0]), strict=True):
        np.testing.assert_allclose(R, factors.hat_from_eigh(w, V, lam), atol=1e-11)


def test_tiny_lam_goes_through_the_eigenvalues():
    X = np.repeat(np.arange(6.0)[:, None], 2, axis=0)  # a singular Gram matrix
    R = factors.hat_matrix(RBF, X, 1e-14)
    w = np.linalg.eigvalsh(R)
    # Six different points: rank six, and every non-zero factor is one.
    np.testing.assert_allclose(np.sort(w), np.repeat([0.0, 1.0], 6), atol=1e-6)


def test_an_indefinite_matrix_is_clipped_with_a_warning(rng):
    A = rng.standard_normal((12, 12))
    K = A + A.T
    with pytest.warns(UserWarning, match="not positive semidefinite") as told:
        R = factors.hat_matrix(Kernel("precomputed"), K, 0.5)
    assert told[0].filename == __file__
    w, V = np.linalg.eigh(K)
    w = np.maximum(w, 0)
    np.testing.assert_allclose(R, V @ np.diag(w / (w + 0.5)) @ V.T, atol=1e-12)


@pytest.mark.parametrize("lam", [1.0, 1e-4])
def test_single_precision_is_kept_and_right(overlapping, lam):
    R = factors.hat_matrix(RBF, overlapping.astype(np.float32), lam)
    assert R.dtype == np.float32
    np.testing.assert_allclose(R, factors.hat_matrix(RBF, overlapping, lam), atol=2e-5)


def test_risk_equals_the_fitted_one(overlapping, hat, rng):
    labels = rng.integers(0, 3, 60)
    K = gram_of(overlapping)
    assert naive.risk(hat, labels, 3) == pytest.approx(
        naive.risk_by_fitting(K, 0.1, labels, 3), rel=1e-10
    )


def test_leave_one_out_equals_refitting(overlapping):
    result = fastmmc.umc_rls(
        overlapping, 3, lam=0.1, sigma=1.5, n_init=2, random_state=0, sizes="equal"
    )
    expected = naive.leave_one_out_mse(gram_of(overlapping), 0.1, result.labels, 3)
    assert result.loo_mse == pytest.approx(expected, rel=1e-9)


def test_coefficients_solve_the_ridge_system(overlapping, rng):
    F = fastmmc.factor(overlapping, lam=0.1, sigma=1.5)
    P = rng.standard_normal((60, 2))
    expected = np.linalg.solve(gram_of(overlapping) + 0.1 * np.eye(60), P)
    np.testing.assert_allclose(F.coefficients(P), expected, atol=1e-10)


def test_a_factor_cannot_be_changed(overlapping):
    F = fastmmc.factor(overlapping)
    with pytest.raises(ValueError, match="read-only"):
        F.R[0, 0] = 2.0
    assert F.n == 60


def test_too_large_a_matrix_is_refused_before_it_is_made(overlapping, monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 1000)
    with pytest.raises(MemoryError, match=r"60 points needs .* float32"):
        fastmmc.umc_rls(overlapping, 2, sizes="equal")


def test_available_memory_is_known_or_none():
    free = memory.available_memory()
    assert free is None or free > 2**20


def test_small_examples():
    factors.check_lam(1e-6, RBF, np.zeros((10, 1)), np.dtype(np.float64))
    hat = factors.hat_matrix(Kernel("precomputed"), np.array([[1.0]]), 1.0)
    assert hat == pytest.approx(0.5)
    halves = [float(R[0, 0]) for R in factors.hat_path(Kernel("precomputed"), np.eye(1), [1, 4])]
    assert halves == pytest.approx([0.5, 0.2])
    assert factors.eigh_seconds(1000) == pytest.approx(0.3)
    assert factors.eigh_lower(np.diag([-1.0, 2.0]))[0].tolist() == [0.0, 2.0]
    assert factors.hat_from_eigh(np.array([1.0]), np.eye(1), 1.0) == pytest.approx(0.5)
    one = np.array([1.0])
    assert factors.leave_one_out_residuals(one, one / 2, one / 2) == [1.0]
