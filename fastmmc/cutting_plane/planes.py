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

from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse

from fastmmc.core.jit import read_only
from fastmmc.cutting_plane import _loops as loops
from fastmmc.cutting_plane._loops_program import solve_program

# Initial room for planes. A full room is cleared of those that had no multiplier for IDLE programs,
# and doubled if there are none.
FIRST_ROOM = 16
IDLE = 50

# Steps of the active-set solver, as a multiple of the program's size.
STEPS = 50

# By how much mean scores may differ more than the balance allows, in units of the margin: rounding.
BALANCE_TOLERANCE = 1e-9


class Weights(NamedTuple):
    """Weights of the scores W x + b; two clusters have one row, whose sign is the label, others k.

    ``half_norm`` is |w|^2 / 2 of the part that is penalised, ``gap`` the primal minus the dual
    objective of the program that they solve, None if they come from none.
    """

    W: np.ndarray
    b: np.ndarray
    half_norm: float
    gap: float | None = None


class _WorkingSet:
    """Planes, the labels that they are frozen at, and the multipliers of the last program.

    ``mean`` (d,) is that of the rows, ``balance`` is l / n, ``n_blocks`` the rows of W, ``n_extra``
    the multipliers of the balance.
    """

    def __init__(self, rows, mean, C, balance, n_blocks, n_extra, code_type):
        of = (rows.indptr, rows.indices, rows.data) if issparse(rows) else (rows,)
        self._points = tuple(map(read_only, of))
        self._mean, self._C, self._balance = mean, C, balance
        self.n, self._d = rows.shape
        self.labels = np.zeros(self.n, dtype=code_type)
        self.n_planes = 0
        self._planes = loops.Planes(
            sums=np.zeros((FIRST_ROOM, n_blocks, self._d + 1)),
            counts=np.zeros(FIRST_ROOM, dtype=np.int64),
            codes=np.zeros((FIRST_ROOM, self.n), dtype=code_type),
            idle=np.zeros(FIRST_ROOM, dtype=np.int64),
        )
        self._pass = loops.Pass(
            labels=self.labels,
            value=np.empty(loops.N_VALUES),
            pos=np.empty(loops.N_POS, dtype=np.int64),
        )
        self._shares = np.empty(0)  # multipliers of the planes
        self._unused = C  # of xi >= 0
        self._extra = np.zeros(n_extra)
        self._dual = -np.inf  # objective of the last program
        self._gram = np.empty((0, 0))
        self._frozen = None  # labels that the last program was made with
        self.begin_pass()

    def begin_pass(self):
        """Prepare a pass over the points."""
        self._pass.value[:] = 0.0
        self._pass.pos[:] = 0
        self._planes.sums[self.n_planes] = 0.0

    def look(self, weights, budget, hold=False):
        """Continue a pass, which may hold the labels; return whether it has ended."""
        state, given = self._pass, (self._points, weights.W, weights.b, self._planes)
        ended = loops.look(*given, state, self.n_planes, self._several, hold, budget)
        # Labels that the pass changed, and points that it found inside the margin.
        _, self.n_changed, self.n_inside = state.pos.tolist()
        # The slack xi that the weights need for all constraints, and at the present labels.
        self.mean_slack, self.held_slack = (state.value / self.n).tolist()
        return ended

    def slack(self, weights):
        """Return the slack, at least 0, that weights need on the planes at the present labels."""
        if self.n_planes == 0:
            return 0.0
        sums = self._planes.sums[: self.n_planes].reshape(self.n_planes, -1)
        scores = sums @ np.column_stack((weights.W, weights.b)).ravel() / self.n
        return max(0.0, float((self._heights() - scores).max()))

    def _heights(self):
        return self._planes.counts[: self.n_planes] / self.n

    def accept(self):
        """Make the constraint of the last pass a plane."""
        self._planes.counts[self.n_planes] = self.n_inside
        self._planes.idle[self.n_planes] = 0
        self._shares = np.append(self._shares, 0.0)
        self.n_planes += 1
        if self.n_planes == len(self._planes.idle):
            self._make_room()

    def _make_room(self):
        """Drop planes that have long been idle, or double the room."""
        size = self.n_planes
        keep = np.flatnonzero(self._planes.idle < IDLE)
        if keep.size == size:
            size *= 2

        def move(old):
            new = np.zeros((size, *old.shape[1:]), dtype=old.dtype)
            new[: keep.size] = old[keep]
            return new

        self._planes = loops.Planes(*map(move, self._planes))
        self._shares = self._shares[keep]
        known = keep[keep < len(self._gram)]
        self._gram = self._gram[np.ix_(known, known)]
        self.n_planes = keep.size

    def _plane_gram(self, planes):
        """Return the products of the planes, most of them known if no label has changed."""
        same = self._frozen is not None and np.array_equal(self.labels, self._frozen)
        known = len(self._gram) if same else 0
        gram = np.empty((self.n_planes, self.n_planes))
        gram[:known, :known] = self._gram[:known, :known]
        gram[known:] = planes[known:] @ planes.T
        gram[:known, known:] = gram[known:, :known].T
        self._gram = gram
        return gram

    def tighten(self, weights):
        """Add violated rows of the balance; return whether the program must be solved again."""
        return False

    def _set_balance_rows(self, Q, planes):
        """Set the products of the rows of the balance: zero, as centred features are balanced."""

    def solve(self):
        """Solve the program with rows of the balance so far; return weights, and if it ended."""
        planes, A, r = self._program()
        m = self._extra.size + 1
        size = m + self.n_planes
        Q = np.zeros((size, size))
        Q[m:, m:] = self._plane_gram(planes)
        self._set_balance_rows(Q, planes)
        q = np.concatenate((np.full(m - 1, -self._balance), [0.0], self._heights()))
        a = np.concatenate((self._extra, [self._unused], self._shares))
        y = np.empty(r.size)
        steps = solve_program(Q, q, A, r, a, y, STEPS * size)
        self._extra, self._unused, self._shares = a[: m - 1], a[m - 1], a[m:]
        idle = self._planes.idle[: self.n_planes]
        idle[:] = np.where(self._shares > 0, 0, idle + 1)
        half_norm = 0.5 * float(a @ Q @ a)
        weights = self._weights(planes, half_norm, y)
        primal = half_norm + self._C * self.slack(weights)
        self._dual = float(q @ a) - half_norm
        self._frozen = self.labels.copy()
        return weights._replace(gap=primal - self._dual), steps <= STEPS * size


