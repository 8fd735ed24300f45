"""Which features decide on the clusters."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning
from sklearn.inspection import permutation_importance

import fastmmc
from fastmmc.influence import FeatureInfluence
from fastmmc.profile import distinct_names

# Two clusters along the first feature; the second is noise, the third is nothing.
COLUMNS = 3


@pytest.fixture
def points(rng):
    X = rng.standard_normal((60, COLUMNS)) * [0.3, 0.3, 0.0]
    X[:30, 0] += 6.0
    return X


@pytest.fixture
def result(points):
    return fastmmc.umc_rls(points, 2, n_init=2, random_state=0, sizes="equal")


def test_what_separates_the_clusters_decides(points, result):
    influence = fastmmc.feature_influence(result, points, n_repeats=20, random_state=0)
    # A shuffled value comes from the other cluster half of the time.
    assert influence.shares[0] == pytest.approx(0.5, abs=0.1)
    np.testing.assert_array_equal(influence.shares[1:], 0.0)
    np.testing.assert_allclose(influence.by_cluster[:, 0], 0.5, atol=0.1)
    assert influence.deviations[0] > 0.0 and influence.deviations[2] == 0.0


def test_shares_are_scikit_learns_permutation_importance(blobs):
    X, _ = blobs
    model = fastmmc.UMCRLS(3, sizes="free", random_state=0).fit(X)
    influence = fastmmc.feature_influence(model, X, n_repeats=200, random_state=0)
    other = permutation_importance(
        model, X, model.predict(X), scoring="accuracy", n_repeats=200, random_state=1
    )
    error = np.sqrt((influence.deviations**2 + other.importances_std**2) / 200)
    assert (np.abs(influence.shares - other.importances_mean) <= 5 * error).all()
    np.testing.assert_allclose(
        model.sizes_ / 75 @ influence.by_cluster, influence.shares, atol=1e-12
    )


def test_names_sparse_points_and_other_families(points, result):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(points, columns=list("abc"))
    model = fastmmc.UMCRLS(2, n_init=2, random_state=0, sizes="equal").fit(frame)
    influence = fastmmc.feature_influence(model, frame, random_state=0)
    assert list(influence.feature_names_in) == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names"):
        fastmmc.feature_influence(model, frame[["b", "a", "c"]])
    dense = fastmmc.feature_influence(result, points, random_state=0)
    np.testing.assert_array_equal(influence.shares, dense.shares)
    before = csr_array(points)
    for other in (
        fastmmc.umc_rls(before, 2, rank=20, n_init=2, random_state=0, sizes="equal"),
        fastmmc.rpcl(points, 2, random_state=0),
    ):
        found = fastmmc.feature_influence(other, before, random_state=0)
        np.testing.assert_array_equal(found.shares, dense.shares)
    np.testing.assert_array_equal(before.toarray(), points)


def test_columns_of_a_table_keep_their_names_in_any_order(points):
    frame = pd.DataFrame(points, columns=list("abcdefgh")[: points.shape[1]])
    frame.insert(0, "id", range(len(frame)))
    with pytest.warns(UserWarning, match="ids"):
        result = fastmmc.umc_rls(frame, 3, random_state=0)
    whole = fastmmc.feature_influence(result, frame, random_state=0)
    assert whole.feature_names_in.tolist() == frame.columns.tolist()
    for others in (frame[frame.columns[::-1]], frame.drop(columns="id")):
        influence = fastmmc.feature_influence(result, others, random_state=0)
        np.testing.assert_array_equal(influence.shares, whole.shares)
        assert str(influence) == str(whole)


def test_a_short_time_is_for_fewer_shuffles_of_fewer_points(points, result):
    told = "shuffled 1 of 5 times among 20 of 60 points"
    with pytest.warns(ConvergenceWarning, match=told):
        short = fastmmc.feature_influence(result, points, max_time=1e-9, random_state=0)
    assert short.shares[0] == pytest.approx(0.5, abs=0.3)
    np.testing.assert_array_equal(short.shares[1:], 0.0)
    long, whole = (
        fastmmc.feature_influence(result, points, max_time=limit, random_state=0)
        for limit in (1e3, None)
    )
    np.testing.assert_array_equal(long.by_cluster, whole.by_cluster)


def test_what_cannot_be_measured_is_refused(points, result):
    with pytest.raises(TypeError, match="a fitted estimator; got a ndarray"):
        fastmmc.feature_influence(points, points)
    with pytest.raises(ValueError, match="precomputed"):
        gram = points @ points.T
        made = fastmmc.umc_rls(
            gram, 2, kernel="precomputed", n_init=1, random_state=0, sizes="equal"
        )
        fastmmc.feature_influence(made, gram)
    with pytest.raises(ValueError, match="n_repeats"):
        fastmmc.feature_influence(result, points, n_repeats=0)
    with pytest.raises(ValueError, match="2 features|2 columns"):
        fastmmc.feature_influence(result, points[:, :2])


def test_columns_of_equal_names_are_told_apart():
    assert distinct_names(["a", "a", "b"]) == ["a (0)", "a (1)", "b"]
    assert len(set(distinct_names(["a", "a", "a (1)", "a (1) (1)"]))) == 4


def test_names_and_shares_are_printed_the_largest_first():
    shares = np.linspace(0.0, 0.5, 25)
    names = np.array([f"<{i}>" for i in range(24)] + ["<0>"], dtype=object)
    influence = FeatureInfluence(shares, shares / 10, np.zeros((2, 25)), feature_names_in=names)
    _, *lines = str(influence).splitlines()
    assert lines[0].split(maxsplit=2) == ["<0>", "(24)", "50.0% (± 5.0%)"]
    assert [line.split()[0] for line in lines[1:-1]] == [f"<{i}>" for i in range(23, 4, -1)]
    assert lines[-1] == "...       5 others, at most 8.3%"
    page = influence._repr_html_()
    assert "&lt;23&gt;" in page and "<23>" not in page
    bare = FeatureInfluence(shares[:2], shares[:2], np.zeros((1, 2)))
    assert str(bare).splitlines()[1].startswith("feature 1  2.1%")
