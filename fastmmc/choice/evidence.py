"""Whether there are clusters at all: the errors are compared with those of a cloud without any."""

import numpy as np
from scipy.linalg import svd
from scipy.optimize import isotonic_regression
from scipy.sparse import issparse
from scipy.special import ndtr

from fastmmc.choice.numbers import Counts
from fastmmc.choice.results import LEAST_EVIDENCE
from fastmmc.choice.widths import dithers
from fastmmc.data.copies import Copies
from fastmmc.rls.engine.coarse import CELLS, coarsen, count_cells, points_of

# The most clouds that are drawn, of both kinds in turn, and the largest number of clusters at which
# errors are compared. Of 396 draws without clusters, of twelve kinds, 8 % seem to have some, of 381
# draws of 127 sets 10 % to have none; with six clouds these are 13 and 9 %, with eight 10 and 10 %.
# Errors of two clusters alone, and of two and three, miss 13 and 11 % if they err as often where
# there are none.
CLOUDS = 12
MOST_COMPARED = 4

# Evidence that ends the comparison after two clouds. It saves ten in 269 of the 381 draws of sets;
# of those without clusters it ends 2, of which 12 clouds would make one a single cluster.
CLEAR = 2.0

# Numbers in the points that a cloud is like, which are some of very many.
MOST_NUMBERS = 400_000

# The share of points, those nearest to the centre, that count fully in the centre and the axes of a
# cloud, and how often these are found with less weight for the others. Without it, cells of -9999
# hide the clusters in 13 of 31 sets (iris and blobs, one or five cells each), with it in 2; of 140
# draws without clusters 12 seem to have some, and 10. With .5 the clusters of wdbc are hidden.
NEAR, STEPS = 0.9, 5


class Cloud:
    """Two distributions of one centre with the shape and the tails of most of some points.

    The first has uniform directions in units of the principal axes, and the points' distances from
    the mean, as far as the density falls with the distance. So a Gaussian, a uniform ellipse and
    their kin of long tails stay what they are, and clusters dissolve. The second has the distances
    of each column, likewise, and joins the columns as those of a Gaussian are: a square stays what
    it is, and independent columns of long tails.
    """

    def __init__(self, points, weights):
        shares = np.full(len(points), 1.0 / len(points))
        if weights is not None:
            shares = weights / weights.sum()
        self._mean, self._axes, radii = _centre_and_axes(points, shares)
        for _ in range(STEPS):
            order = np.argsort(radii)
            edge = radii[order[np.searchsorted(np.cumsum(shares[order]), NEAR)]]
            if edge == 0:  # nearly all points are equal
                break
            near = edge / np.maximum(radii, edge)  # Huber's weights
            self._mean, self._axes, radii = _centre_and_axes(points, shares * near**2)
        self._radii, self._cumulated = _falling(radii, shares, len(self._axes))
        away = np.abs(points - self._mean)
        self._of_columns = [_falling(column, shares, 1) for column in away.T]

    @property
    def has_spread(self):
        """Whether the points are not all equal."""
        return len(self._axes) > 0

    def draw(self, n, rng):
        """Return n points, (n, d)."""
        directions = rng.normal(size=(n, len(self._axes)))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        return (self._draw_radii(n, rng)[:, None] * directions) @ self._axes + self._mean

    def draw_columns(self, n, rng):
        """Return n points, (n, d), whose columns have tails of their own."""
        spreads = np.linalg.norm(self._axes, axis=0)
        normal = rng.normal(size=(n, len(self._axes))) @ (self._axes / np.maximum(spreads, 1e-150))
        inner = 2.0 * ndtr(np.abs(normal)) - 1.0
        pairs = zip(inner.T, self._of_columns, strict=True)
        away = [np.interp(at, cumulated, radii) for at, (radii, cumulated) in pairs]
        return np.sign(normal) * np.column_stack(away) + self._mean

    def _draw_radii(self, n, rng):
        """Return n distances from the mean, in units of the axes; shells are filled evenly."""
        d, at = len(self._axes), rng.uniform(size=n)
        i = np.clip(np.searchsorted(self._cumulated, at), 1, self._radii.size - 1)
        inner, outer = self._radii[i - 1], self._radii[i]
        shares = self._cumulated[i] - self._cumulated[i - 1]
        within = (at - self._cumulated[i - 1]) / np.where(shares > 0, shares, 1.0)
        hole = (inner / np.where(outer > 0, outer, 1.0)) ** d
        return outer * (hole + np.clip(within, 0.0, 1.0) * (1.0 - hole)) ** (1.0 / d)


def _centre_and_axes(points, weights):
    """Return a mean, principal axes as long as deviations, and distances in units of these."""
    weights = weights / weights.sum()
    mean, roots = weights @ points, np.sqrt(weights)[:, None]
    U, spreads, axes = svd((points - mean) * roots, full_matrices=False)
    rounding = max(points.shape) * np.finfo(np.float64).eps
    kept = spreads > rounding * max(spreads[0], np.abs(points).max())
    radii = np.linalg.norm(U[:, kept] / np.maximum(roots, 1e-150), axis=1)
    return mean, spreads[kept, None] * axes[kept], radii


def _falling(radii, shares, d):
    """Return radii and their cumulated shares, of the falling density nearest to the given ones.

    That is the Grenander estimator, of the density of the volume within a radius in d dimensions.
    """
    order = np.argsort(radii, kind="stable")
    radii, shares = radii[order], shares[order]
    volumes = np.diff((radii / (radii[-1] or 1.0)) ** d, prepend=0.0)
    volumes = np.maximum(volumes, 1e-300)
    density = isotonic_regression(shares / volumes, weights=volumes, increasing=False).x
    return np.append(0.0, radii), np.append(0.0, np.cumsum(density * volumes))


def compare_with_clouds(errors, X, weights, rng, run):
    """Yield, after each cloud, how many times as large the errors of all so far are at least.

    ``errors`` are those of the points, by numbers of clusters; the number counts at which they are
    smallest beside those of the clouds. No more clouds are drawn when there are no clusters, or two
    are clear. Wide sparse points have no clouds; points of which fewer than four differ are as good
    as one.
    """
    copies = Copies.of(X, weights)
    if copies is not None and copies.first.size < X.shape[0]:
        # The cells of equal points are fewer than those of a cloud of as many.
        X, weights = X[copies.first], copies.weights
    n, d = X.shape
    rows = np.sort(rng.choice(n, min(n, max(CELLS, MOST_NUMBERS // d)), replace=False))
    points = points_of(X, rows)
    if issparse(points):
        return
    weights = None if weights is None else weights[rows]
    cloud = Cloud(points, weights)
    if not errors or not cloud.has_spread:
        yield 1.0
        return
    most = min(MOST_COMPARED, max(errors))
    ratios = dict.fromkeys(range(min(errors), most + 1), np.inf)
    for i in range(CLOUDS):
        drawn = (cloud.draw, cloud.draw_columns)[i % 2](rows.size, rng)
        cells = coarsen(drawn, count_cells(rows.size, 2), 2, rng, run.look, weights)
        counts = Counts(next(dithers(cells, drawn[cells.seeds], rng, run.look)), run)
        counts.try_all(range(2, most + 1))
        ratios = {k: min(least, counts.errors[k] / errors[k]) for k, least in ratios.items()}
        evidence = max(ratios.values())
        yield evidence
        if evidence < LEAST_EVIDENCE or (i == 1 and evidence >= CLEAR):
            return
