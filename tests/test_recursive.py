"""Recursive splitting: which leaf is next, what the tree holds, stops, routing."""

import inspect
import pickle

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import adjusted_rand_score

import fastmmc
from fastmmc import Status
from fastmmc.registry import METHODS, Method
from fastmmc.rls import outliers

BINARY = [m for m in METHODS.values() if m.binary and m.extra is None]
# On the blobs of these tests the objective of iterSVR is lower with two points on the other side.
FAITHFUL = [m for m in BINARY if m.name != "iter-svr"]
# Machines that are trained to a tolerance let rounding decide between optima, and the starts of
# cpmmc are drawn in the coordinates that an eigendecomposition happens to choose.
EXACT = [m for m in BINARY if m.name not in ("iter-svr", "iter-svm", "cpmmc")]


def name_of(method):
    return method.name


def options_of(method):
    """Sizes wide enough for three clusters to be split one by one, where sizes are bounded."""
    accepted = inspect.signature(method.function).parameters
    return {
        "method": method.name,
        "method_params": {"balance": 0.5} if "balance" in accepted else {},
    }


class Cut:
    """Tells two parts apart by the first feature."""

    def __init__(self, at):
        self.at = at

    def decision_function(self, X):
        score = X[:, 0] - self.at
        return np.column_stack([-score, score])


CALLS = []


def cut(
    X, *, share=0.5, least=2, status=0, fail=None, sample_weight=None, callback=None, max_time=None
):
    """A method for two clusters whose splits are known: by the first feature, left and right."""
    CALLS.append({"n": len(X), "weights": sample_weight, "max_time": max_time})
    if fail is not None and len(CALLS) == fail[0]:
        raise fail[1]
    if len(X) < least:
        raise ValueError(f"X must have at least {least} points")
    if callback is not None and callback(fastmmc.Progress(0.5, 0, 1, np.inf, 0.0)):
        status = Status.CALLBACK
    order = np.argsort(X[:, 0], kind="stable")
    n_left = max(1, int(share * len(X)))
    labels = np.ones(len(X), dtype=np.int64)
    labels[order[:n_left]] = 0
    at = X[order[n_left - 1 : n_left + 1], 0].mean()
    return fastmmc.ClusteringResult(
        labels=labels,
        objective=1.0,
        status=Status(status),
        n_iter=1,
        n_moves=3,
        sizes=np.bincount(labels),
        history=np.array([1.0]),
        trace={"moves": np.array([3])},
        objectives=np.array([1.0]),
        best_init=0,
        params={"share": share},
        model=Cut(at),
    )


@pytest.fixture(autouse=True)
def known_method(monkeypatch):
    """Put a method called "cut" among those of the families."""
    CALLS.clear()
    method = Method("cut", cut, fastmmc.EvoMMC, "no paper", "for tests", binary=True)
    monkeypatch.setitem(METHODS, "cut", method)


def split(X, k, **options):
    return fastmmc.recursive_mmc(X, k, method="cut", **options)


def line(*values):
    return np.array(values, dtype=float)[:, None]


def scatter(X, weights=None):
    weights = np.ones(len(X)) if weights is None else weights
    mean = np.average(X, axis=0, weights=weights)
    return np.sum(weights * np.sum((X - mean) ** 2, axis=1))


def objective_of(X, labels, weights=None):
    weights = np.ones(len(X)) if weights is None else weights
    return sum(scatter(X[labels == c], weights[labels == c]) for c in np.unique(labels))


def routed(tree, X):
    """Follow every point down the tree, one by one."""
    labels = []
    for x in X:
        node = tree.nodes[0]
        while node.label is None:
            score = node.model.decision_function(x[None])[0]
            node = tree.nodes[node.right if score[1] > score[0] else node.left]
        labels.append(node.label)
    return labels


