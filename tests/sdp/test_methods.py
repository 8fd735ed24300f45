"""The functions and estimators of the family: labels, sizes, rounding, stops, bad input."""

import inspect
import pickle
import sys
import time

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fastmmc
from fastmmc import Status, cli
from fastmmc.data.sizes import split_by_rank
from fastmmc.kernels.gram import Kernel, median_width
from fastmmc.sdp import methods, relaxation
from fastmmc.sdp.machine import centre
from fastmmc.sdp.rounding import distinct, leading_vectors, sweep

FUNCTIONS = [fastmmc.sdp_mmc, fastmmc.gmmc]
ESTIMATORS = [fastmmc.SDPMMC, fastmmc.GMMC]
every = pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)


@pytest.fixture
def needs_cvxpy():
    pytest.importorskip("cvxpy")


@pytest.fixture
def two_blobs():
    rng = np.random.default_rng(4)
    y = np.repeat([0, 1], [11, 9])
    return rng.standard_normal((20, 3)) + 6.0 * y[:, None], y


def gram(X):
    return Kernel("rbf", sigma=median_width(X)).block(X, X)


@every
@pytest.mark.usefixtures("needs_cvxpy")
class TestRuns:
    def test_two_blobs(self, function, two_blobs):
        X, y = two_blobs
        options = {"balance": 0.2} if function is fastmmc.sdp_mmc else {}
        res = function(X, **options)
        assert adjusted_rand_score(y, res.labels) == 1.0 and res.labels[0] == 0
        assert res.labels.dtype == np.int64 and res.sizes.tolist() == [11, 9]
        assert res.converged and res.solver_status == "optimal" and res.n_iter > 0
        assert 0.95 * res.objective < res.bound <= res.objective
        assert res.history.tolist() == res.objectives.tolist() == [res.objective]
        assert res.matrix.shape == (20, 20) and res.params["sigma"] == median_width(X)
        np.testing.assert_array_equal(res.predict(X), res.labels)
        again = pickle.loads(pickle.dumps(res))
        np.testing.assert_array_equal(again.predict(X), res.labels)

    def test_no_random_numbers(self, function, overlapping):
        a, b = function(overlapping[:30]), function(overlapping[:30])
        np.testing.assert_array_equal(a.labels, b.labels)
        assert a.objective == b.objective and a.bound == b.bound

    def test_forms_of_input(self, function, overlapping):
        X = overlapping[:16]
        wanted = function(X)
        frozen = X.copy()
        frozen.flags.writeable = False
        for given in (X.tolist(), np.asfortranarray(X), frozen):
            np.testing.assert_array_equal(function(given).labels, wanted.labels)
        single = function(X.astype(np.float32))
        np.testing.assert_array_equal(single.labels, wanted.labels)
        assert single.predict(X.astype(np.float32)).dtype == np.int64
        by_gram = function(gram(X), kernel="precomputed")
        np.testing.assert_array_equal(by_gram.labels, wanted.labels)
        np.testing.assert_allclose(
            by_gram.decision_function(gram(X)), wanted.decision_function(X), atol=1e-6
        )
        np.testing.assert_array_equal(function(csr_matrix(X)).labels, wanted.labels)

    def test_solvers_agree(self, function, overlapping):
        X = overlapping[:16]
        a, b = function(X), function(X, solver="Clarabel")
        assert a.bound == pytest.approx(b.bound, rel=1e-4)
        np.testing.assert_array_equal(a.labels, b.labels)

    def test_a_time_limit_gives_labels(self, function, overlapping):
        with pytest.warns(ConvergenceWarning, match="max_time") as caught:
            res = function(overlapping, max_time=1e-6)
        assert caught[0].filename == __file__
        assert res.status == Status.TIME_LIMIT and res.solver_status == "optimal_inaccurate"
        assert res.bound <= res.objective and len(res.labels) == 60

    def test_one_labelling_is_tried_where_there_is_no_time(
        self, function, monkeypatch, overlapping
    ):
        name = "train_hard" if function is fastmmc.gmmc else "train_soft"
        train, trained = getattr(methods, name), []

        def count(K, y, *rest):
            trained.append(y)
            return train(K, y, *rest)

        monkeypatch.setattr(methods, name, count)
        with pytest.warns(ConvergenceWarning, match="max_time"):
            res = function(overlapping, max_time=1e-6)
        assert len(trained) == 1 and res.objective > 0

    @pytest.mark.parametrize("by", ["cvxpy", "SCS"])
    def test_an_interrupt_gives_labels(self, function, by, monkeypatch, two_blobs):
        from cvxpy.reductions.solvers.solving_chain import SolvingChain

        solve = SolvingChain.solve_via_data

        def interrupted(*args, **kwargs):
            monkeypatch.setattr(SolvingChain, "solve_via_data", solve)  # once
            if by == "cvxpy":
                raise KeyboardInterrupt
            return {"info": {"status_val": -5}}

        monkeypatch.setattr(SolvingChain, "solve_via_data", interrupted)
        with pytest.warns(ConvergenceWarning, match="interrupted"):
            res = function(two_blobs[0])
        # What is rounded then is the Gram matrix.
        assert res.status == Status.INTERRUPTED and res.bound is None and res.matrix is None
        assert adjusted_rand_score(two_blobs[1], res.labels) > 0.7

    def test_a_failure_gives_labels(self, function, monkeypatch, two_blobs):
        outcome = Status.NUMERICAL, "solver_error", 0
        monkeypatch.setattr(relaxation, "_solve", lambda *args: outcome)
        with pytest.warns(ConvergenceWarning, match="numerical problem"):
            res = function(two_blobs[0])
        assert res.status == Status.NUMERICAL and res.solver_status == "solver_error"
        assert np.isfinite(res.objective) and res.bound is None
        if function is fastmmc.gmmc:
            with pytest.warns(ConvergenceWarning):
                function(two_blobs[0], rounding="eigenvector")

    def test_a_solver_that_gives_up(self, function, monkeypatch, two_blobs):
        import cvxpy
        from cvxpy.reductions.solution import failure_solution
        from cvxpy.reductions.solvers.solving_chain import SolvingChain

        failure = failure_solution(cvxpy.settings.SOLVER_ERROR)
        monkeypatch.setattr(SolvingChain, "invert", lambda *args: failure)
        with pytest.warns(ConvergenceWarning, match="numerical problem"):
            assert function(two_blobs[0]).solver_status == "solver_error"

    def test_it_splits_recursively(self, function):
        y = np.repeat([0, 1, 2, 3], 6)
        X = np.random.default_rng(0).standard_normal((24, 2)) + np.array([0, 9, 40, 49])[y, None]
        res = fastmmc.recursive_mmc(X, 4, method=function.__name__)
        assert res.converged and adjusted_rand_score(y, res.labels) == 1.0
        np.testing.assert_array_equal(res.predict(X), res.labels)
        many = np.random.default_rng(0).random((151, 2))
        with pytest.raises(ValueError, match="at most 150 points"):
            fastmmc.recursive_mmc(many, 3, method=function.__name__)

    def test_it_segments_a_small_palette(self, function):
        image = np.zeros((4, 6, 3))
        image[:, 3:] = 200.0
        image += np.arange(4)[:, None, None]
        res = fastmmc.segment(image, 2, method=function.__name__)
        assert len(np.unique(res.label_image[:, :3])) == 1
        assert res.label_image[0, 0] != res.label_image[0, 5]

    def test_the_command_line(self, function, capsys, tmp_path, two_blobs):
        path = tmp_path / "points.npy"
        np.save(path, two_blobs[0])
        name = function.__name__.replace("_", "-")
        assert cli.main(["cluster", str(path), "--method", name]) == 0
        assert "20 points, 3 features, 2 clusters" in capsys.readouterr().err
        assert cli.main(["cluster", "digits", "--method", name]) == 2
        out, err = capsys.readouterr()
        assert out == "" and err.count("\n") == 1 and "1797 points would take" in err

    def test_a_progress_bar(self, function, capsys, two_blobs):
        pytest.importorskip("rich")
        function(two_blobs[0], verbose=1)
        out, err = capsys.readouterr()
        assert "program 1/1" in err and out == ""


