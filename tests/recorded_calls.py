"""Calls of the public API whose results are recorded, so that a redesign shows what it changes.

``python -m tests.recorded_calls --write`` records them anew, which is right only where a result was
meant to change; without ``--write`` it prints what differs from the record.
"""

import hashlib
import inspect
import json
import platform
import sys
import tempfile
import time
import types
import warnings
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

import joblib
import llvmlite.binding
import numba
import numpy as np
import scipy
import sklearn
import threadpoolctl
from scipy import sparse

import fastmmc
from fastmmc import distributed

RECORD = Path(__file__).with_suffix(".json")


# ---------------------------------------------------------------------------------------- the data


def mixture(seed, sizes, d, spread):
    """Return Gaussian clusters of unit variance, in mixed order, and which points they made."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    return spread * rng.standard_normal((len(sizes), d))[y] + rng.standard_normal((len(y), d)), y


def rings(seed, n):
    rng = np.random.default_rng(seed)
    angle, y = rng.uniform(0, 2 * np.pi, n), np.arange(n) % 2
    circle = np.column_stack((np.cos(angle), np.sin(angle)))
    return (1 + 2 * y)[:, None] * circle + 0.15 * rng.standard_normal((n, 2))


def product(X, Z, scale=1.0):
    """Return a kernel that is not one of the package's own."""
    return (1.0 + scale * (X @ Z.T)) ** 2


def picture(seed):
    rng = np.random.default_rng(seed)
    base = np.array([[250, 240, 230], [20, 60, 120], [160, 30, 40]])[np.arange(24 * 20) % 7 % 3]
    return np.clip(base + rng.integers(-25, 25, base.shape), 0, 255).reshape(24, 20, 3)


BLOBS, TRUTH = mixture(1, [20, 30, 25], 4, 3.0)
TWO = mixture(2, [55, 65], 3, 1.5)[0]
NOISE = np.random.default_rng(3).standard_normal((90, 3))
RINGS = rings(4, 120)
DIGITS = fastmmc.datasets.load("digits")[0][::12].astype(np.float64)
LARGE, LARGE_TRUTH = mixture(5, [1500, 1000, 2000, 700], 2, 4.0)
LARGER = mixture(6, [6000, 4200], 2, 3.0)[0]
COUNTS = np.random.default_rng(7).poisson(0.3, (110, 30)).astype(np.float64)
COUNTS[:, :8] += 3.0 * (np.arange(110) % 2)[:, None]
SPARSE = sparse.csr_matrix(COUNTS)
SINGLE = BLOBS.astype(np.float32)
REPEATED = np.repeat(BLOBS[:12], 5, axis=0)
GRAM = np.exp(-0.05 * ((TWO[:, None] - TWO) ** 2).sum(axis=2))
KNOWN = np.where(np.arange(len(BLOBS)) % 5 == 0, TRUTH, -1)
LARGE_KNOWN = np.where(np.arange(len(LARGE)) % 50 == 0, LARGE_TRUTH, -1)
WEIGHTS = 0.5 + np.random.default_rng(8).integers(0, 4, len(TWO))
FIRST = np.random.default_rng(9).integers(0, 3, len(BLOBS))
FIRST_SIDES = np.random.default_rng(10).integers(0, 2, len(TWO))
IMAGE = picture(11)


def links(y, seed, n_pairs=40):
    """Return pairs that fit y as must-links and cannot-links."""
    rng = np.random.default_rng(seed)
    pairs = np.array([rng.choice(len(y), 2, replace=False) for _ in range(n_pairs)])
    same = y[pairs[:, 0]] == y[pairs[:, 1]]
    return {"must_link": pairs[same], "cannot_link": pairs[~same]}


LINKS = links(TRUTH, 12)
CLASH = {"must_link": [(0, 1), (1, 2), (5, 9)], "cannot_link": [(0, 2), (3, 4), (7, 8)]}


# --------------------------------------------------------------------------------------- the calls


@dataclass(frozen=True)
class Call:
    """``function(*args, random_state=0, **params)``, whose result is described."""

    function: object
    args: tuple
    params: dict = field(default_factory=dict)

    def run(self, **changes):
        """Return what the call gives and the warnings that it makes, in JSON's types."""
        params = self.params | changes
        if "random_state" in inspect.signature(self.function).parameters:
            params = {"random_state": 0} | params
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            given = self.function(*self.args, **params)
            found = describe(given, new_points(self.args[0]) if self.args else None)
        return found | {"warnings": [f"{w.category.__name__}: {w.message}" for w in caught]}


CALLS = {}


def declare(name, function, *args, **params):
    function = getattr(fastmmc, function) if isinstance(function, str) else function
    title = f"{function.__name__} {name}"
    assert title not in CALLS, title
    CALLS[title] = Call(function, args, params)


def declare_all(function, args, table):
    for name, params in table.items():
        params = dict(params)
        declare(name, function, *params.pop("args", args), **params)


