"""Make the pictures of the README and of the gallery; ``docs/gallery.md`` shows these functions.

    python notebooks/pictures.py [NAME ...] [--suite FOLDER]

The folder holds the sets of the clustering suite as ``asv_benchmarks/paper_tables/quality.py``
takes them; without it that picture stays as it is. All other data come with the package or
scikit-learn.
"""

import argparse
from functools import partial
from io import BytesIO
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.offsetbox import AnnotationBbox, OffsetImage
from PIL import Image
from sklearn.cluster import KMeans
from sklearn.datasets import load_sample_image
from sklearn.manifold import TSNE
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

import fastmmc
from fastmmc.plotting import COLORS, MARKERS, ClusterDisplay, ShakingDisplay

FOLDER = Path(__file__).parent
BLUE, ORANGE, GREEN, PINK = COLORS[:4]
PALE_ORANGE = np.array(to_rgb("#F5A26B"))

# Members of each cluster of digits that are shown.
MEMBERS = 12

# Title, file and number of clusters; the last set is one where cluster is wrong.
SUITE = (
    ("windows", "wut_windows", 5),
    ("zigzag", "graves_zigzag_outliers", 3),
    ("smile", "wut_smile", 4),
    ("z2", "wut_z2", 5),
    ("pathbased", "sipu_pathbased", 4),
    ("fuzzyx", "graves_fuzzyx", 2),
)


def draw_digits():
    """Draw members of ten clusters of digits, from the most typical to the least."""
    X, y = fastmmc.datasets.load("digits")
    ours = fastmmc.umc_rls(X, 10, random_state=0)
    means = KMeans(10, n_init=10, random_state=0).fit(X)
    near = np.argsort(means.transform(X).min(axis=1), kind="stable")
    theirs = [near[means.labels_[near] == h] for h in range(10)]
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    for ax, name, clusters in zip(
        axes, ("fastmmc.umc_rls", "k-means"), (ours.exemplars, theirs), strict=True
    ):
        same = draw_members(ax, X, y, clusters)
        ax.set_title(f"{name}: {same:.0%} are with their digit", fontsize=16)
    figure.supxlabel(
        "A row is a cluster, from its most typical image on the left to its least on the right. "
        "Orange: not the digit of most of its cluster.",
        fontsize=11,
    )
    return figure


def draw_members(ax, X, y, clusters):
    """Draw a row of members for each cluster; return the share that is the digit of most of it."""
    digits = [np.bincount(y[members]).argmax() for members in clusters]
    ax.set_axis_off()
    count = 0
    for row, h in enumerate(np.argsort(digits, kind="stable")):
        members = clusters[h]
        same = y[members] == digits[h]
        for place, i in enumerate(np.linspace(0, len(members) - 1, MEMBERS).astype(int)):
            ink = X[members[i]].reshape(8, 8, 1) / 16
            paper = 1.0 if same[i] else PALE_ORANGE
            box = (place + 0.05, place + 0.95, row + 0.95, row + 0.05)
            ax.imshow(np.broadcast_to(paper * (1 - ink), (8, 8, 3)), extent=box)
        text = f"{same.sum()} of {len(members)} are {digits[h]}"
        ax.text(MEMBERS + 0.2, row + 0.5, text, va="center", fontsize=12)
        count += same.sum()
    ax.set(xlim=(0, MEMBERS + 4.4), ylim=(len(clusters), 0))
    return count / len(y)


def draw_map():
    """Draw a map of the digits by the scores that the clusters give each of them."""
    X, y = fastmmc.datasets.load("digits")
    result = fastmmc.umc_rls(X, 10, random_state=0)
    places = TSNE(random_state=0).fit_transform(result.loo_scores)
    figure, ax = plt.subplots(figsize=(10, 6.2), layout="constrained")
    for members in result.exemplars:
        same = y[members] == np.bincount(y[members]).argmax()
        for drawn, color in ((members[same], BLUE), (members[~same], ORANGE)):
            ax.scatter(*places[drawn].T, s=14, color=color, linewidths=0)
        island = places[members]
        image = OffsetImage(X[members[0]].reshape(8, 8), zoom=4, cmap="Greys")
        top = np.median(island[:, 0]), np.quantile(island[:, 1], 0.95)
        ax.add_artist(AnnotationBbox(image, top, (0, 24), boxcoords="offset points", pad=0.1))
    ax.margins(0.05, 0.12)
    ax.set_axis_off()
    return figure


def draw_suite(folder):
    """Draw sets of a clustering suite as k-means cuts them, and as cluster does."""
    figure, axes = plt.subplots(2, len(SUITE), figsize=(11, 4.2), layout="constrained")
    for column, (name, file, k) in zip(axes.T, SUITE, strict=True):
        with np.load(folder / f"{file}.npz") as data:
            X, references = data["X"], np.atleast_2d(data["y"])
        draw_labels(column[0], X, KMeans(k, n_init=10, random_state=0).fit_predict(X), references)
        draw_labels(column[1], X, fastmmc.cluster(X, k, random_state=0).labels, references)
        column[0].set_title(name, fontsize=14)
    for ax, method in zip(axes[:, 0], ("k-means", "fastmmc.cluster"), strict=True):
        ax.set_ylabel(method, fontsize=14)
    return figure


