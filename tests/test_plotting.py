import dataclasses
import sys
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.text import Text
from scipy.cluster.hierarchy import (
    cut_tree,
    is_monotonic,
    is_valid_linkage,
    leaves_list,
    to_tree,
)
from scipy.sparse import csr_array, csr_matrix
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError

import fastmmc
from fastmmc.choice.vote import FLOOR
from fastmmc.plotting import (
    ChoiceDisplay,
    ClusterDisplay,
    DendrogramDisplay,
    ExemplarDisplay,
    InfluenceDisplay,
    MarginDisplay,
    ObjectiveDisplay,
    SegmentationDisplay,
    ShakingDisplay,
    TreeDisplay,
)
from fastmmc.plotting.base import COLORS, MARKERS
from fastmmc.plotting.clusters import LEGEND_MOST
from fastmmc.plotting.search import MOST_LEAVES


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


# The clusters of ``blobs`` have other sizes than those that are drawn.
pytestmark = pytest.mark.filterwarnings("ignore:clusters of free sizes")


@pytest.fixture
def result(blobs):
    return fastmmc.umc_rls(blobs[0], 3, n_init=2, random_state=0, sizes="equal")


def drawn_labels(ax, points):
    """Read the labels back from the scatter plots of an axes."""
    labels = np.full(len(points), -1)
    for cluster, collection in enumerate(ax.collections):
        for position in collection.get_offsets():
            labels[(points == position).all(axis=1)] = cluster
    return labels


def test_clusters_are_drawn_as_the_result_has_them(result):
    display = ClusterDisplay.from_result(result)
    ax = display.ax_
    assert display.figure_ is ax.figure
    np.testing.assert_array_equal(drawn_labels(ax, display.points), result.labels)
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == [f"{i}: {size}" for i, size in enumerate(result.sizes)]
    colors = [to_hex(collection.get_facecolor()[0]).upper() for collection in ax.collections]
    assert colors == list(COLORS[:3])


def test_principal_components_are_those_of_the_centred_points(result, blobs):
    display = ClusterDisplay.from_result(result)
    X = blobs[0] - blobs[0].mean(axis=0)
    _, s, _ = np.linalg.svd(X, full_matrices=False)
    np.testing.assert_allclose((display.points**2).sum(axis=0), s[:2] ** 2)
    share = s[0] ** 2 / (s**2).sum()
    assert display.ax_.get_xlabel() == f"principal component 1 ({share:.0%} of variance)"


def test_two_features_are_drawn_as_they_are(overlapping):
    X = overlapping[:, :2]
    result = fastmmc.umc_rls(X, 3, n_init=1, random_state=0, sizes="equal")
    display = ClusterDisplay.from_result(result)
    np.testing.assert_array_equal(display.points, X)
    np.testing.assert_array_equal(drawn_labels(display.ax_, X), result.labels)
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("feature 0", "feature 1")


def test_one_feature_is_drawn_cluster_above_cluster(overlapping):
    X = overlapping[:, :1]
    result = fastmmc.umc_rls(X, 3, n_init=1, random_state=0, sizes="equal")
    ax = ClusterDisplay.from_result(result).ax_
    positions = np.column_stack([X[:, 0], result.labels])
    np.testing.assert_array_equal(drawn_labels(ax, positions), result.labels)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("feature 0", "cluster")


def test_a_single_point_can_be_drawn():
    display = ClusterDisplay.from_result(fastmmc.umc_rls(np.ones((1, 3)), 1, sizes="equal"))
    np.testing.assert_array_equal(display.points, [[1, 1]])


def test_many_clusters_look_different_and_have_no_legend(overlapping):
    result = fastmmc.umc_rls(overlapping, 40, n_init=1, random_state=0, sizes="equal")
    ax = ClusterDisplay.from_result(result).ax_
    assert ax.get_legend() is None
    looks = {
        (to_hex(c.get_facecolor()[0]), c.get_paths()[0].vertices.tobytes()) for c in ax.collections
    }
    assert len(looks) == 40


@pytest.mark.parametrize(("k", "has_legend"), [(LEGEND_MOST, True), (LEGEND_MOST + 1, False)])
def test_legend_goes_where_it_would_be_too_long(overlapping, k, has_legend):
    result = fastmmc.umc_rls(overlapping, k, n_init=1, random_state=0, sizes="equal")
    assert (ClusterDisplay.from_result(result).ax_.get_legend() is not None) == has_legend


