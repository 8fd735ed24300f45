"""Distances other than Euclidean ones: cosine, given distances, graphs of neighbours."""

import pickle
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import block_diag, coo_array, csr_array, issparse
from scipy.spatial.distance import pdist, squareform
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine, make_blobs, make_circles, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics import adjusted_rand_score, pairwise_distances
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import kneighbors_graph
from sklearn.preprocessing import StandardScaler, normalize

import fastmmc
from fastmmc.data import metrics
from fastmmc.data.metrics import Directions, Distances, embed_graph

pytestmark = pytest.mark.filterwarnings("ignore:clusters of free sizes")

CALLS = {
    "cluster": lambda X, **given: fastmmc.cluster(X, 3, random_state=0, **given),
    "umc_rls": lambda X, **given: fastmmc.umc_rls(X, 3, random_state=0, **given),
    "low rank": lambda X, **given: fastmmc.umc_rls(X, 3, rank=20, random_state=0, **given),
    "free sizes": lambda X, **given: fastmmc.umc_rls(X, 3, sizes="free", random_state=0, **given),
    "trim": lambda X, **given: fastmmc.umc_rls(X, 3, trim=5, random_state=0, **given),
    "path": lambda X, **given: fastmmc.umc_rls_path(X, 3, [0.1], random_state=0, **given)[0],
    "factor": lambda X, **given: fastmmc.umc_rls(
        fastmmc.factor(X, k=3, **given), 3, random_state=0
    ),
    "low-rank factor": lambda X, **given: fastmmc.umc_rls(
        fastmmc.factor(X, k=3, rank=20, random_state=0, **given), 3, random_state=0
    ),
}
every_call = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


def texts(seed, n=400, n_topics=6, n_words=1500, length=50):
    """Return TF-IDF of documents that mix words of all topics with those of one, and the topics.

    Two topics share about a twelfth of their words, and documents are of very different lengths.
    """
    rng = np.random.default_rng(seed)
    common = 1 / np.arange(1, n_words + 1)
    common /= common.sum()
    topics = np.zeros((n_topics, n_words))
    for topic in topics:
        topic[rng.choice(n_words, 120, replace=False)] = rng.dirichlet(np.full(120, 0.5))
    y = rng.integers(n_topics, size=n)
    lengths = np.maximum(10, rng.lognormal(np.log(length), 0.6, n)).astype(int)
    shares = np.clip(1.2 * rng.beta(8, 8, n), 0.1, 0.95)[:, None]
    counts = rng.multinomial(lengths, shares * common + (1 - shares) * topics[y])
    return csr_array(TfidfTransformer(norm=None).fit_transform(counts)), y


@pytest.fixture
def blobs():
    return make_blobs(150, 4, centers=3, cluster_std=1.5, random_state=0)[0]


# Cosine


@every_call
def test_cosine_is_what_rows_of_length_1_give(call, blobs):
    lengths = np.random.default_rng(0).uniform(0.1, 1e3, (len(blobs), 1))
    wanted, found = call(normalize(blobs)), call(lengths * blobs, metric="cosine")
    assert adjusted_rand_score(wanted.labels, found.labels) == 1.0
    assert found.objective == pytest.approx(wanted.objective)
    new = blobs[:20] + 0.1
    scores = found.decision_function(new)
    np.testing.assert_allclose(found.decision_function(1e150 * new), scores, atol=1e-9)
    # Rounding may give the same clusters other names.
    wanted = np.sort(wanted.decision_function(normalize(new)), axis=1)
    np.testing.assert_allclose(np.sort(scores, axis=1), wanted, atol=1e-7)


def test_cosine_finds_topics_at_least_as_well_as_k_means_of_directions():
    scores = []
    for seed in range(2):
        X, y = texts(seed)
        given = {"metric": "cosine", "random_state": seed}
        found = (
            KMeans(6, n_init=10, random_state=seed).fit(normalize(X)).labels_,
            fastmmc.cluster(X, 6, **given).labels,
            fastmmc.umc_rls(X, 6, rank=300, method="memetic", **given).labels,
        )
        scores.append([adjusted_rand_score(y, labels) for labels in found])
    k_means, choice, memetic = np.mean(scores, axis=0)
    assert k_means <= min(choice, memetic), (k_means, choice, memetic)


