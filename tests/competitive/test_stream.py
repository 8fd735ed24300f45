"""partial_fit: chunks, memory, constraints between chunks, saving."""

import json
import pickle
import sys
from functools import partial

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import fastmmc
from fastmmc.competitive import stream as stream_module
from tests.competitive import naive
from tests.damage import damaged

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
        model.set_params(semi_supervised=True)
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
    by_labels = kind(3, init=start(X), semi_supervised=True)
    by_labels.partial_fit(X[:60], y=known[:60]).partial_fit(X[60:], y=known[60:])
    by_pairs = kind(3, init=start(X)).partial_fit(X[:60], cannot_link=pairs).partial_fit(X[60:])
    np.testing.assert_array_equal(by_labels.cluster_centers_, by_pairs.cluster_centers_)


@linked
@pytest.mark.parametrize("labels_as", ["cannot_link", "must_link", "both"])
@pytest.mark.parametrize("memory_size", [7, 1000])
def test_every_object_labelled(kind, labels_as, memory_size, stream, monkeypatch):
    """Against the twin, with pairs among the labels, whatever the chunks and their slices."""
    X, y = stream
    rng = np.random.default_rng(3)
    known = np.where(rng.random(120) < 0.1, -1, y)
    drawn = np.array([rng.choice(120, 2, replace=False) for _ in range(40)])
    differ = y[drawn[:, 0]] != y[drawn[:, 1]]
    pairs = {"cannot_link": drawn[differ], "must_link": drawn[~differ]}

    def learn(size):
        model = kind(3, init=start(X), labels_as=labels_as, memory_size=memory_size)
        model.set_params(semi_supervised=True)
        for at in range(0, 120, size):
            links = pairs if at == 0 else {}
            model.partial_fit(X[at : at + size], known[at : at + size], **links)
        return model

    whole = learn(120)
    monkeypatch.setattr(stream_module, "MOST_PARTNERS", 100)
    for size in (1, 9, 120):
        parts = learn(size)
        np.testing.assert_array_equal(parts.cluster_centers_, whole.cluster_centers_)
        np.testing.assert_array_equal(parts.weights_, whole.weights_)
        assert parts.n_forgotten_ == whole.n_forgotten_
    if memory_size == 1000:
        a, b = np.triu_indices(120, 1)
        both = (known[a] >= 0) & (known[b] >= 0)
        same = both & (known[a] == known[b]) & (labels_as != "cannot_link")
        other = both & (known[a] != known[b]) & (labels_as != "must_link")
        must = np.concatenate((drawn[~differ], np.column_stack((a, b))[same]))
        cannot = np.concatenate((drawn[differ], np.column_stack((a, b))[other]))
        must, cannot = (sorted(unique(p), key=lambda q: (q[1], q[0])) for p in (must, cannot))
        learner = naive.Learner(start(X), 0.05, 0.002)
        TWINS[kind](X, range(120), learner, cannot, must, set())
        np.testing.assert_allclose(whole.cluster_centers_, learner.centers, rtol=1e-9)
        np.testing.assert_array_equal(whole.weights_, learner.wins)


@linked
def test_labels_of_a_stream_are_ignored_unless_it_says_so(kind, stream):
    X, y = stream
    plain = kind(3, init=start(X)).partial_fit(X[:60]).partial_fit(X[60:])
    coded = np.where(y == 1, 1, -1)
    for labels in (y, coded, y.astype(str), np.where(y == 1, 1.0, np.nan), np.linspace(0, 1, 120)):
        ignored = kind(3, init=start(X)).partial_fit(X[:60], labels[:60])
        ignored.partial_fit(X[60:], labels[60:])
        np.testing.assert_array_equal(ignored.cluster_centers_, plain.cluster_centers_)
    used = kind(3, init=start(X), semi_supervised=True).partial_fit(X[:60], y[:60])
    used.partial_fit(X[60:], y[60:])
    rows = kind(3, init=start(X), semi_supervised=True)
    for at in range(120):
        rows.partial_fit(X[at : at + 1], y[at : at + 1])
    np.testing.assert_array_equal(used.cluster_centers_, rows.cluster_centers_)
    assert not np.array_equal(used.cluster_centers_, plain.cluster_centers_)
    with pytest.raises(ValueError, match="^y must hold integers from 0 on.*got 0.5"):
        used.partial_fit(X[:2], [0.5, 1])
    assert used.n_seen_ == 120


