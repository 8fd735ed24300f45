"""Results and estimators in files: what was saved is read, and nothing else is."""

import inspect
import io
import json
import pickle
import subprocess
import sys
import zipfile
from dataclasses import fields, is_dataclass, replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array, issparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.metrics import pairwise_distances

import fastmmc
from fastmmc.core import saving
from tests.damage import damaged

METHODS = list(fastmmc.METHODS.values())
every_method = pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)


def points(n=24, seed=0):
    rng = np.random.default_rng(seed)
    return np.vstack([rng.normal(0, 1, (n // 2, 2)), rng.normal(5, 1, (n - n // 2, 2))])


def new_points():
    return 4.0 * np.random.default_rng(9).normal(size=(15, 2))


def call(method, X, k=2, **params):
    for name in method.needs:
        pytest.importorskip(name)
    if "random_state" in inspect.signature(method.function).parameters:
        params.setdefault("random_state", 0)
    return method.function(X, **params) if method.binary else method.function(X, k, **params)


def fit(method, X, **params):
    for name in method.needs:
        pytest.importorskip(name)
    many = {} if method.binary else {"n_clusters": 2}
    model = method.estimator(**many, **params)
    if model.get_params().get("random_state", 0) is None:
        model.set_params(random_state=0)
    return model.fit(X)


def assert_same(one, other, at=""):
    """Compare two objects part by part, types included."""
    if isinstance(one, BaseEstimator):
        assert type(one) is type(other)
        mine = vars(one)
        theirs = {name: value for name, value in vars(other).items() if name != "extra_"}
        assert mine.keys() == theirs.keys(), at
        for name in mine:
            assert_same(mine[name], theirs[name], f"{at}.{name}")
    elif is_dataclass(one):
        assert type(one) is type(other), at
        for field in fields(one):
            assert_same(getattr(one, field.name), getattr(other, field.name), f"{at}.{field.name}")
    elif isinstance(one, dict):
        assert list(one) == list(other), at
        for name in one:
            assert_same(one[name], other[name], f"{at}[{name!r}]")
    elif isinstance(one, list | tuple):
        assert type(one) is type(other) and len(one) == len(other), at
        for i, (mine, theirs) in enumerate(zip(one, other, strict=True)):
            assert_same(mine, theirs, f"{at}[{i}]")
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype and one.flags.c_contiguous == other.flags.c_contiguous, at
        np.testing.assert_array_equal(one, other, err_msg=at)
        assert other.flags.writeable, at
    else:
        assert type(other) is (type(one.item()) if isinstance(one, np.generic) else type(one)), at
        np.testing.assert_equal(other, one, err_msg=at)


def round_trip(made, folder):
    made.save(folder / "made.npz")
    again = fastmmc.load(folder / "made.npz")
    assert_same(made, again)
    assert [file.name for file in folder.iterdir()] == ["made.npz"]
    return again


def assert_predicts_the_same(made, again, X):
    np.testing.assert_array_equal(again.decision_function(X), made.decision_function(X))
    np.testing.assert_array_equal(again.predict(X), made.predict(X))


# What was saved is read


@every_method
def test_every_result(method, tmp_path):
    result = call(method, points())
    assert_predicts_the_same(result, round_trip(result, tmp_path), new_points())


@every_method
def test_every_estimator(method, tmp_path):
    model = fit(method, points())
    again = round_trip(model, tmp_path)
    assert_predicts_the_same(model, again, new_points())
    assert again.score(new_points()) == model.score(new_points())
    assert_predicts_the_same(model, method.estimator.load(tmp_path / "made.npz"), new_points())


def test_a_new_process_predicts_the_same(tmp_path):
    """All methods in one process, which has seen nothing but the files."""
    expected = {}
    for method in METHODS:
        if not all(find_spec(name) for name in method.needs):
            continue
        for made in (call(method, points()), fit(method, points())):
            name = f"{method.name}-{type(made).__name__}"
            made.save(tmp_path / f"{name}.npz")
            expected[f"{name}-p"] = made.predict(new_points())
            expected[f"{name}-d"] = made.decision_function(new_points())
    code = (
        "import sys, pathlib, numpy as np, fastmmc\n"
        "X, found = np.load(sys.argv[1] + '/X.npy'), {}\n"
        "for path in sorted(pathlib.Path(sys.argv[1]).glob('*.npz')):\n"
        "    made = fastmmc.load(path)\n"
        "    found[path.stem + '-p'] = made.predict(X)\n"
        "    found[path.stem + '-d'] = made.decision_function(X)\n"
        "np.savez(sys.argv[1] + '/found', **found)\n"
    )
    np.save(tmp_path / "X.npy", new_points())
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, capture_output=True)
    with np.load(tmp_path / "found.npz") as found:
        assert set(found) == set(expected) and len(expected) >= 4 * 18
        for name, values in expected.items():
            np.testing.assert_array_equal(found[name], values, err_msg=name)


def gram():
    X = points()
    return X @ X.T


SPECIAL = {
    "low rank": lambda: fastmmc.umc_rls(points(), 3, rank=5, n_init=2, bound=True),
    "float32": lambda: fastmmc.umc_rls(points().astype(np.float32), 2, n_init=2, dtype="float32"),
    "path": lambda: fastmmc.umc_rls_path(points(), 2, [0.1, 1.0], n_init=2)[1],
    "factor": lambda: fastmmc.umc_rls(fastmmc.factor(points()), 2, n_init=2),
    "precomputed": lambda: fastmmc.umc_rls(gram(), 2, kernel="precomputed", n_init=2),
    "cosine": lambda: fastmmc.umc_rls(points(), 2, metric="cosine", n_init=2),
    "distances": lambda: fastmmc.umc_rls(pairwise_distances(points()), 2, metric="precomputed"),
    "precomputed, low rank": lambda: fastmmc.fast_evo_mmc(gram(), kernel="precomputed", rank=5),
    "one cluster": lambda: fastmmc.umc_rls(points(), 1),
    "equal points": lambda: fastmmc.umc_rls(np.ones((6, 1)), 2, n_init=2, sigma=1.0),
    "laplacian": lambda: fastmmc.iter_svr(points(), kernel="laplacian"),
    "poly": lambda: fastmmc.cpm3c(points(), 3, kernel="poly", n_init=2),
    "empty clusters": lambda: fastmmc.umc_rls(points(), 6, sizes="free", min_size=0, n_init=2),
    "given": lambda: fastmmc.umc_rls(points(), 2, init=[0, 1] * 12, target_sizes=(10, 14)),
    "features": lambda: fastmmc.rpcl(points(), 3, features="nystroem", rank=5, max_iter=5),
    "representatives": lambda: fastmmc.sammc(points(), 2, search="annealing", max_iter=50),
    "tree": lambda: fastmmc.recursive_mmc(points(), 4, method="evo-mmc"),
    "tree of a matrix": lambda: fastmmc.recursive_mmc(
        gram(), 3, method="iter_svr", method_params={"kernel": "precomputed"}
    ),
    "one leaf": lambda: fastmmc.recursive_mmc(points(), 1),
    "picture": lambda: fastmmc.segment(np.arange(60.0).reshape(5, 4, 3), 2, sigma=50.0),
    "shards": lambda: fastmmc.distributed.fit_sharded(points(), 2, method="wta", n_workers=2),
    "choice": lambda: fastmmc.cluster(points(), random_state=0),
    "no model": lambda: replace(fastmmc.umc_rls(points(), 2, n_init=1), model=None),
    "not finite": lambda: replace(
        fastmmc.umc_rls(points(), 2, n_init=1), loo_mse=np.inf, history=np.array([np.nan, np.inf])
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SPECIAL)
def test_special_results(name, tmp_path):
    result = SPECIAL[name]()
    again = round_trip(result, tmp_path)
    if result.model is not None:
        n = result.model.n_features
        X = np.random.default_rng(2).normal(size=(9, n))
        X = np.abs(X) if name == "distances" else X
        X = X.astype(getattr(result.model, "dtype", None) or float)
        assert_predicts_the_same(result, again, X)
    if name == "picture":
        np.testing.assert_array_equal(again.paint(), result.paint())
    if name == "tree":
        assert str(again.tree) == str(result.tree)


def test_names_of_columns(tmp_path):
    frame = pd.DataFrame(points(), columns=["width", "höhe"])
    for made in (
        fastmmc.wta(frame, 2),
        fastmmc.UMCRLS(2, n_init=1).fit(frame),
        fastmmc.WTA(2).partial_fit(frame),
    ):
        made.save(tmp_path / "named.npz")
        again = fastmmc.load(tmp_path / "named.npz")
        np.testing.assert_array_equal(again.predict(frame), made.predict(frame))
        with pytest.raises(ValueError, match="feature names should match"):
            again.predict(frame[["höhe", "width"]])


def test_parameters_come_back(tmp_path):
    params = {
        "init": pd.Series([0, 1] * 12),
        "target_sizes": (10, np.int64(14)),
        "lam": np.float32(0.5),
        "dtype": np.float32,
        "random_state": np.random.default_rng(0),
        "callback": lambda progress: False,
        "n_init": 1,
    }
    fastmmc.UMCRLS(2, **params).fit(points()).save(tmp_path / "model.npz")
    again = fastmmc.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(again.init, [0, 1] * 12)
    assert again.target_sizes == (10, 14) and again.lam == 0.5
    assert again.dtype == np.float32 and again.n_init == 1
    assert again.random_state is None and again.callback is None
    assert fastmmc.UMCRLS(2).get_params().keys() == again.get_params().keys()
    again.fit(points())
    inner = fastmmc.RecursiveMMC(2, method_params={"C": 3.0}, random_state=4).fit(points())
    inner.save(tmp_path / "model.npz")
    again = fastmmc.load(tmp_path / "model.npz")
    assert again.method_params == {"C": 3.0} and again.random_state == 4


def test_a_stream_after_fit(tmp_path):
    model = fastmmc.RPCL(3, random_state=0).fit(points())
    again = round_trip(model, tmp_path)
    for one in (model, again):
        one.partial_fit(points(seed=1))
    np.testing.assert_array_equal(again.cluster_centers_, model.cluster_centers_)
    model.save(tmp_path / "made.npz")
    again = fastmmc.load(tmp_path / "made.npz")
    assert again.n_seen_ == 24 and not hasattr(again, "labels_")


def test_arrays_have_names_and_are_there_once(tmp_path):
    """So that others can read them, and a tree does not take twice its place."""
    result = fastmmc.recursive_mmc(points(), 3)
    result.save(tmp_path / "tree.npz")
    with np.load(tmp_path / "tree.npz", allow_pickle=False) as file:
        np.testing.assert_array_equal(file["labels"], result.labels)
        names = [name for name in file if name.endswith("basis")]
        header = json.loads(str(file["header"]))
    assert len(names) == 2
    assert (header["class"], header["package"]) == ("TreeResult", fastmmc.__version__)


def test_everything_that_is_public_can_be_saved():
    for name in fastmmc.__all__:
        value = getattr(fastmmc, name)
        if isinstance(value, type) and hasattr(value, "save"):
            assert saving.CLASSES[name] is value
    for method in METHODS:
        assert saving.CLASSES[method.estimator.__name__] is method.estimator


@pytest.mark.parametrize("kind", [c for c in saving.CLASSES.values() if hasattr(c, "_arrays")])
def test_the_shapes_of_all_arrays_are_told(kind):
    for field in fields(kind):
        text = str(saving._hints(kind)[field.name])
        if "ndarray" in text and "dict" not in text:
            assert field.name in kind._arrays
    assert set(kind._arrays) <= {field.name for field in fields(kind)}


# What is not


def test_what_cannot_be_saved(tmp_path):
    path = tmp_path / "made.npz"
    with pytest.raises(NotFittedError):
        fastmmc.UMCRLS(2).save(path)
    with pytest.raises(TypeError, match=r"(kernel|params\.kernel) is a callable.*pickle it"):
        fastmmc.umc_rls(points(), 2, kernel=lambda A, B: A @ B.T, n_init=1).save(path)
    with pytest.raises(TypeError, match=r"params.kernel is a callable"):
        fastmmc.UMCRLS(2, kernel=lambda A, B: A @ B.T, n_init=1).fit(points()).save(path)
    result = fastmmc.umc_rls(points(), 2, n_init=1)
    for value, message in {
        object(): r"params\.other is of the type object",
        b"bytes": "is of the type bytes",
        1j: "is of the type complex",
        np.dtype("int8"): "is of the type Int8DType",
    }.items():
        with pytest.raises(TypeError, match=message):
            replace(result, params={"other": value}).save(path)
    for array in (
        np.array([1, None]),
        np.array([1j]),
        np.array(["a"]),
        np.array([[["x", 1]]], "O"),
    ):
        with pytest.raises(TypeError, match=r"params\.other is an array of type"):
            replace(result, params={"other": array}).save(path)
    with pytest.raises(TypeError, match="has the key"):
        replace(result, params={(1, 2): 3}).save(path)
    with pytest.raises(ValueError, match="cannot be saved, as it could not be read.*sizes"):
        replace(result, sizes=result.sizes + 1).save(path)
    broken = replace(result.model, coef=np.full_like(result.model.coef, np.nan))
    with pytest.raises(ValueError, match="model.coef has values that are not finite"):
        replace(result, model=broken).save(path)
    with pytest.raises(ValueError, match="lam must be greater than 0"):
        fastmmc.UMCRLS(2, n_init=1).fit(points()).set_params(lam=-1).save(path)
    assert list(tmp_path.iterdir()) == []


def test_classes_of_users_are_refused(tmp_path):
    class UMCRLS(fastmmc.UMCRLS):
        """One of the same name."""

    class Own(fastmmc.RLSResult):
        """One of another."""

    with pytest.raises(TypeError, match="of the type UMCRLS"):
        UMCRLS(2, n_init=1).fit(points()).save(tmp_path / "made.npz")
    result = fastmmc.umc_rls(points(), 2, n_init=1)
    with pytest.raises(TypeError, match="of the type Own"):
        Own(**vars(result)).save(tmp_path / "made.npz")


def test_places_that_cannot_be_written(tmp_path, monkeypatch):
    result = fastmmc.umc_rls(points(), 2, n_init=1)
    with pytest.raises(FileNotFoundError, match="there is no folder .*nodir; make it.*q.npz"):
        result.save(tmp_path / "nodir" / "q.npz")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        result.save(str(tmp_path))
    with pytest.raises(FileNotFoundError):
        fastmmc.load(tmp_path / "none.npz")
    result.save(tmp_path / "made.npz")
    before = (tmp_path / "made.npz").read_bytes()

    def fill_the_disk(file, **arrays):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", fill_the_disk)
    with pytest.raises(OSError, match="No space left"):
        result.save(tmp_path / "made.npz")
    assert (tmp_path / "made.npz").read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["made.npz"]


# Files of others


@pytest.fixture
def saved(tmp_path):
    fastmmc.umc_rls(points(), 2, n_init=1, random_state=0).save(tmp_path / "made.npz")
    return tmp_path / "made.npz"


def refuse(path, message):
    with pytest.raises(ValueError, match=message) as raised:
        fastmmc.load(path)
    assert str(path) in str(raised.value)


def content(header):
    return header["content"]["RLSResult"]


def model(header):
    return content(header)["model"]["KernelModel"]


def replace_array(arrays, name, value):
    arrays[name] = np.asarray(value)


CHANGES = [
    (lambda a, h: h.update(format=5, package="9.0"), "format 5, of fastmmc 9.0; .* later one"),
    (lambda a, h: h.update(format=3), "format 3, which fastmmc .* no longer reads"),
    (lambda a, h: h.update(format="4"), "names no format"),
    (lambda a, h: h.update(format=True), "names no format"),
    (lambda a, h: h.pop("format"), "names no format"),
    (lambda a, h: h.pop("class"), "names no class"),
    (lambda a, h: h.pop("content"), "it has no 'content'"),
    (lambda a, h: h.update(content=[]), "its content is no RLSResult"),
    (lambda a, h: h.update({"class": "os.system"}), "os.system, which is no estimator"),
    (lambda a, h: h.update({"class": "Kernel"}), "Kernel, which is no estimator or result"),
    (lambda a, h: h.update({"class": "SDPResult"}), "its content is no SDPResult"),
    (lambda a, h: h.update({"class": "WTA"}), "its content is no WTA"),
    (lambda a, h: h["content"].update({"x": 1}), "its content is no RLSResult"),
    (lambda a, h: content(h).pop("labels"), "it has no 'labels'"),
    (lambda a, h: content(h).pop("status"), "it has no 'status'"),
    (lambda a, h: content(h).update(more=1), "RLSResult has no more"),
    (lambda a, h: content(h).update(status={"Status": "FINE"}), "it has no 'FINE'"),
    (lambda a, h: content(h).update(status=0), r"status is 0 \(int\)"),
    (lambda a, h: content(h).update(objective="low"), r"objective is 'low' \(str\)"),
    (lambda a, h: content(h).update(objective={"float": "1"}), "float 1, which is unknown"),
    (lambda a, h: content(h).update(n_iter=True), r"n_iter is True \(bool\)"),
    (lambda a, h: content(h).update(params=[]), r"params is \[\] \(list\)"),
    (lambda a, h: content(h).update(params={"dict": [[1, 2]]}), r"params is \{1: 2\}"),
    (lambda a, h: content(h).update(params={"dict": [[[], 2]]}), "unhashable"),
    (lambda a, h: content(h).update(feature_names_in={"names": ["a"]}), "1 names of 2 columns"),
    (lambda a, h: content(h).update(feature_names_in={"names": [1, 2]}), "which is unknown"),
    (lambda a, h: content(h).update(bound={"os.system": "true"}), "os.system true, which is unkno"),
    (lambda a, h: content(h).update(bound={"builtins.eval": "1"}), "which is unknown"),
    (lambda a, h: content(h).update(bound={"tuple": 1, "dict": 2}), "bound is of 2 kinds"),
    (lambda a, h: content(h).update(bound={"array": ["none", "<f8", []]}), "it has no 'none'"),
    (lambda a, h: content(h).update(bound={"array": ["header", "<U1", []]}), "it has no 'header'"),
    (lambda a, h: content(h).update(model={"Space": {}}), "it has no 'model.n_features'"),
    (lambda a, h: content(h).update(model={"Status": "CONVERGED"}), "n_scores"),
    (lambda a, h: model(h).pop("binary"), "it has no 'model.binary'"),
    (lambda a, h: model(h).pop("indices"), "it has no 'model.indices'"),
    (lambda a, h: model(h).update(binary=True), "coef has 2 columns"),
    (lambda a, h: model(h).update(n_features=3), "basis has 2 columns, and the points 3"),
    (lambda a, h: model(h).update(intercept={"float": "nan"}), "intercept has values"),
    (lambda a, h: model(h)["kernel"]["Kernel"].update(name="callable"), "its kernel is"),
    (lambda a, h: model(h)["kernel"]["Kernel"].update(sigma=None), "its kernel is"),
    (lambda a, h: model(h)["kernel"]["Kernel"].update(sigma=-1.0), "its kernel is"),
    (lambda a, h: model(h)["kernel"]["Kernel"].update(function="os.system"), "function is"),
    (lambda a, h: model(h)["kernel"]["Kernel"].update(sigma=1e-300), "sigma=1e-300 is too extreme"),
    (lambda a, h: model(h)["kernel"]["Kernel"].update(sigma=1e300), "sigma=1e.300 is too extreme"),
    (lambda a, h: model(h)["kernel"]["Kernel"].update(sigma=10**400), "sigma is 1000"),
    (lambda a, h: model(h)["kernel"]["Kernel"].update(coef0=10**30), "coef0 is 1000"),
    (lambda a, h: model(h)["kernel"]["Kernel"].update(degree=10**30), "degree is 1000"),
    (lambda a, h: model(h).update(intercept=10**30), "intercept is 1000"),
    (lambda a, h: content(h).update(n_iter=10**30), "n_iter is 1000"),
    (lambda a, h: a.pop("labels"), "it has no 'labels'"),
    (lambda a, h: a.update(labels2=a.pop("labels")), "it has no 'labels'"),
    (lambda a, h: a.update(more=np.zeros(2)), "nothing tells of the array more"),
    (lambda a, h: replace_array(a, "labels", a["labels"][:9]), "loo_scores has shape"),
    (lambda a, h: replace_array(a, "labels", 0 * a["labels"]), "sizes are not those"),
    (lambda a, h: replace_array(a, "labels", a["labels"] - 1), "labels are not from 0 to 1"),
    (lambda a, h: replace_array(a, "labels", a["labels"] + 0.0), "float64; expected i8:n"),
    (lambda a, h: replace_array(a, "labels", a["labels"][:, None]), "labels has shape"),
    (lambda a, h: replace_array(a, "history", a["history"].astype("f4")), "history has shape"),
    (lambda a, h: replace_array(a, "model.coef", a["model.coef"][:9]), "24 kernel values"),
    (lambda a, h: replace_array(a, "model.coef", a["model.coef"][:, :1]), "1 clusters apart"),
    (lambda a, h: a["model.basis"].fill(np.inf), "model.basis has values that are not finite"),
    (lambda a, h: replace_array(a, "sizes", ["a", "b"]), "sizes has shape.*type <U1"),
]


@pytest.mark.parametrize(("change", "message"), CHANGES)
def test_what_was_tampered_with(change, message, saved):
    refuse(damaged(saved, change), message)


def test_what_the_header_tells_of_arrays_must_be_true(saved):
    for change in (
        lambda a, h: replace_array(a, "labels", a["labels"][:9]),
        lambda a, h: replace_array(a, "labels", a["labels"].astype(np.int32)),
        lambda a, h: replace_array(a, "model.coef", a["model.coef"].T),
    ):
        refuse(damaged(saved, change, declare=False), "has shape .*; expected")


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        ("UMCRLS", lambda c: c["params"]["dict"].append(["lam", -1]), "lam must be greater"),
        ("UMCRLS", lambda c: c["params"]["dict"].append(["fit", 1]), "unexpected keyword"),
        ("UMCRLS", lambda c: c.pop("params"), "it has no 'params'"),
        ("UMCRLS", lambda c: c.update(params=[1]), "damaged"),
        ("UMCRLS", lambda c: c.update(n_features_in_=3), "result_ is of 2 columns, not 3"),
        ("UMCRLS", lambda c: c.update(n_features_in_="2"), "n_features_in_ must be an integer"),
        ("UMCRLS", lambda c: c.update(feature_names_in_=["a", "b"]), "feature_names_in_ are not"),
        ("UMCRLS", lambda c: c.update(result_={"Status": "CONVERGED"}), "result_ is no RLSResult"),
        ("WTA", lambda c: c.update(result_=None), "it holds nothing that was found"),
        ("WTA", lambda c: c.update(stream=3), "it holds no stream of points of 2 columns"),
        ("WTA", lambda c: c.pop("stream"), "it has no 'stream'"),
    ],
)
def test_estimators_that_were_tampered_with(kind, change, message, tmp_path):
    getattr(fastmmc, kind)(2).fit(points()).save(tmp_path / "made.npz")
    refuse(damaged(tmp_path / "made.npz", lambda a, h: change(h["content"][kind])), message)
    with pytest.raises(ValueError, match=f"holds {kind}; expected CPMMC"):
        fastmmc.CPMMC.load(tmp_path / "made.npz")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda nodes: nodes[0]["TreeNode"].update(left=0), "node 1 has no place"),
        (lambda nodes: nodes[0]["TreeNode"].update(right=1), "has no place"),
        (lambda nodes: nodes[0]["TreeNode"].update(right=None), "has no place|is missing"),
        (lambda nodes: nodes[0]["TreeNode"].update(model=None), "does not tell points"),
        (lambda nodes: nodes[-1]["TreeNode"].update(label=7), "has label 7; expected 2"),
        (lambda nodes: nodes.pop(), "is missing"),
        (lambda nodes: nodes.append(nodes[-1]), "has no place"),
        (lambda nodes: nodes.clear(), "node 0 is missing"),
    ],
)
def test_trees_that_were_tampered_with(change, message, tmp_path):
    fastmmc.recursive_mmc(points(), 3).save(tmp_path / "made.npz")

    def change_nodes(arrays, header):
        change(
            header["content"]["TreeResult"]["model"]["TreeModel"]["tree"]["Tree"]["nodes"]["tuple"]
        )

    refuse(damaged(tmp_path / "made.npz", change_nodes), message)


