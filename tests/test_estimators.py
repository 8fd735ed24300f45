"""What every estimator owes scikit-learn: its checks, an HTML repr, documented parameters."""

import inspect
import re

import numpy as np
import pytest
import sklearn
from numpydoc.docscrape import ClassDoc
from numpydoc.validate import validate
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import fastmmc
from fastmmc.choice import candidates

ESTIMATORS = [method.estimator for method in fastmmc.METHODS.values()]
every = pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)

BRIEF = {"n_init": 1, "random_state": 0}
IGNORE = pytest.mark.filterwarnings("ignore")
JIT = pytest.mark.jit
SLOW = pytest.mark.slow

# Checks that an estimator cannot pass, and why.
BLOBS = {"check_clustering": "asks for three blobs, of which two equal clusters cut one in two"}
DENSE_COPIES = {
    "check_sample_weight_equivalence_on_dense_data": "equal rows may be parted where narrow sizes "
    "are asked for and in the papers' own searches, and heavy rows may not"
}
COPIES = DENSE_COPIES | {
    "check_sample_weight_equivalence_on_sparse_data": "equal rows may be parted, heavy ones not"
}
STANDARDISED = {"check_clustering": "asks for three blobs in standardised features"}
EMPTY = {"check_clustering": "standardised features leave clusters empty, see cpm3c"}
PROBABILITIES = {
    f"check_estimator_sparse_{kind}": "counts the columns of predict_proba by a classifier's tags"
    for kind in ("matrix", "array")
}
NO_WEIGHTS = {
    f"check_sample_weights_{what}": "the method takes no weights"
    for what in ("pandas_series", "not_an_array", "list", "shape", "not_overwritten")
}
GIVEN = {
    f"check_estimator_sparse_{kind}": "a graph of neighbours has no place for new points"
    for kind in ("matrix", "array")
} | {"check_clustering": "its points are no distances"}
DIRECTIONS = {
    name: "some rows are zero, which have no direction"
    for name in (
        "check_estimators_dtypes",
        "check_estimator_sparse_tag",
        "check_estimator_sparse_matrix",
        "check_estimator_sparse_array",
    )
}
INDEFINITE = {
    name: "their matrices are not positive semidefinite, or no longer where rounded to integers"
    for name in ("check_positive_only_tag_during_fit", "check_estimators_dtypes")
}


def case(model, *marks, cannot_hold=None, text=""):
    name = f"{type(model).__name__} {text}".strip()
    expected = PROBABILITIES if hasattr(model, "predict_proba") else {}
    return pytest.param(model, expected | (cannot_hold or {}), id=name, marks=marks)


def variant(text, model, cannot_hold=None):
    """Parameters that lead elsewhere than the defaults."""
    expected = STANDARDISED | (cannot_hold or {})
    return case(model.set_params(**BRIEF), JIT, SLOW, IGNORE, cannot_hold=expected, text=text)


def recursive(method, *marks, **kwargs):
    """Sizes wide enough for three clusters to be split one by one."""
    params = {"method": method, "method_params": {"balance": 0.5}}
    return case(fastmmc.RecursiveMMC(3, n_init=2, **params), JIT, *marks, text=method, **kwargs)


# One on line and one in batches; what the others are is the same but for a rule.
COMPETITIVE = [
    (fastmmc.WTA,),
    (fastmmc.FSCL, SLOW),
    (fastmmc.RPCL, SLOW),
    (fastmmc.CRPCL, SLOW),
    (fastmmc.OLCVQE, SLOW),
    (fastmmc.LCVQE,),
    (fastmmc.CVQE, SLOW),
]
PLANES = {"n_init": 2, "random_state": 0}
LABELLED = {"n_clusters": 3, "semi_supervised": True}

