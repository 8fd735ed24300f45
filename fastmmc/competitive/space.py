"""What all searches share: a plan, the space of the prototypes, and first prototypes."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import gen_batches
from sklearn.utils.extmath import safe_sparse_dot

from fastmmc.competitive import _loops as kernels
from fastmmc.core import validation
from fastmmc.core.execution import OutOfTime
from fastmmc.core.threads import in_threads
from fastmmc.data.columns import LARGEST
from fastmmc.data.links import Links
from fastmmc.kernels.gram import BLOCK, dense_rows, resolve_kernel
from fastmmc.kernels.kmeans import begin_choice, largest_size
from fastmmc.kernels.models import Space, row_blocks, screened_nearest
from fastmmc.kernels.nystroem import BRIEF_RANK, DENSE_LIMIT, Form, check_form, form_features

STARTS = ("gaussian", "k-means++")

# Share of the points whose normal distribution first prototypes are drawn from.
START_SHARE = 0.2

# rank="auto" is this many times sqrt(n) where the dense form would be chosen elsewhere.
AUTO_RANK_FACTOR = 10
LEAST_AUTO_RANK = 100

# Seconds that a slow core takes for a number of a row and of a prototype.
ASSIGN_SECONDS = 3e-10


@dataclass(frozen=True, eq=False)
class Plan:
    """What all starts of a call have in common; a rule and the rest are of on-line methods."""

    k: int
    init: str | np.ndarray
    max_iter: int  # rounds or epochs
    constraints: Links
    pairwise: bool = False  # CVQE, else LCVQE
    rule: kernels.Rule | None = None
    shuffle: bool = True
    min_share: float = 0.0
    online_first_epoch: bool = False


def check_space(points, features, kernel, rank, landmarks, rank_tol):
    """Return the kernel and the form of the features for :func:`make_space`; None: no features."""
    if features is None:
        return None
    if rank is None:
        raise ValueError("rank=None asks for a dense kernel; features='nystroem' needs a number")
    n, is_auto = points.shape[0], isinstance(rank, str) and rank == "auto"
    if is_auto and isinstance(landmarks, str) and landmarks != "pivoted" and n <= DENSE_LIMIT:
        rank = min(n, max(LEAST_AUTO_RANK, int(AUTO_RANK_FACTOR * np.sqrt(n))))
    return kernel, check_form(points, kernel, rank, landmarks, rank_tol, None)


def make_space(points, checked, seed, look=lambda ahead=0.0: None):
    """Return the space that :func:`check_space` describes, and the (n, d) points as its rows."""
    if checked is None:
        return Space(points.shape[1], points.dtype), points
    kernel, form = checked
    kernel = resolve_kernel(kernel, points)
    found = form_features(points, kernel, form, seed, look)
    # With a precomputed kernel points have a column for every training point.
    of_points = points.shape[1], points.dtype
    return Space(*of_points, kernel, found.basis, found.to_Z, found.indices), found.Z


def make_space_in_time(points, checked, seed, k, control):
    """Do as :func:`make_space`, with few landmarks if time is short; return the control as well."""
    n = points.shape[0]
    rank = 0 if checked is None or checked[1].is_pivoted else checked[1].rank
    last = ASSIGN_SECONDS * n * rank * k
    try:
        space, rows = make_space(points, checked, seed, lambda a=0.0: control.check_time(a + last))
    except OutOfTime:
        few = min(BRIEF_RANK, n)
        shortage = (
            f". The time was too short for the features; the prototypes moved in those of {few} "
            "landmarks"
        )
        control = replace(control, shortage=shortage)
        space, rows = make_space(points, (checked[0], Form(few)), seed)
    return space, rows, control


def check_start(init):
    """Check first prototypes: the name of a way to choose them, or a (k, d) array of them."""
    with validation.naming("init"):
        is_matrix = np.ndim(init) == 2
    if not is_matrix:
        return validation.check_choice("init", init, STARTS, " or a (k, d) array")
    init = validation.check_matrix(init, name="init", dtype=np.float64, copy=True)
    check_magnitude(init, "init")
    return init


class FirstPrototypes:
    """First prototypes for an ``init`` from :func:`check_start`; k-means++ chooses one by one."""

    def __init__(self, init, rows, k, rng):
        self._rows, self._choice = rows, None
        if not isinstance(init, str):
            validation.check_center_shape(init, k, rows.shape[1])
            self._centers = init.copy()
        elif init == "gaussian":
            self._centers = _from_gaussian(rows, k, rng)
        else:
            self._choice = begin_choice(rows, k, int(rng.integers(2**31)))

    def choosing(self):
        """Choose the prototypes that are left; a generator of the operations of each choice."""
        if self._choice is not None:
            yield from self._choice.choosing()

    def take(self):
        """Return the (k, d) float64 prototypes; those that are not chosen yet are drawn at once."""
        if self._choice is None:
            return self._centers
        self._choice.fill()
        chosen = dense_rows(self._rows, self._choice.indices)
        return np.ascontiguousarray(chosen, dtype=np.float64)


def _from_gaussian(rows, k, rng):
    """Draw prototypes from the normal distribution of a random fifth of the points.

    Sums of centred points with normal weights have its covariance, which is never formed.
    """
    n = rows.shape[0]
    size = min(n, max(k, 2, int(np.ceil(START_SHARE * n))))
    sample = rows[np.sort(rng.choice(n, size, replace=False))]
    mean = np.asarray(sample.mean(axis=0, dtype=np.float64)).ravel()
    weights = rng.standard_normal((k, size)) / np.sqrt(max(size - 1, 1))
    around = safe_sparse_dot(weights, sample, dense_output=True)
    # The product of sparse points comes in columns, which loops over prototypes are slow on.
    return np.ascontiguousarray(mean + around - weights.sum(axis=1)[:, None] * mean)


def assign_rows(rows, centers):
    """Return the nearest prototype of every row, (n,) int64, and the sum of squared distances."""
    if issparse(rows):
        labels, squares = screened_nearest(rows, centers)
        # Added up one by one, as of dense rows.
        blocks = gen_batches(squares.size, BLOCK)
        return labels, sum((float(np.cumsum(squares[b])[-1]) for b in blocks), 0.0)
    labels = np.empty(rows.shape[0], dtype=np.int64)

    def assign(block):
        sums, sizes = np.zeros(centers.shape), np.zeros(centers.shape[0])
        return kernels.assign(rows[block], centers, labels[block], sums, sizes)

    total = sum(
        in_threads(rows.shape[0] * centers.size, assign, gen_batches(rows.shape[0], BLOCK)), 0.0
    )
    return labels, total


def assign_again(rows, centers, labels, kept):
    """Do as :func:`assign_rows` for ``centers[kept]``, with labels for all centers at hand."""
    place = np.full(centers.shape[0], -1, dtype=np.int64)
    place[kept] = np.arange(kept.size)
    centers, labels = centers[kept], place[labels]
    moved = np.flatnonzero(labels < 0)
    if moved.size:
        labels[moved] = assign_rows(rows[moved], centers)[0]
    blocks = row_blocks(*rows.shape)
    total = sum(kernels.sum_distances(dense_rows(rows, b), centers, labels[b]) for b in blocks)
    return labels, total


def space_params(space):
    """Return the kernel's parameters and the rank in use, for ``result.params``."""
    if not space.has_features:
        return {"features": None}
    return {"features": "nystroem", "rank": len(space.to_Z)} | space.kernel.params()


def check_magnitude(rows, what="X"):
    """Refuse finite rows (``what``) whose squares may overflow: prototypes would be lost."""
    most = largest_size(rows.data if issparse(rows) else rows)
    if not most <= LARGEST:
        raise ValueError(
            f"{what} must have no values beyond {LARGEST:g}, or squared distances overflow and the "
            f"prototypes are lost; got {most:.3g}: scale the columns first"
        )


def refuse_vanishing(rows):
    """Refuse points whose squared distances vanish, so that each would be as near as any other."""
    most = largest_size(rows.data if issparse(rows) else rows)
    if 0.0 < most < 1.0 / LARGEST:
        raise ValueError(
            f"X must have a value of {1.0 / LARGEST:g} or more, or squared distances vanish and "
            f"all points are one; got {most:.3g} at most: scale the columns first"
        )