# Multi-class RLS
declare_all(
    "umc_rls",
    (BLOBS, 3),
    {
        "dense": {},
        "of two clusters": {"args": (TWO, 2)},
        "of one cluster": {"args": (BLOBS, 1)},
        "of many clusters": {"args": (DIGITS, 20), "n_init": 4, "balance": 0.3},
        "of digits": {"args": (DIGITS, 10), "n_init": 5, "lam": 1.0},
        "steepest": {"method": "steepest"},
        "steepest within a balance": {"args": (NOISE, 4), "method": "steepest", "balance": 0.2},
        "steepest, few moves": {"args": (NOISE, 4), "method": "steepest", "max_iter": 5},
        "stochastic": {"args": (NOISE, 4), "method": "stochastic", "n_init": 5},
        "stochastic, one sweep": {"args": (NOISE, 4), "method": "stochastic", "max_iter": 1},
        "stochastic with a least size": {"args": (NOISE, 4), "method": "stochastic", "min_size": 9},
        "memetic": {"args": (NOISE, 4), "method": "memetic"},
        "memetic with options": {
            "args": (DIGITS, 7),
            "method": "memetic",
            "population": 4,
            "patience": 6,
            "balance": 0.1,
            "max_iter": 30,
            "n_init": 2,
        },
        "memetic with known labels": {"method": "memetic", "known_labels": KNOWN, "balance": 0.5},
        "from k-means": {"args": (NOISE, 4), "init": "kmeans", "start_round": 4, "n_init": 3},
        "from given labels": {"args": (BLOBS, 3), "init": FIRST},
        "from given labels, late": {"init": FIRST, "start_round": 12, "n_rounds": 15},
        "few rounds": {"args": (NOISE, 3), "n_rounds": 4, "n_init": 3},
        "known labels": {"known_labels": KNOWN},
        "known labels as floats": {"known_labels": np.where(KNOWN < 0, np.nan, KNOWN)},
        "known labels, equal sizes": {"known_labels": KNOWN, "balance": 0, "polish": True},
        "balance 0": {"balance": 0},
        "balance 0 of noise": {"args": (NOISE, 7), "balance": 0, "n_init": 4},
        "target sizes": {"target_sizes": [20, 30, 25], "balance": 0.05},
        "target sizes without balance": {"target_sizes": [15, 15, 45]},
        "polish": {"args": (NOISE, 4), "polish": True, "n_init": 4},
        "keep best": {"args": (NOISE, 4), "keep_best": True, "n_init": 4},
        "polish and keep best": {
            "args": (NOISE, 5),
            "polish": True,
            "keep_best": True,
            "balance": 0.2,
            "min_size": 12,
            "n_init": 3,
        },
        "bound": {"bound": True},
        "bound of low rank": {"bound": True, "rank": 15, "balance": 0.2},
        "laplacian": {"kernel": "laplacian", "sigma": 5.0},
        "linear": {"kernel": "linear", "coef0": 0.5, "lam": 3.0},
        "polynomial": {"kernel": "poly", "degree": 2, "gamma": 0.1, "coef0": 2.0},
        "callable kernel": {"kernel": product, "kernel_params": {"scale": 0.2}, "lam": 5.0},
        "precomputed": {"args": (GRAM, 2), "kernel": "precomputed"},
        "gamma": {"args": (RINGS, 2), "gamma": 2.0, "lam": 0.01},
        "float32": {"args": (SINGLE, 3)},
        "single precision of R": {"args": (DIGITS, 6), "dtype": "float32", "n_init": 3},
        "duplicates": {"args": (REPEATED, 4)},
        "more clusters than places": {"args": (REPEATED[:20], 6)},
        "threads": {"args": (NOISE, 4), "n_jobs": 2, "n_init": 6},
        "list": {"args": (TWO.tolist(), 2), "random_state": np.random.SeedSequence(4)},
        "rank 15": {"rank": 15},
        "share of rank": {"args": (DIGITS, 6), "rank": 0.3, "n_init": 4},
        "landmarks by k-means++": {"rank": 12, "landmarks": "k-means++"},
        "pivoted": {"rank": 40, "landmarks": "pivoted", "rank_tol": 1e-2},
        "landmarks by index": {"rank": "auto", "landmarks": np.arange(0, 75, 5)},
        "landmarks given": {"landmarks": BLOBS[::6] + 0.1},
        "rank of precomputed": {"args": (GRAM, 2), "kernel": "precomputed", "rank": 20},
        "rank of a callable kernel": {"kernel": product, "rank": 10, "lam": 5.0},
        "rank with steepest": {"args": (NOISE, 4), "rank": 20, "method": "steepest"},
        "rank with stochastic": {"args": (NOISE, 4), "rank": 20, "method": "stochastic"},
        "rank with memetic": {"args": (NOISE, 4), "rank": 20, "method": "memetic"},
        "rank with known labels": {"rank": 15, "known_labels": KNOWN, "balance": 0.3},
        "rank with batches": {"args": (DIGITS, 5), "rank": 40, "batches": 8, "n_init": 4},
        "rank with batches and sizes": {
            "args": (NOISE, 4),
            "rank": 20,
            "batches": 5,
            "target_sizes": [10, 20, 25, 35],
            "balance": 0.1,
        },
        "rank, exact": {"args": (NOISE, 4), "rank": 20, "batches": "exact", "balance": 0},
        "rank of float32": {"args": (SINGLE, 3), "rank": 15, "polish": True, "keep_best": True},
        "sparse": {"args": (SPARSE, 2), "rank": 40},
        "sparse pivoted linear": {
            "args": (SPARSE, 3),
            "rank": 25,
            "kernel": "linear",
            "landmarks": "pivoted",
        },
        "large": {"args": (LARGE, 4), "rank": 40, "n_init": 2},
        "large from round 2": {"args": (LARGE, 4), "rank": 40, "start_round": 2, "n_init": 2},
        "large in batches": {"args": (LARGE, 4), "rank": 40, "batches": 16, "n_init": 2},
        "large of float32": {"args": (LARGE.astype(np.float32), 4), "rank": 40, "n_init": 1},
        "large with known labels": {
            "args": (LARGE, 4),
            "rank": 40,
            "known_labels": LARGE_KNOWN,
            "balance": 0.2,
            "n_init": 1,
        },
        "large, memetic": {
            "args": (LARGE, 4),
            "rank": 30,
            "method": "memetic",
            "population": 3,
            "patience": 2,
            "n_init": 1,
        },
        "large, equal sizes, best": {
            "args": (LARGE, 4),
            "rank": 30,
            "balance": 0,
            "keep_best": True,
            "n_init": 1,
        },
        "of a sample": {"args": (LARGER, 2), "rank": 20, "n_init": 2},
        "of rank auto": {"args": (LARGER, 2), "n_init": 1},
    },
)
declare("dense", "umc_rls_path", BLOBS, 3, [0.01, 0.3, 4.0], n_init=4)
declare("low rank", "umc_rls_path", NOISE, 4, [1.0, 0.1], n_init=3, rank=20, polish=True)
declare("known", "umc_rls_path", BLOBS, 3, [1.0, 0.1], known_labels=KNOWN, balance=0.4, bound=True)
declare("large", "umc_rls_path", LARGE, 4, [1.0, 0.1], rank=30, n_init=1)

