"""Made shapes, and drawn parts of bundled sets: a collection of quality.py."""

import numpy as np
from sklearn import datasets as bundled
from sklearn.preprocessing import scale

# The cluster of points that belong to none.
NOISE = -1
# Share of the points of a bundled set that a seed draws, and the most.
DRAWN, MOST = 0.8, 800


def part(draw):
    """Return a function of all arguments but the first, rng, that returns a function of rng."""
    return lambda *args, **given: lambda rng: draw(rng, *args, **given)


@part
def blob(rng, n, center, spread=1.0):
    """Gaussian points; the spread is one number, one a column, or a matrix."""
    noise = rng.normal(size=(n, len(center)))
    return center + (noise @ spread if np.ndim(spread) == 2 else noise * spread)


def polar(angle, radius):
    """Return points of the plane by their angles, in radians, and distances from the origin."""
    return np.column_stack([np.cos(angle), np.sin(angle)]) * np.reshape(radius, (-1, 1))


@part
def arc(rng, n, center=(0, 0), radius=1.0, begin=0.0, end=360.0, spread=0.05):
    """Points around an arc of a circle, angles in degrees."""
    points = polar(np.deg2rad(rng.uniform(begin, end, n)), radius)
    return points + center + rng.normal(scale=spread, size=(n, 2))


@part
def disc(rng, n, center, radius):
    """Uniform points of a disc."""
    return polar(rng.uniform(0, 2 * np.pi, n), radius * np.sqrt(rng.uniform(size=n))) + center


@part
def box(rng, n, low, high):
    """Uniform points of a box."""
    return rng.uniform(low, high, (n, len(low)))


@part
def line(rng, n, corners, spread):
    """Points around a line through corners."""
    corners = np.asarray(corners, dtype=float)
    length = np.linalg.norm(np.diff(corners, axis=0), axis=1).cumsum()
    at = rng.uniform(0, length[-1], n)
    where = [np.interp(at, [0, *length], column) for column in corners.T]
    return np.column_stack(where) + rng.normal(scale=spread, size=(n, corners.shape[1]))


@part
def spiral(rng, n, begin, turns, spread):
    """Points around an arm of Archimedes' spiral that begins at an angle in degrees."""
    at = turns * np.sqrt(rng.uniform(0.04, 1, n))
    points = polar(2 * np.pi * at + np.deg2rad(begin), at)
    return points + rng.normal(scale=spread, size=(n, 2))


def turned(angle, long, wide):
    """Return the matrix that makes points elongated along an angle in degrees."""
    return np.diag([long, wide]) @ polar(np.deg2rad([angle, angle + 90]), 1)


def moons(sizes, spread):
    """Return two half circles that reach into each other."""
    ways = ((0, 0), 1, 0, 180), ((1, 0.4), 1, 180, 360)
    return [arc(n, *way, spread) for n, way in zip(sizes, ways, strict=True)]


def compound_shapes(rng):
    halo = box(220, (5, 0), (10, 5))(rng)
    in_halo = np.linalg.norm(halo - (7.5, 2.5), axis=1) > 1.1
    left = [blob(60, (0, 0), 0.3), arc(90, (0, 0), 1.6, spread=0.12)]
    left += blobs(60, [(0, 5), (1.8, 5)], 0.35)
    return [*left, halo[in_halo], disc(120, (7.5, 2.5), 0.9)]


@part
def cross(rng, x, y):
    bars = [[(x - 1, y), (x + 1, y)], [(x, y - 1), (x, y + 1)]]
    return np.vstack([line(70, bar, 0.06)(rng) for bar in bars])


def trajectory(n, i):
    at = np.linspace(0, 4 * np.pi, 200)
    return line(n, np.column_stack([at, np.sin(at + 0.3 * i) + 1.8 * i]), 0.15)


def shells_5d(rng):
    directions = [rng.normal(size=(n, 5)) for n in (250, 500)]
    return [
        d / np.linalg.norm(d, axis=1, keepdims=True) * r + rng.normal(scale=0.05, size=d.shape)
        for d, r in zip(directions, (1, 2.5), strict=True)
    ]


@part
def rolled_strip(rng, begin, end):
    at = rng.uniform(begin, end, 160)
    points = np.column_stack([polar(at, at), rng.uniform(0, 8, 160)])
    return points + rng.normal(scale=0.25, size=(160, 3))