@every
@pytest.mark.usefixtures("needs_cvxpy")
class TestScale:
    """With a linear kernel a far origin changes nothing, and a scale that loses digits is told."""

    @pytest.mark.parametrize("origin", [100.0, 1e7])
    def test_the_origin_does_not_matter(self, function, origin, two_blobs):
        X = two_blobs[0]
        new = np.random.default_rng(0).normal(3.0, 4.0, (30, 3))
        near, far = function(X, kernel="linear"), function(X + origin, kernel="linear")
        np.testing.assert_array_equal(far.labels, near.labels)
        assert far.objective == pytest.approx(near.objective, rel=1e-6)
        np.testing.assert_allclose(
            far.decision_function(new + origin), near.decision_function(new), atol=1e-5
        )

    @pytest.mark.parametrize("scale", [1e-30, 1e30])
    def test_scales_that_are_beyond_the_digits_are_refused(self, function, scale, two_blobs):
        with pytest.raises(ValueError, match="mean squared norm .* scale the points"):
            function(two_blobs[0] * scale, kernel="linear")


@pytest.mark.usefixtures("needs_cvxpy")
class TestMMC:
    def test_the_objective_is_that_of_the_labels(self, overlapping):
        from tests.sdp import naive

        X = overlapping[:20]
        for C, center in ((1.0, True), (5.0, False)):
            res = fastmmc.sdp_mmc(X, C=C, center_kernel=center)
            K = centre(gram(X)) if center else gram(X)
            y = np.where(res.labels == 1, 1.0, -1.0)
            assert res.objective == pytest.approx(naive.svm_primal(K, y, C), rel=1e-4)

    @pytest.mark.parametrize(
        ("options", "allowed"),
        [
            ({"balance": 0.0}, [(10, 10)]),
            ({"balance": 0.1}, [(9, 11), (10, 10), (11, 9)]),
            ({"target_sizes": [5, 15], "balance": 0.0}, [(5, 15)]),
            ({"target_sizes": [5, 15]}, [(5, 15)]),
            ({"target_sizes": [15, 5], "balance": 0.1}, [(14, 6), (15, 5), (16, 4)]),
            ({"balance": 0.99, "min_size": 10}, [(10, 10)]),
        ],
    )
    def test_sizes(self, options, allowed, overlapping):
        for seed in range(3):
            X = np.random.default_rng(seed).standard_normal((20, 2)) ** 3
            res = fastmmc.sdp_mmc(X, **options)
            assert tuple(res.sizes.tolist()) in allowed
            assert res.bound <= res.objective * (1 + 1e-9)

    def test_the_program_asks_for_the_given_sizes(self, overlapping):
        from fastmmc.sdp.methods import _size_limits

        assert _size_limits(21, 0.0, [6, 15], 1, None) == (9.0, 9.0)
        assert _size_limits(21, 0.0, None, 1, None) == (0.0, 1.0)
        assert fastmmc.sdp_mmc(overlapping[:11], target_sizes=[3, 8]).params["balance"] == 0.0

    def test_an_odd_number_of_points(self, overlapping):
        res = fastmmc.sdp_mmc(overlapping[:11])
        assert sorted(res.sizes.tolist()) == [5, 6]
        equal = fastmmc.sdp_mmc(overlapping[:11], balance=0.0)
        assert sorted(equal.sizes.tolist()) == [5, 6]

    def test_wider_sizes_never_raise_the_bound(self, overlapping):
        bounds = [fastmmc.sdp_mmc(overlapping[:20], balance=b).bound for b in (0.0, 0.3, 0.9)]
        assert np.diff(bounds).max() <= 1e-3 * bounds[0]

    def test_new_points_are_told_apart_in_centred_features(self, two_blobs):
        X, _ = two_blobs
        new = np.random.default_rng(0).normal(3.0, 4.0, (50, 3))
        res = fastmmc.sdp_mmc(X, kernel="linear", balance=0.2)
        K = (X - X.mean(axis=0)) @ (X - X.mean(axis=0)).T
        f = res.decision_function(X)[:, 1]
        w = np.linalg.lstsq(X - X.mean(axis=0), f, rcond=None)[0]
        np.testing.assert_allclose(
            res.decision_function(new)[:, 1], (new - X.mean(axis=0)) @ w, atol=1e-8
        )
        # f is that of the machine whose value is the objective.
        y = np.where(res.labels == 1, 1.0, -1.0)
        value = w @ w + 2.0 * np.maximum(0.0, 1.0 - y * f).sum()
        assert value == pytest.approx(res.objective) and np.linalg.matrix_rank(K) == 3

    def test_n_moves_counts_what_the_size_rule_changed(self, two_blobs):
        X, y = two_blobs
        assert fastmmc.sdp_mmc(X, balance=0.2).n_moves == 0
        assert fastmmc.sdp_mmc(X, target_sizes=[15, 5], balance=0.0).n_moves == 4


