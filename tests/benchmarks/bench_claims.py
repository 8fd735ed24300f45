"""Single compiled loops of UMC-RLS, one by one.

pytest tests/benchmarks -o python_files='bench_*.py' --benchmark-enable
"""

from functools import cache

import numpy as np
import pytest
from sklearn.datasets import make_blobs

import fastmmc
from fastmmc.rls import _loops_claims as claims
from fastmmc.sizes import shaking_quota

K = 10
WITHOUT_END = 2**62
SIZES = pytest.mark.parametrize("n", [1000, 4000])


@cache
def hat_matrix(n):
    X, _ = make_blobs(n, 10, centers=K, cluster_std=2.0, center_box=(-5, 5), random_state=0)
    return fastmmc.factor(X).R


def random_labels(n):
    return np.random.default_rng(0).permutation(np.arange(n) % K).astype(np.uint8)


def new_state(R, labels):
    n = labels.size
    state = claims.State(
        labels=labels.copy(),
        counts=np.bincount(labels, minlength=K),
        U=np.empty((K, n)),
        total=R.sum(axis=0),
        diag=np.ascontiguousarray(np.diagonal(R)),
        movable=np.ones(n, dtype=np.bool_),
        score=np.zeros(n),
        own=np.zeros(n),
        lanes=np.empty(claims.LANES),
        pos=np.zeros(claims.N_POS, dtype=np.int64),
        value=np.full(claims.N_VALUES, np.inf),
        history=np.empty((4096, 2)),
        best_labels=np.empty(0, dtype=labels.dtype),
    )
    state.pos[claims.REMAINING] = -1
    claims.build_sums(R, state.labels, state.U)
    state.value[claims.OBJECTIVE] = claims.risk(state.labels, state.U, state.total)
    return state


def bounds(n):
    """Return size bounds that a descent from equal sizes can move in."""
    return np.full(K, n // (2 * K)), np.full(K, 2 * n // K)


def shake(R, state):
    n = state.labels.size
    quota = shaking_quota(n, K, 21)
    return claims.shake(R, None, state, quota, np.ones_like(quota), n, WITHOUT_END)


def polish(R, state):
    n = state.labels.size
    free, price, reach = np.zeros(K, dtype=np.int64), np.empty(K), np.empty((K, K))
    least = row_minima(n)
    return claims.polish(
        R, None, state, free, price, reach, least, *bounds(n), 1e-12 * n, n, WITHOUT_END
    )


@cache
def row_minima(n):
    return hat_matrix(n).min(axis=1)


@cache
def shaken_labels(n):
    state = new_state(hat_matrix(n), random_labels(n))
    shake(hat_matrix(n), state)
    return state.labels


def run_loop(benchmark, loop, *args):
    """Time a loop that can run again on what it left behind; the first call compiles."""
    loop(*args)
    return benchmark(loop, *args)


@pytest.mark.benchmark(group="build_sums")
@SIZES
def test_build_sums(benchmark, n):
    run_loop(benchmark, claims.build_sums, hat_matrix(n), random_labels(n), np.empty((K, n)))


@pytest.mark.benchmark(group="claim_pass")
@pytest.mark.parametrize("eager", [False, True])
@SIZES
def test_claim_pass(benchmark, n, eager):
    R = hat_matrix(n)
    state = new_state(R, random_labels(n))
    state.score[:] = np.random.default_rng(1).random(n)
    j = run_loop(
        benchmark,
        claims.claim_pass,
        R[0],
        state.U[1],
        state.U[0],
        state.score,
        state.labels,
        state.labels.dtype.type(1),
        eager,
        state.lanes,
    )
    assert j == np.argmin(state.score)


@pytest.mark.benchmark(group="argleast")
@SIZES
def test_argleast(benchmark, n):
    values = np.random.default_rng(0).random(n)
    assert run_loop(benchmark, claims.argleast, values, np.empty(claims.LANES)) == np.argmin(values)


@pytest.mark.benchmark(group="fill_claim_scores")
@SIZES
def test_fill_claim_scores(benchmark, n):
    state = new_state(hat_matrix(n), random_labels(n))
    floors = np.ones(K, dtype=np.int64)
    run_loop(
        benchmark,
        claims.fill_claim_scores,
        0,
        state.labels,
        state.counts,
        state.U,
        state.diag,
        state.movable,
        floors,
        state.score,
    )


@pytest.mark.benchmark(group="rebuild_row")
@SIZES
def test_rebuild_row(benchmark, n):
    state = new_state(hat_matrix(n), random_labels(n))
    run_loop(benchmark, claims.rebuild_row, state.U, state.total, 0)


@pytest.mark.benchmark(group="move")
@SIZES
def test_move(benchmark, n):
    R = hat_matrix(n)
    state = new_state(R, random_labels(n))

    def there_and_back():
        claims.move(R, None, state.labels, state.counts, state.U, 0, 1)
        claims.move(R, None, state.labels, state.counts, state.U, 0, 2)

    run_loop(benchmark, there_and_back)


@pytest.mark.benchmark(group="score_swaps")
@SIZES
def test_score_swaps(benchmark, n):
    R = hat_matrix(n)
    state = new_state(R, random_labels(n))
    price = np.zeros(K)
    run_loop(
        benchmark, claims.score_swaps, R[0], state.U[0], state.own, price, state.labels, state.score
    )


@pytest.mark.benchmark(group="polish")
@SIZES
def test_polish(benchmark, n):
    """From the same shaken labels to the end, in every round."""
    R = hat_matrix(n)
    labels = shaken_labels(n)

    def fresh():
        return (R, new_state(R, labels)), {}

    assert benchmark.pedantic(polish, setup=fresh, rounds=5, warmup_rounds=1)