# Factors, and what takes them
declare("dense", "factor", BLOBS, lam=0.1)
declare("low rank", "factor", BLOBS, lam=0.1, rank=20)
declare("pivoted of float32", "factor", SINGLE, rank=0.5, landmarks="pivoted", rank_tol=1e-3)
declare("sparse", "factor", SPARSE, rank=30, kernel="laplacian", sigma=20.0)
declare("precomputed", "factor", GRAM, kernel="precomputed")


def through_factor(X, method, params, **of_factor):
    factor = fastmmc.factor(X, **of_factor)
    return getattr(fastmmc, method)(factor, **params)


MULTI, EVOLVE = {"k": 3, "random_state": 0, "n_init": 3}, {"random_state": 0, "n_init": 3}
for name, X, method, params, of_factor in [
    ("dense umc_rls", BLOBS, "umc_rls", MULTI, {}),
    ("low-rank umc_rls", BLOBS, "umc_rls", MULTI, {"rank": 15}),
    ("low-rank memetic", BLOBS, "umc_rls", MULTI | {"method": "memetic"}, {"rank": 15}),
    ("dense evo_mmc", TWO, "evo_mmc", EVOLVE, {"sigma": 2.0}),
    ("low-rank fast_evo_mmc", TWO, "fast_evo_mmc", EVOLVE, {"rank": 20, "dtype": "float32"}),
]:
    declare(name, through_factor, X, method, params, random_state=0, **of_factor)

# Evolution
declare_all(
    "evo_mmc",
    (TWO,),
    {
        "dense": {},
        "wide populations": {"mu": 4, "nu": 6, "flips": 3, "n_init": 2},
        "distinct": {"mu": 4, "distinct": True, "n_init": 2},
        "classify": {"classify": True, "n_init": 2},
        "unpolished": {"polish": False, "patience": 40, "n_init": 2},
        "stopped": {"max_iter": 20, "polish": False, "n_init": 2},
        "from given labels": {"init": FIRST_SIDES, "balance": 0.4},
        "from k-means": {"init": "kmeans", "n_init": 2},
        "sizes": {"target_sizes": [40, 80], "balance": 0.05, "n_init": 2},
        "balance 0": {"balance": 0, "n_init": 2},
        "least size": {"balance": 0.9, "min_size": 30, "n_init": 2},
        "float32": {"args": (TWO.astype(np.float32),), "n_init": 2},
        "precomputed": {"args": (GRAM,), "kernel": "precomputed", "n_init": 2},
        "linear": {"kernel": "linear", "lam": 4.0, "n_init": 2},
        "threads": {"n_jobs": 2, "n_init": 4},
    },
)
declare_all(
    "fast_evo_mmc",
    (TWO,),
    {
        "low rank": {},
        "dense": {"rank": None, "n_init": 3},
        "populations": {"mu": 3, "nu": 4, "rank": 20, "n_init": 3},
        "pivoted": {"rank": 30, "landmarks": "pivoted", "rank_tol": 1e-3, "n_init": 3},
        "classify": {"rank": 20, "classify": True, "n_init": 3},
        "float32": {"args": (TWO.astype(np.float32),), "rank": 15, "n_init": 3},
        "single precision of Z": {"dtype": "float32", "rank": 15, "n_init": 3},
        "sparse": {"args": (SPARSE,), "rank": 30, "n_init": 3},
        "sizes": {"target_sizes": [70, 50], "balance": 0.02, "rank": 20, "n_init": 3},
        "unpolished": {"polish": False, "distinct": True, "n_init": 3},
        "stopped": {"max_iter": 10, "n_init": 2},
        "laplacian": {"kernel": "laplacian", "sigma": 4.0, "rank": 30, "n_init": 2},
        "large": {"args": (LARGE,), "rank": 30, "n_init": 2, "balance": 0.2},
    },
)