def test_sparse_and_dense_rows_have_the_same_cosine():
    X, _ = texts(0, n=150, n_words=300)
    given = {"metric": "cosine", "rank": 50, "random_state": 0}
    sparse, dense = fastmmc.umc_rls(X, 4, **given), fastmmc.umc_rls(X.toarray(), 4, **given)
    np.testing.assert_array_equal(sparse.labels, dense.labels)
    np.testing.assert_allclose(
        sparse.decision_function(X[:9]), dense.decision_function(X[:9].toarray()), atol=1e-9
    )


@pytest.mark.parametrize(("dtype", "scale"), [(np.float64, 1e-200), (np.float32, 1e-20)])
def test_short_rows_have_the_directions_of_long_ones(dtype, scale, rng):
    X = rng.normal(size=(60, 4)).astype(dtype)
    short = X * np.where(np.arange(60) % 2, dtype(scale), dtype(1))[:, None]
    np.testing.assert_allclose(Directions(4).transform(short), Directions(4).transform(X), 1e-5)


@pytest.mark.parametrize("sparse", [False, True])
def test_rows_of_zeros_have_no_direction(sparse, blobs):
    X = blobs.copy()
    X[[7, 9]] = 0.0
    X = csr_array(X) if sparse else X
    with pytest.raises(ValueError, match=r"rows of zeros only, 2 in all and row 7 the first"):
        fastmmc.cluster(X, 3, metric="cosine")
    result = fastmmc.cluster(csr_array(blobs) if sparse else blobs, 3, metric="cosine")
    with pytest.raises(ValueError, match="row 7"):
        result.predict(X)


def test_landmarks_are_scaled_with_the_points(blobs):
    given = {"landmarks": blobs[:12], "random_state": 0}
    F = fastmmc.factor(1e3 * blobs, metric="cosine", **given)
    np.testing.assert_allclose(F.basis, normalize(blobs[:12]))
    np.testing.assert_allclose(F.transform(5.0 * blobs), F.Z, atol=1e-9)


# Distances


@every_call
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_distances_do_what_their_points_do(call, dtype, blobs):
    D = pairwise_distances(blobs).astype(dtype)
    wanted, found = call(blobs.astype(dtype)), call(D, metric="precomputed")
    assert adjusted_rand_score(wanted.labels, found.labels) == 1.0
    objective = wanted.objective
    if call is CALLS["cluster"]:  # takes any of the kernels that tell clusters apart as well
        same = {"method": "steepest", "sizes": "free", "init": found.labels, "rank": None}
        same |= {name: found.params[name] for name in ("sigma", "lam")}
        objective = fastmmc.umc_rls(blobs.astype(dtype), 3, **same).objective
    assert found.objective == pytest.approx(objective, rel=1e-3)
    if wanted.labels.min() == 0:
        np.testing.assert_array_equal(found.predict(D), found.labels)
    new = np.random.default_rng(1).normal(size=(40, 4)) * 5
    labels = found.predict(pairwise_distances(new, blobs).astype(dtype))
    assert adjusted_rand_score(wanted.predict(new.astype(dtype)), labels) > 0.95


SHAPES = {
    "moons": (make_moons(200, noise=0.08, random_state=0), 2),
    "circles": (make_circles(200, noise=0.05, factor=0.5, random_state=0), 2),
    "blobs": (make_blobs(200, 3, centers=5, random_state=0), 5),
    # Of iris two labellings are so close that the seed decides.
    "wine": ((StandardScaler().fit_transform(load_wine().data), load_wine().target), 3),
}


@pytest.mark.parametrize("name", SHAPES)
def test_the_choice_is_the_same_of_points_and_of_their_distances(name):
    (X, y), k = SHAPES[name]
    wanted = fastmmc.cluster(X, k, standardize=False, random_state=0)
    found = fastmmc.cluster(pairwise_distances(X), k, metric="precomputed", random_state=0)
    scores = [adjusted_rand_score(y, one.labels) for one in (wanted, found)]
    assert abs(scores[0] - scores[1]) <= 0.02


def test_more_points_than_references_keep_their_distances(monkeypatch, blobs):
    monkeypatch.setattr("fastmmc.data.metrics.REFERENCES", 30)
    D = pairwise_distances(blobs)
    points = Distances.of(D).transform(D)
    np.testing.assert_allclose(pairwise_distances(points), D, atol=1e-9 * D.max())


@pytest.mark.parametrize("unit", [1e-200, 1.0, 1e200])
def test_distances_in_any_unit_become_points(unit, blobs):
    D = pairwise_distances(blobs)
    points = Distances.of(unit * D).transform(unit * D) / unit
    np.testing.assert_allclose(pairwise_distances(points), D, atol=1e-9 * D.max())