@pytest.mark.usefixtures("needs_cvxpy")
class TestGMMC:
    def test_the_objective_is_that_of_the_labels(self, overlapping):
        from tests.sdp import naive

        X = overlapping[:15]
        for C_e, ridge in ((10.0, 1e-2), (0.5, 1e-1)):
            res = fastmmc.gmmc(X, C_e=C_e, ridge=ridge)
            y = np.where(res.labels == 1, 1.0, -1.0)
            level = np.trace(centre(gram(X))) / 15
            twin = naive.fixed_signs(gram(X) + ridge * level * np.eye(15), y, C_e)
            assert res.objective == pytest.approx(twin, rel=1e-4)

    def test_the_sweep_is_never_worse(self):
        gained = 0
        for seed in range(6):
            X = np.random.default_rng(seed).standard_normal((24, 2))
            leading, swept = (fastmmc.gmmc(X, rounding=r) for r in ("leading", "dual"))
            assert swept.objective <= leading.objective * (1 + 1e-12)
            assert swept.bound == leading.bound
            gained += swept.objective < leading.objective * (1 - 1e-6)
        assert gained > 0

    def test_roundings_find_clear_clusters(self, two_blobs):
        X, y = two_blobs
        for rounding in ("dual", "leading"):
            res = fastmmc.gmmc(X, rounding=rounding)
            assert adjusted_rand_score(y, res.labels) == 1.0
            assert res.params["rounding"] == rounding
        res = fastmmc.gmmc(X, rounding="eigenvector")
        slack = np.linalg.inv(methods.penalised_kernel(gram(X), 1e-3, 1e-1 / 400))
        assert res.sizes.min() >= 1 and np.linalg.eigvalsh(slack)[0] > 0

    def test_scores_of_new_points(self, two_blobs):
        """f is w . phi(x) + b of the penalised bias: linear in x, with margins of 1 or more."""
        X, _ = two_blobs
        new = np.random.default_rng(0).normal(3.0, 4.0, (50, 3))
        res = fastmmc.gmmc(X, kernel="linear", ridge=1e-6)
        f = res.decision_function(X)[:, 1]
        A = np.column_stack((X, np.ones(20)))
        w = np.linalg.lstsq(A, f, rcond=None)[0]
        np.testing.assert_allclose(
            res.decision_function(new)[:, 1], np.column_stack((new, np.ones(50))) @ w, atol=1e-6
        )
        y = np.where(res.labels == 1, 1.0, -1.0)
        assert (y * f).min() == pytest.approx(1.0, abs=1e-3)
        assert w[:3] @ w[:3] + 10.0 * f.sum() ** 2 == pytest.approx(res.objective, rel=1e-2)

    def test_two_digits_are_told_apart(self):
        X, y = fastmmc.datasets.load("digits")
        chosen = np.concatenate([np.flatnonzero(y == digit)[:50] for digit in (2, 7)])
        assert adjusted_rand_score(y[chosen], fastmmc.gmmc(X[chosen]).labels) == 1.0

    def test_both_clusters_have_a_point(self, overlapping):
        assert fastmmc.gmmc(overlapping[:15], C_e=1e-4).sizes.min() >= 1


