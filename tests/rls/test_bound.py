"""The spectral lower bound on the risk."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import fastmmc
from fastmmc.kernels.factors import DenseFactor, make_factor
from fastmmc.kernels.gram import Kernel
from fastmmc.kernels.nystroem import Form
from fastmmc.rls import bound
from fastmmc.rls.bound import risk_bound
from tests.rls import naive

SEED = np.random.SeedSequence(0)


def dense(R):
    return DenseFactor(R, 1.0, None, np.zeros((len(R), 1)))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    ("k", "lower", "upper"),
    [
        (2, [1, 1], [7, 7]),
        (2, [4, 4], [4, 4]),
        (3, [0, 0, 0], [8, 8, 8]),
        (3, [2, 1, 3], [4, 3, 4]),
        (3, [2, 2, 2], [3, 3, 3]),
    ],
)
def test_no_labelling_is_below_it(seed, k, lower, upper):
    X = np.random.default_rng(seed).standard_normal((8, 2))
    F = fastmmc.factor(X, lam=[0.01, 0.3, 2.0][seed % 3], sigma=1.0)
    lower, upper = np.array(lower), np.array(upper)
    bound = risk_bound(F, lower, upper)
    risks = []
    for labels in product(range(k), repeat=8):
        sizes = np.bincount(labels, minlength=k)
        if (sizes >= lower).all() and (sizes <= upper).all():
            risks.append(naive.risk(F.R, np.array(labels), k))
    assert 0 <= bound <= min(risks) + 1e-9


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_it_is_reached_where_the_clusters_are_eigenvectors(k):
    R = np.kron(np.eye(k), np.full((4, 4), 0.2))
    labels = np.repeat(np.arange(k), 4)
    sizes = np.full(k, 4)
    assert risk_bound(dense(R), sizes, sizes) == pytest.approx(naive.risk(R, labels, k))
    # Looser bounds cannot make it higher.
    assert risk_bound(dense(R), sizes - 1, sizes + 1) <= risk_bound(dense(R), sizes, sizes) + 1e-9


def test_ways_to_the_eigenvalues_agree(overlapping, monkeypatch):
    F = fastmmc.factor(overlapping, lam=0.1, sigma=1.5)
    low = fastmmc.factor(overlapping, lam=0.1, sigma=1.5, rank=60)
    for k in (1, 2, 4):
        lower, upper = np.full(k, 60 // k - 3), np.full(k, 60 // k + 3)
        direct = risk_bound(F, lower, upper)
        assert risk_bound(low, lower, upper) == pytest.approx(direct, rel=1e-6)
        with monkeypatch.context() as patch:
            patch.setattr(bound, "DIRECT", 10)
            assert risk_bound(F, lower, upper) == pytest.approx(direct, rel=1e-9)
            single = dense(F.R.astype(np.float32))
            assert risk_bound(single, lower, upper) == pytest.approx(direct, rel=1e-4)


def test_more_clusters_than_columns(overlapping):
    F = fastmmc.factor(overlapping, lam=0.1, sigma=1.5, rank=3)
    res = fastmmc.umc_rls(F, 6, n_init=2, random_state=0, bound=True, balance=0.5)
    assert 0 <= res.bound <= res.objective and 0 <= res.gap <= 1


@pytest.mark.parametrize(
    "how", [{"balance": 5}, {"balance": 0.2, "polish": True}, {"method": "memetic"}]
)
def test_in_the_result(blobs, how):
    X, _ = blobs
    res = fastmmc.umc_rls(X, 3, random_state=0, n_init=2, bound=True, **how, sizes="equal")
    assert res.gap == pytest.approx((res.objective - res.bound) / res.objective)
    assert 0 <= res.bound <= res.objective
    without = fastmmc.umc_rls(X, 3, random_state=0, n_init=2, **how, sizes="equal")
    assert without.bound is None and without.gap is None
    np.testing.assert_array_equal(res.labels, without.labels)
    model = fastmmc.UMCRLS(3, random_state=0, n_init=2, bound=True, **how, sizes="equal").fit(X)
    assert model.bound_ == res.bound and model.gap_ == res.gap
    paths = fastmmc.umc_rls_path(
        X, 3, [0.1, 1.0], random_state=0, n_init=2, bound=True, **how, sizes="equal"
    )
    assert all(0 <= path.bound <= path.objective for path in paths)
    with pytest.raises(TypeError, match="bound"):
        fastmmc.umc_rls(X, 3, bound="yes", **how, sizes="equal")


@pytest.mark.parametrize("rank", [None, 60])
def test_weights_are_as_many_equal_points(overlapping, rank, monkeypatch):
    w = 1.0 + np.arange(60) % 3
    form = Form(rank, weights=w)
    weighted = make_factor(overlapping, 0.1, Kernel("rbf", sigma=1.5), form, SEED)
    rows = fastmmc.factor(np.repeat(overlapping, w.astype(int), axis=0), lam=0.1, sigma=1.5)
    for k in (1, 2, 4):
        lower, upper = np.full(k, 120 // k - 3), np.full(k, 120 // k + 3)
        wanted = pytest.approx(risk_bound(rows, lower, upper), rel=1e-6)
        assert risk_bound(weighted, lower, upper) == wanted
        with monkeypatch.context() as patch:
            patch.setattr(bound, "DIRECT", 10)
            assert risk_bound(weighted, lower, upper) == wanted
    # Half the weights and lam are half the risk.
    form = replace(form, weights=w / 2)
    halved = make_factor(overlapping, 0.05, Kernel("rbf", sigma=1.5), form, SEED)
    assert 2.0 * risk_bound(halved, lower / 2, upper / 2) == wanted