class SignSet(_WorkingSet):
    """Planes of two clusters: sums of s_i x_i over the points of a constraint."""

    _several = None  # of scores, True or None as the loop takes it

    def __init__(self, rows, mean, C, balance):
        super().__init__(rows, mean, C, balance, 1, 2, np.int8)

    def _program(self):
        """Return the planes and the equations A a = r; mu and nu are set so that they hold."""
        sums = self._planes.sums[: self.n_planes, 0] / self.n
        offsets = sums[:, -1]
        A = np.zeros((2, 3 + offsets.size))
        A[0, 2:] = 1.0
        A[1, :2] = -1.0, 1.0
        A[1, 3:] = offsets
        # The sums may have changed with the labels since the last program.
        t = float(offsets @ self._shares)
        self._extra = np.array([t if t > 0 else 0.0, -t]) if t else np.array([-1.0, 0.0])
        return sums[:, :-1] - offsets[:, None] * self._mean, A, np.array([self._C, 0.0])

    def _weights(self, planes, half_norm, y):
        w = self._shares @ planes
        mean_score = float(np.clip(-y[1], -self._balance, self._balance))
        return Weights(w[None], np.array([mean_score - w @ self._mean]), half_norm)

    def coefficients(self):
        """Return u (n,) with w = sum u_i x_i."""
        out, shares = np.zeros(self.n), self._shares / self.n
        for k in np.flatnonzero(shares):
            out += shares[k] * self._planes.codes[k]
        out *= 2.0 * self._frozen - 1.0
        return out - out.mean()  # features are centred


class WinnerSet(_WorkingSet):
    """Planes of k clusters: sums of the points, added to their winner, subtracted from their rival.

    ``constant`` is the square of the constant feature that every point has besides.
    """

    _several = True

    def __init__(self, rows, mean, C, balance, k, constant):
        self._constant = np.sqrt(constant)
        self._centre = np.append(mean, self._constant)
        # Few of the k (k - 1) pairs are ever violated, and an optimum needs fewer than k.
        self._pairs = np.empty((0, 2), dtype=np.int64)
        self._dropped_at = -np.inf  # dual objective when pairs were last dropped
        code_type = np.int8 if k <= np.iinfo(np.int8).max else np.int32
        super().__init__(rows, mean, C, balance, k, 0, code_type)
        self._k = k

    def tighten(self, weights):
        """Add each cluster's violated pairs with the highest and the lowest mean score.

        Pairs without a multiplier are dropped if the dual objective has risen since the last drop:
        as it never falls, no set of pairs can come back for ever.
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

    def _program(self):
        """Return the planes and the equation A a = r."""
        planes = self._planes.sums[: self.n_planes] / self.n
        planes[:, :, -1] *= self._constant
        A = np.zeros((1, self._extra.size + 1 + self.n_planes))
        A[0, self._extra.size :] = 1.0
        return planes.reshape(self.n_planes, -1), A, np.array([self._C])

    def _set_balance_rows(self, Q, planes):
        """Set the products of the rows (w_q - w_p) . mean(x) among themselves and with planes."""
        first, second = self._pairs.T
        m = len(self._pairs)
        along = planes.reshape(-1, self._k, self._d + 1) @ self._centre
        Q[:m, m + 1 :] = (along[:, second] - along[:, first]).T
        Q[m + 1 :, :m] = Q[:m, m + 1 :].T
        identity = np.eye(self._k)
        ends = identity[second] - identity[first]
        Q[:m, :m] = (self._centre @ self._centre) * (ends @ ends.T)

    def _lean(self):
        """Return how far the balance moves the weights of each cluster along mean(x), (k,)."""
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
        out, shares = np.tile(self._lean() / self.n, (self.n, 1)), self._shares / self.n
        for k in np.flatnonzero(shares):
            chosen = np.flatnonzero(self._planes.codes[k] >= 0)
            out[chosen, self._frozen[chosen]] += shares[k]
            out[chosen, self._planes.codes[k, chosen]] -= shares[k]
        return out