def test_points_of_a_precomputed_kernel_must_be_given(blobs):
    X, _ = blobs
    result = fastmmc.umc_rls(
        X @ X.T, 3, kernel="precomputed", n_init=1, random_state=0, sizes="equal"
    )
    with pytest.raises(ValueError, match="X is missing: with a precomputed kernel"):
        ClusterDisplay.from_result(result)
    display = ClusterDisplay.from_result(result, X)
    np.testing.assert_array_equal(drawn_labels(display.ax_, display.points), result.labels)


def test_points_must_fit_the_result(result, blobs):
    with pytest.raises(ValueError, match=r"the 75 points of the result; got shape \(74, 4\)"):
        ClusterDisplay.from_result(result, blobs[0][1:])


@pytest.fixture(scope="module")
def every_result():
    """A small result of every method, with its points: as many as cpm3c has planes."""
    rng = np.random.default_rng(0)
    X = 4.0 * np.eye(3)[np.repeat([0, 1, 2], 6)] + rng.standard_normal((18, 3))
    results = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, method in fastmmc.METHODS.items():
            size = {} if method.binary else {"k": 3}
            results[name] = method.function(X, **size)
        results["sharded"] = fastmmc.distributed.fit_sharded(X, 3, random_state=0)
        results["annealing"] = fastmmc.sammc(X, 3, search="annealing", max_iter=5)
        results["low rank"] = fastmmc.umc_rls(X, 3, rank=18, random_state=0, sizes="equal")
        results["linear"] = fastmmc.sdp_mmc(X, kernel="linear")
        results["planes"] = fastmmc.cpm3c(X[:3], 3, random_state=0)
    return X, results


NAMES = [*fastmmc.METHODS, "sharded", "annealing", "low rank", "linear", "planes"]


@pytest.mark.parametrize("name", NAMES)
def test_every_result_is_drawn_by_every_display_or_refused(every_result, name):
    X, result = every_result[0], every_result[1][name]
    X = X[: len(result.labels)]
    display = ObjectiveDisplay.from_result(result)
    steps, values = display.line_.get_data()
    assert len(steps) == result.history.size and (np.diff(steps) >= 0).all()
    np.testing.assert_array_equal(values, result.history)
    assert result.history.size > 1 or display.line_.get_marker() == "o"
    for points in (X, csr_matrix(X), csr_array(X)):
        display = ClusterDisplay.from_result(result, points)
        np.testing.assert_array_equal(drawn_labels(display.ax_, display.points), result.labels)
    if isinstance(result, fastmmc.RLSResult) and result.params.get("rank") is None:
        np.testing.assert_array_equal(
            ClusterDisplay.from_result(result).points, ClusterDisplay.from_result(result, X).points
        )
    else:
        with pytest.raises(ValueError, match=r"X is missing.*from_result\(result, X\)"):
            ClusterDisplay.from_result(result)
    if name == "recursive-mmc":
        assert len(TreeDisplay.from_result(result).ax_.texts) == 5
        assert len(DendrogramDisplay.from_result(result).ax_.lines) == 2
    else:
        for display in (TreeDisplay, DendrogramDisplay):
            with pytest.raises(TypeError, match="must be a TreeResult, as fastmmc.recursive_mmc"):
                display.from_result(result)
    with pytest.raises(TypeError, match="must be a SegmentationResult, as fastmmc.segment"):
        SegmentationDisplay.from_result(result, np.zeros((3, 6)))
    if name == "cluster":
        assert ChoiceDisplay.from_result(result).winner is result.winner
    else:
        with pytest.raises(TypeError, match="must be a ChoiceResult, as fastmmc.cluster returns"):
            ChoiceDisplay.from_result(result)


@pytest.mark.parametrize(
    "draw",
    [
        ClusterDisplay.from_result,
        ObjectiveDisplay.from_result,
        TreeDisplay.from_result,
        ChoiceDisplay.from_result,
        lambda result: SegmentationDisplay.from_result(result, np.zeros((3, 6))),
    ],
)
def test_what_is_no_result_is_refused_by_its_type(blobs, draw):
    with pytest.raises(TypeError, match="result must be a .*; got a ndarray"):
        draw(blobs[1])
    model = fastmmc.UMCRLS(3, n_init=1, sizes="equal").fit(blobs[0])
    with pytest.raises(TypeError, match="from_estimator draws a fitted estimator.*got a UMCRLS"):
        draw(model)