class TestRounding:
    def test_a_split_goes_by_sign_within_the_sizes(self):
        v = np.array([0.5, -0.2, 0.0, -0.1, 0.3])
        assert split_by_rank(v, 1, 4).tolist() == [1, -1, 1, -1, 1]
        assert split_by_rank(v, 4, 4).tolist() == [1, -1, 1, 1, 1]
        assert split_by_rank(v, 1, 2).tolist() == [1, -1, -1, -1, 1]
        assert split_by_rank(np.zeros(4), 1, 2).tolist() == [1, 1, -1, -1]

    @pytest.mark.parametrize("m", [2, 3])
    def test_the_sweep_meets_every_sign_pattern(self, m):
        vectors = np.random.default_rng(0).standard_normal((9, m))
        found = {np.sign(v * v[0]).tobytes() for v in sweep(vectors)}
        for angle in np.linspace(0, np.pi, 2000):
            for i in range(m):
                for j in range(i):
                    v = np.cos(angle) * vectors[:, j] + np.sin(angle) * vectors[:, i]
                    assert np.sign(v * v[0]).tobytes() in found
        assert len(distinct(np.sign(v) for v in sweep(vectors))) == len(found)

    def test_leading_vectors(self):
        A = np.diag([0.0, 5.0, 1.0, 1e-9])
        assert np.abs(leading_vectors(A, 3)).tolist() == [[0, 0], [1, 0], [0, 1], [0, 0]]
        assert leading_vectors(np.zeros((3, 3)), 3).shape == (3, 1)


