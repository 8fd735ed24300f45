"""Single compiled loops of UMC-RLS, one by one.

pytest tests/benchmarks -o python_files='bench_*.py' --benchmark-enable
"""

from functools import cache

import numpy as np
import pytest
from sklearn.datasets import make_blobs

import fastmmc
from fastmmc.data.sizes import SizeRule, shaking_quota
from fastmmc.rls import _loops_claims as claims
from fastmmc.rls.engine import _loops_moves as moves
from fastmmc.rls.engine.descents import descent
from fastmmc.rls.engine.groups import Groups

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
    """Return a state with bounds that a descent from equal sizes can move in."""
    n = labels.size
    state = claims.State(
        matrix=R,
        row=None,
        labels=labels.copy(),
        masses=np.ones(n, dtype=np.int64),
        counts=np.bincount(labels, minlength=K),
        sums=np.empty((K, n)),
        total=R.sum(axis=0),
        diag=np.ascontiguousarray(np.diagonal(R)),
        movable=np.ones(n, dtype=np.bool_),
        lower=np.full(K, n // (2 * K)),
        upper=np.full(K, 2 * n // K),
        tol=1e-12 * n,
        pos=np.zeros(claims.N_POS, dtype=np.int64),
        value=np.full(claims.N_VALUES, np.inf),
        best_labels=np.empty(0, dtype=labels.dtype),
        score=np.zeros(n),
        history=np.empty((4096, 2)),
        stride=n,
    )
    state.pos[claims.REMAINING] = -1
    moves.build_sums(R, state.labels, state.sums)
    state.value[claims.OBJECTIVE] = claims.risk(state.labels, state.sums, state.total)
    return state


def shake(state):
    quota = shaking_quota(state.labels.size, K, 21)
    return claims.shake(state, quota, np.ones_like(quota), WITHOUT_END)


def steepest(state):
    return claims.descend_steepest(state, WITHOUT_END, WITHOUT_END)


@cache
def shaken_labels(n):
    state = new_state(hat_matrix(n), random_labels(n))
    shake(state)
    return state.labels


def run_loop(benchmark, loop, *args):
    """Time a loop that can run again on what it left behind; the first call compiles."""
    loop(*args)
    return benchmark(loop, *args)


@pytest.mark.benchmark(group="build_sums")
@SIZES
def test_build_sums(benchmark, n):
    run_loop(benchmark, moves.build_sums, hat_matrix(n), random_labels(n), np.empty((K, n)))


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
        state.sums[1],
        state.sums[0],
        state.score,
        state.labels,
        state.labels.dtype.type(1),
        eager,
        np.empty(claims.LANES),
    )
    assert j == np.argmin(state.score)


@pytest.mark.benchmark(group="argleast")
@SIZES
def test_argleast(benchmark, n):
    values = np.random.default_rng(0).random(n)
    assert run_loop(benchmark, claims.argleast, values, np.empty(claims.LANES)) == np.argmin(values)


@pytest.mark.benchmark(group="fill_own")
@SIZES
def test_fill_own(benchmark, n):
    state = new_state(hat_matrix(n), random_labels(n))
    floors = np.ones(K, dtype=np.int64)
    run_loop(
        benchmark,
        claims.fill_own,
        state.labels,
        state.counts,
        state.sums,
        state.diag,
        state.movable,
        floors,
        state.masses,
        np.empty(n),
    )


@pytest.mark.benchmark(group="score_moves")
@SIZES
def test_score_moves(benchmark, n):
    state = new_state(hat_matrix(n), random_labels(n))
    label = state.labels.dtype.type(0)
    given = state.sums[1], state.sums[0], state.labels, label, state.score, state.masses, n
    run_loop(benchmark, claims.score_moves, *given)


@pytest.mark.benchmark(group="rebuild_row")
@SIZES
def test_rebuild_row(benchmark, n):
    state = new_state(hat_matrix(n), random_labels(n))
    run_loop(benchmark, claims.rebuild_row, state.sums, state.total, 0)


@pytest.mark.benchmark(group="move")
@SIZES
def test_move(benchmark, n):
    R = hat_matrix(n)
    state = new_state(R, random_labels(n))

    def there_and_back():
        moves.move(R, None, state.labels, state.counts, state.sums, 0, 1)
        moves.move(R, None, state.labels, state.counts, state.sums, 0, 2)

    run_loop(benchmark, there_and_back)


@pytest.mark.benchmark(group="polish")
@SIZES
def test_polish(benchmark, n):
    """From the same shaken labels to the end, in every round."""
    groups = Groups(hat_matrix(n))
    rule = SizeRule(None, np.full(K, n // (2 * K)), np.full(K, 2 * n // K), False)
    least = groups.least

    def fresh():
        return (groups.state(shaken_labels(n), rule, free=False),), {}

    def polish(state):
        return list(descent(state, least, lambda: WITHOUT_END))

    assert benchmark.pedantic(polish, setup=fresh, rounds=5, warmup_rounds=1) == []