def test_pairs_that_come_again_or_too_late(stream):
    X, _ = stream
    pairs = [(0, 10), (5, 60), (20, 110), (110, 20)]
    once = fastmmc.CRPCL(3, init=start(X))
    always = fastmmc.CRPCL(3, init=start(X))
    for at in range(0, 120, 10):
        once.partial_fit(X[at : at + 10], cannot_link=pairs if at == 0 else None)
        always.partial_fit(X[at : at + 10], cannot_link=pairs)
        assert len(always._stream.cannot) == len(once._stream.cannot) <= 3
    assert always.n_forgotten_ == once.n_forgotten_ == 0
    # Each pair once a call, from the call on that follows the one of its later object.
    assert once.n_late_ == 0 and always.n_late_ == 10 + 5 + 0
    np.testing.assert_array_equal(always.cluster_centers_, once.cluster_centers_)
    waiting = fastmmc.CRPCL(3, init=start(X))
    for at in range(0, 120, 10):
        waiting.partial_fit(X[at : at + 10], cannot_link=[(0, 500), (500, 0)])
    assert waiting._stream.cannot.tolist() == [[0, 500]]


@linked
def test_contradictions_between_calls(kind, stream):
    X, _ = stream
    model = kind(3, random_state=0).partial_fit(X[:50], must_link=[(0, 100), (100, 7)])
    for pair in ((0, 100), (7, 0)):
        with pytest.raises(ValueError, match=f"1 of 1 cannot-links.*{min(pair)} and {max(pair)}"):
            model.partial_fit(X[50:], cannot_link=[pair])
    assert model.n_seen_ == 50 and len(model._stream.cannot) == 0
    known = np.full(50, -1)
    known[[0, 7]] = 0, 1
    by_labels = kind(3, random_state=0, semi_supervised=True).partial_fit(X[:50], known)
    with pytest.raises(ValueError, match="such as 0 and 7"):
        by_labels.partial_fit(X[50:], must_link=[(0, 100), (100, 7)])
    # Labels that come after the pairs.
    late = kind(3, random_state=0, semi_supervised=True)
    late.partial_fit(X[:50], must_link=[(60, 100)])
    later = np.full(70, -1)
    later[[10, 50]] = 0, 1
    with pytest.raises(ValueError, match="such as 60 and 100"):
        late.partial_fit(X[50:], later)
    patient = kind(3, random_state=0, on_conflict="warn")
    patient.partial_fit(X[:50], must_link=[(0, 100)])
    with pytest.warns(ConvergenceWarning, match="such as 0 and 100"):
        patient.partial_fit(X[50:60], cannot_link=[(0, 100)])
    patient.partial_fit(X[60:70], cannot_link=[(0, 100), (3, 110)])  # told already
    assert patient.n_conflicts_ == 1


def test_constraints_may_change_between_calls(stream):
    X, _ = stream
    model = fastmmc.CRPCL(3, init=start(X))
    model.partial_fit(X[:40], cannot_link=[(0, 100), (1, 2)])
    model.partial_fit(X[40:80], must_link=[(3, 50), (0, 90)])
    # Object 3 was in no constraint when it came, and is not remembered; object 0 was.
    assert model.n_forgotten_ == 1
    model.partial_fit(X[80:], cannot_link=[(4, 5)])
    assert model.n_forgotten_ == 1 and model.n_late_ == 1  # both had been presented
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
            model = fastmmc.CRPCL(3, labels_as=labels_as, semi_supervised=True)
            model.partial_fit(X[:60], part, must_link=[(0, 50)])
    model = fastmmc.CRPCL(3, labels_as="both", semi_supervised=True).partial_fit(X[:60], part)
    later = np.full(60, -1)
    later[10] = 1
    with pytest.raises(ValueError, match="such as 50 and 70"):
        model.partial_fit(X[60:], later, cannot_link=[(50, 70)])
    assert model.n_seen_ == 60
    assert model.partial_fit(X[60:], later, cannot_link=[(0, 70)]).n_seen_ == 120