@every
def test_many_points_are_refused(function, monkeypatch):
    name = function.__name__.replace("_", "-")
    monkeypatch.setattr(methods.memory, "available_memory", lambda: None)
    with pytest.raises(ValueError, match="n = 151 points would take about .* GiB with SCS"):
        function(np.zeros((151, 2)))
    for solver in ("SCS", "Clarabel"):
        methods.check_cost(name, 150, solver, False)
        methods.check_cost(name, 1000, solver, True)
        with pytest.raises(ValueError, match=f"{solver}.*force=True to go ahead, or use iter_svr"):
            methods.check_cost(name, 1000, solver, False)
    with pytest.raises(ValueError, match="about [0-9,]+ days"):
        methods.check_cost(name, 10_000, "Clarabel", False)
    monkeypatch.setattr(methods.memory, "available_memory", lambda: 1000)
    with pytest.raises(MemoryError, match="and 9.31e-07 GiB are free"):
        methods.check_cost(name, 151, "SCS", True)


SHARED = [
    ({"X": [[1.0]]}, ValueError, "at least 2 points"),
    ({"X": [[np.nan], [1.0]]}, ValueError, "NaN"),
    ({"solver": "MOSEK"}, ValueError, "solver must be one of 'SCS', 'Clarabel'; got 'MOSEK'"),
    ({"force": 1}, TypeError, "force must be True or False"),
    ({"kernel": "gauss"}, ValueError, "kernel must be one of"),
    ({"sigma": 1.0, "gamma": 1.0}, ValueError, "sigma or gamma, not both"),
    ({"max_time": 0}, ValueError, "max_time must be greater than 0"),
    ({"verbose": -1}, ValueError, "verbose must be at least 0"),
]
OWN = {
    fastmmc.sdp_mmc: [
        ({"C": 0}, ValueError, "C must be greater than 0"),
        ({"center_kernel": None}, TypeError, "center_kernel must be True or False"),
        ({"balance": 1.0}, ValueError, "balance must be at least 0 and below 1"),
        ({"target_sizes": [1, 1]}, ValueError, "sum to the number of points"),
        ({"min_size": 7}, ValueError, "min_size must be at most 6"),
    ],
    fastmmc.gmmc: [
        ({"C_delta": -1}, ValueError, "C_delta must be greater than 0"),
        ({"C_e": 0}, ValueError, "C_e must be greater than 0"),
        ({"ridge": 0}, ValueError, "ridge must be greater than 0"),
        (
            {"rounding": "gw"},
            ValueError,
            "rounding must be one of 'dual', 'leading'",
        ),
    ],
}


@every
@pytest.mark.usefixtures("needs_cvxpy")
def test_bad_input(function):
    X = np.random.default_rng(0).standard_normal((12, 2))
    for options, error, message in SHARED + OWN[function]:
        with pytest.raises(error, match=message):
            function(**({"X": X} | options))
    with pytest.raises(ValueError, match="positive semidefinite on X; its eigenvalues"):
        function(-np.eye(4) + 0.1, kernel="precomputed")
    with pytest.raises(ValueError, match="too large"):
        function(X * 1e200, kernel="poly")