@pytest.mark.parametrize("rule", ["largest", "gain"])
@pytest.mark.parametrize("method", FAITHFUL, ids=name_of)
def test_separated_clusters_are_found(method, rule, blobs):
    X, y = blobs
    res = fastmmc.recursive_mmc(X, 3, split=rule, n_init=3, random_state=0, **options_of(method))
    assert res.converged and adjusted_rand_score(y, res.labels) == 1.0
    assert sorted(res.sizes) == [20, 25, 30]
    assert res.objective == pytest.approx(objective_of(X, y))
    assert res.n_iter == 2 and res.n_moves >= 0 and res.params["method"] == method.name
    # Far from every border the models agree with the labels that they were fitted to.
    np.testing.assert_array_equal(res.predict(X), res.labels)


@pytest.mark.parametrize("rule", ["largest", "gain"])
@pytest.mark.parametrize("method", BINARY, ids=name_of)
def test_prediction_routes_down_the_tree(method, rule, overlapping):
    new = np.random.default_rng(5).standard_normal((200, 3))
    res = fastmmc.recursive_mmc(overlapping, 5, split=rule, random_state=0, **options_of(method))
    expected = routed(res.tree, new)
    assert len(set(expected)) == 5
    np.testing.assert_array_equal(res.predict(new), expected)
    scores = res.decision_function(new)
    assert scores.shape == (200, 5)
    np.testing.assert_array_equal(scores.argmax(axis=1), expected)
    # One cluster at most is on its own side of every split above it.
    assert np.all(np.sort(scores, axis=1)[:, -2] <= 0)


def test_a_point_on_a_border_goes_left():
    res = split(line(0, 1, 2, 3, 4, 5, 6, 7), 4)
    assert [node.model.at for node in res.tree.nodes if node.label is None] == [3.5, 1.5, 5.5]
    borders = line(1.5, 3.5, 5.5)
    np.testing.assert_array_equal(res.predict(borders), [0, 1, 2])
    np.testing.assert_array_equal(res.decision_function(borders).argmax(axis=1), [0, 1, 2])
    np.testing.assert_array_equal(res.decision_function(line(3))[0], [-1.5, 0.5, -0.5, -2.5])


def test_labels_number_the_leaves_from_left_to_right():
    X = np.random.default_rng(0).standard_normal((40, 1))
    res = split(X, 7, method_params={"share": 0.3})
    order = np.argsort(X[:, 0])
    assert (np.diff(res.labels[order]) >= 0).all() and res.labels.max() == 6
    np.testing.assert_array_equal(res.sizes, np.bincount(res.labels))
    leaves = [node for node in res.tree.nodes if node.label is not None]
    assert [node.label for node in leaves] == list(range(7))
    assert [node.size for node in leaves] == res.sizes.tolist()
    for node in res.tree.nodes:
        if node.label is None:
            left, right = res.tree.nodes[node.left], res.tree.nodes[node.right]
            assert node.size == left.size + right.size
            assert left.depth == right.depth == node.depth + 1
    assert res.n_iter == 6 and res.n_moves == 18


def test_the_largest_leaf_is_next():
    # 10 -> 3 | 7 -> 2 | 5 -> 1 | 4: always the right part is larger.
    split(line(*range(10)), 4, method_params={"share": 0.3})
    assert [call["n"] for call in CALLS] == [10, 7, 5]


def test_the_heaviest_leaf_is_next():
    weights = np.ones(10)
    weights[:3] = 10.0
    X = line(*range(10))
    res = split(X, 3, method_params={"share": 0.3}, sample_weight=weights)
    assert [call["n"] for call in CALLS] == [10, 3]
    np.testing.assert_array_equal(CALLS[1]["weights"], weights[:3])
    assert res.objective == pytest.approx(objective_of(X, res.labels, weights))


def test_ties_go_to_the_left():
    split(line(*range(8)), 4)
    assert [call["n"] for call in CALLS] == [8, 4, 4]
    res = split(line(*range(8)), 3)
    assert res.sizes.tolist() == [2, 2, 4]
    res = split(line(*range(8)), 3, split="gain")
    assert res.sizes.tolist() == [2, 2, 4]


