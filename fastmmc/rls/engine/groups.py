"""Groups of points that move as one, and labellings of them.

A group is a point, points that stay together, or a cell of many points. The cost of a labelling
with cluster indicators e_h and sizes s_h is sum_h (1 - e_h^T R e_h / s_h) where sizes are free, and
-sum_h e_h^T R e_h where they are ruled, which is Q / 4 up to a constant and the term of e^T R e.
Moves of single groups end early, so labellings are improved on many scales: parts of Ward's tree,
from few large ones to many small ones, move as a whole before the groups do.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.linalg import eigh, polar, qr

from fastmmc.core.jit import read_only
from fastmmc.data.sizes import are_within, fit_sizes
from fastmmc.kernels.factors import leave_one_out_residuals
from fastmmc.rls.engine import _loops_groups as loops
from fastmmc.rls.engine import _loops_moves as moves
from fastmmc.rls.engine import _loops_trees as trees

# A change of the cost below this, or below this share of the mass where sizes are ruled, is
# rounding.
TOLERANCE = 1e-12

ENDLESS = np.iinfo(np.int64).max

# Parts of Ward's tree that the eigenvectors of the spectral clustering are over, or this many for
# each cluster. Of 1,000 clusters the eigenvectors take 1.3 s, and 3.5 s with 3 parts each; the
# index of `cluster` with 300 clusters is the same with 1.5, 2 and 3.
COARSE = 500
COARSE_PER_CLUSTER = 2

# A descent of all points ends with a sweep that lowers the objective by less than this share. Of a
# million points the last of 38 sweeps moved 2 points each, and from the eighth on the Adjusted Rand
# index stays the same within .0005 (seven real sets, six made ones).
GAIN = 1e-5


def is_worth_more(before, after):
    """Tell whether a sweep over all points lowered the objective enough for one more."""
    return before - after > GAIN * abs(after)


def compact(labels, k):
    """Return a copy of the labels in the type that the compiled loops take."""
    return labels.astype(np.uint8 if k <= 256 else np.int32)


def sums_of(matrix, labels, k):
    """Return the rows of a matrix, summed over each of k clusters, (k, width) float64."""
    sums = np.empty((k, matrix.shape[1]))
    moves.build_sums(matrix, compact(labels, k), sums)
    return sums


def scores_of(Z, A, c, masses=None):
    """Return a function of clusters and points (masses m, all 1 if None) for z . A_h + m c_h."""

    def score(clusters, points):
        some, m = Z[points], 1.0 if masses is None else masses[points]
        return A[clusters].astype(Z.dtype, copy=False) @ some.T + c[clusters, None] * m

    return score


def tangent(W, sizes, within=None):
    """Return A (k, r) and c (k,), the tangent of the cost at labels with these sums and sizes.

    With W = E^T Z and s_h the sizes, the cost of free sizes falls with a convex function of the
    labels, sum_h |W_h|^2 / s_h. So labels that are better for its tangent sum_i z_i . A_h(i) +
    c_h(i), with

        A_h = 2 W_h / s_h    and    c_h = -|W_h|^2 / s_h^2,

    are better for the cost too, and the best ones for the tangent need no look at other points.
    ``within`` are the diagonal of E^T R E, |W_h|^2 if they are not given.
    """
    sizes = np.maximum(sizes, 1)
    within = np.sum(W**2, axis=1) if within is None else within
    return 2.0 * W / sizes[:, None], -within / sizes**2


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of points: the sums of R over each pair of groups, or of rows of Z, and masses."""

    matrix: np.ndarray  # (g, g), or (g, r) rows of Z
    masses: np.ndarray | None = None  # (g,) int64; given as None: all are 1
    movable: np.ndarray | None = None  # (g,) bool, False where a label is known; None: nowhere
    dense: bool = True  # which of the two the matrix is
    # The spectral clusterings that were made, by their numbers of clusters.
    _spectral: dict = field(default_factory=dict, init=False)

    def __post_init__(self):
        object.__setattr__(self, "matrix", read_only(self.matrix))
        for name, dtype in (("masses", np.int64), ("movable", np.bool_)):
            if getattr(self, name) is None:
                object.__setattr__(self, name, np.ones(len(self.matrix), dtype=dtype))

    @classmethod
    def of_masses(cls, R, masses):
        """Return points that count for masses, with the hat matrix R of points of such weights."""
        if (masses != 1).any():
            roots = np.sqrt(masses)
            R = R * roots
            R *= roots[:, None]
        return cls(R, masses)

    @property
    def n(self):
        """Number of groups."""
        return self.masses.size

    @cached_property
    def diagonal(self):
        """Diagonal of the matrix, or of Z Z^T, (g,) float64."""
        if not self.dense:
            return np.einsum("ij,ij->i", self.matrix, self.matrix, dtype=np.float64)
        return np.ascontiguousarray(np.diagonal(self.matrix), dtype=np.float64)

    def merge(self, members):
        """Return the groups of groups that ``members`` (g,) names."""
        masses = np.bincount(members, weights=self.masses).astype(np.int64)
        if self.dense:
            matrix = np.zeros((masses.size, masses.size))
            trees.merge_groups(self.matrix, members, None, matrix)
        else:
            sums = sums_of(self.matrix, members, masses.size)
            matrix = sums @ sums.T
        movable = np.ones(masses.size, dtype=np.bool_)
        movable[members[~self.movable]] = False
        return Groups(matrix, masses, movable)

    @cached_property
    def least(self):
        """Least entry of each row, (g,) float64."""
        return self.matrix.min(axis=1).astype(np.float64)

    def state(self, labels, rule, free=True, sums=None):
        """Return what the compiled loops work on; the sums are found if they are not given."""
        k, masses = rule.lower.size, self.masses
        labels = compact(labels, k)
        if sums is None:
            sums = sums_of(self.matrix, labels, k)
        if self.dense:
            within = np.bincount(labels, sums[labels, np.arange(labels.size)], k)
        else:
            within = np.sum(sums**2, axis=1)
        return loops.State(
            matrix=self.matrix,
            dense=self.dense,
            labels=labels,
            masses=masses,
            counts=np.bincount(labels, masses, k).astype(np.int64),
            sums=sums,
            within=within,
            diag=read_only(self.diagonal),
            movable=self.movable,
            lower=rule.lower,
            upper=rule.upper,
            free=free,
            tol=TOLERANCE if free else TOLERANCE * float(masses.sum()),
            pos=np.zeros(loops.N_POS, dtype=np.int64),
            changed=np.zeros(k, dtype=np.int64),
            seen=np.full(labels.size, -1),
        )

    @cached_property
    def tree(self):
        """Ward's merges in the metric of R: pairs in the order of their heights, (2, g - 1)."""
        D = np.empty((self.n, self.n))
        trees.fill_merges(self.matrix, self.masses, D)
        pairs = np.empty((2, self.n - 1), dtype=np.int64)
        height = np.empty(self.n - 1)
        trees.agglomerate(D, self.masses.astype(np.float64), *pairs, height)
        return np.take(pairs, np.argsort(height, kind="stable"), axis=1)

    def cut(self, count):
        """Return which of ``count`` parts of the tree each group belongs to."""
        return parts_of(self.tree, count)

    def coarse(self, count):
        """Return at most ``count`` groups to search in place of these, and which each is in."""
        if self.n <= count:
            return self, np.arange(self.n)
        parts = self.cut(count)
        return self.merge(parts), parts

    def recombine(self, a, b, k):
        """Return k clusters of the parts on which two labellings agree, by Ward's rule."""
        members = np.unique((a * k + b) * 2 + self.movable, return_inverse=True)[1]
        return self.merge(members).cut(k)[members]

    @cached_property
    def cuts(self):
        """Half as many parts of the tree each time."""
        return [self.cut(self.n >> level) for level in range(1, self.n.bit_length() - 1)]

    def spectral(self, k):
        """Cluster by the eigenvectors of R, with k groups as corners (Damle et al. 2019)."""
        if k not in self._spectral:
            parts = self.cut(max(COARSE, COARSE_PER_CLUSTER * k))
            coarse = self.merge(parts)
            if coarse.n <= k:
                return parts
            root = np.sqrt(coarse.masses)
            scaled = coarse.matrix / root / root[:, None]
            last = [coarse.n - k, coarse.n - 1]
            V = eigh(scaled, subset_by_index=last, check_finite=False)[1]
            corners = qr(V.T, pivoting=True, mode="r")[1][:k]
            self._spectral[k] = np.abs(V @ polar(V[corners].T)[0]).argmax(axis=1)[parts]
        return self._spectral[k]

    def fitted(self, labels, rule):
        """Return the labels with sizes that keep to the rule as nearly as groups allow."""
        counts = np.bincount(labels, self.masses, rule.lower.size)
        if are_within(counts, rule.lower, rule.upper):  # a state takes longer to make
            return labels
        return fitted(self.state(labels, rule))

    def error(self, state):
        """Return the leave-one-out error of a state: the mean over clusters of ||L - E||^2 / s.

        The other groups predict L of the indicator E of a cluster of mass s.
        """
        residuals, _ = _residuals(self, state.labels, state.sums)
        return mean_of_clusters(self.masses @ residuals**2, state.counts)

    def descend(self, labels, rule, free=True):
        """Return labels that no move of a group improves, their cost, and the moves made."""
        state = self.state(labels, rule, free)
        made = self.settle(state)
        return state.labels.astype(np.int64), cost_of(state), made

    def refine(self, labels, rule, free=True):
        """Return labels no worse than those given, their cost, and the moves made.

        Groups move, then parts of the tree within the clusters as a whole, the largest first, and
        groups again. Where sizes are bounded, so that few moves are left, they are swapped as well.
        """
        k = rule.lower.size
        state = self.state(labels, rule, free)
        made = self.settle(state)
        # More groups, the most first, their states, and which groups of the next these are in; and
        # one of our groups in each group of the last.
        finer, groups, some = [], self, np.arange(self.n)
        for part in self.cuts:
            if part.max() < k:
                break
            key = (part[some] * k + state.labels) * 2 + groups.movable
            first, members = np.unique(key, return_index=True, return_inverse=True)[1:]
            finer.append((groups, state, members))
            sums = np.array([np.bincount(members, row) for row in state.sums])
            groups, some = groups.merge(members), some[first]
            state = groups.state(state.labels[first], rule, free, sums)
        made += groups.settle(state, rule.bounded)
        for groups, fine, members in reversed(finer):
            loops.relabel(fine, state.labels[members])
            state = fine
            made += groups.settle(state, rule.bounded)
        return state.labels.astype(np.int64), cost_of(state), made

    def settle(self, state, with_swaps=False):
        """Descend to where no move helps; return how many are made.

        After swaps, for which each group looks at its partners once, moves go on.
        """
        before = int(state.pos[loops.MOVES])
        state.pos[[loops.AT, loops.CLEAN]] = 0
        loops.descend(state, None, None, ENDLESS)
        if with_swaps:
            state.pos[[loops.AT, loops.CLEAN]] = 0
            loops.swap(state, self.least, 4 * self.n**2)
            self.settle(state)
        return int(state.pos[loops.MOVES]) - before