def test_fitted_estimators_are_drawn_as_their_results(blobs, choice):
    X, _ = blobs
    model = fastmmc.UMCRLS(3, n_init=1, random_state=0, sizes="equal").fit(X)
    for points in (None, X):
        display = ClusterDisplay.from_estimator(model, points, s=7.0)
        np.testing.assert_array_equal(drawn_labels(display.ax_, display.points), model.labels_)
        assert display.ax_.collections[0].get_sizes() == [7.0]
    _, ax = plt.subplots()
    line = ObjectiveDisplay.from_estimator(model, ax=ax, label="one").line_
    np.testing.assert_array_equal(line.get_ydata(), model.history_)
    assert line.axes is ax and line.get_label() == "one"
    tree = fastmmc.RecursiveMMC(4, method="fast_evo_mmc", random_state=0).fit(X)
    assert TreeDisplay.from_estimator(tree).tree is tree.result_.tree
    chooser = fastmmc.AutoMMC(3, random_state=0).fit(choice[0])
    assert ChoiceDisplay.from_estimator(chooser).winner is chooser.result_.winner


@pytest.mark.parametrize("display", [ClusterDisplay, ObjectiveDisplay, TreeDisplay, ChoiceDisplay])
def test_estimators_that_have_no_such_result_are_refused(blobs, result, display):
    X, _ = blobs
    for unfitted in (fastmmc.UMCRLS(3, sizes="equal"), fastmmc.WTA(3).partial_fit(X)):
        with pytest.raises(NotFittedError, match="has no result, which fit makes"):
            display.from_estimator(unfitted)
    with pytest.raises(TypeError, match="one of fastmmc.*got a KMeans$"):
        display.from_estimator(KMeans(3, n_init=1).fit(X))
    with pytest.raises(TypeError, match="got a RLSResult; from_result draws a result"):
        display.from_estimator(result)
    wrong = fastmmc.WTA(3, random_state=0).fit(X)
    if display in (TreeDisplay, ChoiceDisplay):
        with pytest.raises(TypeError, match="result must be a .*; got a CentroidResult"):
            display.from_estimator(wrong)


def test_axes_have_the_names_of_the_columns(overlapping):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(overlapping[:, :2], columns=["length", "width"])

    def names(*args):
        ax = ClusterDisplay.from_result(*args).ax_
        return ax.get_xlabel(), ax.get_ylabel()

    result = fastmmc.umc_rls(table, 3, n_init=1, random_state=0, sizes="equal")
    assert names(result) == names(result, table) == ("length", "width")
    assert names(result, table.to_numpy()) == ("length", "width")
    # Other positions have names of their own, or none.
    assert names(result, table.rename(columns=str.upper)) == ("LENGTH", "WIDTH")
    assert names(result, table[["width"]]) == ("width", "cluster")
    assert names(result, table[["width"]].to_numpy()) == ("feature 0", "cluster")
    bare = fastmmc.umc_rls(table.to_numpy(), 3, n_init=1, random_state=0, sizes="equal")
    assert names(bare) == ("feature 0", "feature 1") and names(bare, table) == ("length", "width")
    display = ClusterDisplay.from_estimator(fastmmc.UMCRLS(3, n_init=1, sizes="equal").fit(table))
    assert display.axis_names == ["length", "width"]
    whole = pandas.DataFrame(overlapping).add_prefix("column ")
    assert names(fastmmc.umc_rls(whole, 3, n_init=1, sizes="equal"))[0].startswith(
        "principal component 1"
    )


def boxes(figure):
    """Return the boxes of axes and legends in a drawn figure."""
    figure.canvas.draw()
    legends = [ax.get_legend() for ax in figure.axes if ax.get_legend()]
    return [ax.patch.get_window_extent() for ax in figure.axes], [
        legend.get_window_extent() for legend in legends
    ]


def test_legends_stand_beside_the_points(overlapping, choice):
    many = fastmmc.umc_rls(overlapping, LEGEND_MOST, n_init=1, random_state=0, sizes="equal")
    numbers = fastmmc.cluster(choice[0], max_k=4, random_state=0)
    for display in (
        ClusterDisplay.from_result(many),
        ChoiceDisplay.from_result(choice[1]),
        ChoiceDisplay.from_result(numbers),
    ):
        panels, (legend,) = boxes(display.figure_)
        assert not any(legend.overlaps(panel) for panel in panels)
        assert legend.x1 <= display.figure_.bbox.x1 and legend.y0 >= display.figure_.bbox.y0