@pytest.mark.parametrize("weighted", [False, True])
def test_the_split_of_the_largest_gain_is_next(weighted, rng):
    X = rng.standard_normal((60, 2))
    weights = rng.uniform(0.5, 4.0, 60) if weighted else None
    params = {"share": 0.4}
    res = split(X, 6, split="gain", method_params=params, sample_weight=weights)
    # Every leaf was split once, the two of the last split not at all.
    assert len(CALLS) == 2 * 6 - 3
    # The same by hand.
    w = np.ones(60) if weights is None else weights
    leaves, history = [np.arange(60)], [scatter(X, w)]
    while len(leaves) < 6:
        found = []
        for i, rows in enumerate(leaves):
            right = cut(X[rows], **params).labels == 1
            parts = [rows[~right], rows[right]]
            gain = scatter(X[rows], w[rows]) - sum(scatter(X[p], w[p]) for p in parts)
            found.append((gain, i, parts))
        gain, i, parts = max(found, key=lambda entry: entry[0])
        leaves[i : i + 1] = parts
        history.append(history[-1] - gain)
    labels = np.empty(60, dtype=int)
    for label, rows in enumerate(leaves):
        labels[rows] = label
    np.testing.assert_array_equal(res.labels, labels)
    np.testing.assert_allclose(res.history, history, atol=1e-10)
    assert res.objective == res.history[-1] == res.objectives[0]
    np.testing.assert_array_equal(res.trace["splits"], np.arange(6))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_objective_is_exact_far_from_the_origin(dtype, overlapping):
    X = (overlapping + 1000.0).astype(dtype)
    res = split(X, 4)
    assert res.objective == pytest.approx(objective_of(X.astype(float), res.labels), rel=1e-9)
    assert (np.diff(res.history) <= 0).all()


def test_sparse_points(overlapping):
    X = np.where(np.abs(overlapping) < 0.5, 0.0, overlapping)
    dense, sparse = (
        fastmmc.recursive_mmc(given, 4, method="fast_evo_mmc", split="gain", random_state=0)
        for given in (X, csr_matrix(X))
    )
    np.testing.assert_array_equal(sparse.labels, dense.labels)
    assert sparse.objective == pytest.approx(dense.objective)
    np.testing.assert_array_equal(sparse.predict(csr_matrix(X)), dense.predict(X))


def test_more_clusters_refine_fewer(overlapping):
    """The stream of a node depends on its place only."""
    runs = [
        fastmmc.recursive_mmc(overlapping, k, method="fast_evo_mmc", random_state=7)
        for k in (2, 3, 6)
    ]
    for coarse, fine in zip(runs, runs[1:], strict=False):
        pairs = set(zip(fine.labels, coarse.labels, strict=True))
        assert len(pairs) == len(fine.sizes)
    gain = fastmmc.recursive_mmc(
        overlapping, 3, method="fast_evo_mmc", split="gain", random_state=7
    )
    assert gain.tree.nodes[0].objective == runs[0].tree.nodes[0].objective


@pytest.mark.parametrize("rule", ["largest", "gain"])
@pytest.mark.parametrize("method", BINARY, ids=name_of)
def test_threads_change_nothing(method, rule, overlapping):
    alone, together = (
        fastmmc.recursive_mmc(
            overlapping, 5, split=rule, n_init=4, random_state=3, n_jobs=jobs, **options_of(method)
        )
        for jobs in (1, 3)
    )
    np.testing.assert_array_equal(alone.labels, together.labels)
    assert alone.objective == together.objective


@pytest.mark.parametrize("method", EXACT, ids=name_of)
def test_a_precomputed_kernel_gives_the_same(method, blobs):
    X, _ = blobs
    rbf = options_of(method)
    rbf["method_params"]["sigma"] = 8.0
    gram = options_of(method)
    gram["method_params"]["kernel"] = "precomputed"
    for options in (rbf, gram):
        # The one start that is the same for points and for their Gram matrix.
        options["method_params"]["init"] = "random"
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1) / 64.0)
    a = fastmmc.recursive_mmc(X, 3, n_init=3, random_state=0, **rbf)
    b = fastmmc.recursive_mmc(K, 3, n_init=3, random_state=0, **gram)
    np.testing.assert_array_equal(a.labels, b.labels)
    np.testing.assert_array_equal(b.predict(K[::2]), a.predict(X[::2]))
    np.testing.assert_allclose(b.decision_function(K[::2]), a.decision_function(X[::2]), atol=1e-6)