def test_what_fit_told_goes_when_learning_goes_on(stream):
    """Clusters of ``fit`` are no longer those of the prototypes."""
    X, _ = stream
    model = fastmmc.CRPCL(3, random_state=0).fit(X[:60])
    told = {f"{name}_" for name in model._fields}
    assert all(hasattr(model, name) for name in told)
    model.partial_fit(X[60:])
    for use in (fastmmc.feature_influence, lambda model, X: fastmmc.keep_numbers(model, X[:, 0])):
        with pytest.raises(NotFittedError, match="has no result, which fit makes; partial_fit"):
            use(model, X)
    now = {"labels_", "weights_", "n_active_", "n_conflicts_"}
    assert not any(hasattr(model, name) for name in {"result_"} | told - now)
    assert all(hasattr(model, name) for name in now)
    with pytest.raises(NotFittedError, match="has no result"):
        fastmmc.keep_numbers(fastmmc.WTA(3, random_state=0).fit(X), model)
    assert model.fit(X).result_.sizes.sum() == len(X)


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
    model.set_params(semi_supervised=True)
    model.partial_fit(X[:60], y=known[:60], cannot_link=[(1, 70), (2, 119)])
    model.save(tmp_path / "stream.npz")
    again = kind.load(tmp_path / "stream.npz")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    for one in (model, again):
        one.partial_fit(X[60:], y=known[60:])
    for name in ("cluster_centers_", "weights_", "labels_", "n_seen_", "n_forgotten_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
    for name in ("rank", "semi_supervised"):
        assert again.get_params()[name] == model.get_params()[name]


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
    with pytest.raises(TypeError, match="params.kernel is a callable"):
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


@every
@pytest.mark.parametrize("mmap_mode", [None, "r"])
def test_dumped_by_joblib(kind, mmap_mode, stream, tmp_path):
    """Which keeps no identity of arrays: prototypes and their work space share theirs."""
    X, _ = stream
    model = kind(3, random_state=0).partial_fit(X[:60])
    joblib.dump(model, tmp_path / "model")
    again = joblib.load(tmp_path / "model", mmap_mode=mmap_mode)
    for one in (model, again):
        one.partial_fit(X[60:])
    np.testing.assert_array_equal(again.cluster_centers_, model.cluster_centers_)
    np.testing.assert_array_equal(again.weights_, model.weights_)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_what_was_taken_from_an_estimator_stays(stream):
    X, _ = stream
    model = fastmmc.WTA(3, random_state=0).partial_fit(X[:60])
    centers, wins = model.cluster_centers_, model.weights_
    before = centers.copy(), wins.copy()
    model.partial_fit(X[60:])
    np.testing.assert_array_equal(centers, before[0])
    np.testing.assert_array_equal(wins, before[1])


@linked
def test_a_saved_model_of_a_given_kernel_predicts(kind, stream, tmp_path):
    X, _ = stream
    K = X @ X.T
    model = kind(3, features="nystroem", kernel="precomputed", rank=9, random_state=0).fit(K)
    model.save(tmp_path / "model.npz")
    again = kind.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(again.predict(K), model.predict(K))


def stream_of(header):
    return header["content"]["CRPCL"]["stream"]["Stream"]


def space_of(header):
    return stream_of(header)["space"]["Space"]


def set_param(header, name, value):
    params = dict(header["content"]["CRPCL"]["params"]["dict"]) | {name: value}
    header["content"]["CRPCL"]["params"]["dict"] = list(params.items())


def shorten(arrays, name):
    arrays[name] = arrays[name][:2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a, h: a["stream.centers"].fill(np.nan), "centers has values that are not finite"),
        (lambda a, h: shorten(a, "stream.wins"), r"wins has shape \(2,\); expected \(3,\)"),
        (lambda a, h: a["stream.wins"].fill(0.5), "wins has values that cannot be"),
        (lambda a, h: a.pop("stream.memory"), "it has no 'stream.memory'"),
        (lambda a, h: stream_of(h).pop("memory"), "it has no 'stream.memory'"),
        (lambda a, h: stream_of(h).update(memory=None), "nothing tells of the array stream.memory"),
        (
            lambda a, h: a.update({"stream.memory": a["stream.memory"][:, :1]}),
            "memory has shape",
        ),
        (
            lambda a, h: a.update({"stream.centers": a["stream.centers"].astype(str)}),
            "centers has shape.*type <U",
        ),
        (
            lambda a, h: a.update({"stream.centers": a["stream.centers"].astype(np.float32)}),
            "centers has shape.*float32; expected f8:kd",
        ),
        (lambda a, h: a["stream.memory_ids"].fill(0), "memory_ids has values that cannot be"),
        (lambda a, h: a["stream.memory_ids"].__iadd__(99), "memory_ids has values that cannot be"),
        (lambda a, h: a["stream.memory_labels"].fill(-2), "memory_labels has values"),
        (lambda a, h: a["stream.cannot"].fill(3), "cannot has values that cannot be"),
        (lambda a, h: a.update({"stream.must": np.zeros((1, 3), int)}), "must has shape"),
        (lambda a, h: stream_of(h).update(n_seen=-1), "counts has values that cannot be"),
        (lambda a, h: stream_of(h).update(n_late=0.5), r"n_late is 0.5 \(float\)"),
        (lambda a, h: space_of(h).update(n_features=5), "centers have 2 columns, and the points 5"),
        (lambda a, h: space_of(h).update(dtype={"dtype": "int8"}), "dtype int8, which is unknown"),
        (lambda a, h: space_of(h).pop("kernel"), "it has no 'stream.space.kernel'"),
        (lambda a, h: space_of(h)["kernel"]["Kernel"].update(name="gauss"), "its kernel is"),
        (
            lambda a, h: h["content"]["CRPCL"].update(feature_names_in_={"names": ["a"]}),
            "feature_names_in_ are not the names of 2 columns",
        ),
        (
            lambda a, h: h["content"]["CRPCL"].update(n_features_in_=3),
            "no stream of points of 3 columns",
        ),
        (lambda a, h: set_param(h, "new", 1), "unexpected keyword argument 'new'"),
        (lambda a, h: h["content"]["CRPCL"].update(params=3), "damaged"),
        (lambda a, h: h.update(format=2), "has format 2, which fastmmc .* no longer reads"),
        (lambda a, h: set_param(h, "min_share", "a"), "min_share must be a real number"),
        (lambda a, h: h.update(format=99), "has format 99, of fastmmc .* reads formats up to 4"),
    ],
)
def test_damaged_files(change, message, stream, tmp_path):
    X, y = stream
    known = np.where(np.arange(60) % 4 == 0, y[:60], -1)
    model = fastmmc.CRPCL(3, random_state=0, semi_supervised=True)
    model.partial_fit(X[:60], known, cannot_link=[(0, 99)])
    model.save(tmp_path / "model.npz")
    with pytest.raises(ValueError, match=message) as raised:
        fastmmc.CRPCL.load(damaged(tmp_path / "model.npz", change))
    assert "damaged.npz" in str(raised.value)