def test_more_clusters_than_looks_share_them():
    k = len(COLORS) * len(MARKERS) + 2
    points = np.random.default_rng(0).normal(size=(k, 2))
    ax = ClusterDisplay(points, np.arange(k), ["a", "b"]).plot().ax_
    assert [len(c.get_offsets()) for c in ax.collections] == [2, 2] + [1] * (k - 4)
    np.testing.assert_array_equal(ax.collections[1].get_offsets(), points[[1, k - 1]])


@pytest.fixture(scope="module")
def choice():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 2)) + np.array([[0, 0], [9, 0], [0, 9]])[np.repeat([0, 1, 2], 30)]
    return X, fastmmc.cluster(X, 3, random_state=0)


def test_a_choice_is_drawn_as_its_table_has_it(choice):
    result = choice[1]
    display = ChoiceDisplay.from_result(result)
    (ax,) = display.axes_
    *rules, ring = ax.collections
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    widths = sorted({one.sigma for one in result.candidates})
    assert [tick.get_text() for tick in ax.get_xticklabels()] == [f"{s:.3g}" for s in widths]
    for rule, drawn in zip(labels[:-1], rules, strict=True):
        own = [one for one in result.candidates if one.rule == rule]
        places = drawn.get_offsets()
        assert [round(x) for x in places[:, 0]] == [widths.index(one.sigma) for one in own]
        errors = [max(one.criterion, FLOOR) for one in own]
        np.testing.assert_allclose(places[:, 1], errors)
        by_vote = np.argsort([one.vote for one in own], kind="stable")
        assert (np.diff(drawn.get_sizes()[by_vote]) >= 0).all()
    assert sum(len(drawn.get_offsets()) for drawn in rules) == len(result.candidates)
    winner = result.winner
    np.testing.assert_array_equal(winner.labels, result.labels)
    assert labels[-1] == f"won: {winner.rule}, vote {winner.vote:.2f}"
    (place,) = ring.get_offsets()
    assert place[1] == max(winner.criterion, FLOOR)
    assert place in rules[labels.index(winner.rule)].get_offsets()
    assert ax.get_title() == "3 clusters" and ax.get_yscale() == "log"


def test_the_numbers_of_clusters_are_drawn_with_scores_and_errors(choice):
    result = fastmmc.cluster(choice[0], max_k=5, random_state=0)
    assert list(result.scores) == [2, 3, 4, 5] and list(result.errors) == [2, 3, 4, 5, 6]
    display = ChoiceDisplay.from_result(result, alpha=0.5)
    for ax, values in zip(display.axes_[1:], (result.scores, result.errors), strict=True):
        points, ring = ax.collections
        np.testing.assert_allclose(points.get_offsets(), list(values.items()))
        np.testing.assert_allclose(ring.get_offsets(), [(3, values[3])])
        assert points.get_alpha() == 0.5
    _, axes = plt.subplots(1, 3)
    assert ChoiceDisplay.from_result(result, ax=axes).axes_.tolist() == axes.tolist()
    with pytest.raises(ValueError, match="ax must hold 3 Axes, one a panel; got 1"):
        ChoiceDisplay.from_result(result, ax=axes[0])
    with pytest.raises(ValueError, match="ax must hold 1 Axes, one a panel; got 3"):
        ChoiceDisplay.from_result(choice[1], ax=axes)


@pytest.mark.filterwarnings("ignore:X has only")
@pytest.mark.parametrize("n, k", [(1, 1), (5, 1), (6, 6), (12, 2)])
def test_degenerate_choices_are_drawn(n, k):
    for X in (np.ones((n, 2)), np.random.default_rng(0).normal(size=(n, 1))):
        ax = ChoiceDisplay.from_result(fastmmc.cluster(X, k, random_state=0)).axes_[0]
        ax.figure.canvas.draw()
        assert ax.get_title() == f"{k} cluster{'s' * (k > 1)}"


def test_sparse_points_are_drawn_in_singular_components(blobs):
    X, y = blobs
    result = fastmmc.wta(csr_matrix(X), 3, random_state=0)
    display = ClusterDisplay.from_result(result, csr_matrix(X))
    u, s, _ = np.linalg.svd(X, full_matrices=False)
    np.testing.assert_allclose(np.abs(display.points), np.abs(u[:, :2] * s[:2]), rtol=1e-6)
    assert display.ax_.get_xlabel().startswith("singular component 1 (")
    few = ClusterDisplay.from_result(result, csr_matrix(X[:, :2]))
    np.testing.assert_array_equal(few.points, X[:, :2])