def test_the_objective_of_a_precomputed_kernel_is_in_its_space(overlapping):
    params = {"kernel": "precomputed"}
    K = overlapping @ overlapping.T
    for rule in ("largest", "gain"):
        res = fastmmc.recursive_mmc(
            K, 4, method="evo_mmc", method_params=params, split=rule, random_state=0
        )
        assert res.objective == pytest.approx(objective_of(overlapping, res.labels))
        assert res.history[0] == pytest.approx(scatter(overlapping))


def test_parameters_that_depend_on_the_points_are_those_of_the_leaf(overlapping):
    res = fastmmc.recursive_mmc(overlapping, 4, method="evo_mmc", random_state=0)
    tree = res.tree
    root, left = tree.nodes[0], tree.nodes[tree.nodes[0].left]
    assert root.params["sigma"] == pytest.approx(fastmmc.kernels.gram.box_diagonal(overlapping))
    rows = res.labels < 2
    assert left.size == rows.sum()
    assert left.params["sigma"] == pytest.approx(
        fastmmc.kernels.gram.box_diagonal(overlapping[rows])
    )


def test_a_rank_counts_for_all_points(overlapping):
    res = fastmmc.recursive_mmc(
        overlapping, 8, method="fast_evo_mmc", method_params={"rank": 20}, random_state=0
    )
    ranks = [(node.size, node.params["rank"]) for node in res.tree.nodes if node.label is None]
    assert min(size for size, _ in ranks) < 20
    assert all(rank <= min(20, size) for size, rank in ranks)


def test_a_rank_counts_for_points_of_weight_zero_too(overlapping):
    weights = np.r_[0.0, np.ones(59)]
    given = {"sample_weight": weights, "random_state": 0}
    res = fastmmc.recursive_mmc(overlapping, 2, method_params={"rank": 60, "sigma": 0.5}, **given)
    assert res.tree.nodes[0].params["rank"] == 59
    with pytest.raises(ValueError, match="rank must be at most"):
        fastmmc.recursive_mmc(overlapping, 2, method_params={"rank": 61}, **given)


def test_one_cluster(overlapping):
    res = fastmmc.recursive_mmc(overlapping, 1, method="evo_mmc")
    assert res.sizes.tolist() == [60] and res.converged and res.n_iter == 0
    assert res.objective == pytest.approx(scatter(overlapping))
    np.testing.assert_array_equal(res.predict(overlapping[:3]), 0)
    np.testing.assert_array_equal(res.decision_function(overlapping[:3]), np.ones((3, 1)))
    assert str(res.tree) == "cluster 0: 60 points"
    with pytest.raises(ValueError, match="2 features"):
        res.predict(overlapping[:, :2])


def test_no_outliers_are_scored_of_parts_that_nobody_sees(overlapping, monkeypatch):
    def score(*args):
        raise AssertionError("scored")

    monkeypatch.setattr(outliers, "score_outliers", score)
    assert fastmmc.recursive_mmc(overlapping, 3, method="evo_mmc", random_state=0).sizes.size == 3
    image = overlapping.reshape(6, 10, 3)
    for method in ("umc_rls", "evo_mmc"):
        assert fastmmc.segment(image, 3, method=method, random_state=0).sizes.size == 3
    with pytest.raises(AssertionError, match="scored"):
        fastmmc.evo_mmc(overlapping, random_state=0)


@pytest.mark.parametrize("rule", ["largest", "gain"])
def test_as_many_clusters_as_points(rule):
    X = line(3, 1, 2, 0, 4)
    res = split(X, 5, split=rule)
    np.testing.assert_array_equal(res.labels, X[:, 0])
    assert res.objective == 0.0 and (np.diff(res.history) <= 0).all()


def test_a_deep_tree_can_be_used_and_stored():
    X = line(*range(600))
    res = split(X, 600, method_params={"share": 1e-9})
    assert res.tree.nodes[-1].depth == 599
    copy = pickle.loads(pickle.dumps(res))
    np.testing.assert_array_equal(copy.predict(X[-3:]), [597, 598, 599])
    assert str(copy.tree).count("\n") == 1198


