"""Draw the picture of the architecture."""

from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

# Columns from left to right: title, colour, boxes from top to bottom.
COLUMNS = (
    ("in", "#8a8a8a", ("points", "known labels, links", "sizes wanted")),
    (
        "representation",
        "#4c78a8",
        ("hat matrix R", "low rank R ≈ Z Zᵀ", "Gram matrix, features", "points themselves"),
    ),
    (
        "search over labellings",
        "#f58518",
        (
            "shaking, memetic, evolution",
            "machine and labels in turn",
            "cutting planes",
            "prototypes that learn",
            "semidefinite program",
        ),
    ),
    (
        "out",
        "#54a24b",
        ("labels, objective, status", "model that predicts", "estimator, files, displays"),
    ),
)
WIDTH, GAP, HEIGHT, STEP = 2.75, 0.55, 0.52, 0.72


def draw(path):
    """Write the picture as SVG: what a call passes through, and what stands around it."""
    figure = Figure(figsize=(8.6, 4), layout="constrained")
    ax = figure.subplots()
    middle = STEP * max(len(boxes) for _, _, boxes in COLUMNS) / 2
    for number, (title, colour, boxes) in enumerate(COLUMNS):
        left = number * (WIDTH + GAP)
        ax.text(left + WIDTH / 2, 2 * middle + 0.3, title, ha="center", weight="bold", color=colour)
        for row, text in enumerate(boxes):
            _box(ax, left, middle + STEP * (len(boxes) / 2 - row - 1) + 0.1, WIDTH, colour, text)
        if number:
            arrow = {"arrowstyle": "-|>", "color": "#555555", "linewidth": 1.5}
            ax.annotate("", (left - 0.08, middle), (left - GAP + 0.08, middle), arrowprops=arrow)
    whole = len(COLUMNS) * (WIDTH + GAP) - GAP
    _box(
        ax,
        0,
        -0.75,
        whole,
        "#8a8a8a",
        "execution: random streams, starts over threads, time limits, interrupts",
    )
    _box(
        ax,
        0,
        -1.42,
        whole,
        "#8a8a8a",
        "declared parameters: signatures, checks, documentation, command line",
    )
    ax.set(xlim=(-0.1, whole + 0.1), ylim=(-1.5, 2 * middle + 0.7))
    ax.axis("off")
    figure.savefig(path, metadata={"Date": None})


def _box(ax, left, bottom, width, colour, text):
    shape = {"boxstyle": "round,pad=0,rounding_size=0.08", "mutation_aspect": 1}
    ax.add_patch(
        FancyBboxPatch(
            (left, bottom), width, HEIGHT, facecolor=colour + "22", edgecolor=colour, **shape
        )
    )
    ax.text(left + width / 2, bottom + HEIGHT / 2, text, ha="center", va="center", fontsize=8.5)
