"""Known labels that are trusted in part, so that wrong ones can be overruled."""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.metrics import adjusted_rand_score

import fastmmc
from fastmmc.rls import known as known_labels
from tests.rls.test_known import blobs

# Whole searches take minutes without the compiler.
pytestmark = pytest.mark.jit

QUICK = {"n_init": 2, "random_state": 0}


def tell_some_wrong(y, count, seed=0, share=0.2):
    """Return the labels of so many points a class, 20 % of them wrong, and which are."""
    rng = np.random.default_rng(seed)
    known, k = np.full(y.size, -1), y.max() + 1
    for h in range(k):
        known[rng.choice(np.flatnonzero(y == h), count, replace=False)] = h
    told = np.flatnonzero(known >= 0)
    wrong = rng.choice(told, round(share * told.size), replace=False)
    known[wrong] = (known[wrong] + rng.integers(1, k, wrong.size)) % k
    return known, wrong


@pytest.fixture
def told():
    X, y = blobs([30, 28, 32], spread=4.0)
    return X, y, *tell_some_wrong(y, 10)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"sizes": "free"},
        {"method": "shaking", "balance": 0.3},
        {"rank": 30},
        {"method": "steepest", "init": "random"},
    ],
    ids=str,
)
def test_wrong_labels_are_overruled_and_right_ones_kept(told, options):
    X, y, known, wrong = told
    hard = fastmmc.umc_rls(X, 3, known_labels=known, **QUICK, **options)
    soft = fastmmc.umc_rls(X, 3, known_labels=known, known_trust=0.8, **QUICK, **options)
    assert (hard.labels[known >= 0] == known[known >= 0]).all()
    overruled = np.flatnonzero((known >= 0) & (soft.labels != known))
    assert set(overruled) <= set(wrong) and len(overruled) >= 4  # of 6
    assert adjusted_rand_score(y, soft.labels) > adjusted_rand_score(y, hard.labels)
    assert soft.params["n_init"] == hard.params["n_init"]


@pytest.mark.parametrize("trust", [1.0, 1, np.ones(90)], ids=["float", "int", "array"])
def test_full_trust_keeps_all_labels(told, trust):
    X, _, known, _ = told
    hard = fastmmc.umc_rls(X, 3, known_labels=known, **QUICK)
    same = fastmmc.umc_rls(X, 3, known_labels=known, known_trust=trust, **QUICK)
    np.testing.assert_array_equal(same.labels, hard.labels)
    assert same.objective == hard.objective


def test_each_label_has_a_trust_of_its_own(told):
    X, _, known, wrong = told
    trust = np.full(90, 0.7)
    trust[wrong[:3]] = 1.0
    res = fastmmc.umc_rls(X, 3, known_labels=known, known_trust=trust, **QUICK)
    assert (res.labels[wrong[:3]] == known[wrong[:3]]).all()
    assert (res.labels[wrong[3:]] != known[wrong[3:]]).all()


def test_a_label_is_doubted_where_another_one_is_likelier(told):
    """By Bayes' rule, with the trust as the prior probability of the label."""
    X, _, known, _ = told
    res = fastmmc.umc_rls(X, 3, known_labels=known, **QUICK)
    p = softmax(res._sharpness * res.loo_scores, axis=1)
    for trust in (0.5, 0.9, 0.999, 0.01):

        class Plan:
            k = 3

        Plan.known, Plan.trust = known, np.full(90, trust)
        expected = []
        for i in range(90):
            prior = np.full(3, (1 - max(trust, 1 / 3)) / 2)
            prior[known[i]] = max(trust, 1 / 3)
            expected.append(known[i] >= 0 and (p[i] * prior).argmax() != known[i])
        np.testing.assert_array_equal(known_labels._doubted(res, Plan), expected)