def test_equal_points_are_kept_together():
    X = line(*[0.0] * 50, -0.0, 1, 2)
    res = split(X, 3, method_params={"share": 0.963})
    assert res.sizes.tolist() == [51, 1, 1]
    assert [call["n"] for call in CALLS] == [53, 2]


@pytest.mark.parametrize("rule", ["largest", "gain"])
def test_a_leaf_that_is_refused_makes_way_for_the_next(rule):
    # 20 -> 14 | 6; 14 -> 9 | 5; 9 -> 6 | 3; fewer than 8 are refused.
    X = line(*range(20))
    params = {"share": 0.7, "least": 8}
    assert split(X, 4, split=rule, method_params=params).converged
    with pytest.warns(ConvergenceWarning, match="4 of 6 clusters were made") as caught:
        res = split(X, 6, split=rule, method_params=params)
    assert "the largest one has 6 points: X must have at least 8 points" in str(caught[0].message)
    assert caught[0].filename == __file__
    assert res.status == Status.INFEASIBLE and not res.converged
    assert res.sizes.tolist() == [6, 3, 5, 6] and res.history.shape == (4,)


@pytest.mark.parametrize("rule", ["largest", "gain"])
@pytest.mark.parametrize("X, sizes", [(np.ones((6, 2)), [6]), (line(0, -0.0, 1), [1, 2])])
def test_equal_points_stay_together(X, sizes, rule):
    with pytest.warns(ConvergenceWarning, match=f"{len(sizes)} of 3 .* its points are equal"):
        res = fastmmc.recursive_mmc(X, 3, method="evo_mmc", split=rule, random_state=0)
    assert sorted(res.sizes) == sizes and res.status == Status.INFEASIBLE
    np.testing.assert_array_equal(res.predict(X), res.labels)


def test_size_rules_refuse_leaves(overlapping):
    with pytest.warns(ConvergenceWarning, match="min_size must be at most 15"):
        res = fastmmc.recursive_mmc(
            overlapping,
            4,
            method="evo_mmc",
            method_params={"min_size": 20, "balance": 0.0},
            random_state=0,
        )
    assert res.sizes.tolist() == [30, 30] and res.status == Status.INFEASIBLE


def test_what_does_not_fit_all_points_is_an_error():
    with pytest.raises(ValueError, match="at least 9 points"):
        split(line(*range(8)), 2, method_params={"least": 9})


def test_a_method_that_leaves_one_side_empty(monkeypatch):
    def lazy(X):
        res = cut(X)
        return type(res)(**{**vars(res), "labels": np.zeros(len(X), dtype=np.int64)})

    method = Method("lazy", lazy, fastmmc.EvoMMC, "no paper", "for tests", binary=True)
    monkeypatch.setitem(METHODS, "lazy", method)
    with pytest.warns(ConvergenceWarning, match="1 of 3 clusters .* on one side"):
        res = fastmmc.recursive_mmc(line(0, 1, 2), 3, method="lazy")
    assert res.sizes.tolist() == [3]


@pytest.mark.parametrize("rule", ["largest", "gain"])
def test_a_callback_stops_between_splits(rule):
    heard = []

    def stop(progress):
        heard.append(progress)
        return progress.n_done >= 3

    with pytest.warns(ConvergenceWarning, match="callback asked to stop; 4 of 9 clusters"):
        res = split(line(*range(32)), 9, split=rule, callback=stop)
    assert res.status == Status.CALLBACK and len(res.sizes) == 4 and len(CALLS) == 3
    fractions = [progress.fraction for progress in heard]
    assert fractions == sorted(fractions) and fractions[0] > 0
    n_splits = 8 if rule == "largest" else 15
    assert {progress.n_init for progress in heard} == {n_splits}
    assert fractions[-1] == pytest.approx(3 / n_splits)
    assert heard[0].objective == pytest.approx(scatter(line(*range(32))))


