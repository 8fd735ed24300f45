"""Working sets of planes and the quadratic programs behind them, for signs and for winners.

Weights w, a bias and one slack xi are found from constraints that each choose points. With the
labels of the points frozen a constraint is a plane: the mean g of its points' features, signed by
the labels, and the share h of the points, ask for g . w + s b >= h - xi. The dual has a multiplier
for each plane, for xi >= 0, and for each side of the balance, and its size does not depend on the
number of features.

For two clusters the bias is free. Its row of the dual, s . lam = n (mu - nu), says that the
features may as well be centred: w = sum lam_k (z_k - s_k mean(x)), and the balance of the scores
becomes |b'| <= l / n for the mean score b'.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import issparse

from fastmmc.cutting_plane import _loops as kernels
from fastmmc.cutting_plane._loops_program import solve_program

# Planes that there is room for at first; a full room is cleared of those that had no multiplier
# for so many programs, and doubled if none can go.
FIRST_ROOM = 16
IDLE = 50

# Steps of the active-set solver, as a multiple of the program's size.
STEPS = 50

# By how much mean scores may differ more than the balance allows, in units of the margin: rounding.
BALANCE_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Weights:
    """Scores W x + b of the points, and what the working set needs to know of them.

    Attributes
    ----------
    W : (m, d) float64 array
        One row for two clusters, whose label is the sign; else one row a cluster.
    b : (m,) float64 array
        Biases.
    half_norm : float
        |w|^2 / 2 of the part that is penalised.
    """

    W: np.ndarray
    b: np.ndarray
    half_norm: float


class _WorkingSet:
    """Planes, the labels that they are frozen at, and the multipliers of the last program.

    Parameters
    ----------
    rows : (n, d) array or CSR matrix
        Points in the space of the weights.
    mean : (d,) float64 array
        Their mean.
    C : float
        Weight of the slack.
    balance : float
        l / n.
    n_blocks : int
        Rows of W.
    n_extra : int
        Multipliers of the balance.
    code_type : type
        Of codes and labels.
    """

    def __init__(self, rows, mean, C, balance, n_blocks, n_extra, code_type):
        self._rows = rows
        self._mean = mean
        self._C = C
        self._balance = balance
        self.n, self._d = rows.shape
        self.labels = np.zeros(self.n, dtype=code_type)
        self.n_planes = 0
        self._sums = np.zeros((FIRST_ROOM, n_blocks, self._d + 1))
        self._counts = np.zeros(FIRST_ROOM, dtype=np.int64)
        self._codes = np.zeros((FIRST_ROOM, self.n), dtype=code_type)
        self._idle = np.zeros(FIRST_ROOM, dtype=np.int64)
        self._shares = np.empty(0)  # multipliers of the planes
        self._unused = C  # of xi >= 0
        self._extra = np.zeros(n_extra)
        self._dual = -np.inf  # objective of the last program
        self._gram = np.empty((0, 0))
        self._value = np.empty(kernels.N_VALUES)
        self._pos = np.empty(kernels.N_POS, dtype=np.int64)
        self.frozen = None  # labels that the last program was made with
        self.begin_pass()

    def begin_pass(self):
        """Make ready for a pass over the points."""
        self._value[:] = 0.0
        self._pos[:] = 0
        self._sums[self.n_planes] = 0.0

    def _points(self):
        """Return the points as the kernels take them."""
        rows = self._rows
        return (rows.indptr, rows.indices, rows.data) if issparse(rows) else (rows,)

    @property
    def n_changed(self):
        """Labels that the pass changed."""
        return int(self._pos[kernels.CHANGED])

    @property
    def n_inside(self):
        """Points that the pass found inside the margin."""
        return int(self._pos[kernels.INSIDE])

    @property
    def mean_slack(self):
        """The slack xi that the weights have need of, over all constraints."""
        return float(self._value[kernels.HINGE]) / self.n

    @property
    def held_slack(self):
        """The same at the labels as they are."""
        return float(self._value[kernels.HELD]) / self.n

    def slack(self, weights):
        """Return the slack that the weights have need of on the planes, at the labels as they are.

        Parameters
        ----------
        weights : Weights
            Of the last program.

        Returns
        -------
        float
            At least 0.
        """
        if self.n_planes == 0:
            return 0.0
        sums = self._sums[: self.n_planes].reshape(self.n_planes, -1)
        scores = sums @ np.column_stack((weights.W, weights.b)).ravel() / self.n
        return max(0.0, float((self._heights() - scores).max()))

    def _heights(self):
        return self._counts[: self.n_planes] / self.n

    def accept(self):
        """Make the constraint of the last pass a plane."""
        self._counts[self.n_planes] = self.n_inside
        self._idle[self.n_planes] = 0
        self._shares = np.append(self._shares, 0.0)
        self.n_planes += 1
        if self.n_planes == len(self._sums):
            self._make_room()

    def _make_room(self):
        """Drop planes that have long been idle, or double the room."""
        keep = np.flatnonzero(self._idle < IDLE)
        size = len(self._sums)
        if keep.size == size:
            size *= 2
        for name in ("_sums", "_counts", "_codes", "_idle"):
            old = getattr(self, name)
            new = np.zeros((size, *old.shape[1:]), dtype=old.dtype)
            new[: keep.size] = old[keep]
            setattr(self, name, new)
        self._shares = self._shares[keep]
        known = keep[keep < len(self._gram)]
        self._gram = self._gram[np.ix_(known, known)]
        self.n_planes = keep.size

    def _plane_gram(self, planes):
        """Return the products of the planes, of which most are known where no label has changed."""
        same = self.frozen is not None and np.array_equal(self.labels, self.frozen)
        known = len(self._gram) if same else 0
        gram = np.empty((self.n_planes, self.n_planes))
        gram[:known, :known] = self._gram[:known, :known]
        gram[known:] = planes[known:] @ planes.T
        gram[:known, known:] = gram[known:, :known].T
        self._gram = gram
        return gram

    def tighten(self, weights):
        """Add rows of the balance that are violated; return whether there were any.

        Parameters
        ----------
        weights : Weights
            Of the last program.

        Returns
        -------
        bool
            Whether the program is to be solved again.
        """
        return False

    def solve(self):
        """Solve the program at the labels as they are, with the rows of the balance so far.

        Returns
        -------
        weights : Weights
            The optimum; that of the whole program where :meth:`tighten` has nothing to add.
        gap : float
            Primal minus dual objective.
        ended : bool
            Whether the solver got to its end.
        """
        planes, offsets = self._coordinates()
        m = self._extra.size + 1
        size = m + self.n_planes
        Q = np.zeros((size, size))
        Q[m:, m:] = self._plane_gram(planes)
        self._set_balance_rows(Q, planes)
        q = np.concatenate((np.full(m - 1, -self._balance), [0.0], self._heights()))
        A, r = self._equalities(offsets)
        self._extra = self._feasible_extra(offsets)
        a = np.concatenate((self._extra, [self._unused], self._shares))
        y = np.empty(r.size)
        steps = solve_program(Q, q, A, r, a, y, STEPS * size)
        self._extra, self._unused, self._shares = a[: m - 1], a[m - 1], a[m:]
        idle = self._idle[: self.n_planes]
        idle[:] = np.where(self._shares > 0, 0, idle + 1)
        half_norm = 0.5 * float(a @ Q @ a)
        weights = self._weights(planes, half_norm, y)
        primal = half_norm + self._C * self.slack(weights)
        self._dual = float(q @ a) - half_norm
        self.frozen = self.labels.copy()
        return weights, primal - self._dual, steps <= STEPS * size


class SignSet(_WorkingSet):
    """Planes of two clusters: sums of s_i x_i over the points of a constraint.

    Parameters
    ----------
    rows, mean, C, balance
        As of the base class.
    """

    def __init__(self, rows, mean, C, balance):
        super().__init__(rows, mean, C, balance, 1, 2, np.int8)

    def look(self, weights, budget, hold=False):
        """Go on with a pass, which may hold the labels; return whether it has ended."""
        look = kernels.look_at_signs_sparse if issparse(self._rows) else kernels.look_at_signs
        return look(
            *self._points(),
            weights.W[0],
            weights.b[0],
            self.labels,
            self._sums,
            self._codes,
            self.n_planes,
            hold,
            self._value,
            self._pos,
            budget,
        )

    def _coordinates(self):
        sums = self._sums[: self.n_planes, 0] / self.n
        offsets = sums[:, -1]
        return sums[:, :-1] - offsets[:, None] * self._mean, offsets

    def _set_balance_rows(self, Q, planes):
        """Leave the rows of mu and nu at zero: centred features are balanced."""

    def _equalities(self, offsets):
        A = np.zeros((2, 3 + offsets.size))
        A[0, 2:] = 1.0
        A[1, :2] = -1.0, 1.0
        A[1, 3:] = offsets
        return A, np.array([self._C, 0.0])

    def _feasible_extra(self, offsets):
        """Return mu and nu for the multipliers of the planes; the labels may have moved."""
        t = float(offsets @ self._shares)
        return np.array([t if t > 0 else 0.0, -t]) if t else np.array([-1.0, 0.0])

    def _weights(self, planes, half_norm, y):
        w = self._shares @ planes
        mean_score = float(np.clip(-y[1], -self._balance, self._balance))
        return Weights(w[None], np.array([mean_score - w @ self._mean]), half_norm)

    def coefficients(self):
        """Return u (n,) with w = sum u_i x_i."""
        out = np.empty(self.n)
        codes, shares = self._codes[: self.n_planes], self._shares / self.n
        kernels.sign_coefficients(codes, self.frozen, shares, out)
        return out - out.mean()  # features are centred


class WinnerSet(_WorkingSet):
    """Planes of k clusters: sums of the points, added to their winner, taken from their rival.

    Parameters
    ----------
    rows, mean, C, balance
        As of the base class.
    k : int
        Clusters.
    constant : float
        Square of the constant feature that every point has besides.
    """

    def __init__(self, rows, mean, C, balance, k, constant):
        self._constant = np.sqrt(constant)
        self._centre = np.append(mean, self._constant)
        # Of the k (k - 1) pairs few are ever violated, and fewer than k are needed at an optimum.
        self._pairs = np.empty((0, 2), dtype=np.int64)
        self._dropped_at = -np.inf  # dual objective when pairs were dropped last
        code_type = np.int8 if k <= np.iinfo(np.int8).max else np.int32
        super().__init__(rows, mean, C, balance, k, 0, code_type)
        self._scores = np.empty(k)
        self._k = k

    def look(self, weights, budget, hold=False):
        """Go on with a pass, which may hold the labels; return whether it has ended."""
        sparse = issparse(self._rows)
        look = kernels.look_at_winners_sparse if sparse else kernels.look_at_winners
        return look(
            *self._points(),
            weights.W,
            weights.b,
            self._scores,
            self.labels,
            self._sums,
            self._counts,
            self._codes,
            self.n_planes,
            hold,
            self._value,
            self._pos,
            budget,
        )

    def tighten(self, weights):
        """Add each cluster's pairs with the highest and the lowest mean score that are violated.

        Pairs without a multiplier are dropped, if the dual objective rose since that was done last:
        as it never falls, no set of pairs can come back for ever.

        Parameters
        ----------
        weights : Weights
            Of the last program.

        Returns
        -------
        bool
            Whether any were added, so that the program is to be solved again.
        """
        means = weights.W @ self._mean + weights.b
        most = self._balance + BALANCE_TOLERANCE
        high, low = means.argmax(), means.argmin()
        below = np.flatnonzero(means[high] - means > most)
        above = np.flatnonzero(means - means[low] > most)
        violated = np.union1d(high * self._k + below, above * self._k + low)
        new = np.setdiff1d(violated, self._pairs @ (self._k, 1))
        if self._dual > self._dropped_at or not new.size:
            used = self._extra > 0
            self._pairs, self._extra = self._pairs[used], self._extra[used]
        self._dropped_at = max(self._dual, self._dropped_at) if new.size else -np.inf
        self._pairs = np.concatenate((self._pairs, np.column_stack(np.divmod(new, self._k))))
        self._extra = np.concatenate((self._extra, np.zeros(new.size)))
        return new.size > 0

    def _coordinates(self):
        planes = self._sums[: self.n_planes] / self.n
        planes[:, :, -1] *= self._constant
        return planes.reshape(self.n_planes, -1), np.zeros(self.n_planes)

    def _set_balance_rows(self, Q, planes):
        """Set the products of the rows (w_q - w_p) . mean(x) among themselves and with planes."""
        first, second = self._pairs.T
        m = len(self._pairs)
        along = planes.reshape(-1, self._k, self._d + 1) @ self._centre
        Q[:m, m + 1 :] = (along[:, second] - along[:, first]).T
        Q[m + 1 :, :m] = Q[:m, m + 1 :].T
        ends = np.zeros((m, self._k))
        ends[np.arange(m), first] = -1.0
        ends[np.arange(m), second] = 1.0
        Q[:m, :m] = (self._centre @ self._centre) * (ends @ ends.T)

    def _equalities(self, offsets):
        m = self._extra.size
        A = np.zeros((1, m + 1 + offsets.size))
        A[0, m:] = 1.0
        return A, np.array([self._C])

    def _feasible_extra(self, offsets):
        return self._extra

    def _lean(self):
        """Return by how much of mean(x) the balance moves the weights of each cluster, (k,)."""
        first, second = self._pairs.T
        lean = np.zeros(self._k)
        np.subtract.at(lean, first, self._extra)
        np.add.at(lean, second, self._extra)
        return lean

    def _weights(self, planes, half_norm, y):
        v = (self._shares @ planes).reshape(self._k, self._d + 1)
        v += self._lean()[:, None] * self._centre
        W = np.ascontiguousarray(v[:, :-1])
        return Weights(W, self._constant * v[:, -1], half_norm)

    def coefficients(self):
        """Return u (n, k) with w_p = sum u_ip x_i."""
        out = np.empty((self.n, self._k))
        codes, shares = self._codes[: self.n_planes], self._shares / self.n
        kernels.winner_coefficients(codes, self.frozen, shares, self._lean() / self.n, out)
        return out
