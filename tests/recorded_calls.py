"""Calls of the public API whose results are recorded, so that a redesign shows what it changes.

``python -m tests.recorded_calls --write`` records them anew, which is right only where a result was
meant to change; without ``--write`` it prints what differs from the record.
"""

import hashlib
import inspect
import json
import platform
import sys
import tempfile
import time
import types
import warnings
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

import joblib
import llvmlite.binding
import numba
import numpy as np
import scipy
import sklearn
import threadpoolctl
from scipy import sparse

import fastmmc
from fastmmc import distributed

RECORD = Path(__file__).with_suffix(".json")


# ---------------------------------------------------------------------------------------- the data


def mixture(seed, sizes, d, spread):
    """Return Gaussian clusters of unit variance, in mixed order, and which points they made."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    return spread * rng.standard_normal((len(sizes), d))[y] + rng.standard_normal((len(y), d)), y


def picture(seed):
    rng = np.random.default_rng(seed)
    base = np.array([[250, 240, 230], [20, 60, 120], [160, 30, 40]])[np.arange(24 * 20) % 7 % 3]
    return np.clip(base + rng.integers(-25, 25, base.shape), 0, 255).reshape(24, 20, 3)


BLOBS, TRUTH = mixture(1, [20, 30, 25], 4, 3.0)
TWO = mixture(2, [55, 65], 3, 1.5)[0]
NOISE = np.random.default_rng(3).standard_normal((90, 3))
DIGITS = fastmmc.datasets.load("digits")[0][::12].astype(np.float64)
LARGE = mixture(5, [1500, 1000, 2000, 700], 2, 4.0)[0]
LARGER = mixture(6, [6000, 4200], 2, 3.0)[0]
SINGLE = BLOBS.astype(np.float32)
KNOWN = np.where(np.arange(len(BLOBS)) % 5 == 0, TRUTH, -1)
WEIGHTS = 0.5 + np.random.default_rng(8).integers(0, 4, len(TWO))
IMAGE = picture(11)


def links(y, seed, n_pairs=40):
    """Return pairs that fit y as must-links and cannot-links."""
    rng = np.random.default_rng(seed)
    pairs = np.array([rng.choice(len(y), 2, replace=False) for _ in range(n_pairs)])
    same = y[pairs[:, 0]] == y[pairs[:, 1]]
    return {"must_link": pairs[same], "cannot_link": pairs[~same]}


LINKS = links(TRUTH, 12)


# --------------------------------------------------------------------------------------- the calls


@dataclass(frozen=True)
class Call:
    """``function(*args, random_state=0, **params)``, whose result is described."""

    function: object
    args: tuple
    params: dict = field(default_factory=dict)

    def run(self, **changes):
        """Return what the call gives and the warnings that it makes, in JSON's types."""
        params = self.params | changes
        if "random_state" in inspect.signature(self.function).parameters:
            params = {"random_state": 0} | params
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            given = self.function(*self.args, **params)
            found = describe(given, new_points(self.args[0]) if self.args else None)
        return found | {"warnings": [f"{w.category.__name__}: {w.message}" for w in caught]}


CALLS = {}


def declare(name, function, *args, **params):
    function = getattr(fastmmc, function) if isinstance(function, str) else function
    title = f"{function.__name__} {name}"
    assert title not in CALLS, title
    CALLS[title] = Call(function, args, params)


def declare_all(function, args, table):
    for name, params in table.items():
        params = dict(params)
        declare(name, function, *params.pop("args", args), **params)