def draw_labels(ax, X, labels, references):
    """Draw clusters, and how well they agree with the nearest reference of as many clusters."""
    for h in np.unique(labels):
        ax.scatter(*X[labels == h].T, s=5, linewidths=0, color=COLORS[h], marker=MARKERS[h])
    # What the suite calls noise, 0, has no cluster to be in.
    ari = max(
        adjusted_rand_score(y[y > 0], labels[y > 0])
        for y in references
        if y.max() == labels.max() + 1
    )
    ax.set(xticks=[], yticks=[])
    ax.set_xlabel(f"ARI {ari:.2f}", fontsize=13)


def draw_segmentation():
    """Draw two photographs in four segments, each in its mean colour."""
    figure, axes = plt.subplots(2, 4, figsize=(11, 4), layout="constrained")
    for name, row in zip(("flower", "china"), axes, strict=True):
        image = load_sample_image(f"{name}.jpg")[::4, ::4]
        pixels = image.reshape(-1, 3).astype(float)
        labellings = (
            fastmmc.segment(image, 4, random_state=0).label_image.ravel(),
            KMeans(4, n_init=10, random_state=0).fit_predict(pixels),
            GaussianMixture(4, n_init=3, random_state=0).fit_predict(pixels),
        )
        row[0].imshow(image)
        for ax, labels in zip(row[1:], labellings, strict=True):
            colors = np.array([pixels[labels == h].mean(axis=0) for h in range(4)])
            ax.imshow(colors[labels].reshape(image.shape) / 255)
    titles = ("photograph", "fastmmc.segment", "k-means", "Gaussian mixture")
    for ax, title in zip(axes[0], titles, strict=True):
        ax.set_title(title, fontsize=14)
    for ax in axes.flat:
        ax.set_axis_off()
    return figure


def draw_constraints():
    """Draw four blobs of which pairs are known, cut without and with the pairs."""
    rng = np.random.default_rng(0)
    blob = rng.permutation(np.repeat(np.arange(4), 75))
    X = np.array([(-0.7, -0.5), (0.7, -0.5), (-0.7, 0.5), (0.7, 0.5)])[blob]
    X = X + 0.15 * rng.standard_normal(X.shape)
    corners = [rng.choice(np.flatnonzero(blob == h), 15) for h in range(4)]
    must = np.column_stack([np.append(corners[0], corners[2]), np.append(corners[1], corners[3])])
    cannot = np.column_stack([np.append(corners[0], corners[1]), np.append(corners[2], corners[3])])
    means = KMeans(2, n_init=10, random_state=0).fit_predict(X)
    ours = fastmmc.umc_rls(X, 2, must_link=must, cannot_link=cannot, random_state=0).labels

    figure, axes = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
    axes[0].scatter(*X.T, s=10, color="grey", linewidths=0)
    for name, pairs, color, style in (
        ("must-link", must, BLUE, "-"),
        ("cannot-link", cannot, ORANGE, "--"),
    ):
        lines = LineCollection(X[pairs], color=color, linestyle=style, alpha=0.8, label=name)
        axes[0].add_collection(lines)
    axes[0].legend(loc="center", fontsize=10, handlelength=1.4)
    for ax, labels in zip(axes[1:], (means, ours), strict=True):
        for h, color, marker in ((0, GREEN, "o"), (1, PINK, "^")):
            ax.scatter(*X[labels == h].T, s=16, color=color, marker=marker, linewidths=0)
    for ax, title in zip(axes, ("what is known", "k-means", "fastmmc.umc_rls"), strict=True):
        ax.set_title(title, fontsize=14)
        ax.set(xticks=[], yticks=[])
    return figure


def draw_shaking():
    """Draw how the rounds of shaking go from random labels to clusters."""
    X, _ = fastmmc.datasets.make_nine_gaussians(450, spread=0.18, random_state=0)
    figure, axes = plt.subplots(1, 5, figsize=(11, 2.6), layout="constrained")
    ShakingDisplay.from_points(X, 9, sigma=0.6, rounds=(0, 1, 2, 20), ax=axes, s=8)
    return figure


def draw_choice():
    """Draw how many clusters cluster finds among nine Gaussians, and why."""
    X, _ = fastmmc.datasets.make_nine_gaussians(450, spread=0.18, random_state=0)
    result = fastmmc.cluster(X, max_k=12, random_state=0)
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    ClusterDisplay.from_result(result, X, ax=left)
    left.set_title(f"{len(result.sizes)} clusters found", fontsize=14)
    right.plot(list(result.scores), list(result.scores.values()), "o-", color=BLUE)
    right.set_title("score of each number of clusters", fontsize=14)
    right.set(xlabel="number of clusters", ylabel="score", xticks=list(result.scores))
    right.spines[["top", "right"]].set_visible(False)
    return figure