def test_bytes_that_were_changed_or_cut(stream, tmp_path):
    """Whatever the archive's reader makes of it, one kind of error is raised."""
    X, _ = stream
    path = tmp_path / "model.npz"
    model = fastmmc.WTA(3, random_state=0).partial_fit(X)
    model.save(path)
    content = path.read_bytes()
    n_refused = 0
    for at in range(0, len(content), 23):
        for broken in (content[:at], content[:at] + b"\xff" + content[at + 1 :]):
            path.write_bytes(broken)
            try:
                again = fastmmc.WTA.load(path)
            except ValueError as error:
                assert str(path) in str(error)
                n_refused += 1
            else:
                np.testing.assert_array_equal(again.cluster_centers_, model.cluster_centers_)
    assert n_refused > len(content) / 23
    with pytest.raises(FileNotFoundError):
        fastmmc.WTA.load(tmp_path / "none.npz")


def test_places_that_cannot_be_written(stream, tmp_path):
    model = fastmmc.WTA(3, random_state=0).partial_fit(stream[0])
    with pytest.raises(FileNotFoundError, match="there is no folder .*nodir; make it.*q.npz"):
        model.save(tmp_path / "nodir" / "q.npz")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        model.save(tmp_path)
    assert list(tmp_path.iterdir()) == []


@every
@pytest.mark.parametrize("features", [None, "nystroem"])
def test_rows_whose_squares_overflow_or_vanish_are_refused(kind, features, stream):
    X, _ = stream
    rank = {"rank": 20} if features else {}
    model = kind(3, features=features, random_state=0, **rank)
    with pytest.raises(ValueError, match="X must have no values beyond 1e.150.*got 1e.160: scale"):
        model.partial_fit(np.vstack([X, [[1e160, 0]]]))
    with pytest.raises(ValueError, match="X must have a value of 1e-150 or more"):
        model.partial_fit(1e-200 * X)
    model.partial_fit(X)
    before = model.cluster_centers_
    for far in (np.array([[-1e200, 1.0]]), csr_matrix([[0.0, 1e151]]), [[1e307, 1.0]]):
        with pytest.raises(ValueError, match="no values beyond"):
            model.partial_fit(far)
    with pytest.raises(ValueError, match="NaN|infinity"):
        model.partial_fit(np.array([[np.nan, 1.0]]))
    np.testing.assert_array_equal(model._stream.centers, before)
    model.partial_fit(np.array([[3e19, 1.0]], dtype=np.float32))  # squares fit into float64
    assert np.isfinite(model.cluster_centers_).all()
    poly = kind(3, features="nystroem", kernel="poly", degree=9, rank=20, random_state=0)
    poly.partial_fit(X)
    with pytest.raises(ValueError, match="the features of X"):
        poly.partial_fit([[1e20, 1e20]])
    with pytest.raises(ValueError, match="kernel='poly' gives values that are too large"):
        poly.partial_fit([[1e40, 1e40]])


@every
@pytest.mark.parametrize("X", [None, 5, []])
def test_chunks_that_are_none(kind, X):
    with pytest.raises(ValueError, match="array"):
        kind(3).partial_fit(X)


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
    model = kind(5, memory_size=50, random_state=0, semi_supervised=True)
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