def test_all_labels_known_and_names_in_an_estimator(told):
    X, y, _, _ = told
    names = np.array(["a", "b", "c"])[y]
    names[:4] = np.array(["b", "c", "a"])[y[:4]]
    model = fastmmc.UMCRLS(3, semi_supervised=True, known_trust=0.8, **QUICK).fit(X, names)
    assert (model.classes_[model.labels_[4:]] == names[4:]).mean() > 0.97
    assert (model.classes_[model.labels_[:4]] == np.array(["a", "b", "c"])[y[:4]]).all()
    path = fastmmc.umc_rls_path(X, 3, [0.1, 1.0], known_labels=y, known_trust=0.8, **QUICK)
    assert len(path) == 2
    one = fastmmc.umc_rls(X, 1, known_labels=np.zeros(90), known_trust=0.5)
    assert one.sizes.tolist() == [90]


def test_sizes_that_are_asked_for_hold(told):
    X, _, known, _ = told
    res = fastmmc.umc_rls(
        X, 3, known_labels=known, known_trust=0.6, target_sizes=[40, 30, 20], balance=0, **QUICK
    )
    np.testing.assert_array_equal(res.sizes, [40, 30, 20])


def test_a_stop_returns_what_there_is(told):
    X, _, known, _ = told
    # So many starts that the search is not over before the first call.
    many = {"n_init": 1000, "method": "shaking", "random_state": 0}
    with pytest.warns(match="callback"):
        res = fastmmc.umc_rls(
            X, 3, known_labels=known, known_trust=0.8, callback=lambda progress: True, **many
        )
    assert res.status == fastmmc.Status.CALLBACK and res.labels.shape == (90,)


@pytest.mark.parametrize(
    ("trust", "error", "text"),
    [
        (0.0, ValueError, "greater than 0 and at most 1; got 0"),
        (1.5, ValueError, "at most 1; got 1.5"),
        (np.nan, ValueError, "got nan"),
        (np.r_[np.ones(89), -1.0], ValueError, "got -1"),
        (np.ones(4), ValueError, "or 90, one for each point; got 4"),
        ("much", TypeError, "known_trust must be"),
        (np.ones((90, 1)), TypeError, "known_trust must be"),
    ],
)
def test_a_wrong_trust_is_refused(told, trust, error, text):
    X, _, known, _ = told
    with pytest.raises(error, match=text):
        fastmmc.umc_rls(X, 3, known_labels=known, known_trust=trust)


@pytest.mark.parametrize("trust", [0.8, np.ones(90)], ids=["float", "array"])
def test_trust_in_labels_that_nobody_tells_is_refused(told, trust):
    X = told[0]
    with pytest.raises(ValueError, match="known_trust is how likely .* give known_labels"):
        fastmmc.umc_rls(X, 3, known_trust=trust)
    with pytest.raises(ValueError, match="semi_supervised=True"):
        fastmmc.UMCRLS(3, known_trust=trust).fit(X, told[1])
    nobody = fastmmc.umc_rls(X, 3, known_labels=np.full(90, -1), known_trust=trust, **QUICK)
    assert nobody.converged


def test_links_need_full_trust(told):
    X, _, known, _ = told
    pair = np.flatnonzero(known < 0)[:2]
    with pytest.raises(ValueError, match="known_trust below 1 cannot go with"):
        fastmmc.umc_rls(X, 3, known_labels=known, known_trust=0.8, cannot_link=[pair])


@pytest.mark.parametrize("name", ["iris", "wine", "digits"])
def test_soft_beats_hard_where_labels_are_wrong(name):
    """Of all points: those whose labels are known are where most is gained."""
    X, y = fastmmc.datasets.load(name)
    X, y = X[:600], y[:600]
    if name == "wine":
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    F = fastmmc.factor(X)
    gains = []
    for seed in range(2):
        known, _ = tell_some_wrong(y, 15, seed)
        aris = [
            adjusted_rand_score(
                y,
                fastmmc.umc_rls(
                    F, y.max() + 1, known_labels=known, known_trust=trust, random_state=seed
                ).labels,
            )
            for trust in (1.0, 0.8)
        ]
        gains.append(aris[1] - aris[0])
    assert np.mean(gains) > 0.05