declare_all(
    "umc_rls",
    (NOISE, 4),
    {
        "of digits": {"args": (DIGITS, 10), "n_init": 5, "lam": 1.0},
        "steepest within a balance": {"method": "steepest", "balance": 0.2},
        "stochastic with a least size": {"method": "stochastic", "min_size": 9},
        "polish and keep best": {
            "args": (NOISE, 5),
            "polish": True,
            "keep_best": True,
            "balance": 0.2,
            "min_size": 12,
            "n_init": 3,
        },
        "rank": {"args": (DIGITS, 5), "rank": 40, "n_init": 4},
        "of rank auto": {"args": (LARGER, 2), "n_init": 1},
    },
)
declare("known", "umc_rls_path", BLOBS, 3, [1.0, 0.1], known_labels=KNOWN, balance=0.4, bound=True)
declare("pivoted of float32", "factor", SINGLE, rank=0.5, landmarks="pivoted", rank_tol=1e-3)
declare("sizes", "evo_mmc", TWO, target_sizes=[40, 80], balance=0.05, n_init=2)
declare("large", "fast_evo_mmc", LARGE, rank=30, n_init=2, balance=0.2)
declare("weights", "iter_svr", TWO, sample_weight=WEIGHTS, C=10.0, n_init=2)
declare("tied bias, balance 0", "iter_svm", TWO, bias="tied", balance=0, C=10.0, n_init=2)
declare("weights and rank", "iter_ls_svm", TWO, sample_weight=WEIGHTS, rank=20, n_init=3)
declare("dense", "wta", BLOBS, 5, max_iter=10)
declare("threads", "fscl", BLOBS, 5, n_init=4, n_jobs=2, max_iter=5)
declare("rival rate, large", "rpcl", LARGE, 9, beta=0.01, max_iter=3, min_share=0.05)
for method in ("c_rpcl", "o_lcvqe", "lcvqe", "cvqe"):
    declare("links", method, BLOBS, 3, max_iter=10, n_init=3, **LINKS)
declare("two workers", distributed.fit_sharded, BLOBS, 4, max_iter=5, **LINKS)
declare("memetic", "sammc", BLOBS, 3, n_init=2)
declare("annealing", "sammc", BLOBS, 3, search="annealing", max_iter=40)
declare("rbf", "cpmmc", TWO, kernel="rbf", C=10.0, n_init=3)
declare("linear", "cpm3c", BLOBS, 3, kernel="linear", C=1.0, n_init=3)
declare("within sizes", "sdp_mmc", TWO[:40], target_sizes=[15, 25], balance=0.05, C=5.0)
declare("of 30 points", "gmmc", TWO[:30])
declare("by gain", "recursive_mmc", BLOBS, 3, method="iter_ls_svm", split="gain")
declare("in three", "cluster", BLOBS, 3)
declare("in any number", "cluster", BLOBS, max_k=5)
declare("without small regions", "segment", IMAGE, 3, method="iter_ls_svm", min_region=6)


def stream(X, kind, chunks, **params):
    """Return an estimator that learned X in chunks, saved and loaded in between."""
    learner = getattr(fastmmc, kind)(random_state=0, **params)
    for number, rows in enumerate(np.array_split(np.arange(X.shape[0]), chunks)):
        learner.partial_fit(X[rows])
        with tempfile.TemporaryDirectory() as folder:
            learner.save(Path(folder) / "stream.npz", extra={"chunk": number})
            learner = type(learner).load(Path(folder) / "stream.npz")
    return learner


declare("of RPCL, saved", stream, LARGE, "RPCL", 4, n_clusters=6)


def signatures():
    """Return the parameters of every public function and estimator, with their defaults."""
    offered = [getattr(fastmmc, name) for name in fastmmc.__all__]
    offered = [o for o in offered if callable(o) and (not isinstance(o, type) or "fit" in dir(o))]
    return {
        one.__name__: {
            name: f"{'*' if p.kind is p.KEYWORD_ONLY else ''}{describe(p.default)!r}"
            for name, p in inspect.signature(one).parameters.items()
        }
        for one in (*offered, distributed.fit_sharded)
    }


declare("of all functions and estimators", signatures)

# What no method takes; each of these is given to all that have the parameter.
REFUSED = {
    "X": [np.full((5, 2), np.nan), np.zeros(5), np.zeros((0, 2)), "points"],
    "k": [0, 91, 2.5, "two"],
    "lam": [0.0, "small"],
    "sigma": [-1.0, np.inf],
    "kernel": ["nothing", 3],
    "rank": [0, 2.0, "some"],
    "init": ["nothing", [0, 1]],
    "balance": [-0.1, "half"],
    "target_sizes": [[1, 2], [45.5, 44.5]],
    "min_size": [80, -1],
    "known_labels": [[0, 1], np.full(90, 7.5)],
    "must_link": [[(0, 0)], [(0, 900)], 5],
    "labels_as": ["links"],
    "method": ["nothing", 4],
    "n_init": [0, 1.5],
    "n_jobs": [0, 1.5],
    "max_iter": [0, "many"],
    "max_time": [-1.0, "long"],
    "random_state": ["seed"],
    "sample_weight": [np.zeros(90), [1.0]],
}


