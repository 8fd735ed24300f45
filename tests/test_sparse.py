"""Sparse input: whatever its structure, no crash, no change of it, and what a sound one gives."""

import os
import subprocess
import sys
import tracemalloc
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import fastmmc
from fastmmc import distributed
from fastmmc.core import validation
from fastmmc.kernels import _loops_centers as loops
from fastmmc.kernels.models import CenterModel, screened_nearest
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
@pytest.mark.parametrize(
    ("name", "vary"),
    [
        (name, VARIANTS[(at + turn) % 5])
        for at, name in enumerate(["umc-rls", "wta", "sammc", "lcvqe", "cpm3c", "iter-svr"])
        for turn in (0, 2)
    ],
)
def test_structure_does_not_change_labels(name, vary):
    method = METHODS[name]
    params = {"n_init": 1, "random_state": 0} | ({"rank": 5} if name in RANKED else {})
    k = () if method.binary else (2,)
    # Halves that are added up again are exact.
    expected = method.function(points(), *k, **params)
    found = method.function(vary(points()), *k, **params)
    np.testing.assert_array_equal(found.labels, expected.labels)
    assert found.objective == expected.objective


def text(n=400, d=60_000, seed=0):
    """Return rows of a few frequent and many rare terms, of unit length, and their topics."""
    rng = np.random.default_rng(seed)
    topics = np.arange(n) % 3
    rows = np.repeat(np.arange(n), 40)
    drawn = np.minimum(rng.zipf(1.3, rows.size), d) - 1
    columns = (drawn + 7 * topics[rows] * (drawn < 100)) % d
    X = sparse.csr_array((rng.uniform(1.0, 2.0, rows.size), (rows, columns)), shape=(n, d))
    return sparse.csr_array(X.multiply(1.0 / np.sqrt(X.multiply(X).sum(axis=1))[:, None])), topics


NARROW_WIDTH = 1e-9

KERNELS = [
    {},
    {"sigma": NARROW_WIDTH},
    {"kernel": "laplacian"},
    {"kernel": "linear"},
    {"kernel": "poly", "gamma": 1.0},
]


@pytest.mark.parametrize("given", KERNELS, ids=str)
@pytest.mark.parametrize("landmarks", ["uniform", "pivoted"])
def test_wide_rows_give_the_features_of_dense_ones(given, landmarks):
    X, _ = text(60, 3000)
    wide = fastmmc.factor(X, rank=20, landmarks=landmarks, random_state=0, **given)
    # Rounding decides between pivots that are equally good.
    dense = fastmmc.factor(X.toarray(), landmarks=wide.indices, **given)
    assert sparse.issparse(wide.basis) and wide.kernel.sigma == pytest.approx(dense.kernel.sigma)
    np.testing.assert_allclose(wide.Z @ wide.Z.T, dense.Z @ dense.Z.T, atol=1e-8)
    for rows in (X[:7], X[:7].toarray()):
        np.testing.assert_allclose(wide.transform(rows), wide.Z[:7], atol=1e-7)


def test_landmarks_may_be_sparse():
    X, _ = text(60, 3000)
    given = fastmmc.factor(X, landmarks=X[::5])
    assert sparse.issparse(given.basis)
    np.testing.assert_allclose(given.Z, fastmmc.factor(X, landmarks=np.arange(0, 60, 5)).Z)


def test_a_model_of_wide_rows_is_saved(tmp_path):
    X, _ = text(90, 3000)
    found = fastmmc.umc_rls(X, 3, rank=30, random_state=0)
    found.save(tmp_path / "text.npz")
    loaded = fastmmc.load(tmp_path / "text.npz")
    assert sparse.issparse(loaded.model.basis)
    np.testing.assert_array_equal(loaded.decision_function(X), found.decision_function(X))
    with np.load(tmp_path / "text.npz") as file:
        parts = dict(file)
    parts["model.basis.indices"][0] = 10**6
    np.savez(tmp_path / "bad.npz", **parts)
    with pytest.raises(ValueError, match="is damaged"):
        fastmmc.load(tmp_path / "bad.npz")