@every
def test_without_the_extra(function, monkeypatch, capsys, tmp_path):
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    X = np.arange(8.0)[:, None]
    with pytest.raises(ImportError, match=r"need cvxpy \(python -m pip install"):
        function(X)
    np.save(tmp_path / "X.npy", X)
    name = function.__name__.replace("_", "-")
    assert cli.main(["cluster", str(tmp_path / "X.npy"), "--method", name]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and "need cvxpy (python -m pip install cvxpy" in err
    assert cli.main(["methods"]) == 0
    assert f"{name} (two clusters, needs cvxpy, scs)" in capsys.readouterr().out


def test_other_methods_do_without_the_extra(monkeypatch):
    """Nor does an import of the package need it, see the tests of the command line."""
    for name in ("cvxpy", "scs"):
        monkeypatch.setitem(sys.modules, name, None)
    fastmmc.SDPMMC()
    assert fastmmc.iter_ls_svm([[0.0], [1.0]]).labels.tolist() in ([0, 1], [1, 0])


@pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
@pytest.mark.usefixtures("needs_cvxpy")
class TestEstimators:
    def test_the_estimator_is_its_function(self, kind, overlapping):
        X = overlapping[:20]
        function = FUNCTIONS[ESTIMATORS.index(kind)]
        theirs = inspect.signature(kind).parameters
        ours = dict(inspect.signature(function).parameters)
        del ours["X"]
        assert {n: p.default for n, p in ours.items()} == {n: p.default for n, p in theirs.items()}
        model, res = kind(sigma=2.0).fit(X), function(X, sigma=2.0)
        np.testing.assert_array_equal(model.labels_, res.labels)
        np.testing.assert_array_equal(model.matrix_, res.matrix)
        assert (model.objective_, model.bound_) == (res.objective, res.bound)
        assert model.status_ == Status.CONVERGED and model.solver_status_ == "optimal"
        np.testing.assert_array_equal(model.predict(X[:5]), res.predict(X[:5]))
        f = res.decision_function(X)[:, 1]
        assert model.score(X) == -np.mean(np.maximum(0.0, 1.0 - np.abs(f)))
        assert clone(model).get_params() == model.get_params()
        again = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        assert kind(kernel="precomputed").__sklearn_tags__().input_tags.pairwise

    def test_in_a_pipeline(self, kind, two_blobs):
        X, y = two_blobs
        labels = make_pipeline(StandardScaler(), kind()).fit_predict(X * [1.0, 100.0, 1e-3])
        assert adjusted_rand_score(y, labels) > 0.7


def test_an_interrupt_leaves_no_half_of_a_package_behind(tmp_path, monkeypatch, interruptible):
    """As Python would, after which a later call fails for want of an attribute."""
    from fastmmc.sdp.relaxation import import_cvxpy

    package = tmp_path / "cvxpy"
    package.mkdir()
    (package / "settings.py").write_text("VALUE = 1\n")
    (package / "__init__.py").write_text(
        "import _thread, pathlib, time\n"
        "from cvxpy.settings import VALUE\n"
        "flag = pathlib.Path(__file__).with_name('imported')\n"
        "if not flag.exists():\n"
        "    flag.touch()\n"
        "    _thread.interrupt_main()\n"
        "    time.sleep(0.01)\n"
        "ERROR = VALUE\n"
    )
    before = {name: one for name, one in sys.modules.items() if name.split(".")[0] == "cvxpy"}
    for name in before:
        del sys.modules[name]
    monkeypatch.syspath_prepend(tmp_path)
    try:
        with pytest.raises(KeyboardInterrupt):
            import_cvxpy()
            time.sleep(1.0)  # the interrupt comes when the main thread goes on
        assert import_cvxpy().ERROR == import_cvxpy().settings.VALUE
    finally:
        for name in ("cvxpy", "cvxpy.settings"):
            sys.modules.pop(name, None)
        sys.modules.update(before)
