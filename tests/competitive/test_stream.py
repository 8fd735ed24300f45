"""partial_fit: chunks, memory, constraints between chunks, saving."""

import json
import pickle
import sys
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.exceptions import NotFittedError

import fastmmc
from tests import naive_competitive as naive

ONLINE = [fastmmc.WTA, fastmmc.FSCL, fastmmc.RPCL, fastmmc.CRPCL, fastmmc.OLCVQE]
LINKED = [fastmmc.CRPCL, fastmmc.OLCVQE]
every = pytest.mark.parametrize("kind", ONLINE, ids=lambda kind: kind.__name__)
linked = pytest.mark.parametrize("kind", LINKED, ids=lambda kind: kind.__name__)
TWINS = {fastmmc.CRPCL: naive.c_rpcl, fastmmc.OLCVQE: partial(naive.o_lcvqe, once=True)}


@pytest.fixture
def stream():
    rng = np.random.default_rng(5)
    y = rng.integers(3, size=120)
    return rng.standard_normal((120, 2)) + 3.0 * np.eye(3)[y][:, :2], y


def start(X, k=3):
    return X[:k].copy()


@every
@pytest.mark.parametrize("size", [1, 7, 50, 120])
def test_chunks_do_not_matter(kind, size, stream):
    X, _ = stream
    whole = kind(3, init=start(X)).partial_fit(X)
    parts, labels = kind(3, init=start(X)), []
    for at in range(0, 120, size):
        labels.append(parts.partial_fit(X[at : at + size]).labels_)
    np.testing.assert_array_equal(parts.cluster_centers_, whole.cluster_centers_)
    np.testing.assert_array_equal(parts.weights_, whole.weights_)
    np.testing.assert_array_equal(np.concatenate(labels), whole.labels_)
    assert parts.n_seen_ == whole.n_seen_ == 120


@linked
@pytest.mark.parametrize("memory_size", [5, 1000])
@pytest.mark.parametrize(
    ("by", "size"),
    [("pairs", 1), ("pairs", 50), ("labels", 7), ("labels", 50), ("both", 7), ("both", 50)],
)
def test_chunks_do_not_matter_to_constraints(kind, by, size, memory_size, stream):
    X, y = stream
    rng = np.random.default_rng(0)
    pairs = np.array([rng.choice(120, 2, replace=False) for _ in range(60)])
    pairs = pairs[y[pairs[:, 0]] != y[pairs[:, 1]]]
    known = np.where(rng.random(120) < 0.2, y, -1)

    def learn(size):
        model = kind(3, init=start(X), memory_size=memory_size, labels_as="both")
        for at in range(0, 120, size):
            links = pairs if by != "labels" and at == 0 else None
            labels = known[at : at + size] if by != "pairs" else None
            model.partial_fit(X[at : at + size], y=labels, cannot_link=links)
        return model

    whole, parts = learn(120), learn(size)
    np.testing.assert_array_equal(parts.cluster_centers_, whole.cluster_centers_)
    np.testing.assert_array_equal(parts.weights_, whole.weights_)
    assert parts.n_forgotten_ == whole.n_forgotten_
    assert len(parts._stream.memory_ids) <= memory_size


@linked
def test_a_stream_is_the_listing_with_partners_seen_before(kind, stream):
    X, y = stream
    rng = np.random.default_rng(1)
    pairs = np.array([rng.choice(120, 2, replace=False) for _ in range(80)])
    differ = y[pairs[:, 0]] != y[pairs[:, 1]]
    cannot, must = pairs[differ], pairs[~differ]
    cannot, must = (np.array(sorted(p.tolist(), key=min)) for p in (cannot, must))
    learner = naive.Learner(start(X), 0.05, 0.002)
    TWINS[kind](X, range(120), learner, unique(cannot), unique(must), set())
    model = kind(3, init=start(X))
    for at in range(0, 120, 40):
        new = {"cannot_link": cannot, "must_link": must} if at == 0 else {}
        model.partial_fit(X[at : at + 40], **new)
    np.testing.assert_allclose(model.cluster_centers_, learner.centers, rtol=1e-9)
    np.testing.assert_array_equal(model.weights_, learner.wins)
    assert model.n_forgotten_ == 0


def unique(pairs):
    return sorted({tuple(sorted(pair)) for pair in pairs.tolist()})


