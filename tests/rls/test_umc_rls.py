"""umc_rls, its path and its estimator as a user meets them."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fastmmc
from fastmmc import Status


def quick(X, k, **kwargs):
    return fastmmc.umc_rls(X, k, **({"n_init": 3, "random_state": 0} | kwargs), sizes="equal")


def test_result_fields(overlapping):
    result = quick(overlapping, 3, lam=0.5, sigma=2.0, method="shaking")
    assert result.labels.dtype == np.int64 and result.labels.shape == (60,)
    assert result.converged and result.status is Status.CONVERGED
    np.testing.assert_array_equal(result.sizes, np.bincount(result.labels))
    assert result.n_iter == 21 and result.n_moves == result.trace["moves"][-1]
    assert result.history.shape == result.trace["moves"].shape
    assert result.params["lam"] == 0.5 and result.params["sigma"] == 2.0
    assert result.params["balance"] is None and result.params["n_init"] == 3
    assert quick(overlapping, 3).params["sigma"] == fastmmc.kernels.gram.median_width(overlapping)


def test_one_cluster_and_as_many_as_points(overlapping):
    one = quick(overlapping, 1)
    assert (one.labels == 0).all() and one.n_moves == 0
    np.testing.assert_array_equal(one.predict(overlapping), 0)
    everyone = quick(overlapping, 60)
    assert (everyone.sizes == 1).all()


def test_a_single_point():
    assert quick([[1.0]], 1).labels.tolist() == [0]


@pytest.mark.filterwarnings("ignore:X has only")
def test_equal_points_are_shared_out():
    assert quick(np.ones((10, 2)), 2, balance=0).sizes.tolist() == [5, 5]


@pytest.mark.parametrize("method", ["shaking", "steepest", "stochastic"])
@pytest.mark.parametrize("init", ["random", "kmeans"])
def test_balance_holds(overlapping, method, init):
    result = quick(overlapping, 4, method=method, init=init, balance=0.2)
    assert result.sizes.min() >= 12 and result.sizes.max() <= 18


@pytest.mark.parametrize("method", ["shaking", "steepest", "stochastic"])
def test_min_size_holds(overlapping, method):
    assert quick(overlapping, 6, method=method, min_size=8).sizes.min() >= 8


@pytest.mark.parametrize(
    "search", [{}, {"method": "steepest"}, {"method": "memetic"}, {"rank": 20}, {"sizes": "free"}]
)
@pytest.mark.parametrize("sizes", [[50, 15, 10], [0.2, 0.2, 0.6]])
def test_target_sizes_are_met_unless_a_balance_says_otherwise(blobs, search, sizes):
    X, _ = blobs
    wanted = sizes if isinstance(sizes[0], int) else (np.array(sizes) * len(X)).round()
    assert len(X) == 75
    result = fastmmc.umc_rls(X, 3, target_sizes=sizes, random_state=0, **search)
    np.testing.assert_array_equal(result.sizes, wanted)
    assert result.at_size_bound.all() and result.params["balance"] == 0.0


@pytest.mark.parametrize("method", [fastmmc.umc_rls, fastmmc.cluster])
def test_target_sizes_that_known_labels_exceed_are_refused(blobs, method):
    known = np.repeat([0, -1], [30, 45])
    with pytest.raises(ValueError, match="30 of them in cluster 0 .* at most 25; .* target_sizes"):
        method(blobs[0], 3, known_labels=known, target_sizes=[25, 25, 25])


def test_target_sizes_are_met_by_shaking(blobs):
    X, y = blobs
    sizes = np.bincount(y)
    for seed in range(4):
        result = quick(X, 3, target_sizes=sizes, start_round=1, n_init=20, random_state=seed)
        np.testing.assert_array_equal(result.sizes, sizes)
        assert adjusted_rand_score(y, result.labels) == 1.0


@pytest.mark.parametrize("method", ["shaking", "steepest", "stochastic"])
@pytest.mark.parametrize("options", [{}, {"polish": True}, {"balance": 0.5}, {"init": "kmeans"}])
def test_known_labels_never_change(overlapping, method, options):
    y = np.full(60, -1)
    y[::5] = np.arange(12) % 3
    result = quick(overlapping, 3, known_labels=y, method=method, **options)
    np.testing.assert_array_equal(result.labels[::5], y[::5])


def test_known_labels_help(digits):
    X, truth = digits
    X, truth = X[truth < 4], truth[truth < 4]
    y = np.full(len(X), -1)
    y[:80] = truth[:80]
    result = quick(X, 4, known_labels=y)
    assert np.mean(result.labels == truth) > 0.9


def test_every_label_known_gives_the_objective_of_a_labelling(blobs):
    X, y = blobs
    result = quick(X, 3, known_labels=y, n_init=1)
    np.testing.assert_array_equal(result.labels, y)
    assert result.n_moves == 0 and np.isfinite(result.loo_mse)


def test_factor_gives_the_same_result(overlapping):
    F = fastmmc.factor(overlapping, lam=0.1, sigma=1.5)
    for k in (2, 5):
        from_points = quick(overlapping, k, lam=0.1, sigma=1.5)
        from_factor = quick(F, k)
        np.testing.assert_array_equal(from_points.labels, from_factor.labels)
        assert from_points.objective == from_factor.objective
        np.testing.assert_array_equal(
            from_factor.predict(overlapping), from_points.predict(overlapping)
        )


def test_precomputed_and_callable_kernels_agree_with_named_ones(overlapping):
    named = quick(overlapping, 3, kernel="rbf", sigma=1.5)
    K = np.exp(-((overlapping[:, None] - overlapping) ** 2).sum(axis=2) / 1.5**2)
    given = quick(K, 3, kernel="precomputed")
    called = quick(
        overlapping,
        3,
        kernel=lambda X, Z, width: np.exp(-((X[:, None] - Z) ** 2).sum(axis=2) / width**2),
        kernel_params={"width": 1.5},
    )
    by_gamma = quick(overlapping, 3, gamma=1.5**-2)
    for other in (given, called, by_gamma):
        np.testing.assert_array_equal(named.labels, other.labels)
    np.testing.assert_allclose(
        given.decision_function(K[:4]), named.decision_function(overlapping[:4]), atol=1e-8
    )


@pytest.mark.parametrize("kernel", ["linear", "poly", "laplacian"])
def test_other_kernels_find_clear_clusters(kernel):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 20)
    X = 4.0 * np.eye(3)[y] + 0.5 * rng.standard_normal((60, 3))
    assert adjusted_rand_score(y, quick(X, 3, kernel=kernel, n_init=10).labels) == 1.0


def test_decision_function_is_a_direct_refit(overlapping, rng):
    result = quick(overlapping, 3, lam=0.1, sigma=1.5)
    P = np.where(result.labels[:, None] == np.arange(3), 1.0, -1.0)

    def kernel(A, B):
        return np.exp(-((A[:, None] - B) ** 2).sum(axis=2) / 1.5**2)

    coef = np.linalg.solve(kernel(overlapping, overlapping) + 0.1 * np.eye(60), P)
    new = rng.standard_normal((25, 3))
    np.testing.assert_allclose(
        result.decision_function(new), kernel(new, overlapping) @ coef, atol=1e-8
    )
    np.testing.assert_array_equal(
        result.predict(new), np.argmax(kernel(new, overlapping) @ coef, axis=1)
    )


def test_path_equals_single_runs(overlapping):
    lams = [0.01, 0.25, 2.0]
    path = fastmmc.umc_rls_path(overlapping, 3, lams, n_init=3, random_state=0, sizes="equal")
    for lam, result in zip(lams, path, strict=True):
        single = quick(overlapping, 3, lam=lam)
        assert result.params["lam"] == lam
        np.testing.assert_array_equal(result.labels, single.labels)
        assert result.loo_mse == pytest.approx(single.loo_mse, rel=1e-9)


def test_a_stopped_path_returns_what_it_reached(overlapping):
    with pytest.warns(UserWarning, match="callback"):
        path = fastmmc.umc_rls_path(
            overlapping,
            3,
            [0.1, 0.2, 0.3],
            n_init=10**6,
            callback=lambda progress: True,
            sizes="equal",
        )
    assert len(path) == 1 and path[0].status == Status.CALLBACK


def test_estimator_equals_function(overlapping):
    model = fastmmc.UMCRLS(3, n_init=3, random_state=0, sizes="equal").fit(overlapping)
    result = quick(overlapping, 3)
    np.testing.assert_array_equal(model.labels_, result.labels)
    assert model.objective_ == result.objective and model.loo_mse_ == result.loo_mse
    np.testing.assert_array_equal(model.predict(overlapping), result.predict(overlapping))


def test_estimator_has_the_parameters_of_the_function():
    import inspect

    function = inspect.signature(fastmmc.umc_rls).parameters
    estimator = inspect.signature(fastmmc.UMCRLS).parameters
    renamed = {"n_clusters" if name == "k" else name for name in function}
    renamed -= {"X", "known_labels", "must_link", "cannot_link", "sample_weight"}
    assert set(estimator) == renamed | {"semi_supervised"}
    for name in renamed - {"n_clusters"}:
        assert estimator[name].default == function[name].default, name
    path = inspect.signature(fastmmc.umc_rls_path).parameters
    assert set(path) == set(function) - {"lam"} | {"lams"}


def test_pipeline_clone_pickle_and_search(overlapping):
    model = fastmmc.UMCRLS(3, n_init=2, random_state=0, sizes="equal")
    pipeline = make_pipeline(StandardScaler(), model).fit(overlapping)
    assert pipeline.predict(overlapping[:5]).shape == (5,)
    assert pipeline.score(overlapping) <= 0
    assert clone(model).get_params() == model.get_params()
    copy = pickle.loads(pickle.dumps(model.fit(overlapping)))
    np.testing.assert_array_equal(copy.predict(overlapping), model.predict(overlapping))
    search = GridSearchCV(model, {"lam": [0.01, 1.0], "sigma": [0.5, 3.0]}, cv=3)
    search.fit(overlapping)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_estimator_.labels_.shape == (60,)


def test_grid_search_slices_a_precomputed_kernel_in_both_directions(overlapping):
    K = fastmmc.kernels.gram.Kernel("rbf", sigma=1.5).block(overlapping, overlapping)
    model = fastmmc.UMCRLS(2, kernel="precomputed", random_state=0, sizes="equal")
    search = GridSearchCV(model, {"lam": [0.1, 1.0]}, cv=3).fit(K)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_feature_names(overlapping):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(overlapping, columns=["a", "b", "c"])
    model = fastmmc.UMCRLS(2, sizes="equal").fit(frame)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["b", "a", "c"]])
    np.testing.assert_array_equal(quick(frame, 2).labels, quick(overlapping, 2).labels)


def test_scikit_learn_callbacks(overlapping):
    pytest.importorskip("sklearn.callback")

    class Recorder:
        def __init__(self):
            self.events = []

        def setup(self, estimator, context):
            self.events.append("setup")

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context):
            self.events.append(context.task_name)
            return self.events.count("start") >= 2

        def teardown(self, estimator, context):
            self.events.append("teardown")

    recorder = Recorder()
    model = fastmmc.UMCRLS(3, n_init=10_000, random_state=0, sizes="equal").set_callbacks(recorder)
    with pytest.warns(UserWarning, match="callback asked to stop"):
        model.fit(overlapping)
    assert recorder.events[0] == "setup" and recorder.events[-1] == "teardown"
    assert recorder.events[-2] == "fit" and recorder.events.count("start") >= 2
    assert model.status_ == Status.CALLBACK


def test_a_result_without_a_model_says_so(overlapping):
    import dataclasses

    from sklearn.exceptions import NotFittedError

    result = dataclasses.replace(quick(overlapping, 2), model=None)
    with pytest.raises(NotFittedError, match="no model"):
        result.predict(overlapping)