def draw_criterion():
    """Draw what cluster votes on: labellings, their errors, their weights and their votes."""
    rng = np.random.default_rng(0)
    angles = rng.uniform(0, 2 * np.pi, 150)
    ring = 3 * np.column_stack([np.cos(angles), np.sin(angles)]) + rng.normal(0, 0.15, (150, 2))
    X = np.vstack([ring, rng.normal(0, 0.4, (60, 2)), rng.normal((6, 0), 0.5, (90, 2))])
    result = fastmmc.cluster(X, 3, random_state=0)
    groups = []  # candidates that are nearly the same labelling, the most votes first
    for one in result.candidates:
        for group in groups:
            if adjusted_rand_score(group[0].labels, one.labels) > 0.9:
                group.append(one)
                break
        else:
            groups.append([one])
    groups.sort(key=lambda group: -sum(one.weight for one in group))
    figure, axes = plt.subplots(1, 5, figsize=(11, 2.5), layout="constrained")
    for ax, group in zip(axes, groups, strict=False):
        for h in range(3):
            members = group[0].labels == h
            ax.scatter(*X[members].T, s=7, linewidths=0, color=COLORS[h], marker=MARKERS[h])
        error = min(one.criterion for one in group)
        weight = sum(one.weight for one in group)
        ax.set(xticks=[], yticks=[], aspect="equal")
        ax.set_title(f"{len(group)} of {len(result.candidates)} labellings", fontsize=13)
        ax.set_xlabel(
            f"error {error:.1g}\nweight {weight:.2f}\nvote {group[0].vote:.2f}", fontsize=13
        )
    return figure


def draw_customers():
    """Draw the clusters of a made-up table of customers, and what is in each of them."""
    table = make_customers()
    result = fastmmc.cluster(table, random_state=0)
    profile = result.profile(table)
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(11, 4.2), width_ratios=(1, 1.25), layout="constrained"
    )
    ClusterDisplay.from_result(result, table, ax=left)
    left.set(xlabel="", ylabel="", xticks=[], yticks=[])
    left.get_legend().remove()
    left.set_title(f"{len(table)} customers, {len(result.sizes)} clusters found", fontsize=14)
    right.set_axis_off()
    lines = []
    for h, size in enumerate(result.sizes):
        lines.append((f"cluster {h}: {size} customers", COLORS[h], "bold"))
        for column in profile.by_difference(h)[:3]:
            text = f"{column.name}: {column.own[h]}; of all {column.of_all[h]}"
            lines.append((f"    {text}", "black", "normal"))
    for i, (line, color, weight) in enumerate(lines):
        y = 1 - (i + 0.5) / len(lines)
        right.text(0, y, line, color=color, weight=weight, fontsize=11, va="center")
    return figure


def make_customers(n=400):
    """Return a table of customers of three kinds, with numbers, dates, categories and gaps."""
    rng = np.random.default_rng(0)
    kind = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    usual = np.array(["free", "team", "company"])[kind]
    plan = np.where(rng.random(n) < 0.1, rng.choice(["free", "team", "company"], n), usual)
    table = pandas.DataFrame(
        {
            "age": (np.array([24, 37, 52])[kind] + rng.normal(0, 4, n)).round(),
            "spent": np.exp(np.array([2.3, 4.2, 5.8])[kind] + rng.normal(0, 0.4, n)).round(2),
            "plan": plan,
            "since": pandas.Timestamp("2019-03-01")
            + pandas.to_timedelta(np.array([1500, 700, 200])[kind] + rng.integers(0, 400, n), "D"),
            "visits": rng.poisson(np.array([14, 6, 3])[kind]),
        }
    )
    table.loc[rng.random(n) < 0.08, "age"] = np.nan
    table.loc[rng.random(n) < 0.05, "plan"] = None
    return table


PICTURES = {
    "digits": draw_digits,
    "map": draw_map,
    "segmentation": draw_segmentation,
    "constraints": draw_constraints,
    "shaking": draw_shaking,
    "choice": draw_choice,
    "criterion": draw_criterion,
    "customers": draw_customers,
}


def save(figure, path):
    """Save a figure with a palette of 256 colours, which takes a third of the bytes."""
    with BytesIO() as file:
        figure.savefig(file, dpi=110)
        image = Image.open(file).convert("RGB").quantize(256, dither=Image.Dither.NONE)
    image.save(path, optimize=True)
    print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB", flush=True)


def main():
    """Make the pictures that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suite", type=Path, metavar="FOLDER", help="sets of the suite")
    parser.add_argument("names", nargs="*", metavar="NAME", help="pictures, all by default")
    args = parser.parse_args()
    pictures = dict(PICTURES)
    if args.suite:
        pictures["suite"] = partial(draw_suite, args.suite)
    for name in args.names or pictures:
        if name not in pictures:
            parser.error(f"there are {', '.join(PICTURES)}, and suite with --suite; got {name}")
        save(pictures[name](), FOLDER / f"{name}.png")


if __name__ == "__main__":
    main()
