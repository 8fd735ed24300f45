"""Tests of what results tell of themselves."""

import dataclasses
import time
from html.parser import HTMLParser

import numpy as np
import pytest

import fastmmc
from fastmmc.core.results import SIZES_SHOWN
from fastmmc.core.status import STATUS_TEXT


class Cells(HTMLParser):
    """The texts of a table, by the tag that holds them."""

    def __init__(self, html):
        super().__init__()
        self.texts = {"caption": [], "th": [], "td": []}
        self._tag = None
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self._tag = tag

    def handle_data(self, data):
        self.texts[self._tag].append(data)


def rows(result):
    """Return headline and rows of the printed text, which are those of the table."""
    headline, *lines = str(result).splitlines()
    found = dict(line.split(maxsplit=1) for line in lines)
    table = Cells(result._repr_html_()).texts
    assert table == {"caption": [headline], "th": list(found), "td": list(found.values())}
    return headline, found


@pytest.fixture(scope="module")
def points():
    rng = np.random.default_rng(0)
    return 4.0 * np.eye(3)[np.repeat([0, 1, 2], 6)] + rng.standard_normal((18, 3))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", fastmmc.METHODS.values(), ids=lambda method: method.name)
def test_every_result_prints_its_method_sizes_objective_status_and_seconds(points, method):
    began = time.perf_counter()
    result = method.function(points, **({} if method.binary else {"k": 3}))
    assert result.method == method.function.__name__
    assert 0 < result.seconds <= time.perf_counter() - began
    headline, found = rows(result)
    k = len(result.sizes)
    status = STATUS_TEXT[result.status]
    assert headline == f"{result.method}: 18 points in {k} clusters, {status}"
    assert found["sizes"] == " ".join(map(str, result.sizes))
    assert found["objective"].split(",")[0] == f"{result.objective:.6g}"
    assert float(found["seconds"]) == pytest.approx(result.seconds, rel=0.01)
    assert ("loo_mse" in found) == (getattr(result, "loo_mse", None) is not None)
    assert "\n" not in repr(result) and len(repr(result)) < 100


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", fastmmc.METHODS.values(), ids=lambda method: method.name)
def test_a_function_takes_the_params_of_its_result(points, method):
    seed = {"random_state": 0} if "random_state" in method.parameters else {}
    result = method.function(points, **({} if method.binary else {"k": 3}), **seed)
    if method.name == "cluster":  # what it has chosen is of another function
        fastmmc.umc_rls(points, **result.params)
    else:
        again = method.function(points, **result.params, **seed)
        np.testing.assert_array_equal(again.labels, result.labels)