# Alternating machines
declare_all(
    "iter_svr",
    (TWO,),
    {
        "dense": {"n_init": 3},
        "tied bias": {"bias": "tied", "n_init": 2},
        "SMO": {"solver": "smo", "C": 10.0, "n_init": 2},
        "epsilon": {"epsilon": 0.1, "C": 10.0, "n_init": 2},
        "refit": {"refit": True, "C": 10.0, "n_init": 2},
        "from given labels": {"init": FIRST_SIDES, "C": 10.0},
        "random starts": {"init": "random", "C": 10.0, "n_init": 3},
        "k-means starts": {"init": "kmeans", "C": 10.0, "n_init": 2},
        "few rounds": {"init": "random", "C": 10.0, "max_iter": 1, "n_init": 2},
        "weights": {"sample_weight": WEIGHTS, "C": 10.0, "n_init": 2},
        "sizes": {"target_sizes": [50, 70], "balance": 0.0, "C": 10.0, "n_init": 2},
        "linear": {"kernel": "linear", "C": 10.0, "n_init": 2},
        "precomputed": {"args": (GRAM,), "kernel": "precomputed", "C": 10.0, "n_init": 2},
        "float32": {"args": (TWO.astype(np.float32),), "C": 10.0, "n_init": 2},
        "rank 20": {"rank": 20, "C": 10.0, "n_init": 2},
        "pivoted": {"rank": 20, "landmarks": "pivoted", "C": 10.0, "bias": "tied", "n_init": 2},
        "sparse": {"args": (SPARSE,), "rank": 20, "C": 10.0, "n_init": 2},
        "large": {"args": (LARGE,), "rank": 20, "C": 1.0, "n_init": 1, "balance": 0.2},
    },
)
declare_all(
    "iter_svm",
    (TWO,),
    {
        "dense": {"n_init": 3, "C": 10.0},
        "tied bias, balance 0": {"bias": "tied", "balance": 0, "C": 10.0, "n_init": 2},
        "SMO, refit": {"solver": "smo", "refit": True, "C": 10.0, "n_init": 2},
        "weights": {"sample_weight": WEIGHTS, "C": 10.0, "n_init": 2},
        "rank 20": {"rank": 20, "C": 10.0, "n_init": 2, "init": "random"},
        "callable kernel": {"kernel": product, "C": 1.0, "n_init": 2},
        "sparse": {"args": (SPARSE,), "rank": 0.2, "C": 10.0, "n_init": 2},
    },
)
declare_all(
    "iter_ls_svm",
    (TWO,),
    {
        "dense": {"n_init": 3},
        "tied bias": {"bias": "tied", "n_init": 3},
        "random starts": {"init": "random", "n_init": 5, "n_jobs": 2},
        "one round": {"init": "random", "n_init": 2, "max_iter": 1},
        "weights": {"sample_weight": WEIGHTS, "n_init": 3},
        "weights and rank": {"sample_weight": WEIGHTS, "rank": 20, "n_init": 3},
        "sizes": {"target_sizes": [90, 30], "balance": 0.05, "min_size": 25, "n_init": 3},
        "laplacian": {"kernel": "laplacian", "n_init": 3},
        "polynomial": {"kernel": "poly", "degree": 2, "n_init": 3},
        "rank by k-means++": {"rank": 20, "landmarks": "k-means++", "n_init": 3},
        "float32": {"args": (TWO.astype(np.float32),), "rank": 20, "n_init": 3},
        "sparse": {"args": (SPARSE,), "rank": 30, "n_init": 3},
        "large": {"args": (LARGE,), "rank": 40, "n_init": 2, "balance": 0.3},
    },
)

# Prototypes
for method in ("wta", "fscl", "rpcl", "c_rpcl", "o_lcvqe"):
    declare_all(
        method,
        (BLOBS, 5),
        {
            "dense": {"max_iter": 10},
            "Robbins-Monro": {"schedule": "robbins-monro", "alpha": 0.5, "max_iter": 5},
            "in order": {"shuffle": False, "init": BLOBS[:5], "max_iter": 5},
            "sparse": {"args": (SPARSE, 3), "max_iter": 5, "init": "k-means++", "n_init": 2},
            "float32 features": {
                "args": (SINGLE, 4),
                "features": "nystroem",
                "rank": 20,
                "max_iter": 5,
            },
        },
    )
for method in ("c_rpcl", "o_lcvqe", "lcvqe", "cvqe"):
    declare_all(
        method,
        (BLOBS, 3),
        {
            "links": LINKS | {"max_iter": 10, "n_init": 3},
            "known labels": {"known_labels": KNOWN, "labels_as": "both", "max_iter": 10},
            "known labels as must-links": LINKS
            | {"known_labels": KNOWN, "labels_as": "must_link", "max_iter": 10},
            "links that contradict": CLASH | {"on_conflict": "warn", "max_iter": 10},
            "stopped": LINKS | {"args": (NOISE, 4), "max_iter": 2},
            "links of rings": {
                "args": (RINGS, 2),
                "cannot_link": [(0, 1), (2, 3), (4, 5)],
                "features": "nystroem",
                "sigma": 0.8,
                "rank": 0.4,
                "landmarks": "k-means++",
                "max_iter": 10,
            },
        },
    )
for method in ("lcvqe", "cvqe"):
    declare_all(
        method,
        (BLOBS, 3),
        {
            "without links": {"args": (DIGITS, 8), "n_init": 2},
            "sparse": {"args": (SPARSE, 3), "cannot_link": sparse.csr_matrix(([1], ([0], [1])))},
            "given centers": {"init": BLOBS[:3], "must_link": LINKS["must_link"]},
        },
    )
CALLS["lcvqe sparse"].params["cannot_link"].resize(110, 110)
CALLS["cvqe sparse"].params["cannot_link"].resize(110, 110)
declare("first epoch on-line", "c_rpcl", BLOBS, 4, online_first_epoch=True, max_iter=4, **LINKS)
declare("as in the paper", "o_lcvqe", BLOBS, 4, per_constraint="paper", max_iter=4, **LINKS)
declare("rival rate, large", "rpcl", LARGE, 9, beta=0.01, max_iter=3, min_share=0.05)
declare("threads", "fscl", BLOBS, 5, n_init=4, n_jobs=2, max_iter=5)
declare("precomputed features", "wta", GRAM, 3, features="nystroem", kernel="precomputed", rank=30)