def test_a_callback_stops_within_a_split(overlapping):
    with pytest.warns(ConvergenceWarning) as caught:
        res = fastmmc.recursive_mmc(
            overlapping, 4, method="evo_mmc", n_init=10**6, callback=lambda progress: True
        )
    assert res.status == Status.CALLBACK and len(res.sizes) == 2
    assert any("2 of 4 clusters were made" in str(warning.message) for warning in caught)


def test_a_stop_after_the_last_split_changes_nothing():
    assert split(line(0, 1, 2), 2, callback=lambda progress: progress.n_done == 1).converged


def test_the_time_limit_is_that_of_the_whole_call():
    with pytest.warns(ConvergenceWarning, match="max_time was reached; 2 of 4 clusters"):
        res = split(line(*range(8)), 4, max_time=1e-9)
    assert res.status == Status.TIME_LIMIT and len(CALLS) == 1
    CALLS.clear()
    split(line(*range(8)), 4, max_time=1000.0)
    given = [call["max_time"] for call in CALLS]
    assert given == sorted(given, reverse=True) and 0 < given[-1] < given[0] <= 1000.0


def test_a_split_that_was_cut_short_is_used(overlapping):
    with pytest.warns(ConvergenceWarning):
        res = fastmmc.recursive_mmc(
            overlapping, 2, method="evo_mmc", n_init=10**6, max_time=0.1, random_state=0
        )
    assert res.status == Status.TIME_LIMIT and len(res.sizes) == 2


def test_the_status_of_a_split_is_that_of_the_tree():
    res = split(line(*range(8)), 4, method_params={"status": Status.MAX_ITER})
    assert res.status == Status.MAX_ITER and len(res.sizes) == 4


@pytest.mark.parametrize("rule", ["largest", "gain"])
def test_an_interrupt_keeps_what_was_made(rule):
    X = line(*range(16))
    params = {"fail": (4, KeyboardInterrupt())}
    with pytest.warns(ConvergenceWarning, match="interrupted; . of 8 clusters"):
        res = split(X, 8, split=rule, method_params=params)
    assert res.status == Status.INTERRUPTED
    assert len(res.sizes) == (4 if rule == "largest" else 3)
    CALLS.clear()
    with pytest.raises(KeyboardInterrupt):
        split(X, 8, split=rule, method_params={"fail": (1, KeyboardInterrupt())})


def test_an_error_in_a_callback_is_raised():
    def broken(progress):
        if progress.n_done == 1:
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        split(line(*range(8)), 4, callback=broken)


def test_other_errors_of_a_split_are_raised():
    with pytest.raises(MemoryError):
        split(line(*range(8)), 4, method_params={"fail": (2, MemoryError())})


def test_progress_bar(overlapping, capsys):
    fastmmc.recursive_mmc(overlapping, 3, method="fast_evo_mmc", verbose=1)
    assert "split" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"k": 0}, ValueError, "k must be at least 1; got 0"),
        ({"k": 13}, ValueError, "k must be at most 12, the number of points; got 13"),
        ({"k": 2.0}, TypeError, "k must be an integer"),
        ({"method": "magic"}, ValueError, "method must be one of those .* got 'magic'"),
        ({"method": None}, ValueError, "method must be one of those .* got None"),
        ({"method": "umc_rls"}, ValueError, "got 'umc_rls', which makes any number of clusters"),
        ({"split": "smallest"}, ValueError, "split must be one of 'largest', 'gain'"),
        ({"method_params": [1]}, TypeError, "method_params must be a dict"),
        ({"method_params": {"rank": 3}}, ValueError, "evo-mmc has no 'rank'; it has lam, mu,"),
        ({"method_params": {"n_init": 3}}, ValueError, "give n_init to recursive_mmc itself"),
        ({"method_params": {"X": 3}}, ValueError, "give X to recursive_mmc itself"),
        ({"method_params": {"lam": -1}}, ValueError, "lam must be greater than 0"),
        ({"method_params": {"target_sizes": [6, 6]}}, ValueError, "target_sizes would be of all"),
        ({"method_params": {"init": [0, 1] * 6}}, ValueError, "init would be of all points"),
        ({"sample_weight": np.ones(12)}, ValueError, "evo-mmc takes no weights"),
        ({"n_init": 0}, ValueError, "n_init must be at least 1"),
        ({"n_jobs": 0}, ValueError, "n_jobs must not be 0"),
        ({"max_time": 0}, ValueError, "max_time must be greater than 0"),
        ({"callback": 1}, TypeError, "callback must be callable"),
        ({"random_state": -1}, ValueError, "random_state must not be negative"),
        ({"X": np.full((4, 2), np.nan)}, ValueError, "NaN"),
    ],
)
def test_bad_input(options, error, message, rng):
    X = rng.standard_normal((12, 2))
    X.flags.writeable = False
    with pytest.raises(error, match=message):
        fastmmc.recursive_mmc(**({"X": X, "k": 3, "method": "evo_mmc"} | options))


