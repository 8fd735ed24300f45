"""The inverse in pieces against LAPACK's."""

import numpy as np
import pytest
from scipy.linalg import cholesky

from fastmmc.core.execution import OutOfTime
from fastmmc.kernels import cholesky as pieces


def positive_definite(n, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 5))
    squared = np.maximum(0.0, np.sum(X**2, 1)[:, None] + np.sum(X**2, 1) - 2.0 * X @ X.T)
    return (np.exp(-squared / 9.0) + 0.25 * np.eye(n)).astype(dtype)


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(pieces, "BLOCK", 4)
    monkeypatch.setattr(pieces, "ROWS", 8)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 9, 23, 40])
@pytest.mark.parametrize(("dtype", "tol"), [(np.float64, 1e-12), (np.float32, 1e-4)])
def test_inverse(small_blocks, n, dtype, tol):
    K = positive_definite(n, dtype)
    A = np.where(np.tri(n, dtype=bool), K, np.nan).astype(dtype)  # the upper triangle is not read
    assert pieces.invert_lower(A) and A.dtype == dtype
    pieces.mirror_lower(A)
    np.testing.assert_allclose(A, np.linalg.inv(K.astype(np.float64)), rtol=0, atol=tol * 10)
    np.testing.assert_array_equal(A, A.T)


@pytest.mark.parametrize("n", [1, 4, 9, 23])
def test_factor(small_blocks, n):
    K = positive_definite(n)
    A = K.copy()
    assert pieces.factor_lower(A)
    np.testing.assert_allclose(A, cholesky(K, lower=True), rtol=0, atol=1e-13)


@pytest.mark.parametrize("n", [0, 1, 7])
@pytest.mark.parametrize("order", ["C", "F"])
def test_the_inverse_of_a_triangle(n, order):
    L = np.asarray(np.linalg.cholesky(positive_definite(n)), order=order)
    np.testing.assert_allclose(pieces.invert_triangle(L) @ L, np.eye(n), rtol=0, atol=1e-13)
    A = positive_definite(n)
    half = pieces.ridge_root(A, 2.0)
    K = positive_definite(n) + 2.0 * np.eye(n)
    np.testing.assert_allclose(half.T @ K @ half, np.eye(n), rtol=0, atol=1e-13)
    np.testing.assert_array_equal(half, np.triu(half))


@pytest.mark.parametrize("at", [0, 3, 12])
def test_an_indefinite_matrix_is_told(small_blocks, at):
    K = positive_definite(15)
    K[at, at] = -1.0
    assert not pieces.invert_lower(K.copy()) and not pieces.factor_lower(K.copy())


def test_the_share_that_is_done_rises_to_one_and_can_stop_the_work(small_blocks):
    shares = []
    pieces.invert_lower(positive_definite(40), shares.append)
    assert np.all(np.diff(shares) >= 0) and shares[0] < 0.1 and 0.9 < shares[-1] <= 1.0

    def stop(share):
        if share > 0.3:
            raise OutOfTime

    with pytest.raises(OutOfTime):
        pieces.invert_lower(positive_definite(40), stop)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_result_does_not_depend_on_the_number_of_threads(monkeypatch, threads):
    from fastmmc.core import threads as module

    K = positive_definite(700)
    alone = K.copy()
    with monkeypatch.context() as patch:
        patch.setattr(module, "WORTH_A_THREAD", np.inf)
        pieces.invert_lower(alone)
    monkeypatch.setattr(module, "WORTH_A_THREAD", 0)
    monkeypatch.setattr(module._BlasLimit, "configured", lambda self: threads)
    pieces.invert_lower(K)
    np.testing.assert_array_equal(alone, K)