WIDE_CALLS = {
    "factor": partial(fastmmc.factor, rank=50),
    "pivoted": partial(fastmmc.factor, rank=50, landmarks="pivoted"),
    "umc_rls": partial(fastmmc.umc_rls, k=3, rank=50),
    "equal": partial(fastmmc.umc_rls, k=3, rank=50, sizes="equal", n_init=2),
    "evolution": partial(fastmmc.fast_evo_mmc, rank=50, init="kmeans", n_init=1, max_iter=100),
    "cutting planes": partial(fastmmc.cpmmc, n_init=1),
    "cluster": partial(fastmmc.cluster, k=3),
    "lcvqe": partial(fastmmc.lcvqe, k=3, known_labels=[0, 1, 2] * 10 + [-1] * 370),
    "cvqe": partial(fastmmc.cvqe, k=3, cannot_link=[(0, 1), (1, 2)]),
}

IN_BLOCKS = {
    "on line": partial(fastmmc.wta, k=3, max_iter=1, min_share=0.3),
    "stream": lambda X, **options: fastmmc.CRPCL(3, **options).partial_fit(X, cannot_link=[(0, 1)]),
    "tree": partial(fastmmc.recursive_mmc, k=2, method_params={"rank": 50}),
}


@pytest.mark.parametrize("name", WIDE_CALLS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_wide_rows_are_never_made_dense(name):
    """A hundred dense rows of 60,000 columns have 48 MB, and 400 points of anything else 1.3 MB."""
    X, _ = text()
    assert peak_of(WIDE_CALLS[name], X) < 48e6


@pytest.mark.parametrize("name", IN_BLOCKS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_few_wide_rows_at_a_time_are_made_dense(name):
    """All 1,200 dense rows have 576 MB."""
    X, _ = text(1200)
    assert peak_of(IN_BLOCKS[name], X) < 144e6


def peak_of(call, X):
    """Return the bytes that a call takes at most, compiling aside."""
    call(X, random_state=0)
    tracemalloc.start()
    try:
        call(X, random_state=0)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", [fastmmc.SAMMC, fastmmc.CRPCL])
def test_new_sparse_points_are_not_compared_with_all_centers(kind, monkeypatch):
    X = sparse.random(200, 1_000, density=0.02, format="csr", random_state=0)
    model = kind(5, random_state=0).fit(X)
    expected = model.decision_function(X).argmax(axis=1)
    monkeypatch.delattr(CenterModel, "_fill")
    for found in (model.predict(X), model.result_.predict(X), model.labels_):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_wide_dense_points_are_screened(dtype, monkeypatch):
    X = np.random.default_rng(0).normal(size=(300, 250)).astype(dtype)
    model = fastmmc.SAMMC(8, random_state=0).fit(X)
    expected = model.decision_function(X).argmax(axis=1)
    monkeypatch.delattr(CenterModel, "_fill")
    for found in (model.predict(X), model.labels_):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("squared", [True, False])
@pytest.mark.parametrize("kind", ["random", "ties", "far", "huge"])
@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csr_array.toarray])
def test_nearest_centers_by_products_are_those_by_distances(squared, kind, form):
    X = sparse.random(300, 40, density=0.1, format="lil", random_state=0)
    centers = X[:12].toarray()
    if kind == "ties":  # equal centers, and points halfway between two
        centers[6:9] = centers[:3]
        X[20:40] = np.tile((centers[3] + centers[4]) / 2.0, (20, 1))
    elif kind == "far":  # products leave few digits
        centers += 1e8
    elif kind == "huge":
        centers *= 1e160
    labels, squares = screened_nearest(form(sparse.csr_array(X)), centers, squared)
    fill = loops.all_distances if squared else loops.all_distances_in_order
    expected = np.empty((300, 12))
    fill(X.toarray(), centers, expected)
    np.testing.assert_array_equal(labels, expected.argmin(axis=1))
    np.testing.assert_array_equal(squares, expected.min(axis=1))