def refusals():
    """Return the error, or that there was none, for every value that should be refused."""
    found = {}
    functions = [getattr(fastmmc, name) for name in fastmmc.__all__ if name.islower()]
    functions = [f for f in functions if callable(f) and f is not fastmmc.segment]
    for function in (*functions, distributed.fit_sharded):
        names = inspect.signature(function).parameters
        for name, value in ((n, v) for n, values in REFUSED.items() for v in values if n in names):
            given = (
                {"X": NOISE, "k": 2, "lams": [1.0]} | {"max_iter": 1, "n_init": 1} | {name: value}
            )
            try:
                function(**{n: v for n, v in given.items() if n in names})
                error = "taken"
            except (ValueError, TypeError) as raised:
                error = f"{type(raised).__name__}: {raised}"
            shown = digest(value) if isinstance(value, np.ndarray) else repr(value)
            found[f"{function.__name__} {name}={shown}"] = error
    return found


declare("of wrong values", refusals)


# --------------------------------------------------------------------------- what is said of them

# What a result says, besides ``params``; a method's result has some of it.
FIELDS = (
    "labels objective status n_iter n_moves sizes history trace objectives best_init "
    "loo_mse bound gap dual_coef support intercept duality_gap n_violated matrix solver_status "
    "centers all_centers kept weights n_active n_constraints n_violations n_conflicts "
    "representatives tree label_image colors feature_names_in"
).split()
# What a factor says.
FACTOR_FIELDS = ("n", "lam", "R", "Z", "diagonal", "indices", "scale", "rank")


def new_points(X):
    """Return points like those of X that are not among them; of a Gram matrix some rows."""
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.shape[0] == X.shape[1]:
        return X[::7]
    if sparse.issparse(X):
        return sparse.csr_matrix(0.9 * X[::7])
    X = np.asarray(X)
    if X.ndim != 2 or not X.dtype.kind == "f":
        return None
    return X[::7] * X.dtype.type(0.9) + X.dtype.type(0.05)


def digest(array):
    array = np.ascontiguousarray(array)
    found = hashlib.sha256(array.tobytes()).hexdigest()[:12]
    return f"{array.dtype}{list(array.shape)} {found}"


def partition(labels):
    """Return a digest of a partition, whatever numbers its clusters have."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return digest(np.argsort(np.argsort(first))[inverse].astype(np.int64))


def describe(value, new=None):
    """Return a value in JSON's types, arrays as digests; of results and estimators a table."""
    if isinstance(value, Enum):
        return value.name
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return describe(value.item())
    if isinstance(value, np.ndarray):
        return describe(value.tolist()) if value.dtype == object else digest(value)
    if sparse.issparse(value):
        return [digest(part) for part in (value.data, value.indices, value.indptr)]
    if isinstance(value, dict):
        return {str(key): describe(entry, new) for key, entry in value.items()}
    if isinstance(value, fastmmc.Tree):
        nodes = [[n.size, n.depth, n.label, n.objective, n.gain] for n in value.nodes]
        return [str(value), describe(nodes)]
    if isinstance(value, fastmmc.ClusteringResult):
        return describe_result(value, new)
    if isinstance(value, fastmmc.DenseFactor | fastmmc.LowRankFactor):
        return describe_factor(value)
    if hasattr(value, "get_params") and not isinstance(value, type):
        return describe_estimator(value, new)
    if isinstance(value, list | tuple):
        if value and isinstance(value[0], fastmmc.ClusteringResult):
            return {f"result {i}": describe(one, new) for i, one in enumerate(value)}
        return [describe(entry) for entry in value]
    if isinstance(value, types.FunctionType | type):
        return value.__name__
    return type(value).__name__