@pytest.mark.filterwarnings("ignore:X has only")
def test_equal_points_can_be_drawn():
    result = fastmmc.umc_rls(np.ones((6, 3)), 2, sigma=1.0, random_state=0, sizes="equal")
    for X in (None, csr_matrix(np.ones((6, 3))), csr_matrix((6, 3))):
        ax = ClusterDisplay.from_result(result, X).ax_
        assert "nan" not in ax.get_xlabel() + ax.get_ylabel()


def test_a_result_without_history_is_refused(result):
    empty = dataclasses.replace(result, history=np.empty(0))
    with pytest.raises(ValueError, match=r"the result has no history: its run ended \(CONVERGED\)"):
        ObjectiveDisplay.from_result(empty)


def test_keywords_reach_matplotlib(result):
    _, ax = plt.subplots()
    display = ClusterDisplay.from_result(result, ax=ax, s=7.0, alpha=0.5)
    assert display.ax_ is ax
    assert [c.get_sizes()[0] for c in ax.collections] == [7.0] * 3
    assert [c.get_alpha() for c in ax.collections] == [0.5] * 3


def test_objective_is_drawn_against_moves(result):
    display = ObjectiveDisplay.from_result(result, label="one")
    np.testing.assert_array_equal(display.line_.get_xdata(), result.trace["moves"])
    np.testing.assert_array_equal(display.line_.get_ydata(), result.history)
    assert display.line_.get_label() == "one"
    again = ObjectiveDisplay.from_result(result, ax=display.ax_)
    assert again.figure_ is display.figure_ and len(display.ax_.lines) == 2


def test_shaking_panels_show_one_run(overlapping):
    X = overlapping[:, :2]
    display = ShakingDisplay.from_points(X, 3, rounds=(0, 3, 20), sigma=1.5, random_state=4)
    titles = [ax.get_title() for ax in display.axes_]
    assert titles == ["start", "after round 0", "after round 3", "after round 20"]
    start = drawn_labels(display.axes_[0], X)
    assert np.bincount(start).tolist() == [20, 20, 20]
    # The first round from the labels drawn as the start gives those drawn after it.
    rules = {"method": "shaking", "min_size": 0, "balance": 3}
    first = fastmmc.umc_rls(X, 3, **rules, init=start, n_rounds=1, sigma=1.5)
    np.testing.assert_array_equal(drawn_labels(display.axes_[1], X), first.labels)
    # The last panel is where a whole run with this seed ends.
    whole = fastmmc.umc_rls(X, 3, **rules, n_init=1, sigma=1.5, random_state=4)
    np.testing.assert_array_equal(drawn_labels(display.axes_[3], X), whole.labels)


def test_shaking_panels_of_a_generator_share_one_start(overlapping):
    # A generator gives another stream each time it is asked; all panels must have the same.
    display = ShakingDisplay.from_points(
        overlapping, 3, rounds=(0, 1), random_state=np.random.default_rng(5)
    )
    rules = {"method": "shaking", "min_size": 0, "balance": 3}
    first = fastmmc.umc_rls(overlapping, 3, **rules, init=display.labels[0], n_rounds=2)
    np.testing.assert_array_equal(display.labels[2], first.labels)


def test_shaking_with_two_clusters_shows_what_the_rounds_left(overlapping):
    # Round 0 gives everything to the last cluster; nothing is moved back for the picture.
    display = ShakingDisplay.from_points(overlapping, 2, rounds=(0,))
    assert np.bincount(display.labels[1], minlength=2).tolist() == [0, 60]


def test_shaking_draws_into_given_axes(overlapping):
    _, axes = plt.subplots(1, 2)
    display = ShakingDisplay.from_points(overlapping, 3, rounds=(0,), ax=axes)
    assert display.axes_.tolist() == axes.tolist()
    with pytest.raises(ValueError, match="ax must hold 2 Axes, one a panel; got 1"):
        display.plot(axes[0])


def test_shaking_refuses_wrong_rounds_and_k(overlapping):
    with pytest.raises(ValueError, match="rounds must be at least 0; got -1"):
        ShakingDisplay.from_points(overlapping, 3, rounds=(0, -1))
    with pytest.raises(ValueError, match="k must be at most 60"):
        ShakingDisplay.from_points(overlapping, 61)


@pytest.fixture
def tree_result(blobs):
    options = {"method": "fast_evo_mmc", "random_state": 0}
    return fastmmc.recursive_mmc(blobs[0], 5, **options)