# Shards
declare_all(
    distributed.fit_sharded,
    (BLOBS, 4),
    {
        "two workers": {"max_iter": 5, **LINKS},
        "one worker": {"n_workers": 1, "max_iter": 5, "known_labels": KNOWN},
        "three in short rounds": {"n_workers": 3, "sync_every": 7, "method": "rpcl", "max_iter": 5},
        "sums": {"combine": "sum", "sync_every": 2, "method": "wta", "max_iter": 5},
        "sparse, in order": {
            "args": (SPARSE, 3),
            "method": "fscl",
            "shuffle": False,
            "init": "k-means++",
            "max_iter": 4,
        },
        "o_lcvqe": {
            "method": "o_lcvqe",
            "max_iter": 5,
            "method_params": {"beta": 0.01, "per_constraint": "paper"},
            "n_jobs": 1,
            **LINKS,
        },
        "large float32": {"args": (LARGE.astype(np.float32), 6), "sync_every": 500, "max_iter": 3},
    },
)

# Plain distances
declare_all(
    "sammc",
    (BLOBS, 3),
    {
        "memetic": {"n_init": 2},
        "memetic of digits": {"args": (DIGITS, 8), "population": 4, "patience": 15},
        "given centers": {"init": BLOBS[:3], "patience": 20},
        "random centers": {"init": "random", "patience": 20, "max_iter": 30},
        "float32": {"args": (SINGLE, 4), "patience": 20},
        "sparse": {"args": (SPARSE, 3), "patience": 20},
        "duplicates": {"args": (REPEATED, 5), "patience": 20},
        "large": {"args": (LARGE, 4), "max_representatives": 300, "patience": 30},
        "annealing": {"search": "annealing", "max_iter": 40},
        "annealing of means": {
            "args": (NOISE, 4),
            "search": "annealing",
            "center": "mean",
            "delta": 0.3,
            "weighted": False,
            "max_iter": 25,
        },
        "annealing without k-means": {
            "args": (NOISE, 4),
            "search": "annealing",
            "relabel": False,
            "n_alt": 2,
            "T0": 0.1,
            "cooling": 0.9,
            "T_min": 1e-2,
        },
        "annealing of sparse": {"args": (SPARSE, 3), "search": "annealing", "max_iter": 15},
    },
)

# Cutting planes
declare_all(
    "cpmmc",
    (TWO,),
    {
        "linear": {},
        "rbf": {"kernel": "rbf", "C": 10.0, "n_init": 3},
        "relative": {"stop": "relative", "eps": 0.1, "C": 5.0, "n_init": 3},
        "rank": {"kernel": "rbf", "rank": 20, "landmarks": "pivoted", "C": 10.0, "n_init": 3},
        "polynomial": {"kernel": "poly", "degree": 2, "C": 5.0, "n_init": 2},
        "precomputed": {"args": (GRAM,), "kernel": "precomputed", "C": 10.0, "n_init": 3},
        "from labels": {"init": FIRST_SIDES, "score_balance": 0.2, "cccp_tol": 0.1},
        "from k-means": {"init": "kmeans", "C": 10.0, "n_init": 2},
        "stopped": {"max_iter": 3, "eps": 1e-4, "n_init": 2},
        "sparse": {"args": (SPARSE,), "n_init": 3},
        "float32": {"args": (TWO.astype(np.float32),), "n_init": 3},
        "large": {"args": (LARGE,), "n_init": 2},
    },
)
declare_all(
    "cpm3c",
    (BLOBS, 3),
    {
        "rbf": {"n_init": 3},
        "linear": {"kernel": "linear", "C": 1.0, "n_init": 3},
        "rank": {"rank": 20, "n_init": 3},
        "from labels": {"init": TRUTH, "score_balance": 0.1},
        "from k-means": {"args": (NOISE, 4), "init": "kmeans", "n_init": 1, "C": 20.0},
        "stopped": {"max_iter": 4, "n_init": 2},
        "sparse": {"args": (SPARSE, 2), "kernel": "linear", "C": 1.0, "n_init": 2},
        "laplacian": {"kernel": "laplacian", "n_init": 2, "n_jobs": 2},
    },
)

# Semidefinite programs
declare_all(
    "sdp_mmc",
    (TWO[:40],),
    {
        "of 40 points": {},
        "within sizes": {"target_sizes": [15, 25], "balance": 0.05, "C": 5.0},
        "uncentred": {"center_kernel": False, "kernel": "linear", "balance": 0},
    },
)
declare_all(
    "gmmc",
    (TWO[:30],),
    {"of 30 points": {}, "by eigenvectors": {"rounding": "eigenvector"}, "precomputed": {}},
)
CALLS["gmmc precomputed"] = Call(fastmmc.gmmc, (GRAM[:30, :30],), {"kernel": "precomputed"})

