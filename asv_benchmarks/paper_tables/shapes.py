"""Made shapes, and drawn parts of bundled sets: a collection of quality.py."""

import numpy as np
from sklearn import datasets as bundled
from sklearn.preprocessing import scale

# The cluster of points that are none's.
NOISE = -1

# Share of the points of a bundled set that a seed draws, and the most.
DRAWN = 0.8
MOST = 800

SETS = {}


def shape(make):
    """Declare a set: its function returns the clusters, and in the end perhaps (NOISE, points)."""
    SETS[make.__name__.replace("_", " ")] = make
    return make


def blob(rng, n, center, spread=1.0):
    """Return Gaussian points; the spread is one number, one a column, or a matrix."""
    center = np.asarray(center, dtype=float)
    spread = np.asarray(spread, dtype=float)
    noise = rng.normal(size=(n, center.size))
    return center + (noise @ spread if spread.ndim == 2 else noise * spread)


def arc(rng, n, center=(0, 0), radius=1.0, begin=0.0, end=360.0, spread=0.05):
    """Return points around an arc of a circle, angles in degrees."""
    angle = np.deg2rad(rng.uniform(begin, end, n))
    points = np.column_stack([np.cos(angle), np.sin(angle)]) * radius + center
    return points + rng.normal(scale=spread, size=(n, 2))


def disc(rng, n, center, radius):
    """Return uniform points of a disc."""
    angle, far = rng.uniform(0, 2 * np.pi, n), radius * np.sqrt(rng.uniform(size=n))
    return np.column_stack([np.cos(angle), np.sin(angle)]) * far[:, None] + center


def box(rng, n, low, high):
    """Return uniform points of a box."""
    return rng.uniform(low, high, (n, len(low)))


def line(rng, n, corners, spread):
    """Return points around a line through corners."""
    corners = np.asarray(corners, dtype=float)
    length = np.linalg.norm(np.diff(corners, axis=0), axis=1).cumsum()
    at = rng.uniform(0, length[-1], n)
    where = [np.interp(at, [0, *length], column) for column in corners.T]
    return np.column_stack(where) + rng.normal(scale=spread, size=(n, corners.shape[1]))


def spiral(rng, n, begin, turns, spread):
    """Return points around an arm of Archimedes' spiral that begins at an angle in degrees."""
    at = turns * np.sqrt(rng.uniform(0.04, 1, n))
    angle = 2 * np.pi * at + np.deg2rad(begin)
    points = np.column_stack([np.cos(angle), np.sin(angle)]) * at[:, None]
    return points + rng.normal(scale=spread, size=(n, 2))