@linked
def test_labels_are_the_constraints_that_they_imply(kind, stream):
    X, y = stream
    known = np.where(np.arange(120) % 5 == 0, y, -1)
    rows = np.flatnonzero(known >= 0)
    a, b = (rows[i] for i in np.triu_indices(rows.size, 1))
    pairs = np.column_stack((a, b))[known[a] != known[b]]
    by_labels = kind(3, init=start(X)).partial_fit(X[:60], y=known[:60])
    by_labels.partial_fit(X[60:], y=known[60:])
    by_pairs = kind(3, init=start(X)).partial_fit(X[:60], cannot_link=pairs).partial_fit(X[60:])
    np.testing.assert_array_equal(by_labels.cluster_centers_, by_pairs.cluster_centers_)


def test_constraints_may_change_between_calls(stream):
    X, _ = stream
    model = fastmmc.CRPCL(3, init=start(X))
    model.partial_fit(X[:40], cannot_link=[(0, 100), (1, 2)])
    model.partial_fit(X[40:80], must_link=[(3, 50), (0, 90)])
    # Object 3 was in no constraint when it came, and is not remembered; object 0 was.
    assert model.n_forgotten_ == 1
    model.partial_fit(X[80:], cannot_link=[(4, 5)])
    assert model.n_forgotten_ == 2  # both had been presented
    assert len(model._stream.must) == len(model._stream.cannot) == 0


def test_the_memory_is_bounded(stream):
    X, _ = stream
    model = fastmmc.CRPCL(3, init=start(X), memory_size=3)
    pairs = [(i, 100) for i in range(10)]
    model.partial_fit(X[:50], cannot_link=pairs).partial_fit(X[50:])
    assert model.n_forgotten_ == 7
    assert model._stream.memory_ids.tolist() == [8, 9, 100]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"cannot_link": [(3, 3)]}, "links object 3 to itself"),
        ({"cannot_link": [(-1, 3)]}, "numbered from 0"),
        ({"must_link": [(70, 8)], "cannot_link": [(8, 70)]}, "must-links join, such as 8 and 70"),
    ],
)
def test_bad_constraints(given, message, stream):
    with pytest.raises(ValueError, match=message):
        fastmmc.CRPCL(3).partial_fit(stream[0], **given)


def test_labels_and_pairs_that_contradict_each_other(stream):
    X, _ = stream
    part = np.full(60, -1)
    part[[0, 50]] = 0, 1
    for labels_as in ("both", "cannot_link"):
        with pytest.raises(ValueError, match="must-links join, such as 0 and 50"):
            fastmmc.CRPCL(3, labels_as=labels_as).partial_fit(X[:60], part, must_link=[(0, 50)])
    model = fastmmc.CRPCL(3, labels_as="both").partial_fit(X[:60], part)
    later = np.full(60, -1)
    later[10] = 1
    with pytest.raises(ValueError, match="such as 50 and 70"):
        model.partial_fit(X[60:], later, cannot_link=[(50, 70)])
    assert model.n_seen_ == 60
    assert model.partial_fit(X[60:], later, cannot_link=[(0, 70)]).n_seen_ == 120


def test_the_first_objects_must_do_for_the_prototypes(stream):
    X, _ = stream
    with pytest.raises(ValueError, match="finds 3 prototypes.*got 2"):
        fastmmc.RPCL(3).partial_fit(X[:2])
    assert fastmmc.RPCL(3, init=start(X)).partial_fit(X[:1]).n_seen_ == 1


def test_learning_goes_on_after_a_fit(stream):
    X, _ = stream
    model = fastmmc.RPCL(6, random_state=0, min_share=0.05).fit(X)
    fitted = model.cluster_centers_.copy()
    wins = model.weights_.sum()
    model.partial_fit(X[:10])
    assert model.cluster_centers_.shape == fitted.shape
    assert not np.array_equal(model.cluster_centers_, fitted)
    assert model.n_seen_ == 10 and model.weights_.sum() <= wins + 10
    model.fit(X)
    np.testing.assert_array_equal(model.cluster_centers_, fitted)