def test_a_linkage_cuts_into_the_clusters_at_the_heights_of_their_sums_of_squares(tree_result):
    tree, labels = tree_result.tree, tree_result.labels
    Z = tree.linkage()
    assert is_valid_linkage(Z) and is_monotonic(Z)
    clusters = np.arange(5)
    np.testing.assert_array_equal(leaves_list(Z), clusters)
    np.testing.assert_array_equal(cut_tree(Z, 5).ravel(), clusters)
    # What SciPy finds below a split are the points of one node of the tree.
    _, nodes = to_tree(Z, rd=True)
    sizes = np.bincount(labels)
    found = sorted(sizes[node.pre_order()].sum() for node in nodes)
    assert found == sorted(node.size for node in tree.nodes)
    assert Z[-1, 2] == pytest.approx(sum(node.gain or 0.0 for node in tree.nodes))
    assert Z[-1, 2] == pytest.approx(tree_result.history[0] - tree_result.history[-1])


def test_a_dendrogram_has_a_line_for_each_split_above_its_clusters(tree_result):
    display = DendrogramDisplay.from_result(tree_result, color="red")
    lines = display.ax_.lines
    assert len(lines) == 4 and {line.get_color() for line in lines} == {"red"}
    heights = sorted(line.get_ydata().max() for line in lines)
    np.testing.assert_allclose(heights, np.sort(tree_result.tree.linkage()[:, 2]))
    names = [text.get_text() for text in display.ax_.get_xticklabels()]
    assert names == [f"{h}: {size}" for h, size in enumerate(tree_result.sizes)]
    at = {x for line in lines for x, y in line.get_xydata() if y == 0}
    assert at == set(display.ax_.get_xticks())


def test_a_dendrogram_of_one_cluster_is_refused(blobs):
    result = fastmmc.recursive_mmc(blobs[0], 1, random_state=0)
    assert result.tree.linkage().shape == (0, 4)
    with pytest.raises(ValueError, match="of 2 to 100 clusters; got 1: print"):
        DendrogramDisplay.from_result(result)


def test_a_tree_is_drawn_with_its_sizes(tree_result):
    _, ax = plt.subplots()
    display = TreeDisplay.from_result(tree_result, ax=ax, fontsize=5)
    assert display.ax_ is ax and display.figure_ is ax.figure
    nodes = tree_result.tree.nodes
    assert [int(text.get_text()) for text in ax.texts] == [node.size for node in nodes]
    assert all(text.get_fontsize() == 5 for text in ax.texts)
    places = [text.get_position() for text in ax.texts]
    assert [y for _, y in places] == [node.depth for node in nodes]
    leaves = [x for (x, _), node in zip(places, nodes, strict=True) if node.label is not None]
    assert leaves == [0, 1, 2, 3, 4]
    assert len(set(places)) == 9
    # Four edges, from each split to its two parts.
    drawn = [line.get_xydata() for line in ax.lines]
    splits = [node for node in nodes if node.label is None]
    for node, path in zip(splits, drawn, strict=True):
        assert tuple(path[0]) == places[node.left] and tuple(path[-1]) == places[node.right]
    colors = [
        to_hex(text.get_bbox_patch().get_edgecolor()).upper()
        for text, node in zip(ax.texts, nodes, strict=True)
        if node.label is not None
    ]
    assert colors == list(COLORS[:5])


def test_a_tree_of_one_cluster(blobs):
    result = fastmmc.recursive_mmc(blobs[0], 1, method="fast_evo_mmc")
    ax = TreeDisplay.from_result(result).ax_
    assert [text.get_text() for text in ax.texts] == ["75"] and not ax.lines


def leaning_tree(leaves):
    """Return a tree that splits off one point after the other."""
    nodes = []
    for i in range(leaves - 1):
        nodes.append(fastmmc.TreeNode(leaves - i, i, left=2 * i + 1, right=2 * i + 2))
        nodes.append(fastmmc.TreeNode(1, i + 1, label=i))
    return fastmmc.Tree((*nodes, fastmmc.TreeNode(1, leaves - 1, label=leaves - 1)))


def test_nodes_of_large_trees_do_not_overlap(tree_result):
    large = dataclasses.replace(tree_result, tree=leaning_tree(40))
    display = TreeDisplay.from_result(large)
    display.figure_.canvas.draw()
    found = [text.get_bbox_patch().get_window_extent() for text in display.ax_.texts]
    overlaps = [a.overlaps(b) for i, a in enumerate(found) for b in found[:i]]
    assert len(found) == 79 and not any(overlaps)
    too_large = dataclasses.replace(tree_result, tree=leaning_tree(MOST_LEAVES + 1))
    with pytest.raises(ValueError, match=r"at most 100 clusters.* 101: print\(result.tree\)"):
        TreeDisplay.from_result(too_large)