def turned(angle, long, wide):
    """Return the matrix that makes points elongated along an angle in degrees."""
    angle = np.deg2rad(angle)
    return np.diag([long, wide]) @ [[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]


def far_centers(rng, k, d, least, most):
    """Return k uniform centers of a cube, no two nearer than the least distance."""
    centers = []
    while len(centers) < k:
        center = rng.uniform(0, most, d)
        if all(np.linalg.norm(center - other) > least for other in centers):
            centers.append(center)
    return np.array(centers)


@shape
def two_spirals(rng):
    return [spiral(rng, 300, begin, 1.5, 0.04) for begin in (0, 180)]


@shape
def three_spirals(rng):
    return [spiral(rng, 150, begin, 0.9, 0.03) for begin in (0, 120, 240)]


@shape
def unequal_spirals(rng):
    return [spiral(rng, 400, 0, 1.2, 0.04), spiral(rng, 120, 180, 1.2, 0.04)]


@shape
def three_nested_rings(rng):
    return [arc(rng, n, radius=r, spread=0.1) for n, r in ((150, 1), (300, 2), (450, 3))]


@shape
def core_in_ring(rng):
    return [blob(rng, 100, (0, 0), 0.4), arc(rng, 400, radius=2, spread=0.25)]


@shape
def chain_of_rings(rng):
    centers = [(2.6 * i, 0) for i in range(3)]
    rings = [arc(rng, 200, center, spread=0.06) for center in centers]
    return rings + [blob(rng, 60, center, 0.15) for center in centers]


@shape
def unequal_moons(rng):
    return [
        arc(rng, 600, (0, 0), 1, 0, 180, 0.08),
        arc(rng, 100, (1, 0.4), 1, 180, 360, 0.08),
    ]


@shape
def blurred_moons(rng):
    return [
        arc(rng, 250, (0, 0), 1, 0, 180, 0.16),
        arc(rng, 250, (1, 0.4), 1, 180, 360, 0.16),
    ]


@shape
def blobs_in_ring(rng):
    blobs = [blob(rng, 90, 1.1 * np.array(at), 0.28) for at in ((0, 1), (0.9, -0.5), (-0.9, -0.5))]
    return [*blobs, arc(rng, 200, radius=3, begin=-60, end=240, spread=0.15)]


@shape
def compound_shapes(rng):
    halo = box(rng, 220, (5, 0), (10, 5))
    in_halo = np.linalg.norm(halo - (7.5, 2.5), axis=1) > 1.1
    return [
        blob(rng, 60, (0, 0), 0.3),
        arc(rng, 90, (0, 0), 1.6, spread=0.12),
        blob(rng, 60, (0, 5), 0.35),
        blob(rng, 60, (1.8, 5), 0.35),
        halo[in_halo],
        disc(rng, 120, (7.5, 2.5), 0.9),
    ]


@shape
def cap_over_disc(rng):
    return [disc(rng, 160, (0, 0), 1.2), arc(rng, 110, (0, -0.1), 2, 20, 160, 0.22)]


@shape
def bridged_groups(rng):
    return [
        disc(rng, 170, (0, 0), 2),
        disc(rng, 35, (3.6, 0), 0.8),
        line(rng, 6, [(2, 0), (2.9, 0)], 0.05),
        disc(rng, 130, (1, 6), 1.6),
        disc(rng, 270, (8, 5), 2.6),
        disc(rng, 45, (6, 0.2), 0.9),
        disc(rng, 100, (10, -0.6), 1.5),
        line(rng, 6, [(6.8, 0.1), (8.6, -0.4)], 0.05),
    ], {2: 0, 7: 5}


@shape
def two_densities_of_arcs(rng):
    return [
        arc(rng, 80, (0, 0), 5, 10, 180, 0.45),
        arc(rng, 300, (4.5, -0.8), 5, 185, 345, 0.35),
    ]


@shape
def parallel_gaussians(rng):
    return [blob(rng, 150, (0, 3.0 * i), turned(0, 6, 0.6)) for i in range(3)]


@shape
def fan(rng):
    angles = (0, 36, 72, 108, 144)
    return [
        blob(
            rng,
            100,
            6 * np.array([np.cos(np.deg2rad(a)), np.sin(np.deg2rad(a))]),
            turned(a, 1.6, 0.4),
        )
        for a in angles
    ]


@shape
def grid_of_squares(rng):
    corners = [np.array([i, j]) * 1.25 for i in range(5) for j in range(5)]
    return [box(rng, 50, corner, corner + 1) for corner in corners]


@shape
def four_unequal_squares(rng):
    return [
        box(rng, 300, (0, 0), (4, 4)),
        box(rng, 100, (4.25, 0), (6, 2)),
        box(rng, 100, (4.25, 2.2), (6, 4)),
        box(rng, 50, (0, 4.2), (1.2, 5.2)),
    ]


@shape
def four_crosses(rng):
    def cross(x, y):
        bars = [[(x - 1, y), (x + 1, y)], [(x, y - 1), (x, y + 1)]]
        return np.vstack([line(rng, 70, bar, 0.06) for bar in bars])

    return [cross(x, y) for x, y in ((0, 0), (1.5, 1.2), (3, 0), (1.5, -1.2))]


@shape
def trajectories(rng):
    at = np.linspace(0, 4 * np.pi, 200)
    return [
        line(rng, n, np.column_stack([at, np.sin(at + 0.3 * i) + 1.8 * i]), 0.15)
        for i, n in enumerate((200, 150, 100, 200))
    ]


@shape
def mixed_densities(rng):
    return [blob(rng, 150, (0, 0), 0.15), blob(rng, 150, (2.2, 0), 0.5), blob(rng, 150, (9, 0), 2)]


@shape
def dense_in_sparse(rng):
    return [blob(rng, 300, (0, 0), 0.2), blob(rng, 300, (0, 0), 2.0)]


@shape
def groups_of_blobs(rng):
    groups = np.array([(0, 0), (14, 0), (7, 12)])
    return [
        blob(rng, 50, group + 2.2 * np.array(at), 0.45)
        for group in groups
        for at in ((1, 0), (-1, 0), (0, 1), (0, -1))
    ]


@shape
def ring_of_blobs(rng):
    angles = np.deg2rad(np.arange(0, 360, 30))
    return [blob(rng, 50, (8 * np.cos(a), 8 * np.sin(a)), 0.75) for a in angles]


@shape
def falling_sizes(rng):
    centers = [(0, 0), (5, 0), (0, 5), (5, 5), (2.5, 9)]
    return [blob(rng, n, c, 0.8) for n, c in zip((500, 200, 100, 50, 20), centers, strict=True)]


@shape
def overlapping_gaussians(rng):
    centers = [(0, 0), (3.2, 0), (0, 3.2), (3.2, 3.2), (1.6, 6.2)]
    return [blob(rng, 140, center, 1) for center in centers]


@shape
def small_beside_large(rng):
    return [blob(rng, 600, (0, 0), 2), blob(rng, 60, (6.5, 0), 0.5), blob(rng, 60, (0, 7), 0.5)]


@shape
def ten_gaussians_10d(rng):
    return [blob(rng, 80, center) for center in rng.normal(scale=1.3, size=(10, 10))]


@shape
def unequal_gaussians_10d(rng):
    centers = rng.normal(scale=1.5, size=(5, 10))
    return [blob(rng, n, c) for n, c in zip((400, 200, 100, 50, 25), centers, strict=True)]


@shape
def eight_gaussians_50d(rng):
    return [blob(rng, 75, center) for center in rng.normal(scale=0.65, size=(8, 50))]


@shape
def stretched_gaussians_10d(rng):
    centers = rng.normal(scale=2, size=(6, 10))
    return [blob(rng, 100, center, rng.normal(scale=0.5, size=(10, 10))) for center in centers]


@shape
def twenty_unequal_gaussians_50d(rng):
    centers = rng.normal(scale=0.9, size=(20, 50))
    return [blob(rng, n, c) for n, c in zip(rng.integers(15, 90, 20), centers, strict=True)]


@shape
def heavy_tails(rng):
    centers = [(0, 0), (9, 0), (0, 9), (9, 9)]
    return [np.array(center) + rng.standard_t(2.5, (120, 2)) for center in centers]


@shape
def heavy_tails_10d(rng):
    centers = rng.normal(scale=2.2, size=(5, 10))
    return [center + rng.standard_t(3, (100, 10)) for center in centers]


@shape
def fifty_blobs(rng):
    return [blob(rng, 40, center) for center in far_centers(rng, 50, 2, 5, 55)]


@shape
def thirty_unequal_blobs(rng):
    centers = far_centers(rng, 30, 2, 5, 45)
    return [blob(rng, n, c) for n, c in zip(rng.integers(10, 90, 30), centers, strict=True)]


@shape
def blobs_in_noise(rng):
    centers = [(0, 0), (6, 0), (0, 6), (6, 6), (3, 3)]
    blobs = [blob(rng, 80, center, 0.6) for center in centers]
    return [*blobs, (NOISE, box(rng, 160, (-3, -3), (9, 9)))]


@shape
def moons_in_noise(rng):
    moons = [arc(rng, 200, (0, 0), 1, 0, 180, 0.06), arc(rng, 200, (1, 0.4), 1, 180, 360, 0.06)]
    return [*moons, (NOISE, box(rng, 80, (-1.5, -1.2), (2.5, 1.6)))]


@shape
def five_bars(rng):
    lengths = (2, 4, 6, 8, 10)
    return [line(rng, 25 * n, [(0, i), (n, i)], 0.12) for i, n in enumerate(lengths)]


@shape
def touching_discs(rng):
    return [disc(rng, 400, (0, 0), 2), disc(rng, 225, (3.6, 0), 1.5), disc(rng, 100, (1.9, 2.7), 1)]


@shape
def shells_5d(rng):
    directions = [rng.normal(size=(n, 5)) for n in (250, 500)]
    return [
        d / np.linalg.norm(d, axis=1, keepdims=True) * r + rng.normal(scale=0.05, size=d.shape)
        for d, r in zip(directions, (1, 2.5), strict=True)
    ]


@shape
def rolled_strips(rng):
    def strip(begin, end):
        at = rng.uniform(begin, end, 160)
        rolled = [at * np.cos(at), at * np.sin(at), rng.uniform(0, 8, 160)]
        return np.column_stack(rolled) + rng.normal(scale=0.25, size=(160, 3))

    return [strip(4, 6.5), strip(7.2, 9.2), strip(9.8, 11.4), strip(12, 13.4)]


@shape
def two_helices(rng):
    def helix(begin):
        at = rng.uniform(0, 4 * np.pi, 300)
        points = np.column_stack([np.cos(at + begin), np.sin(at + begin), at / 4])
        return points + rng.normal(scale=0.08, size=(300, 3))

    return [helix(0), helix(np.pi)]


@shape
def skewed_blobs(rng):
    centers = [(0, 0), (4, 0), (0, 4), (5, 5)]
    return [np.array(c) + rng.lognormal(0, 0.6, (130, 2)) for c in centers]


@shape
def dense_beside_sparse(rng):
    return [box(rng, 500, (0, 0), (1, 1)), box(rng, 125, (1.12, 0), (2.4, 1))]


def load_bundled(name, is_scaled):
    def draw(rng):
        X, y = getattr(bundled, f"load_{name}")(return_X_y=True)
        chosen = rng.choice(y.size, min(MOST, round(DRAWN * y.size)), replace=False)
        X, y = X[chosen], y[chosen]
        X = scale(X) if is_scaled else X
        return [X[y == h] for h in np.unique(y)]

    return draw


# Every other set was in view when the score of the number of clusters was changed, and these.
SEEN = set(list(SETS)[::2])
for name in ("iris", "wine", "breast_cancer", "digits"):
    for kind, is_scaled in (("raw", False), ("standardised", True)):
        SETS[f"{name} {kind}"] = load_bundled(name, is_scaled)
        SEEN.add(f"{name} {kind}")


def make(name, seed):
    """Return points in random order, and their clusters 1..k or 0 for noise."""
    rng = np.random.default_rng([seed, *name.encode()])
    made = SETS[name](rng)
    parts, joined = made if isinstance(made, tuple) else (made, {})
    X, y = [], []
    for at, part in enumerate(parts):
        h, points = part if isinstance(part, tuple) else (joined.get(at, at), part)
        X.append(points)
        y += [h] * len(points)
    order = rng.permutation(len(y))
    return np.vstack(X)[order], np.array(y)[order] + 1