def test_distances_that_no_points_have_are_those_of_the_nearest_gram_matrix(rng):
    """Which is that of the eigenvalues above zero."""
    D = rng.uniform(1, 2, (30, 30))
    D = np.triu(D, 1) + np.triu(D, 1).T
    J = np.eye(30) - 1 / 30
    values, vectors = np.linalg.eigh(-J @ D**2 @ J / 2)
    assert values[0] < -0.1
    points = Distances.of(D).transform(D)
    nearest = (vectors * np.maximum(values, 0)) @ vectors.T
    np.testing.assert_allclose(points @ points.T, nearest, atol=1e-9)
    fastmmc.umc_rls(D, 3, metric="precomputed", random_state=0)


def test_frames_of_distances_are_not_taken_for_tables(blobs):
    D = pairwise_distances(blobs)
    names = [f"id {i}" for i in range(len(D))]
    found = fastmmc.cluster(pd.DataFrame(D, columns=names), 3, metric="precomputed", random_state=0)
    wanted = fastmmc.cluster(D, 3, metric="precomputed", random_state=0)
    np.testing.assert_array_equal(found.labels, wanted.labels)


def test_cross_validation_slices_distances_in_both_directions(blobs):
    model = fastmmc.UMCRLS(3, metric="precomputed", random_state=0)
    tags = model.__sklearn_tags__().input_tags
    assert tags.pairwise and tags.sparse
    assert not fastmmc.UMCRLS(3, metric="cosine").__sklearn_tags__().input_tags.pairwise
    assert fastmmc.AutoMMC(metric="precomputed").__sklearn_tags__().input_tags.pairwise
    search = GridSearchCV(model, {"lam": [0.1, 1.0]}, cv=3)
    search.fit(pairwise_distances(blobs))
    plain = GridSearchCV(clone(model).set_params(metric="euclidean"), {"lam": [0.1, 1.0]}, cv=3)
    plain.fit(blobs)
    wanted = plain.cv_results_["mean_test_score"]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], wanted, atol=1e-6)


# Graphs


def graph(X, k=10):
    return kneighbors_graph(X, k, mode="distance")


@pytest.mark.parametrize(("name", "seed"), [("moons", 0), ("circles", 1)])
def test_shapes_are_found_in_a_graph_of_neighbours(name, seed):
    kinds = {"moons": (make_moons, {}), "circles": (make_circles, {"factor": 0.5})}
    make, more = kinds[name]
    X, y = make(400, noise=0.06, random_state=seed, **more)
    G = graph(X)
    for result in (
        fastmmc.cluster(G, 2, metric="precomputed", random_state=0),
        fastmmc.umc_rls(G, 2, metric="precomputed", random_state=0),
        fastmmc.umc_rls(fastmmc.factor(G, metric="precomputed"), 2, random_state=0),
    ):
        assert adjusted_rand_score(y, result.labels) >= 0.98
        with pytest.raises(ValueError, match="graph of neighbours"):
            result.predict(G)


def test_a_graph_in_pieces_has_a_cluster_in_each():
    X, y = make_blobs(300, centers=12, cluster_std=0.02, random_state=0)
    result = fastmmc.cluster(graph(X, 5), 12, metric="precomputed", random_state=0)
    assert adjusted_rand_score(y, result.labels) == 1.0