# Trees and pictures
declare_all(
    "recursive_mmc",
    (BLOBS, 3),
    {
        "by default": {"method_params": {"C": 10.0}},
        "by gain": {"method": "iter_ls_svm", "split": "gain"},
        "of an evolution": {"method": "evo-mmc", "method_params": {"balance": 0.4}, "n_init": 2},
        "of low rank": {"method": "fast_evo_mmc", "method_params": {"rank": 20, "lam": 0.1}},
        "of planes": {"method": "cpmmc", "n_init": 3},
        "weighted": {
            "args": (TWO, 4),
            "method": "iter_ls_svm",
            "sample_weight": WEIGHTS,
            "method_params": {"balance": 0.2},
        },
        "precomputed": {
            "args": (GRAM, 4),
            "method": "iter_ls_svm",
            "method_params": {"kernel": "precomputed"},
        },
        "that ends early": {
            "args": (BLOBS[:40], 4),
            "method": "iter_ls_svm",
            "method_params": {"min_size": 12},
        },
        "sparse": {
            "args": (SPARSE, 3),
            "method": "iter_ls_svm",
            "method_params": {"rank": 20},
            "split": "gain",
        },
    },
)
declare_all(
    "cluster",
    (BLOBS, 3),
    {
        "in three": {},
        "of two clusters": {"args": (TWO, 2)},
        "in any number": {"args": (BLOBS,), "max_k": 5},
    },
)
declare_all(
    "segment",
    (IMAGE, 3),
    {
        "by default": {"method_params": {"C": 10.0}},
        "by multi-class RLS": {"method": "umc_rls", "n_init": 2, "rank": 40},
        "without small regions": {"method": "iter_ls_svm", "min_region": 6},
        "by medians": {"method": "sammc", "method_params": {"patience": 20}},
        "of one channel": {"args": (IMAGE[..., 0] / 255.0, 2), "sigma": 0.5, "method": "cpmmc"},
        "by prototypes": {"method": "wta", "method_params": {"max_iter": 5}},
    },
)


# ------------------------------------------------------------------------------ estimators' calls


def fit(X, kind, fitting=None, **params):
    """Return a fitted estimator; ``fitting`` is what ``fit`` gets besides X."""
    return getattr(fastmmc, kind)(**params).fit(X, **(fitting or {}))


def fit_function(kind):
    """Return :func:`fit` for a class under that class's name, which titles are made of."""

    def of_kind(X, **params):
        return fit(X, kind, **params)

    of_kind.__name__ = kind
    return of_kind


ESTIMATORS = {
    "UMCRLS": (BLOBS, {"n_clusters": 3}),
    "AutoMMC": (BLOBS, {"n_clusters": 3}),
    "EvoMMC": (TWO, {"n_init": 2}),
    "FastEvoMMC": (TWO, {}),
    "IterSVR": (TWO, {"C": 10.0, "n_init": 2}),
    "IterSVM": (TWO, {"C": 10.0, "n_init": 2}),
    "IterLSSVM": (TWO, {"fitting": {"sample_weight": WEIGHTS}}),
    "WTA": (BLOBS, {"n_clusters": 4, "max_iter": 5}),
    "FSCL": (BLOBS, {"n_clusters": 4, "max_iter": 5}),
    "RPCL": (BLOBS, {"n_clusters": 6, "max_iter": 10}),
    "CRPCL": (BLOBS, {"n_clusters": 4, "max_iter": 5, "fitting": LINKS}),
    "OLCVQE": (BLOBS, {"n_clusters": 4, "max_iter": 5, "fitting": LINKS}),
    "LCVQE": (BLOBS, {"n_clusters": 3, "fitting": LINKS}),
    "CVQE": (BLOBS, {"n_clusters": 3, "fitting": LINKS}),
    "SAMMC": (BLOBS, {"n_clusters": 3, "patience": 20}),
    "CPMMC": (TWO, {"n_init": 3}),
    "CPM3C": (BLOBS, {"n_clusters": 3, "n_init": 2}),
    "SDPMMC": (TWO[:30], {}),
    "GMMC": (TWO[:30], {}),
    "RecursiveMMC": (BLOBS, {"n_clusters": 3, "method": "iter_ls_svm"}),
}
for kind, (X, params) in ESTIMATORS.items():
    chosen = getattr(fastmmc, kind)().get_params()
    seed = {"random_state": 0} if "random_state" in chosen else {}
    declare("as an estimator", fit_function(kind), X, **seed, **params)
for kind in ("UMCRLS", "CRPCL", "OLCVQE", "LCVQE", "CVQE"):
    declare(
        "with partial labels",
        fit_function(kind),
        BLOBS,
        n_clusters=3,
        semi_supervised=True,
        random_state=0,
        fitting={"y": KNOWN},
    )
declare(
    "of low rank", fit_function("UMCRLS"), LARGE, n_clusters=4, rank=20, random_state=0, n_init=1
)
declare(
    "of features", fit_function("WTA"), RINGS, n_clusters=3, features="nystroem", random_state=1
)


def stream(X, kind, chunks, fitting=(), save=False, **params):
    """Return an estimator that learned X in chunks, saved and loaded in between if asked."""
    learner = getattr(fastmmc, kind)(random_state=0, **params)
    for number, rows in enumerate(np.array_split(np.arange(X.shape[0]), chunks)):
        learner.partial_fit(X[rows], **(fitting[number] if fitting else {}))
        if save:
            with tempfile.TemporaryDirectory() as folder:
                learner.save(Path(folder) / "stream.npz", extra={"chunk": number})
                learner = type(learner).load(Path(folder) / "stream.npz")
    return learner


def fit_then_learn(X, kind, **params):
    return fit(X, kind, **params).partial_fit(X[::2])