def test_more_bad_input(overlapping):
    with pytest.raises(TypeError, match="got a DenseFactor"):
        fastmmc.recursive_mmc(fastmmc.factor(overlapping), 3, method="evo_mmc")
    with pytest.raises(ValueError, match="landmarks would be of all points"):
        fastmmc.recursive_mmc(
            overlapping, 3, method="fast_evo_mmc", method_params={"landmarks": [0, 1]}
        )
    with pytest.raises(ValueError, match="cut makes one start; got 2"):
        split(overlapping, 3, n_init=2)
    for weights in (np.ones(3), np.zeros(60), np.full(60, np.inf)):
        with pytest.raises(ValueError, match="sample_weight (must|is zero)"):
            split(overlapping, 3, sample_weight=weights)


def test_both_spellings_of_a_method(overlapping):
    a, b = (
        fastmmc.recursive_mmc(overlapping, 2, method=name, random_state=0)
        for name in ("fast_evo_mmc", "fast-evo-mmc")
    )
    np.testing.assert_array_equal(a.labels, b.labels)
    assert a.params == b.params


def test_splits_without_models_cannot_predict(monkeypatch):
    def mute(X):
        res = cut(X)
        return type(res)(**{**vars(res), "model": None})

    method = Method("mute", mute, fastmmc.EvoMMC, "no paper", "for tests", binary=True)
    monkeypatch.setitem(METHODS, "mute", method)
    res = fastmmc.recursive_mmc(line(0, 1, 2), 3, method="mute")
    assert len(res.sizes) == 3
    with pytest.raises(NotFittedError):
        res.predict(line(0))
    with pytest.raises(NotFittedError):
        res.decision_function(line(0))


def test_the_tree_as_text():
    res = split(line(*range(4)), 3)
    assert str(res.tree).splitlines() == [
        "4 points",
        "|-- 2 points",
        "|   |-- cluster 0: 1 point",
        "|   `-- cluster 1: 1 point",
        "`-- cluster 2: 2 points",
    ]


@pytest.mark.parametrize("method", BINARY, ids=name_of)
def test_results_can_be_pickled(method, overlapping):
    res = fastmmc.recursive_mmc(overlapping, 4, random_state=0, **options_of(method))
    copy = pickle.loads(pickle.dumps(res))
    np.testing.assert_array_equal(copy.predict(overlapping), res.predict(overlapping))
    assert str(copy.tree) == str(res.tree)


def test_the_estimator_is_its_function(overlapping):
    theirs = inspect.signature(fastmmc.RecursiveMMC).parameters
    ours = inspect.signature(fastmmc.recursive_mmc).parameters
    renamed = {"n_clusters" if n == "k" else n: p.default for n, p in ours.items()}
    for name in ("X", "sample_weight"):
        del renamed[name]
    assert renamed | {"n_clusters": 8} == {name: p.default for name, p in theirs.items()}
    options = {"method": "fast_evo_mmc", "split": "gain", "random_state": 0}
    model = fastmmc.RecursiveMMC(4, **options).fit(overlapping)
    res = fastmmc.recursive_mmc(overlapping, 4, **options)
    np.testing.assert_array_equal(model.labels_, res.labels)
    np.testing.assert_array_equal(model.predict(overlapping), res.predict(overlapping))
    assert model.objective_ == res.objective and str(model.tree_) == str(res.tree)
    margins = res.decision_function(overlapping).max(axis=1)
    assert model.score(overlapping) == pytest.approx(-np.mean(np.maximum(0, 1 - margins)))
    assert -1 <= model.score(overlapping) < 0


