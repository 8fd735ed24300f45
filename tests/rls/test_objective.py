"""What is minimised depends on ``sizes`` alone, not on the data nor on the search."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import fastmmc
from tests.rls import naive
from tests.rls.points import gaussians

# The clusters here have other sizes.
pytestmark = pytest.mark.filterwarnings("ignore:clusters of free sizes")

SEARCHES = [
    {},
    {"patience": 21},
    {"population": 9, "method": "memetic"},
    {"min_size": 2},
    {"n_init": 2},
    {"method": "steepest"},
    {"init": "kmeans"},
    {"polish": True},
    {"rank": 40},
    {"kernel": "laplacian"},
    {"must_link": [(0, 1)], "cannot_link": [(0, 59)]},
]


@pytest.mark.jit
@pytest.mark.parametrize("told", SEARCHES, ids=str)
@pytest.mark.parametrize("sizes", ["equal", "free"])
def test_the_objective_is_the_one_named(sizes, told):
    X, _ = gaussians([50, 10], spread=4.0)
    own = {name: told[name] for name in ("rank", "kernel") if name in told}
    factor = fastmmc.factor(X, k=2, random_state=0, **own)
    search = {name: value for name, value in told.items() if name not in own}
    result = fastmmc.umc_rls(factor, 2, sizes=sizes, random_state=0, **search)
    R = factor.R if "rank" not in own else factor.Z @ factor.Z.T
    cost = naive.free_cost if sizes == "free" else naive.risk
    assert result.objective == pytest.approx(cost(R, result.labels, 2))
    assert result.params["sizes"] == sizes


@pytest.mark.jit
@pytest.mark.usefixtures("few_cells")
@pytest.mark.filterwarnings("ignore:stopped before the end")  # of max_iter=0
@pytest.mark.parametrize("n", [100, 101, 400])
def test_the_default_objective_is_q_for_any_number_of_points(n):
    X = np.random.default_rng(0).standard_normal((n, 2))
    result = fastmmc.umc_rls(X, 3, random_state=0)
    params = result.params | {"init": result.labels, "method": "steepest", "max_iter": 0}
    params = {name: params[name] for name in ("lam", "sigma", "rank", "init", "method")}
    again = fastmmc.umc_rls(X, 3, random_state=0, max_iter=0, **params)
    assert again.params["sizes"] == result.params["sizes"] == "equal"
    assert again.objective == pytest.approx(result.objective)


@pytest.mark.jit
def test_auto_means_equal_and_is_deprecated():
    X, _ = gaussians([30, 20], spread=4.0)
    equal = fastmmc.umc_rls(X, 2, random_state=0)
    with pytest.warns(FutureWarning, match=r'deprecated.*cluster\(X, k\).*sizes="free"'):
        auto = fastmmc.umc_rls(X, 2, sizes="auto", random_state=0)
    assert auto.params["sizes"] == "equal"
    assert_array_equal(auto.labels, equal.labels)
    with pytest.warns(FutureWarning, match="deprecated"):
        model = fastmmc.UMCRLS(2, sizes="auto", random_state=0).fit(X)
    assert_array_equal(model.labels_, equal.labels)
    with pytest.raises(ValueError, match="sizes must be one of 'equal', 'free'; got 'any'"):
        fastmmc.umc_rls(X, 2, sizes="any")