def test_the_objective_of_a_tree_is_drawn_against_splits(tree_result):
    display = ObjectiveDisplay.from_result(tree_result)
    assert display.ax_.get_xlabel() == "splits"
    np.testing.assert_array_equal(display.line_.get_xdata(), [0, 1, 2, 3, 4])


@pytest.fixture
def picture():
    pixels = np.full((6, 9, 3), (200, 40, 30), np.uint8)
    pixels[4:] = 20, 60, 180
    pixels[0, 0] = 210, 50, 30
    return pixels, fastmmc.segment(pixels, 2, random_state=0)


def test_picture_and_segments_are_drawn_side_by_side(picture):
    image, result = picture
    display = SegmentationDisplay.from_result(result, image, interpolation="nearest")
    left, right = (ax.images[0] for ax in display.axes_)
    np.testing.assert_allclose(left.get_array(), image / 255)
    np.testing.assert_allclose(right.get_array(), result.colors[result.label_image] / 255)
    assert left.get_interpolation() == "nearest"
    assert display.axes_[1].get_title() == "2 segments"
    assert display.figure_ is display.axes_[0].figure


@pytest.mark.parametrize(
    ("convert", "low", "high"),
    [
        (lambda image: image, 0, 255),
        (lambda image: image.astype(np.uint16) * 200, 0, 65535),
        (lambda image: image / 255.0, 0, 1),
        (lambda image: image.astype(float), 0, 255),
        (lambda image: image - 300.0, -280, -90),
        (lambda image: image * 0.0 - 3.0, -3, -2),
    ],
)
def test_black_and_white_follow_the_type_and_values(picture, convert, low, high):
    image = convert(picture[0])
    k = min(2, len(np.unique(image)))
    for pixels in (image, image[..., 0], image[..., :1], np.dstack([image, image])):
        pixels = pixels.astype(float) if pixels.shape[2:] == (6,) else pixels
        result = fastmmc.segment(pixels, k, sigma=None, random_state=0)
        shown = SegmentationDisplay.from_result(result, pixels).image
        if pixels.shape[2:] == (3,):
            np.testing.assert_allclose(shown, (image - low) / (high - low))
        else:
            assert shown.shape == (6, 9) and shown.min() >= 0 and shown.max() <= 1


def test_segments_go_into_given_axes_and_must_fit_the_picture(picture):
    image, result = picture
    _, axes = plt.subplots(1, 2)
    display = SegmentationDisplay.from_result(result, image, ax=axes)
    assert display.axes_.tolist() == axes.tolist()
    with pytest.raises(ValueError, match="ax must hold 2 Axes, one a panel; got 1"):
        display.plot(axes[0])
    for wrong in (image[1:], image[..., 0], image[0], image[..., 0].ravel()):
        with pytest.raises(ValueError, match=r"the shape \(6, 9, 3\) of the one in the result"):
            SegmentationDisplay.from_result(result, wrong)


@pytest.mark.parametrize(
    "draw",
    [
        lambda result: TreeDisplay(fastmmc.Tree((fastmmc.TreeNode(3, 0, label=0),))).plot(),
        ClusterDisplay.from_result,
        ObjectiveDisplay.from_result,
        lambda result: ChoiceDisplay.from_result(fastmmc.cluster(result.model.basis, 3)),
        lambda result: ShakingDisplay.from_points(result.model.basis, 3, rounds=(0,)),
        lambda result: SegmentationDisplay(np.zeros((2, 2)), np.zeros((2, 2)), 1).plot(),
    ],
)
def test_missing_matplotlib_is_named(monkeypatch, result, draw):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"needs matplotlib \(python -m pip install mat"):
        draw(result)


def test_margins_are_drawn_cluster_by_cluster(result):
    ax = MarginDisplay.from_result(result, alpha=0.5).ax_
    assert len(ax.collections) == 3
    rows = []
    for cluster, blade in enumerate(ax.collections):
        corners = blade.get_paths()[0].vertices
        mine = result.margins[result.labels == cluster]
        assert corners[:, 0].max() == pytest.approx(mine.max())
        assert blade.get_alpha() == 0.5
        rows.append((corners[:, 1].min(), corners[:, 1].max()))
        assert rows[-1][1] - rows[-1][0] == mine.size - 1
    assert all(before[1] < after[0] for before, after in zip(rows, rows[1:], strict=False))
    assert ax.lines[0].get_xdata()[0] == pytest.approx(result.margins.mean())
    assert [text.get_text() for text in ax.get_yticklabels()] == ["0", "1", "2"]


