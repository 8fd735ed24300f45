"""Sparse input: whatever its structure, no crash, no change of it, and what a sound one gives."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import fastmmc
from fastmmc import distributed, validation
from fastmmc.registry import METHODS

ROOT = Path(__file__).parents[1]
RANKED = ("umc-rls", "fast-evo-mmc", "iter-svr", "iter-svm", "iter-ls-svm")
FEATURELESS = (
    "sammc",
    "wta",
    "fscl",
    "rpcl",
    "c-rpcl",
    "o-lcvqe",
    "lcvqe",
    "cvqe",
    "cpmmc",
    "cpm3c",
)
FORMATS = ("csr", "csc", "bsr", "coo", "lil", "dok", "dia")


def points(n=40, d=6):
    X = np.random.default_rng(0).standard_normal((n, d))
    return sparse.csr_matrix(np.where(X > 0.3, X, 0.0))


def column_beyond(X):
    X.indices[5] = 2**30


def column_negative(X):
    X.indices[5] = -(2**30)


def column_of_64_bits(X):
    X.indices = X.indices.astype(np.int64)
    X.indices[5] = 2**40


def pointer_beyond(X):
    X.indptr[3] = 2**30


def pointers_that_end_at_0(X):
    X.indptr[1:-1] = 2**30
    X.indptr[-1] = 0


def pointers_that_wrap(X):
    X.indptr[1:4] = 2**31 - 1, -2, 0


def broken_points(n=40, d=6):
    """Yield what is wrong and a matrix whose use reads or writes where it must not."""
    for form in ("csr", "csc", "bsr"):
        for damage in (
            column_beyond,
            column_negative,
            column_of_64_bits,
            pointer_beyond,
            pointers_that_end_at_0,
            pointers_that_wrap,
        ):
            X = points(n, d).asformat(form)
            damage(X)
            yield f"{form}: {damage.__name__}", X
    X = points(n, d).tocoo()
    X.row[3] = 2**30
    yield "coo: row beyond", X
    X = points(n, d).tolil()
    X.rows[2], X.data[2] = [2**30], [1.0]
    yield "lil: column beyond", X


def calls(X, models):
    """Yield the name of everything that takes sparse points, and its call."""
    for name in (*RANKED, *FEATURELESS, "recursive-mmc"):
        method = METHODS[name]
        rank = {"rank": 5} if name in RANKED else {}
        k = () if method.binary else (2,)
        yield name, partial(method.function, X, *k, **rank)
        yield method.estimator.__name__, partial(method.estimator(**rank).fit, X)
    yield "factor", lambda: fastmmc.factor(X, rank=5)
    yield "path", lambda: fastmmc.umc_rls_path(X, 2, [0.1], rank=5, sizes="equal")
    yield "sharded", lambda: distributed.fit_sharded(X, 2)
    yield "first chunk", lambda: fastmmc.OLCVQE(2).partial_fit(X)
    for name, model in models.items():
        for verb in ("predict", "decision_function", "transform", "score", "partial_fit"):
            if hasattr(model, verb):
                yield f"{name}.{verb}", partial(getattr(model, verb), X)


def refuse_all():
    """Make every call with every broken matrix; run in a process that may crash."""
    X = points()
    models = {"estimator": fastmmc.WTA(2, n_init=1).fit(X)}
    for name, model in (
        ("rls", fastmmc.UMCRLS(2, n_init=1, sizes="equal").fit(X.toarray())),
        ("sammc", fastmmc.SAMMC(2, n_init=1).fit(X)),
    ):
        models |= {name: model, f"result of {name}": model.result_}
    for what, broken in broken_points():
        before = parts(broken)
        for name, call in calls(broken, models):
            with pytest.raises(ValueError, match="X: the sparse matrix .* is broken"):
                call()
                print("taken:", name, what)  # noqa: T201
        for a, b in zip(before, parts(broken), strict=True):
            np.testing.assert_array_equal(a, b)
    for what, broken in broken_points(6, 6):
        for name in ("must_link", "cannot_link"):
            with pytest.raises(ValueError, match=f"{name}: the sparse matrix .* is broken"):
                fastmmc.lcvqe(np.eye(6), 2, **{name: broken})
                print("taken:", name, what)  # noqa: T201


def test_a_broken_matrix_is_refused_and_never_crashes():
    done = subprocess.run(
        [sys.executable, "-c", "from tests.test_sparse import refuse_all; refuse_all()"],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def duplicated(X):
    """Return X with every entry in two halves, in falling order of the columns."""
    order = np.lexsort((-X.indices, np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))))
    indices, data = np.repeat(X.indices[order], 2), np.repeat(X.data[order] / 2, 2)
    return sparse.csr_matrix((data, indices, 2 * X.indptr), shape=X.shape)


def with_zeros(X):
    """Return X with zeros as entries."""
    rows, columns = np.indices(X.shape).reshape(2, -1)
    return sparse.csr_array((X.toarray().ravel(), (rows, columns)), shape=X.shape)


def with_wide_indices(X):
    X = X.copy()
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def read_only(X):
    X = X.copy()
    for array in (X.data, X.indices, X.indptr):
        array.flags.writeable = False
    return X


def with_stale_flags(X):
    flagged = duplicated(X)
    flagged.has_canonical_format = True
    return flagged


VARIANTS = [
    duplicated,
    with_zeros,
    with_wide_indices,
    read_only,
    with_stale_flags,
    sparse.csr_array,
    *(lambda X, f=f: X.asformat(f) for f in FORMATS[1:]),
    *(lambda X, f=f: sparse.csr_array(X).asformat(f) for f in FORMATS[1:]),
]


def parts(X):
    """Return what a matrix is stored as."""
    stored = [
        getattr(X, name) for name in ("data", "indices", "indptr", "row", "col") if hasattr(X, name)
    ]
    return [np.array(part, copy=True) for part in stored]


@pytest.mark.parametrize("vary", VARIANTS)
def test_the_door_makes_one_form_of_all(vary):
    X = points()
    given = vary(X)
    before = parts(given)
    found = validation.check_structure(given)
    assert found.format == "csr" and found.has_canonical_format
    np.testing.assert_allclose(found.toarray(), X.toarray(), rtol=1e-15)
    for a, b in zip(before, parts(given), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_sound_matrix_is_not_copied():
    X = points()
    found = validation.check_structure(X)
    assert all(np.shares_memory(getattr(X, a), getattr(found, a)) for a in ("data", "indices"))


def test_a_sparse_vector_is_refused():
    with pytest.raises(ValueError, match="X: a sparse matrix must have two dimensions"):
        fastmmc.wta(sparse.coo_array(np.arange(3.0)), 2)


@pytest.mark.jit
@pytest.mark.parametrize("name", ["umc-rls", "wta", "sammc", "lcvqe", "cpm3c", "iter-svr"])
@pytest.mark.parametrize("vary", VARIANTS[:5])
def test_structure_does_not_change_labels(name, vary):
    method = METHODS[name]
    params = {"n_init": 1, "random_state": 0} | ({"rank": 5} if name in RANKED else {})
    k = () if method.binary else (2,)
    # Halves that are added up again are exact.
    expected = method.function(points(), *k, **params)
    found = method.function(vary(points()), *k, **params)
    np.testing.assert_array_equal(found.labels, expected.labels)
    assert found.objective == expected.objective