def test_the_estimator_takes_what_its_method_takes(blobs):
    X, y = blobs
    model = fastmmc.RecursiveMMC(3, method="cut").fit(X, sample_weight=np.arange(1, 76))
    np.testing.assert_array_equal(CALLS[0]["weights"], np.arange(1, 76))
    model = fastmmc.RecursiveMMC(method="evo_mmc", method_params={"kernel": "precomputed"})
    assert model.__sklearn_tags__().input_tags.pairwise
    assert not model.__sklearn_tags__().input_tags.sparse
    model = fastmmc.RecursiveMMC(method="fast_evo_mmc")
    assert model.__sklearn_tags__().input_tags.sparse
    # Wrong parameters do not stand in the way of looking at a model.
    assert not fastmmc.RecursiveMMC(method="magic").__sklearn_tags__().input_tags.pairwise


def test_scikit_learn_callbacks():
    pytest.importorskip("sklearn.callback")

    class Recorder:
        def __init__(self):
            self.events = []

        def setup(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context):
            self.events.append(context.task_name)
            return self.events.count("split") >= 2

        def teardown(self, estimator, context):
            pass

    recorder = Recorder()
    model = fastmmc.RecursiveMMC(6, method="cut").set_callbacks(recorder)
    with pytest.warns(ConvergenceWarning, match="callback asked to stop; 3 of 6"):
        model.fit(line(*range(12)))
    assert recorder.events == ["split", "split", "fit"]
    assert model.status_ == Status.CALLBACK


def test_advice_of_the_method_says_where_to_give_it(blobs):
    X, given = blobs[0], {"solver": "interior"}
    with pytest.raises(ValueError, match=r"give a rank.*rank.*: in method_params, as of iter_svr"):
        fastmmc.recursive_mmc(X, 3, method_params=given)
    fastmmc.recursive_mmc(X, 3, method_params=given | {"rank": 20}, random_state=0)


@pytest.mark.parametrize("kind", [ValueError, TypeError, MemoryError])
def test_an_error_of_the_callback_is_its_own(blobs, kind):
    fault = kind("rank=1")

    def fail(progress):
        raise fault

    with pytest.raises(kind) as error:
        fastmmc.recursive_mmc(blobs[0], 3, callback=fail, random_state=0)
    assert error.value is fault


@pytest.mark.parametrize("is_gram", [False, True])
def test_a_point_of_weight_zero_does_not_count(overlapping, rng, is_gram):
    weights = rng.integers(0, 3, 60).astype(np.float64)
    kept = weights > 0
    points = np.exp(-0.1 * ((overlapping[:, None] - overlapping) ** 2).sum(axis=2))
    given = {"method_params": {"kernel": "precomputed"}, "random_state": 0}
    part, others = points[np.ix_(kept, kept)], points[~kept][:, kept]
    if not is_gram:
        points, part, others, given = overlapping, overlapping[kept], overlapping[~kept], {}
        given = {"random_state": 0}
    result = fastmmc.recursive_mmc(points, 4, sample_weight=weights, **given)
    alone = fastmmc.recursive_mmc(part, 4, sample_weight=weights[kept], **given)
    assert result.objective == alone.objective and str(result.tree) == str(alone.tree)
    np.testing.assert_array_equal(result.labels[kept], alone.labels)
    np.testing.assert_array_equal(result.labels[~kept], alone.predict(others))
    np.testing.assert_array_equal(result.predict(points)[~kept], result.labels[~kept])
    with pytest.raises(ValueError, match="whose sample_weight is above 0"):
        fastmmc.recursive_mmc(points, 4, sample_weight=np.eye(60)[3], **given)


def test_an_objective_that_overflows_is_told():
    with pytest.warns(ConvergenceWarning, match="numbers overflowed"):
        result = fastmmc.recursive_mmc([[0.0], [1e200], [3e200]], 1)
    assert result.status == Status.NUMERICAL