def test_exemplars_are_drawn_with_the_names_of_a_frame(blobs):
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(blobs[0], columns=["height", "width", "weight", "age"])
    X["constant"] = 1.0
    result = fastmmc.umc_rls(X, 3, n_init=2, random_state=0, sizes="equal")
    display = ExemplarDisplay.from_result(result, X, count=2)
    assert [text.get_text() for text in display.ax_.get_xticklabels()] == list(X.columns)
    chosen = [(h, i) for h in range(3) for i in result.exemplars[h][:2]]
    assert display.row_names == [f"{h}: {i}" for h, i in chosen]
    points = X.to_numpy()[[i for _, i in chosen]]
    expected = (points - X.mean().to_numpy()) / np.r_[blobs[0].std(axis=0), 1.0]
    np.testing.assert_allclose(display.values, expected, atol=1e-12)
    np.testing.assert_allclose(ExemplarDisplay.from_result(result, count=2).values, display.values)
    unnamed = fastmmc.umc_rls(X.to_numpy(), 3, n_init=2, random_state=0, sizes="equal")
    assert ExemplarDisplay.from_result(unnamed, X).feature_names == list(X.columns)


def test_exemplars_of_sparse_points_and_of_many_features(rng):
    X = rng.random((40, 50)) * (rng.random((40, 50)) < 0.3)
    result = fastmmc.umc_rls(csr_matrix(X), 2, rank=20, n_init=1, random_state=0, sizes="equal")
    display = ExemplarDisplay.from_result(result, csr_array(X), count=100)
    assert display.values.shape == (40, 50) and display.ax_.get_xlabel() == "feature"
    np.testing.assert_allclose(display.values.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(display.values.std(axis=0), 1.0)


def test_influences_are_drawn_from_the_largest_down(result, blobs):
    influence = fastmmc.feature_influence(result, blobs[0], random_state=0)
    display = InfluenceDisplay.from_influence(influence, most=3, color="red")
    widths = [bar.get_width() for bar in display.ax_.patches]
    assert widths == sorted(influence.shares, reverse=True)[:3]
    assert display.feature_names[0] == f"feature {influence.shares.argmax()}"
    assert display.ax_.yaxis.get_inverted()


def test_displays_of_memberships_refuse_what_they_cannot_draw(blobs, result):
    other = fastmmc.rpcl(blobs[0], 3, random_state=0)
    for draw in (MarginDisplay.from_result, ExemplarDisplay.from_result):
        with pytest.raises(TypeError, match="must be a RLSResult"):
            draw(other)
    with pytest.raises(TypeError, match="must be a FeatureInfluence"):
        InfluenceDisplay.from_influence(result)
    with pytest.raises(ValueError, match="count must be"):
        ExemplarDisplay.from_result(result, count=0)
    with pytest.raises(ValueError, match="75 points"):
        ExemplarDisplay.from_result(result, blobs[0][:10])


def test_one_cluster_rings_none_of_the_numbers_that_have_scores():
    X = np.random.default_rng(0).standard_normal((300, 2))
    rings = []
    for k in (1, 2):
        points = X if k == 1 else X + 12.0 * (np.arange(300) % 2)[:, None]
        result = fastmmc.cluster(points, max_k=3, random_state=0)
        assert len(result.sizes) == k
        axes = ChoiceDisplay.from_result(result).axes_
        rings.append([len(ax.collections) for ax in axes[1:]])
    assert rings == [[1, 1], [2, 2]]


def test_names_are_no_formulas(blobs):
    X, _ = blobs
    frame = pd.DataFrame(X[:, :2], columns=["cost_$ / rev_$", "$5 to $9"])
    result = fastmmc.umc_rls(frame, 3, random_state=0)
    influence = fastmmc.feature_influence(result, frame, random_state=0)
    displays = [
        ClusterDisplay.from_result(result, frame),
        ExemplarDisplay.from_result(result, frame),
        InfluenceDisplay.from_influence(influence),
    ]
    for display in displays:
        display.figure_.canvas.draw()
        texts = [text.get_text() for text in display.figure_.findobj(Text)]
        assert any("cost_$ / rev_$" in text for text in texts)