def test_small_examples():
    A = np.array([[4.0, 0.0], [0.0, 16.0]])
    assert pieces.invert_lower(A) and A.tolist() == [[0.25, 0.0], [0.0, 0.0625]]
    A = np.array([[4.0, 9.0], [2.0, 2.0]])
    assert pieces.factor_lower(A) and A.tolist() == [[2.0, 0.0], [1.0, 1.0]]
    A = np.array([[1.0, 9.0], [2.0, 3.0]])
    pieces.mirror_lower(A, 2.0)
    assert A.tolist() == [[2.0, 4.0], [4.0, 6.0]]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nothing_above_the_diagonal_is_computed_with(small_blocks, dtype):
    n = 23
    A = positive_definite(n, dtype)
    B = A.copy()
    signalling = {4: np.uint32(0x7FA00000), 8: np.uint64(0x7FF4000000000000)}[A.itemsize]
    A.view(signalling.dtype)[np.triu_indices(n, 1)] = signalling
    assert pieces.factor_lower(A) and pieces.factor_lower(B)
    np.testing.assert_array_equal(np.tril(A), np.tril(B))


@pytest.mark.parametrize("kind", ["full", "triangular", "rows in another order", "zero"])
def test_a_staircase_multiplies_as_its_matrix(monkeypatch, rng, kind):
    monkeypatch.setattr(pieces, "PANEL", 5)
    monkeypatch.setattr(pieces, "FEW_ROWS", 10)
    M = rng.standard_normal((23, 17))
    if kind != "full":
        M = np.triu(M)
    if kind == "rows in another order":
        M = rng.permutation(M)
    M *= kind != "zero"
    A, out = rng.standard_normal((9, 23)), np.empty((9, 17))
    stairs = pieces.Staircase(M)
    stairs.multiply(A[:, stairs.rows], out)
    np.testing.assert_allclose(out, A @ M, rtol=1e-12, atol=1e-12)
    assert stairs.rows.size == {"full": 23, "zero": 1}.get(kind, 17)


def test_a_triangular_staircase_works_in_place(monkeypatch, rng):
    monkeypatch.setattr(pieces, "PANEL", 5)
    monkeypatch.setattr(pieces, "FEW_ROWS", 10)
    M, A = np.triu(rng.standard_normal((17, 17))), rng.standard_normal((9, 17))
    expected = A @ M
    pieces.Staircase(M).multiply(A, A)
    np.testing.assert_allclose(A, expected, rtol=1e-12, atol=1e-12)


def test_a_staircase_takes_numbers_that_are_lost_beside_others_as_zero(monkeypatch, rng):
    monkeypatch.setattr(pieces, "PANEL", 5)
    monkeypatch.setattr(pieces, "FEW_ROWS", 10)
    M = np.triu(rng.standard_normal((17, 17)) * 10.0 ** -rng.uniform(0, 40, size=(17, 17)))
    A = rng.standard_normal((9, 17)) * 10.0 ** -rng.uniform(0, 40, size=(9, 17))
    A[3] *= 1e-20
    out = np.empty((9, 17), dtype=np.float32)
    stairs = pieces.Staircase(M, out.dtype)
    stairs.multiply(A, out)
    bound = np.abs(A).max(axis=1, keepdims=True) * np.abs(M).max(axis=0)
    assert (np.abs(out - A @ M) <= 1e-6 * bound).all()
    for _, panel in stairs._panels:
        held = np.abs(panel)
        share = held / held.max(axis=0, keepdims=True)
        assert (share[held > 0] > 1e-19).all()


def test_a_staircase_multiplies_short_columns_in_single_precision(monkeypatch, rng):
    monkeypatch.setattr(pieces, "PANEL", 5)
    monkeypatch.setattr(pieces, "FEW_ROWS", 10)
    M, A = np.triu(rng.standard_normal((17, 17))), rng.standard_normal((9, 17))
    M[:, 7] *= 1e4
    out = np.empty((9, 17), dtype=np.float32)
    stairs = pieces.Staircase(M, out.dtype)
    stairs.multiply(A, out)
    exact = A @ M
    in_double = (np.arange(17) >= 5) & (np.arange(17) < 10)  # the panel of the long column
    np.testing.assert_array_equal(out[:, in_double], exact[:, in_double].astype(np.float32))
    assert (out != exact.astype(np.float32)).any()
    bound = 1e-5 * np.linalg.norm(A, axis=1)
    assert (np.abs(out - exact)[:, ~in_double].max(axis=1) < bound).all()