@every
def test_other_inputs(kind, stream):
    X, _ = stream
    dense = kind(3, init=start(X)).partial_fit(X)
    sparse = kind(3, init=start(X)).partial_fit(csr_matrix(X))
    np.testing.assert_array_equal(sparse.cluster_centers_, dense.cluster_centers_)
    single = kind(3, init=start(X)).partial_fit(X.astype(np.float32))
    np.testing.assert_allclose(single.cluster_centers_, dense.cluster_centers_, atol=1e-4)
    listed = kind(3, init=start(X)).partial_fit(X.tolist())
    np.testing.assert_array_equal(listed.cluster_centers_, dense.cluster_centers_)


def test_another_number_of_features_is_refused(stream):
    X, _ = stream
    model = fastmmc.WTA(3, random_state=0).partial_fit(X)
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, :1])


def test_features_of_a_kernel(stream):
    X, _ = stream
    model = fastmmc.RPCL(3, features="nystroem", rank=20, random_state=0)
    model.partial_fit(X[:60]).partial_fit(X[60:])
    assert model.cluster_centers_.shape[0] == 3 and model.predict(X).shape == (120,)


# Saving


@linked
@pytest.mark.parametrize("features", [None, "nystroem"])
def test_a_saved_stream_goes_on(kind, features, stream, tmp_path):
    X, y = stream
    known = np.where(np.arange(120) % 4 == 0, y, -1)
    model = kind(3, features=features, rank=20 if features else "auto", random_state=0)
    model.partial_fit(X[:60], y=known[:60], cannot_link=[(1, 70), (2, 119)])
    model.save(tmp_path / "stream.npz")
    again = kind.load(tmp_path / "stream.npz")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    for one in (model, again):
        one.partial_fit(X[60:], y=known[60:])
    for name in ("cluster_centers_", "weights_", "labels_", "n_seen_", "n_forgotten_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
    assert again.get_params()["rank"] == model.get_params()["rank"]


def test_a_fitted_model_is_saved_as_well(stream, tmp_path):
    X, _ = stream
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = fastmmc.RPCL(4, random_state=0).fit(frame)
    model.save(tmp_path / "model.npz")
    again = fastmmc.RPCL.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
    assert again.feature_names_in_.tolist() == ["a", "b"]
    with np.load(tmp_path / "model.npz", allow_pickle=False) as file:
        assert json.loads(str(file["header"]))["class"] == "RPCL"


def test_what_cannot_be_saved_or_read(stream, tmp_path):
    X, _ = stream
    with pytest.raises(NotFittedError):
        fastmmc.WTA(3).save(tmp_path / "w.npz")
    model = fastmmc.WTA(3, features="nystroem", kernel=lambda A, B: A @ B.T, rank=9).fit(X)
    with pytest.raises(TypeError, match="callable kernel"):
        model.save(tmp_path / "w.npz")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "x.npz").write_bytes(b"no archive")
    with pytest.raises(ValueError, match="no saved estimator"):
        fastmmc.WTA.load(tmp_path / "x.npz")
    np.savez(tmp_path / "y.npz", X=X)
    with pytest.raises(ValueError, match="no saved estimator"):
        fastmmc.WTA.load(tmp_path / "y.npz")
    fastmmc.FSCL(3).fit(X).save(tmp_path / "z.npz")
    with pytest.raises(ValueError, match="holds FSCL.*expected WTA"):
        fastmmc.WTA.load(tmp_path / "z.npz")


def test_pickled(stream):
    X, _ = stream
    model = fastmmc.CRPCL(3, random_state=0).partial_fit(X[:60], cannot_link=[(0, 100)])
    again = pickle.loads(pickle.dumps(model))
    for one in (model, again):
        one.partial_fit(X[60:])
    np.testing.assert_array_equal(again.cluster_centers_, model.cluster_centers_)


def resident_megabytes():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) / 1024


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@linked
def test_ten_million_objects(kind):
    """A fiftieth of the objects is labelled; memory stays flat and prototypes finite."""
    rng = np.random.default_rng(0)
    centers = 4.0 * rng.standard_normal((5, 8))
    model = kind(5, memory_size=50, random_state=0)
    before = None
    for chunk in range(1000):
        y = rng.integers(5, size=10_000)
        X = centers[y] + rng.standard_normal((10_000, 8))
        known = np.where(rng.random(10_000) < 0.02, y, -1)
        model.partial_fit(X, y=known)
        if chunk == 100:
            before = resident_megabytes()
    assert resident_megabytes() < before + 5
    assert model.n_seen_ == 10_000_000
    assert np.isfinite(model.cluster_centers_).all()
    assert len(model._stream.memory_ids) == 50