LABELLED = [{"y": rows} for rows in np.array_split(KNOWN, 3)]
LINKED = [LINKS, {}, {"cannot_link": [(0, 74), (1, 70)]}]
for name, X, kind, chunks, params in [
    ("of WTA", BLOBS, "WTA", 3, {"n_clusters": 4}),
    ("of FSCL", LARGE, "FSCL", 5, {"n_clusters": 6}),
    ("of RPCL, saved", LARGE, "RPCL", 4, {"n_clusters": 6, "save": True}),
    ("of CRPCL with links", BLOBS, "CRPCL", 3, {"n_clusters": 4, "fitting": LINKED}),
    (
        "of CRPCL with labels, saved",
        BLOBS,
        "CRPCL",
        3,
        {"n_clusters": 4, "fitting": LABELLED, "semi_supervised": True, "save": True},
    ),
    (
        "of OLCVQE with labels and a short memory",
        BLOBS,
        "OLCVQE",
        3,
        {"n_clusters": 3, "fitting": LABELLED, "semi_supervised": True, "memory_size": 5},
    ),
    ("of OLCVQE, sparse", SPARSE, "OLCVQE", 4, {"n_clusters": 3, "alpha": 0.1}),
    (
        "of WTA, features, saved",
        RINGS,
        "WTA",
        3,
        {"n_clusters": 4, "features": "nystroem", "rank": 20, "save": True},
    ),
    (
        "of CRPCL, float32",
        SINGLE,
        "CRPCL",
        4,
        {"n_clusters": 4, "schedule": "robbins-monro", "alpha": 0.4},
    ),
]:
    declare(name, stream, X, kind, chunks, **params)
declare("of FSCL", fit_then_learn, BLOBS, "FSCL", n_clusters=4, max_iter=5, random_state=0)
declare("of OLCVQE", fit_then_learn, BLOBS, "OLCVQE", n_clusters=3, max_iter=5, random_state=0)


def named_columns(random_state):
    import pandas as pd

    frame = pd.DataFrame(BLOBS, columns=["a", "b", "c", "d"])
    return fastmmc.umc_rls(frame, 3, n_init=2, random_state=random_state)


declare("of a table", named_columns)


def signatures():
    """Return the parameters of every public function and estimator, with their defaults."""
    offered = [getattr(fastmmc, name) for name in fastmmc.__all__]
    offered = [o for o in offered if callable(o) and (not isinstance(o, type) or "fit" in dir(o))]
    return {
        one.__name__: {
            name: f"{'*' if p.kind is p.KEYWORD_ONLY else ''}{describe(p.default)!r}"
            for name, p in inspect.signature(one).parameters.items()
        }
        for one in (*offered, distributed.fit_sharded)
    }


declare("of all functions and estimators", signatures)

# What no method takes; each of these is given to all that have the parameter.
REFUSED = {
    "X": [np.full((5, 2), np.nan), np.zeros(5), np.zeros((0, 2)), "points"],
    "k": [0, 91, 2.5, "two"],
    "lam": [0.0, "small"],
    "sigma": [-1.0, np.inf],
    "kernel": ["nothing", 3],
    "rank": [0, 2.0, "some"],
    "init": ["nothing", [0, 1]],
    "balance": [-0.1, "half"],
    "target_sizes": [[1, 2], [45.5, 44.5]],
    "min_size": [80, -1],
    "known_labels": [[0, 1], np.full(90, 7.5)],
    "must_link": [[(0, 0)], [(0, 900)], 5],
    "labels_as": ["links"],
    "method": ["nothing", 4],
    "n_init": [0, 1.5],
    "n_jobs": [0, 1.5],
    "max_iter": [0, "many"],
    "max_time": [-1.0, "long"],
    "random_state": ["seed"],
    "sample_weight": [np.zeros(90), [1.0]],
}


def refusals():
    """Return the error, or that there was none, for every value that should be refused."""
    found = {}
    functions = [getattr(fastmmc, name) for name in fastmmc.__all__ if name.islower()]
    functions = [f for f in functions if callable(f) and f is not fastmmc.segment]
    for function in (*functions, distributed.fit_sharded):
        names = inspect.signature(function).parameters
        for name, value in ((n, v) for n, values in REFUSED.items() for v in values if n in names):
            given = (
                {"X": NOISE, "k": 2, "lams": [1.0]} | {"max_iter": 1, "n_init": 1} | {name: value}
            )
            try:
                function(**{n: v for n, v in given.items() if n in names})
                error = "taken"
            except (ValueError, TypeError) as raised:
                error = f"{type(raised).__name__}: {raised}"
            shown = digest(value) if isinstance(value, np.ndarray) else repr(value)
            found[f"{function.__name__} {name}={shown}"] = error
    return found


declare("of wrong values", refusals)


# --------------------------------------------------------------------------- what is said of them

# What a result says, besides ``params``; a method's result has some of it.
FIELDS = (
    "labels objective status n_iter n_moves sizes history trace objectives best_init "
    "loo_mse bound gap dual_coef support intercept duality_gap n_violated matrix solver_status "
    "centers all_centers kept weights n_active n_constraints n_violations n_conflicts "
    "representatives tree label_image colors feature_names_in"
).split()
# What a factor says.
FACTOR_FIELDS = ("n", "lam", "R", "Z", "diagonal", "row_bounds", "indices", "scale", "rank")


def new_points(X):
    """Return points like those of X that are not among them; of a Gram matrix some rows."""
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.shape[0] == X.shape[1]:
        return X[::7]
    if sparse.issparse(X):
        return sparse.csr_matrix(0.9 * X[::7])
    X = np.asarray(X)
    if X.ndim != 2 or not X.dtype.kind == "f":
        return None
    return X[::7] * X.dtype.type(0.9) + X.dtype.type(0.05)


def digest(array):
    array = np.ascontiguousarray(array)
    found = hashlib.sha256(array.tobytes()).hexdigest()[:12]
    return f"{array.dtype}{list(array.shape)} {found}"