LANDMARKS = {
    "pivots": {"landmarks": "pivoted", "rank_tol": 0.05},
    "few pivots": {"landmarks": "pivoted", "rank": 7},
    "indices": {"landmarks": np.arange(0, 60, 4), "rank": "auto"},
    "points": {"landmarks": 4.0 * np.random.default_rng(1).random((9, 3)), "rank": "auto"},
    "more than features": {"rank": 12},
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("chosen", LANDMARKS.values(), ids=LANDMARKS)
@pytest.mark.parametrize("is_doubled", [False, True], ids=["", "equal points"])
@pytest.mark.parametrize(
    "method",
    [method for method in fastmmc.METHODS.values() if "landmarks" in method.parameters],
    ids=lambda method: method.name,
)
def test_the_params_of_a_result_have_its_landmarks(method, is_doubled, chosen):
    rng = np.random.default_rng(0)
    X = 4.0 * np.eye(3)[np.arange(60) % 3] + 1.5 * rng.standard_normal((60, 3))
    X = np.repeat(X[:30], 2, axis=0) if is_doubled else X
    options = {} if method.binary else {"k": 3}
    options |= {"features": "nystroem"} if "features" in method.parameters else {}
    result = method.function(X, **options, **chosen, random_state=0)
    again = method.function(X, **result.params, random_state=0)
    np.testing.assert_array_equal(again.labels, result.labels)


def test_the_params_of_a_result_have_the_pivots_that_it_chose_itself():
    X = np.random.default_rng(0).standard_t(2, (500, 5))
    result = fastmmc.iter_svr(X, n_init=1, random_state=0)
    assert result.params["landmarks"] == "pivoted"
    again = fastmmc.iter_svr(X, **result.params, random_state=0)
    np.testing.assert_array_equal(again.labels, result.labels)
    assert again.objective == result.objective


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("function", "data"),
    [
        (fastmmc.iter_svr, {}),
        (fastmmc.iter_ls_svm, {"sample_weight": np.arange(60) % 4}),
        (fastmmc.umc_rls, {"k": 3}),
        (fastmmc.umc_rls, {"k": 3, "known_labels": np.where(np.arange(60) < 25, 0, -1)}),
        (fastmmc.umc_rls, {"k": 3, "must_link": [(i % 2, i) for i in range(2, 46)]}),
        (fastmmc.umc_rls, {"k": 3, "sample_weight": np.arange(60) % 4}),
    ],
    ids=["equal points", "machine weights", "heavy", "known", "linked", "weights"],
)
def test_the_params_of_a_result_leave_the_balance_as_open_as_the_call(function, data):
    X = np.random.default_rng(0).standard_normal((60, 3))
    X[30:] = X[0] if "k" in data else X[:30]
    result = function(X, **data, random_state=0)
    again = function(X, **data | result.params, random_state=0)
    np.testing.assert_array_equal(again.labels, result.labels)


def test_the_params_of_a_result_have_what_else_was_asked_for(points):
    init = np.arange(24) % 3
    options = {"metric": "cosine", "dtype": "float32", "trim": 3}
    X = np.r_[points, points[:6]]
    result = fastmmc.umc_rls(X, 3, sizes="free", init=init, random_state=0, **options)
    again = fastmmc.umc_rls(X, **result.params, random_state=0)
    assert {name: result.params[name] for name in options} == options
    np.testing.assert_array_equal(result.params["init"], init)
    np.testing.assert_array_equal(again.labels, result.labels)