@part
def helix(rng, begin):
    at = rng.uniform(0, 4 * np.pi, 300)
    points = np.column_stack([polar(at + begin, 1), at / 4])
    return points + rng.normal(scale=0.08, size=(300, 3))


def blobs(sizes, centers, spread=1.0):
    """Return blobs of sizes, one number or one a center."""
    sizes = np.broadcast_to(sizes, len(centers))
    return [blob(n, center, spread) for n, center in zip(sizes, centers, strict=True)]


@part
def gaussians(rng, sizes, shape, scale):
    """Blobs around centers that are Gaussian themselves; sizes may be a function."""
    centers = rng.normal(scale=scale, size=shape)
    return blobs(sizes(rng) if callable(sizes) else sizes, centers)


@part
def far_blobs(rng, k, side, low, high):
    """Blobs in a square, k centers 5 apart or more, of sizes low to high - 1."""
    centers = []
    while len(centers) < k:
        center = rng.uniform(0, side, 2)
        if all(np.linalg.norm(center - other) > 5 for other in centers):
            centers.append(center)
    return blobs(rng.integers(low, high, k), centers)


@part
def drawn(rng, name, is_scaled):
    """Clusters of points that are drawn of a bundled set."""
    X, y = getattr(bundled, f"load_{name}")(return_X_y=True)
    chosen = rng.choice(y.size, min(MOST, round(DRAWN * y.size)), replace=False)
    X, y = X[chosen], y[chosen]
    X = scale(X) if is_scaled else X
    return [X[y == h] for h in np.unique(y)]


SQUARE = np.array([(0, 0), (1, 0), (0, 1), (1, 1)])
TRIANGLE = np.array([(0, 1), (0.9, -0.5), (-0.9, -0.5)])