def parts_of(merges, count):
    """Return which of so many parts of a tree each leaf is in, by merges in order, (2, n - 1)."""
    n = merges.shape[1] + 1
    labels = np.empty(n, dtype=np.int64)
    trees.join_merged(*merges[:, : max(0, n - count)], labels)
    return labels


def nearness(state, sums, masses):
    """Return minus the squared distances to the means of a state's clusters, up to a constant.

    ``sums`` (k, n) are the inner products with the clusters' sums of what has ``masses``.
    """
    sizes = np.maximum(state.counts, 1)[:, None]
    near = 2.0 * sums
    near /= sizes
    near -= masses * state.within[:, None] / sizes**2
    return near


def fitted(state):
    """Return the labels of a state, (g,) int64, with sizes within bounds as nearly as groups allow.

    Those change that are nearest to other clusters.
    """
    labels = state.labels.astype(np.int64)
    if are_within(state.counts, state.lower, state.upper):
        return labels
    masses = None if (state.masses == 1).all() else state.masses
    if state.dense:
        scores = nearness(state, state.sums, state.masses)
    else:
        scores = scores_of(state.matrix, *tangent(state.sums, state.counts, state.within), masses)
    return fit_sizes(labels, scores, state.lower, state.upper, state.movable, masses)


def cost_of(state):
    """Return the cost of a state's labels."""
    if state.free:
        return float(np.sum(1.0 - state.within / np.maximum(state.counts, 1)))
    return -float(state.within.sum())


def predictions(groups, labels, sums):
    """Return what the other groups predict of each group's indicators, (g, k), and these."""
    residuals, E = _residuals(groups, labels, sums)
    return E - residuals, E


def _residuals(groups, labels, sums):
    """Return each group's indicators, less what the others predict of them, (g, k), and these."""
    E = (labels[:, None] == np.arange(len(sums))).astype(np.float64)
    fits = sums.T / groups.masses[:, None]
    return leave_one_out_residuals(E, fits, groups.diagonal / groups.masses), E


def mean_of_clusters(totals, counts):
    """Return the mean over clusters of their totals per point; an empty one has 1."""
    return float(np.mean(np.where(counts > 0, totals / np.maximum(counts, 1), 1.0)))