CASES = [
    case(fastmmc.UMCRLS(), IGNORE),
    case(fastmmc.AutoMMC(3), JIT, IGNORE),
    case(
        fastmmc.AutoMMC(max_k=4, random_state=0),
        JIT,
        SLOW,
        IGNORE,
        text="any number",
    ),
    case(fastmmc.EvoMMC(n_init=2), JIT, SLOW),
    case(fastmmc.FastEvoMMC(n_init=2), JIT),
    *(
        case(kind(n_init=2), JIT, *marks, cannot_hold=BLOBS)
        for kind, *marks in [(fastmmc.IterSVR,), (fastmmc.IterSVM, SLOW), (fastmmc.IterLSSVM, SLOW)]
    ),
    case(fastmmc.SAMMC(3, patience=3, population=2), JIT, IGNORE),
    *(
        case(kind(3, max_iter=20, random_state=0), JIT, IGNORE, *marks)
        for kind, *marks in COMPETITIVE
    ),
    case(fastmmc.CPMMC(**PLANES), JIT, IGNORE, cannot_hold=BLOBS),
    case(fastmmc.CPM3C(3, C=1.0, kernel="linear", **PLANES), JIT, IGNORE, cannot_hold=EMPTY),
    case(fastmmc.RecursiveMMC(), JIT, IGNORE, cannot_hold=BLOBS),
    recursive("iter-svr", cannot_hold=COPIES),
    recursive("fast-evo-mmc", SLOW, cannot_hold=COPIES | NO_WEIGHTS),
    case(fastmmc.SDPMMC(), SLOW, cannot_hold=BLOBS),
    case(fastmmc.GMMC(), SLOW, cannot_hold=BLOBS),
    # scikit-learn's checks pass y with the labels of all points.
    case(fastmmc.CRPCL(**LABELLED), JIT, IGNORE, text="with labels"),
    *(
        case(kind(**LABELLED), JIT, SLOW, IGNORE, text="with labels")
        for kind in (fastmmc.OLCVQE, fastmmc.LCVQE, fastmmc.CVQE)
    ),
    variant("libsvm", fastmmc.IterSVR(solver="libsvm")),
    variant("low rank", fastmmc.IterSVR(rank=2)),
    variant("pivoted", fastmmc.IterSVR(rank=0.5, landmarks="pivoted")),
    variant("linear", fastmmc.IterSVR(kernel="linear")),
    variant("liblinear", fastmmc.IterSVR(kernel="linear", solver="linear", C=1.0), DENSE_COPIES),
    variant("precomputed", fastmmc.IterSVR(kernel="precomputed")),
    variant("libsvm", fastmmc.IterSVM(solver="libsvm")),
    variant("refit", fastmmc.IterSVM(refit=True)),
    variant("cut", fastmmc.IterSVM(init="ncut")),
    variant("tied", fastmmc.IterSVM(bias="tied")),
    variant("low rank", fastmmc.IterLSSVM(rank=2)),
    variant("k-means", fastmmc.IterLSSVM(init="kmeans")),
    variant("gain", fastmmc.RecursiveMMC(3, split="gain")),
    variant("planes", fastmmc.RecursiveMMC(3, method="cpmmc"), COPIES | NO_WEIGHTS),
    variant("precomputed", fastmmc.RecursiveMMC(3, method_params={"kernel": "precomputed"})),
    variant("rbf", fastmmc.CPMMC(kernel="rbf")),
    variant("k-means", fastmmc.CPMMC(init="kmeans")),
    variant("precomputed", fastmmc.CPMMC(kernel="precomputed"), INDEFINITE),
    variant("as it is", fastmmc.CPM3C(3)),
    variant("low rank", fastmmc.CPM3C(3, rank=3)),
    variant("linear", fastmmc.CPM3C(3, kernel="linear")),
    variant("precomputed", fastmmc.CPM3C(3, kernel="precomputed"), INDEFINITE),
    variant("pivoted", fastmmc.UMCRLS(3, rank=3, landmarks="pivoted", sizes="equal")),
    variant("memetic", fastmmc.UMCRLS(3, method="memetic", rank=3)),
    variant("free", fastmmc.UMCRLS(sizes="free")),
    variant("steepest", fastmmc.UMCRLS(3, method="steepest", balance=0.5), COPIES),
    variant("precomputed", fastmmc.UMCRLS(3, kernel="precomputed", sizes="equal")),
    variant("distances", fastmmc.UMCRLS(3, metric="precomputed", sizes="equal"), GIVEN),
    variant("cosine", fastmmc.UMCRLS(3, metric="cosine", sizes="equal"), DIRECTIONS),
    *(
        case(
            fastmmc.AutoMMC(3, metric=metric),
            JIT,
            SLOW,
            IGNORE,
            text=text,
            cannot_hold=cannot,
        )
        for metric, text, cannot in [
            ("precomputed", "distances", GIVEN),
            ("cosine", "cosine", DIRECTIONS),
        ]
    ),
    variant("precomputed", fastmmc.EvoMMC(kernel="precomputed")),
    variant("pivoted", fastmmc.FastEvoMMC(rank=3, landmarks="pivoted")),
    variant("annealing", fastmmc.SAMMC(3, search="annealing", patience=3)),
    variant("means", fastmmc.SAMMC(3, search="annealing", center="mean", patience=3)),
    variant("random", fastmmc.SAMMC(3, init="random", patience=3)),
]


@pytest.fixture
def rough_programs(monkeypatch):
    """Let SCS end early: scikit-learn's checks look at manners, not at digits."""
    pytest.importorskip("cvxpy")
    from cvxpy.reductions.solvers.solving_chain import SolvingChain

    solve = SolvingChain.solve_via_data

    def solve_roughly(*args, solver_opts):
        return solve(*args, solver_opts=solver_opts | {"eps_abs": 1e-2, "eps_rel": 1e-2})

    monkeypatch.setattr(SolvingChain, "solve_via_data", solve_roughly)