# {set: its clusters, or a function of rng that returns them}. A cluster is points or a function of
# rng that returns them; (h, points) belong to cluster h, or are NOISE.
SETS = {
    "two spirals": [spiral(300, a, 1.5, 0.04) for a in (0, 180)],
    "three spirals": [spiral(150, a, 0.9, 0.03) for a in (0, 120, 240)],
    "unequal spirals": [spiral(n, a, 1.2, 0.04) for n, a in ((400, 0), (120, 180))],
    "three nested rings": [arc(150 * r, radius=r, spread=0.1) for r in (1, 2, 3)],
    "core in ring": [blob(100, (0, 0), 0.4), arc(400, radius=2, spread=0.25)],
    "chain of rings": [
        *(arc(200, (2.6 * i, 0), spread=0.06) for i in range(3)),
        *blobs(60, [(2.6 * i, 0) for i in range(3)], 0.15),
    ],
    "unequal moons": moons((600, 100), 0.08),
    "blurred moons": moons((250, 250), 0.16),
    "blobs in ring": [
        *blobs(90, 1.1 * TRIANGLE, 0.28),
        arc(200, radius=3, begin=-60, end=240, spread=0.15),
    ],
    "compound shapes": compound_shapes,
    "cap over disc": [disc(160, (0, 0), 1.2), arc(110, (0, -0.1), 2, 20, 160, 0.22)],
    "bridged groups": [
        disc(170, (0, 0), 2),
        disc(35, (3.6, 0), 0.8),
        (0, line(6, [(2, 0), (2.9, 0)], 0.05)),
        disc(130, (1, 6), 1.6),
        disc(270, (8, 5), 2.6),
        disc(45, (6, 0.2), 0.9),
        disc(100, (10, -0.6), 1.5),
        (5, line(6, [(6.8, 0.1), (8.6, -0.4)], 0.05)),
    ],
    "two densities of arcs": [
        arc(80, (0, 0), 5, 10, 180, 0.45),
        arc(300, (4.5, -0.8), 5, 185, 345, 0.35),
    ],
    "parallel gaussians": blobs(150, [(0, 3.0 * i) for i in range(3)], turned(0, 6, 0.6)),
    "fan": [
        blob(100, polar(np.deg2rad(a), 6)[0], turned(a, 1.6, 0.4)) for a in (0, 36, 72, 108, 144)
    ],
    "grid of squares": [box(50, at, at + 1) for at in 1.25 * np.array([*np.ndindex(5, 5)])],
    "four unequal squares": [
        box(300, (0, 0), (4, 4)),
        box(100, (4.25, 0), (6, 2)),
        box(100, (4.25, 2.2), (6, 4)),
        box(50, (0, 4.2), (1.2, 5.2)),
    ],
    "four crosses": [cross(*at) for at in ((0, 0), (1.5, 1.2), (3, 0), (1.5, -1.2))],
    "trajectories": [trajectory(n, i) for i, n in enumerate((200, 150, 100, 200))],
    "mixed densities": [blob(150, (x, 0), s) for x, s in ((0, 0.15), (2.2, 0.5), (9, 2))],
    "dense in sparse": [blob(300, (0, 0), s) for s in (0.2, 2.0)],
    "groups of blobs": [
        blob(50, np.array(group) + 2.2 * np.array(at), 0.45)
        for group in ((0, 0), (14, 0), (7, 12))
        for at in ((1, 0), (-1, 0), (0, 1), (0, -1))
    ],
    "ring of blobs": blobs(50, polar(np.deg2rad(np.arange(0, 360, 30)), 8), 0.75),
    "falling sizes": blobs((500, 200, 100, 50, 20), [*(5 * SQUARE), (2.5, 9)], 0.8),
    "overlapping gaussians": blobs(140, [*(3.2 * SQUARE), (1.6, 6.2)]),
    "small beside large": [blob(600, (0, 0), 2), *blobs(60, [(6.5, 0), (0, 7)], 0.5)],
    "ten gaussians 10d": gaussians(80, (10, 10), 1.3),
    "unequal gaussians 10d": gaussians((400, 200, 100, 50, 25), (5, 10), 1.5),
    "eight gaussians 50d": gaussians(75, (8, 50), 0.65),
    "stretched gaussians 10d": lambda rng: [
        blob(100, center, rng.normal(scale=0.5, size=(10, 10)))(rng)
        for center in rng.normal(scale=2, size=(6, 10))
    ],
    "twenty unequal gaussians 50d": gaussians(lambda rng: rng.integers(15, 90, 20), (20, 50), 0.9),
    "heavy tails": lambda rng: [at + rng.standard_t(2.5, (120, 2)) for at in 9 * SQUARE],
    "heavy tails 10d": lambda rng: [
        center + rng.standard_t(3, (100, 10)) for center in rng.normal(scale=2.2, size=(5, 10))
    ],
    "fifty blobs": far_blobs(50, 55, 40, 41),
    "thirty unequal blobs": far_blobs(30, 45, 10, 90),
    "blobs in noise": [
        *blobs(80, [*(6 * SQUARE), (3, 3)], 0.6),
        (NOISE, box(160, (-3, -3), (9, 9))),
    ],
    "moons in noise": [*moons((200, 200), 0.06), (NOISE, box(80, (-1.5, -1.2), (2.5, 1.6)))],
    "five bars": [line(50 * (i + 1), [(0, i), (2 * (i + 1), i)], 0.12) for i in range(5)],
    "touching discs": [disc(400, (0, 0), 2), disc(225, (3.6, 0), 1.5), disc(100, (1.9, 2.7), 1)],
    "shells 5d": shells_5d,
    "rolled strips": [rolled_strip(*at) for at in ((4, 6.5), (7.2, 9.2), (9.8, 11.4), (12, 13.4))],
    "two helices": [helix(begin) for begin in (0, np.pi)],
    "skewed blobs": lambda rng: [
        np.array(c) + rng.lognormal(0, 0.6, (130, 2)) for c in ((0, 0), (4, 0), (0, 4), (5, 5))
    ],
    "dense beside sparse": [box(500, (0, 0), (1, 1)), box(125, (1.12, 0), (2.4, 1))],
}

# Every other set was in view when the score of the number of clusters was changed, and these.
SEEN = set(list(SETS)[::2])
for name in ("iris", "wine", "breast_cancer", "digits"):
    for kind, is_scaled in (("raw", False), ("standardised", True)):
        SETS[f"{name} {kind}"] = drawn(name, is_scaled)
        SEEN.add(f"{name} {kind}")


def make(name, seed):
    """Return points in random order, and their clusters 1..k or 0 for noise."""
    rng, parts = np.random.default_rng([seed, *name.encode()]), SETS[name]
    X, y = [], []
    for at, one in enumerate(parts(rng) if callable(parts) else parts):
        h, points = one if isinstance(one, tuple) else (at, one)
        X.append(points(rng) if callable(points) else points)
        y += [h] * len(X[-1])
    order = rng.permutation(len(y))
    return np.vstack(X)[order], np.array(y)[order] + 1