def test_the_map_of_a_graph_is_that_of_all_eigenvectors():
    """Naively: the right eigenvectors of the random walk, after many steps."""
    X, _ = make_moons(60, noise=0.05, random_state=0)
    G = graph(X, 6)
    d = G.toarray()
    d = np.where(d > 0, d, np.inf)
    widths = []
    for i in range(60):
        both = np.sort(np.concatenate((d[i], d[:, i])))
        widths.append(both[np.isfinite(both).sum() // 2])
    W = np.exp(-(np.minimum(d, d.T) ** 2) / np.outer(widths, widths))
    degrees = W.sum(axis=1)
    values, vectors = np.linalg.eigh(np.eye(60) - W / np.sqrt(np.outer(degrees, degrees)))
    kept = vectors[:, :30] * np.exp(-50 * values[:30]) * np.sqrt(degrees.sum() / degrees)[:, None]
    found = pairwise_distances(embed_graph(csr_array(G)))
    np.testing.assert_allclose(found, pairwise_distances(kept), atol=1e-4)


def test_zeros_that_are_stored_are_neighbours_and_loops_are_none():
    X = np.repeat(make_moons(60, noise=0.05, random_state=0)[0], 2, axis=0)
    G = graph(X, 6).tocoo()
    assert (G.data == 0).sum() >= 120
    i, j, d = [*G.coords[0], 3], [*G.coords[1], 3], [*G.data, 5.0]
    found = embed_graph(csr_array(coo_array((d, (i, j)), G.shape)))
    np.testing.assert_array_equal(found, embed_graph(csr_array(G)))
    np.testing.assert_allclose(found[::2], found[1::2], atol=5e-2 * np.abs(found).max())


def test_a_time_limit_has_cells_of_points_mapped():
    """600 cells of 2,000 points keep the shapes, and points far from all others as well."""
    X, y = make_moons(2000, noise=0.06, random_state=0)
    G = graph(X)
    found, whole = embed_graph(G, max_time=0.3), embed_graph(G)
    assert found.shape == whole.shape and np.unique(found, axis=0).shape[0] > 1900
    np.testing.assert_allclose(found[:, 0], whole[:, 0], rtol=1e-6)
    labels = fastmmc.umc_rls(found, 2, sizes="free", random_state=0).labels
    assert adjusted_rand_score(y, labels) >= 0.98


def test_cells_keep_the_pieces_of_a_graph_apart():
    X, y = make_blobs(1200, centers=12, cluster_std=0.02, random_state=0)
    pieces = block_diag([graph(X, 12), csr_array((1, 1))], format="csr")
    found = embed_graph(pieces, max_time=0.1)
    groups = np.append(y, 12)
    middles = np.array([found[groups == g].mean(axis=0) for g in range(13)])
    assert (pairwise_distances(found, middles).argmin(axis=1) == groups).all()


# What is refused


def changed(D, i, j, value, mirrored=False):
    D = D.copy()
    D[i, j] = value
    if mirrored:
        D[j, i] = value
    return D


POINTS = make_blobs(40, 3, centers=3, random_state=0)[0]
D = pairwise_distances(POINTS)
WRONG = {
    "not square": (D[:, :9], {}, ValueError, r"square matrix.*\(40, 9\).*squareform"),
    "not symmetric": (changed(D, 2, 5, 9.0), {}, ValueError, r"symmetric with metric="),
    "negative": (changed(D, 2, 5, -1.0, True), {}, ValueError, r"at least 0; got -1"),
    "not a number": (changed(D, 2, 5, np.nan, True), {}, ValueError, "NaN"),
    "infinite": (changed(D, 2, 5, np.inf, True), {}, ValueError, "infinity"),
    "similarities": (np.exp(-D), {}, ValueError, r"diagonal reaches 1\. For similarities"),
    "a Gram matrix too": (D, {"kernel": "precomputed"}, ValueError, "leave out one"),
    "units": (D, {"standardize": True}, ValueError, "standardize=True"),
    "another name": (D, {"metric": "manhattan"}, ValueError, "'cosine'.*got 'manhattan'"),
    "cosine and units": (
        POINTS,
        {"metric": "cosine", "standardize": True},
        ValueError,
        "standardize=True",
    ),
    "a frame and units": (
        pd.DataFrame(POINTS, columns=list("abc")),
        {"metric": "cosine", "standardize": True},
        ValueError,
        "standardize=True",
    ),
    "a factor": (
        fastmmc.factor(POINTS),
        {"metric": "cosine"},
        ValueError,
        r"X is a DenseFactor.*give metric='cosine' to fastmmc\.factor",
    ),
    "half a graph": (graph(POINTS)[:, :9], {}, ValueError, r"square matrix.*\(40, 9\)"),
    "a negative edge": (-graph(POINTS), {}, ValueError, "at least 0"),
    "an edge that is no number": (np.nan * graph(POINTS), {}, ValueError, "NaN"),
    "no edges": (csr_array((40, 40)), {}, ValueError, "graph of 40 components.*30.*neighbours"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_matrix_of_distances_is_refused(name):
    X, given, error, message = WRONG[name]
    with pytest.raises(error, match=re.compile(message, re.DOTALL)):
        fastmmc.umc_rls(X, 3, **({"metric": "precomputed"} | given))


def test_new_distances_are_checked():
    result = fastmmc.umc_rls(D, 3, metric="precomputed", random_state=0)
    with pytest.raises(ValueError, match="9 distances to the training points.*with 40"):
        result.predict(D[:, :9])
    with pytest.raises(ValueError, match="at least 0; got -1"):
        result.predict(D - 1.0)
    with pytest.raises(TypeError, match="X is sparse"):
        result.predict(csr_array(D))
    with pytest.raises(ValueError, match="distances, whose columns are points"):
        fastmmc.feature_influence(result, D)


def test_rounding_is_no_asymmetry():
    noisy = D * (1 + 1e-12 * np.random.default_rng(0).normal(size=D.shape))
    result = fastmmc.umc_rls(noisy, 3, metric="precomputed", random_state=0)
    wanted = fastmmc.umc_rls(POINTS, 3, random_state=0)
    assert adjusted_rand_score(wanted.labels, result.labels) == 1.0


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "seed", [*range(15), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(15, 40))]
)
def test_random_matrices_give_labels_or_an_error_that_names_the_cause(seed):
    """Few points, equal ones, in one column; sparse or not; of any size."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 40)), int(rng.integers(1, 5))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-5, 6)
    if rng.integers(3) == 0:
        X = np.sign(X) * 1.0
    if rng.integers(4) == 0:
        X = X[rng.integers(0, max(1, n // 3), n)]
    kind = rng.choice(["cosine", "sparse cosine", "distances", "graph"])
    given = {
        "cosine": lambda: X,
        "sparse cosine": lambda: csr_array(np.where(X > 0, X, 0.0)),
        "distances": lambda: pairwise_distances(X, metric=rng.choice(["l1", "l2", "chebyshev"])),
        "graph": lambda: graph(X, max(1, min(n - 1, int(rng.integers(1, 12))))),
    }
    if kind == "graph" and n < 2:
        return
    made = given[kind]()
    k = int(rng.integers(1, min(n, 5) + 1))
    metric = "cosine" if "cosine" in kind else "precomputed"
    kwargs = {"rank": n} if issparse(made) and metric == "cosine" else {}
    before = made.copy()
    for call, more in ((fastmmc.umc_rls, kwargs), (fastmmc.cluster, {})):
        try:
            result = call(made, k, metric=metric, random_state=0, **more)
        except ValueError as error:
            assert re.search(r"rows of zeros|components|lam=", str(error)), error
            continue
        assert result.labels.shape == (n,) and result.sizes.sum() == n
        assert np.isfinite(result.objective) and result.params["metric"] == metric
    same = (made != before).nnz == 0 if issparse(made) else (made == before).all()
    assert same, "the input was changed"


# What remembers the metric


@pytest.mark.parametrize("metric", ["cosine", "precomputed", "graph"])
@pytest.mark.parametrize("kind", [fastmmc.UMCRLS, fastmmc.AutoMMC])
def test_estimators_and_files_keep_the_metric(kind, metric, tmp_path):
    X = {"cosine": POINTS, "precomputed": D, "graph": graph(POINTS)}[metric]
    model = kind(3, metric=metric.replace("graph", "precomputed"), random_state=0)
    assert clone(model).metric == model.metric
    model.fit(X).save(tmp_path / "model.npz")
    for again in (fastmmc.load(tmp_path / "model.npz"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.labels_, model.labels_)
        if metric == "graph":
            with pytest.raises(ValueError, match="graph of neighbours"):
                again.predict(X)
        else:
            np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize("metric", ["cosine", "precomputed"])
def test_what_was_chosen_names_the_metric(metric):
    X = POINTS if metric == "cosine" else D
    result = fastmmc.cluster(X, 3, metric=metric, random_state=0)
    assert result.chosen["metric"] == metric
    again = fastmmc.umc_rls(X, 3, **result.chosen)
    np.testing.assert_array_equal(again.labels, result.labels)


def test_the_default_says_nothing_new():
    assert "metric" not in fastmmc.umc_rls(POINTS, 3, random_state=0).params
    assert "metric" not in fastmmc.cluster(POINTS, 3, random_state=0).chosen


def test_fewer_distances_place_the_points_where_time_is_short():
    X, y = make_blobs(700, centers=3, cluster_std=0.5, random_state=0)
    D = squareform(pdist(X))
    counts = [metrics._affordable_references(seconds) for seconds in (None, 1e-9, 0.01, 0.1, 100)]
    assert counts[0] == counts[-1] == metrics.REFERENCES
    assert counts[1] == metrics.LEAST_REFERENCES and counts == [counts[0], *sorted(counts[1:])]
    told = {"random_state": 0, "metric": "precomputed"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = fastmmc.cluster(D, 3, max_time=0.01, **told)
    assert result.model.scaler.indices.size == counts[2] < 700
    assert adjusted_rand_score(y, result.labels) > 0.95
    assert fastmmc.cluster(D, 3, **told).model.scaler.indices.size == 700