@pytest.fixture
def rough_choice(monkeypatch):
    """Let one kernel vote: again, these checks look at manners."""
    for name in ("KERNELS", "JUDGES"):
        monkeypatch.setattr(candidates, name, getattr(candidates, name)[1:2])


@pytest.mark.filterwarnings("ignore:clusters of free sizes")
@pytest.mark.parametrize(("model", "cannot_hold"), CASES)
def test_scikit_learns_checks(model, cannot_hold, request):
    if isinstance(model, fastmmc.AutoMMC):
        request.getfixturevalue("rough_choice")
    if isinstance(model, fastmmc.SDPMMC | fastmmc.GMMC):
        request.getfixturevalue("rough_programs")
    results = check_estimator(model, on_skip=None, on_fail=None, expected_failed_checks=cannot_hold)
    assert {result["status"] for result in results} <= {"passed", "skipped", "xfail"}, [
        (result["check_name"], result["exception"])
        for result in results
        if result["status"] == "failed"
    ]


def test_every_estimator_is_checked():
    assert {type(param.values[0]) for param in CASES} == set(ESTIMATORS)
    names = [param.id for param in CASES]
    assert len(names) == len(set(names))


def few(kind):
    """Return an estimator that takes little time, and points in two clusters."""
    X = np.random.default_rng(0).random((40, 3)) + np.repeat([[0.0], [3.0]], 20, axis=0)
    for name in next(m.needs for m in fastmmc.METHODS.values() if m.estimator is kind):
        pytest.importorskip(name)
    has = inspect.signature(kind).parameters
    given = {"n_clusters": 2, "n_init": 1, "random_state": 0}
    return kind(**{name: value for name, value in given.items() if name in has}), X


@IGNORE
@every
def test_memberships_scores_or_distances_are_features(kind):
    model, X = few(kind)
    model.set_output(transform="pandas").fit(X)
    names = [f"{kind.__name__.lower()}{i}" for i in range(2)]
    assert model.get_feature_names_out().tolist() == names
    Z = model.transform(X)
    assert Z.columns.tolist() == names
    Z = Z.to_numpy() * (-1 if hasattr(model, "cluster_centers_") else 1)
    best = Z.argmax(axis=1)
    np.testing.assert_array_equal(best, model.predict(X))
    made = make_pipeline(few(kind)[0], LogisticRegression()).fit(X, X[:, 0] > 2)
    assert made.score(X, X[:, 0] > 2) == 1


@IGNORE
@every
def test_sparse_points(kind):
    """Few of them give what dense ones do: two clear clusters, and the same ones anew."""
    model, X = few(kind)
    labels = model.fit(csr_array(X)).labels_
    assert sorted(np.bincount(labels)) == [20, 20]
    np.testing.assert_array_equal(model.predict(csr_array(X)), model.predict(X))


@pytest.mark.parametrize("steps", [[], [StandardScaler()]])
def test_the_choice_in_a_grid_search(steps):
    _, X = few(fastmmc.AutoMMC)
    model = make_pipeline(*steps, fastmmc.AutoMMC(random_state=0))
    search = GridSearchCV(model, {"autommc__n_clusters": [2, 3]}, cv=2).fit(X)
    assert search.best_params_ == {"autommc__n_clusters": 2}


@every
def test_missing_values_name_the_remedy(kind):
    model, X = few(kind)
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="X contains NaN: fill in .*SimpleImputer.* data frame"):
        model.fit(X)


@every
def test_html_repr(kind):
    html = kind()._repr_html_()
    assert kind.__name__ in html
    if tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 7):  # before: no parameters
        shown = set(re.findall(r">\s*(\w+)\s*(?:&nbsp;)?\s*<", html))
        assert set(inspect.signature(kind).parameters) <= shown


@every
def test_all_parameters_are_documented(kind):
    """None is missing, invented or without a description."""
    codes = {"PR01", "PR02", "PR07"}
    errors = validate(f"fastmmc.{kind.__name__}")["errors"]
    assert not [error for error in errors if error[0] in codes]


@every
def test_every_parameter_has_an_entry_of_its_own(kind):
    """With a type and its default, in the order of the signature."""
    entries = {entry.name: entry.type for entry in ClassDoc(kind)["Parameters"]}
    parameters = inspect.signature(kind).parameters
    assert list(entries) == list(parameters)
    for name, parameter in parameters.items():
        assert entries[name], f"{name} has no type"
        if parameter.default is not parameter.empty:
            assert re.search(r"\bdefault[=: ]", entries[name]), f"{name} has no default"


def test_what_fit_makes_is_named_before_it():
    model = fastmmc.AutoMMC(3)
    assert not hasattr(model, "probabilities_") and fastmmc.AutoMMC.probabilities_.__doc__ is None
    with pytest.raises(AttributeError, match="no attribute 'probabilities_' before fit"):
        model.probabilities_  # noqa: B018