def test_bytes_that_were_changed_or_cut(saved):
    """Whatever the archive's reader makes of it, one kind of error is raised."""
    whole = saved.read_bytes()
    result = fastmmc.load(saved)
    path, n_refused = saved.with_name("broken.npz"), 0
    for at in range(0, len(whole), 29):
        for broken in (whole[:at], whole[:at] + b"\xff" + whole[at + 1 :]):
            path.write_bytes(broken)
            try:
                again = fastmmc.load(path)
            except ValueError as error:
                assert str(path) in str(error)
                n_refused += 1
            else:
                assert_same(result, again)
    assert n_refused > len(whole) / 29


class Trap:
    """What leaves a trace when it is unpickled."""

    def __init__(self, path):
        self._path = path

    def __reduce__(self):
        return Path.touch, (self._path,)


def members(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write_members(path, parts, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, part in parts:
            archive.writestr(name, part)


def test_pickles_are_never_read(saved, tmp_path):
    trace = tmp_path / "trace"
    objects = io.BytesIO()
    np.save(objects, np.array([Trap(trace)] * 24), allow_pickle=True)
    parts = members(saved)
    for name in ("labels.npy", "header.npy", "more.npy"):
        for pickled in (objects.getvalue(), pickle.dumps(Trap(trace))):
            path = tmp_path / "trap.npz"
            write_members(path, (parts | {name: pickled}).items())
            refuse(path, "is no saved estimator or result")
    for content in (pickle.dumps(Trap(trace)), objects.getvalue()):
        path.write_bytes(content)
        refuse(path, "is no saved estimator or result")
    assert not trace.exists()
    np.load(io.BytesIO(objects.getvalue()), allow_pickle=True)
    assert trace.exists()


def header_of(shape, dtype="<f8"):
    file = io.BytesIO()
    told = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, told)
    return file.getvalue()


def test_archives_that_were_tampered_with(saved, tmp_path):
    parts, path = members(saved), tmp_path / "other.npz"
    for name, content, message in (
        ("labels.npy", header_of((2**40, 2**20)) + b"12345678", "has another size than shape"),
        ("labels.npy", header_of((-1,)) + b"12345678", "has another size than shape"),
        ("labels.npy", header_of((2,)) + b"12345678", "has another size than shape"),
        ("labels.npy", header_of((1,)) + b"12345678" * 2, "has another size than shape"),
        ("labels.npy", header_of((1,), "|O") + b"12345678", "labels has the type object"),
        ("labels.npy", header_of((1,), "<c16") + b"12345678" * 2, "labels has the type complex"),
        ("labels.npy", header_of((1,), "<M8[s]") + b"12345678", "labels has the type datetime"),
        ("labels.npy", b"\x93NUMPY\x03\x00" + parts["labels.npy"][8:], "version"),
        ("labels.npy", b"", "no saved estimator"),
        ("header.npy", header_of((1,)) + b"12345678", "names no class"),
        ("header.npy", header_of((), "<U2") + "{]".encode("utf-32-le"), "no saved estimator"),
        ("header.npy", header_of((), "<U2") + "12".encode("utf-32-le"), "names no class"),
    ):
        write_members(path, (parts | {name: content}).items())
        refuse(path, message)
    write_members(path, [*parts.items(), ("labels", parts["labels.npy"])])
    refuse(path, "labels is there twice")
    write_members(path, parts.items(), zipfile.ZIP_DEFLATED)
    refuse(path, "is compressed")
    write_members(path, ((n, p) for n, p in parts.items() if n != "header.npy"))
    refuse(path, "it has no 'header'")
    deep = np.array('{"class": "RLSResult", "format": 4, "content": ' + "[" * 99_999)
    np.savez(path, header=deep)
    refuse(path, "no saved estimator")
    for content in (b"", b"text", b"PK\x03\x04 broken", b"\x93NUMPY"):
        path.write_bytes(content)
        refuse(path, "no saved estimator or result")
    np.savez(path, X=points())
    refuse(path, "it has no 'header'")


def test_sparse_training_points_are_not_in_models(tmp_path):
    """Models that files must hold are dense, whatever they were fitted to."""
    for result in (
        fastmmc.cpmmc(csr_array(points())),
        fastmmc.umc_rls(csr_array(points()), 2, rank=5, n_init=1),
        fastmmc.sammc(csr_array(points()), 2),
    ):
        assert not issparse(getattr(result.model, "basis", None))
        again = round_trip(result, tmp_path)
        assert_predicts_the_same(result, again, csr_array(new_points()))


def test_the_version_that_wrote_a_file_is_named_where_it_cannot_be_read(tmp_path):
    path = tmp_path / "result.npz"
    fastmmc.cluster(points(), 2, random_state=0).save(path)
    with np.load(path) as archive:
        arrays = dict(archive)
    header = json.loads(str(arrays["header"]))
    text = json.dumps(header | {"package": "0.1.0"}).replace('"lam": ', '"f": ', 1)
    np.savez(path, **arrays | {"header": np.array(text)})
    with pytest.raises(ValueError, match=r"damaged, or needs fastmmc 0\.1\.0, which wrote it: "):
        fastmmc.load(path)