def describe_result(result, new):
    found = {name: describe(getattr(result, name)) for name in FIELDS if hasattr(result, name)}
    found["sizes"] = result.sizes.tolist()
    found["partition"] = partition(result.labels)
    found["params"] = describe(result.params)
    if isinstance(result, fastmmc.SegmentationResult):
        found["paint"] = describe(result.paint())
        new = result.colors
    if isinstance(result, fastmmc.ClusteringResult) and result.feature_names_in is not None:
        found["feature_names_in"] = result.feature_names_in.tolist()
        return found  # new points would need the names
    return found | describe_predictions(result, new)


def describe_estimator(estimator, new):
    names = [name for name in sorted(dir(estimator)) if name[-1] == "_" and name[0] != "_"]
    found = {
        name: describe(getattr(estimator, name))
        for name in names
        if name != "result_" and hasattr(estimator, name)
    }
    if hasattr(estimator, "labels_"):
        found["partition"] = partition(estimator.labels_)
    if hasattr(estimator, "sizes_"):
        found["sizes"] = estimator.sizes_.tolist()
        found["objective"], found["status"] = estimator.objective_, estimator.status_.name
    if hasattr(estimator, "result_"):
        found["params"] = describe(estimator.result_.params)
    return found | describe_predictions(estimator, new)


def describe_predictions(predictor, new):
    found = {}
    for name in ("predict", "decision_function", "transform", "score"):
        if new is not None and hasattr(predictor, name):
            try:
                found[name] = describe(getattr(predictor, name)(new))
            except Exception as error:
                found[name] = f"{type(error).__name__}: {error}"
    return found


def describe_factor(factor):
    found = {}
    for name in FACTOR_FIELDS:
        if hasattr(factor, name):
            value = getattr(factor, name)
            found[name] = describe(value() if callable(value) else value)
    return found


# -------------------------------------------------------------------------------------- the record


def machine():
    """Return all that results may depend on to the last bit."""
    cpu = sorted(f for f, there in llvmlite.binding.get_host_cpu_features().items() if there)
    blas = {
        f"{pool['internal_api']} {pool.get('version')} {pool.get('architecture')}"
        for pool in threadpoolctl.threadpool_info()
        if pool["user_api"] == "blas" and "/scs.libs/" not in pool["filepath"]  # loaded late
    }
    modules = (np, scipy, sklearn, numba, llvmlite, joblib)
    versions = {m.__name__: m.__version__ for m in modules}
    for name in ("cvxpy", "scs"):
        try:
            versions[name] = __import__(name).__version__
        except ImportError:
            versions[name] = None
    return versions | {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()} {' '.join(platform.libc_ver())}",
        "numpy's features": np.show_config("dicts")["SIMD Extensions"]["found"],
        "cpu": f"{llvmlite.binding.get_host_cpu_name()} {digest(np.array(' '.join(cpu)))}",
        "compiled for": f"{numba.config.CPU_NAME} {numba.config.DISABLE_JIT}",
        "blas": sorted(blas),
    }


def load():
    return json.loads(RECORD.read_text())


def plain(found):
    """Return what JSON makes of it; floats keep every bit there."""
    return json.loads(json.dumps(found))


def differences(recorded, found, where=""):
    """Yield a line for everything recorded that is not found as it was; what is new is left out."""
    if isinstance(recorded, dict) and isinstance(found, dict):
        for key, value in recorded.items():
            if key in found:
                yield from differences(value, found[key], f"{where}{key}: ")
            else:
                yield f"{where}{key}: missing, was {value}"
    elif repr(recorded) != repr(found):  # tells 0.0 from -0.0, and NaN is NaN
        yield f"{where}{recorded} became {found}"


def main(arguments):
    write = arguments == ["--write"]
    if arguments and not write:
        raise SystemExit(__doc__)
    recorded = {} if write else load()["calls"]
    began, calls = time.perf_counter(), {}
    for name, call in CALLS.items():
        calls[name] = plain(call.run())
        for line in [] if write else differences(recorded[name], calls[name]):
            sys.stdout.write(f"{name}: {line}\n")
    sys.stdout.write(f"{len(calls)} calls in {time.perf_counter() - began:.0f} s\n")
    if write:
        lines = [f"{json.dumps(k)}: {json.dumps(v, sort_keys=True)}" for k, v in calls.items()]
        head = f'{{"machine": {json.dumps(machine())},\n"calls": {{\n'
        RECORD.write_text(head + ",\n".join(lines) + "\n}}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