def partition(labels):
    """Return a digest of a partition, whatever numbers its clusters have."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return digest(np.argsort(np.argsort(first))[inverse].astype(np.int64))


def describe(value, new=None):
    """Return a value in JSON's types, arrays as digests; of results and estimators a table."""
    if isinstance(value, Enum):
        return value.name
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return describe(value.item())
    if isinstance(value, np.ndarray):
        return describe(value.tolist()) if value.dtype == object else digest(value)
    if sparse.issparse(value):
        return [digest(part) for part in (value.data, value.indices, value.indptr)]
    if isinstance(value, dict):
        return {str(key): describe(entry, new) for key, entry in value.items()}
    if isinstance(value, fastmmc.Tree):
        nodes = [[n.size, n.depth, n.label, n.objective, n.gain] for n in value.nodes]
        return [str(value), describe(nodes)]
    if isinstance(value, fastmmc.ClusteringResult):
        return describe_result(value, new)
    if isinstance(value, fastmmc.DenseFactor | fastmmc.LowRankFactor):
        return describe_factor(value)
    if hasattr(value, "get_params") and not isinstance(value, type):
        return describe_estimator(value, new)
    if isinstance(value, list | tuple):
        if value and isinstance(value[0], fastmmc.ClusteringResult):
            return {f"result {i}": describe(one, new) for i, one in enumerate(value)}
        return [describe(entry) for entry in value]
    if isinstance(value, types.FunctionType | type):
        return value.__name__
    return type(value).__name__


def describe_result(result, new):
    found = {name: describe(getattr(result, name)) for name in FIELDS if hasattr(result, name)}
    found["sizes"] = result.sizes.tolist()
    found["partition"] = partition(result.labels)
    found["params"] = describe(result.params)
    if isinstance(result, fastmmc.SegmentationResult):
        found["paint"] = describe(result.paint())
        new = result.colors
    if isinstance(result, fastmmc.ClusteringResult) and result.feature_names_in is not None:
        found["feature_names_in"] = result.feature_names_in.tolist()
        return found  # new points would need the names
    return found | describe_predictions(result, new)


def describe_estimator(estimator, new):
    names = [name for name in sorted(dir(estimator)) if name[-1] == "_" and name[0] != "_"]
    found = {
        name: describe(getattr(estimator, name))
        for name in names
        if name != "result_" and hasattr(estimator, name)
    }
    if hasattr(estimator, "labels_"):
        found["partition"] = partition(estimator.labels_)
    if hasattr(estimator, "sizes_"):
        found["sizes"] = estimator.sizes_.tolist()
        found["objective"], found["status"] = estimator.objective_, estimator.status_.name
    if hasattr(estimator, "result_"):
        found["params"] = describe(estimator.result_.params)
    return found | describe_predictions(estimator, new)


def describe_predictions(predictor, new):
    found = {}
    for name in ("predict", "decision_function", "transform", "score"):
        if new is not None and hasattr(predictor, name):
            try:
                found[name] = describe(getattr(predictor, name)(new))
            except Exception as error:
                found[name] = f"{type(error).__name__}: {error}"
    return found


def describe_factor(factor):
    found = {}
    for name in FACTOR_FIELDS:
        if hasattr(factor, name):
            value = getattr(factor, name)
            found[name] = describe(value() if callable(value) else value)
    return found


# -------------------------------------------------------------------------------------- the record


def machine():
    """Return all that results may depend on to the last bit."""
    cpu = sorted(f for f, there in llvmlite.binding.get_host_cpu_features().items() if there)
    blas = {
        f"{pool['internal_api']} {pool.get('version')} {pool.get('architecture')}"
        for pool in threadpoolctl.threadpool_info()
        if pool["user_api"] == "blas" and "/scs.libs/" not in pool["filepath"]  # loaded late
    }
    modules = (np, scipy, sklearn, numba, llvmlite, joblib)
    versions = {m.__name__: m.__version__ for m in modules}
    for name in ("cvxpy", "scs"):
        try:
            versions[name] = __import__(name).__version__
        except ImportError:
            versions[name] = None
    return versions | {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()} {' '.join(platform.libc_ver())}",
        "numpy's features": np.show_config("dicts")["SIMD Extensions"]["found"],
        "cpu": f"{llvmlite.binding.get_host_cpu_name()} {digest(np.array(' '.join(cpu)))}",
        "compiled for": f"{numba.config.CPU_NAME} {numba.config.DISABLE_JIT}",
        "blas": sorted(blas),
    }


def load():
    return json.loads(RECORD.read_text())


def plain(found):
    """Return what JSON makes of it; floats keep every bit there."""
    return json.loads(json.dumps(found))


def differences(recorded, found, where=""):
    """Yield a line for everything recorded that is not found as it was; what is new is left out."""
    if isinstance(recorded, dict) and isinstance(found, dict):
        for key, value in recorded.items():
            if key in found:
                yield from differences(value, found[key], f"{where}{key}: ")
            else:
                yield f"{where}{key}: missing, was {value}"
    elif repr(recorded) != repr(found):  # tells 0.0 from -0.0, and NaN is NaN
        yield f"{where}{recorded} became {found}"


def main(arguments):
    write = arguments == ["--write"]
    if arguments and not write:
        raise SystemExit(__doc__)
    recorded = {} if write else load()["calls"]
    began, calls = time.perf_counter(), {}
    for name, call in CALLS.items():
        calls[name] = plain(call.run())
        for line in [] if write else differences(recorded[name], calls[name]):
            sys.stdout.write(f"{name}: {line}\n")
    sys.stdout.write(f"{len(calls)} calls in {time.perf_counter() - began:.0f} s\n")
    if write:
        lines = [f"{json.dumps(k)}: {json.dumps(v, sort_keys=True)}" for k, v in calls.items()]
        head = f'{{"machine": {json.dumps(machine())},\n"calls": {{\n'
        RECORD.write_text(head + ",\n".join(lines) + "\n}}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