def test_the_params_of_a_result_leave_the_width_open_that_outliers_were_found_with():
    rng = np.random.default_rng(0)
    X = 4.0 * np.eye(3)[np.arange(60) // 20] + 1.5 * rng.standard_normal((60, 3))
    X = np.repeat(X[::2], 2, axis=0)
    result = fastmmc.umc_rls(X, 3, trim=5, random_state=0)
    again = fastmmc.umc_rls(X, **result.params, random_state=0)
    np.testing.assert_array_equal(again.labels, result.labels)
    assert again.model.kernel.sigma == result.model.kernel.sigma


@pytest.mark.parametrize("rank", [None, 9])
def test_the_params_of_a_result_go_with_the_factor_that_it_is_of(points, rank):
    F = fastmmc.factor(points, rank=rank, random_state=0)
    result = fastmmc.umc_rls(F, 3, random_state=0)
    again = fastmmc.umc_rls(F, **result.params, random_state=0)
    np.testing.assert_array_equal(again.labels, result.labels)


def test_what_the_call_left_open_is_told(points):
    result = fastmmc.umc_rls(points, 3, random_state=0, sizes="equal")
    assert set(result.resolved) == {"method", "balance", "rank", "sigma", "n_init"}
    _, found = rows(result)
    assert found["resolved"] == (
        f"method='memetic', balance=0.2, rank=None, sigma={result.params['sigma']:.6g}, n_init=1"
    )
    options = {"sizes": "equal", "method": "shaking", "rank": None, "sigma": 2.0, "n_init": 3}
    told = fastmmc.umc_rls(points, 3, random_state=0, **options)
    assert told.resolved == ()
    assert "resolved" not in rows(told)[1]
    assert rows(told)[1]["objective"].endswith(", the lowest of 3 starts")
    # The estimator gives every parameter, and leaves the same ones open.
    model = fastmmc.UMCRLS(3, random_state=0, sizes="equal").fit(points)
    assert model.result_.resolved == result.resolved
    assert model.result_.method == "umc_rls" and model.result_.seconds > 0


def test_an_option_that_stays_as_it_was_is_not_resolved(points):
    result = fastmmc.recursive_mmc(points, 3, method="evo_mmc", random_state=0)
    assert result.params["method_params"] == {} and result.resolved == ()
    assert rows(result)[1]["tree"] == "2 splits, depth 2"


def test_results_show_what_is_their_own(points):
    result = fastmmc.umc_rls(points, 3, bound=True, random_state=0, sizes="equal")
    assert rows(result)[1]["bound"] == f"{result.bound:.6g}, gap {result.gap:.3g}"
    linked = fastmmc.c_rpcl(points, 3, must_link=[(0, 1)], cannot_link=[(0, 9)], random_state=0)
    assert rows(linked)[1]["n_violations"] == f"{linked.n_violations} of 2 constraints"
    few = fastmmc.rpcl(points, 9, min_share=0.1, random_state=0)
    assert few.n_active < 9
    assert rows(few)[1]["n_active"] == f"{few.n_active} of 9 prototypes"
    picture = np.arange(96, dtype=np.uint8).reshape(8, 12)
    headline, found = rows(fastmmc.segment(picture, 2, random_state=0))
    assert headline.startswith("segment: 96 points in 2 clusters")
    assert found["label_image"] == "12 x 8 pixels"


def test_a_choice_shows_what_was_chosen(points):
    result = fastmmc.cluster(points, max_k=4, random_state=0)
    _, found = rows(result)
    assert found["scores"].startswith(f"{result.scores[3]:.3g} for k = 3, ")
    assert found["winner"].startswith(result.winner.name)
    shown = "sigma={sigma:.6g}, lam={lam:.6g}, method='steepest', rank=None, sizes='free'"
    assert found["chosen"] == shown.format(**result.chosen)
    assert found["resolved"] == "k=3, standardize=False"
    assert "scores" not in rows(fastmmc.cluster(points, 3, random_state=0))[1]


def test_a_path_tells_of_every_result(points):
    path = fastmmc.umc_rls_path(points, 3, [0.1, 1.0], n_init=2, random_state=0, sizes="equal")
    assert [one.method for one in path] == ["umc_rls_path"] * 2
    assert path[0].seconds == path[1].seconds > 0


def test_many_sizes_are_summed_up(overlapping):
    result = fastmmc.umc_rls(overlapping, SIZES_SHOWN + 1, n_init=1, random_state=0, sizes="equal")
    text = rows(result)[1]["sizes"]
    low, middle, high = result.sizes.min(), np.median(result.sizes), result.sizes.max()
    assert text == f"{low} to {high}, median {middle:g}"


def test_one_point_is_in_the_singular():
    assert (
        rows(fastmmc.umc_rls([[1.0]], 1, sizes="equal"))[0]
        == "umc_rls: 1 point in 1 cluster, converged"
    )


def test_a_result_made_by_hand_prints(points):
    result = fastmmc.umc_rls(points, 3, random_state=0, sizes="equal")
    bare = dataclasses.replace(result, method="", seconds=None, resolved=())
    headline, found = rows(bare)
    assert headline.startswith("RLSResult: 18 points")
    assert "seconds" not in found and "resolved" not in found


def test_texts_are_escaped_in_html(points):
    result = fastmmc.umc_rls(points, 3, random_state=0, sizes="equal")
    strange = dataclasses.replace(result, method="<b>&")
    assert "<b>" not in strange._repr_html_()
    assert rows(strange)[0].startswith("<b>&: ")


def test_a_factor_knows_its_columns_and_no_call(points):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(points, columns=["a", "b", "c"])
    F = fastmmc.factor(table)
    assert F.feature_names_in.tolist() == ["a", "b", "c"] and not hasattr(F, "seconds")
