"""Working sets: sums and codes against the formulas, the programs against their primal form."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from fastmmc.cutting_plane import _loops as loops
from fastmmc.cutting_plane import planes as planes_module
from fastmmc.cutting_plane.planes import SignSet, Weights, WinnerSet
from tests.cutting_plane import naive

ALL = 2**62
K = 3


@pytest.fixture
def points(rng):
    X = rng.standard_normal((40, 4)) + 0.5
    return np.where(np.abs(X) < 0.4, 0.0, X)


def random_weights(rng, n_rows, d):
    W = rng.standard_normal((n_rows, d)) * rng.uniform(0.1, 1.0)
    return Weights(W, rng.standard_normal(n_rows) * 0.3, 0.5 * np.vdot(W, W))


def make_set(kind, rows, C=5.0, balance=0.1, constant=1.0):
    mean = np.asarray(rows.mean(axis=0)).ravel()
    if kind == "signs":
        return SignSet(rows, mean, C, balance)
    return WinnerSet(rows, mean, C, balance, K, constant)


def scores_of(weights, X):
    return X @ weights.W.T + weights.b


def fill(planes, X, rng, count):
    """Pass over the points with random weights, and keep the constraint each time."""
    for _ in range(count):
        weights = random_weights(rng, 1 if isinstance(planes, SignSet) else K, X.shape[1])
        planes.begin_pass()
        assert planes.look(weights, ALL)
        planes.accept()
    planes.begin_pass()


def solve(planes):
    """Solve the whole program, with all rows of the balance that it takes."""
    weights, ended = planes.solve()
    while ended and planes.tighten(weights):
        weights, ended = planes.solve()
    return weights, weights.gap, ended


def labels_of(kind, scores):
    return (scores[:, 0] >= 0).astype(int) if kind == "signs" else scores.argmax(axis=1)


kinds = pytest.mark.parametrize("kind", ["signs", "winners"])
forms = pytest.mark.parametrize("form", [np.asarray, csr_matrix], ids=["dense", "sparse"])


@kinds
@forms
def test_sums_are_those_of_the_formula_after_many_changes_of_label(kind, form, points, rng):
    planes = make_set(kind, form(points))
    for _ in range(30):  # more than the room at first
        fill(planes, points, rng, 1)
    codes = planes._planes.codes[: planes.n_planes]
    for k in range(planes.n_planes):
        sums = planes._planes.sums[k] / len(points)
        if kind == "signs":
            z, s, share = naive.sign_plane(points, planes.labels, codes[k])
            np.testing.assert_allclose(sums[0], np.append(z, s), atol=1e-12)
        else:
            g, share = naive.winner_plane(points, planes.labels, codes[k], K)
            np.testing.assert_allclose(sums[:, :-1], g, atol=1e-12)
        assert planes._planes.counts[k] == pytest.approx(share * len(points))


@kinds
@forms
def test_slices_of_a_pass_change_nothing(kind, form, points, rng):
    whole, sliced = make_set(kind, form(points)), make_set(kind, form(points))
    for _ in range(4):
        weights = random_weights(rng, 1 if kind == "signs" else K, 4)
        assert whole.look(weights, ALL)
        n_slices = 1
        while not sliced.look(weights, 20):
            n_slices += 1
        assert n_slices > 10
        np.testing.assert_array_equal(whole._planes.sums, sliced._planes.sums)
        np.testing.assert_array_equal(whole._planes.codes, sliced._planes.codes)
        np.testing.assert_array_equal(whole._pass.pos, sliced._pass.pos)
        assert whole.mean_slack == sliced.mean_slack
        for planes in (whole, sliced):
            planes.accept()
            planes.begin_pass()


@pytest.mark.parametrize(("kind", "cost"), [("signs", 9), ("winners", 21)])
def test_a_slice_ends_with_the_row_that_uses_its_budget_up(kind, cost, points, rng):
    weights = random_weights(rng, 1 if kind == "signs" else K, 4)
    for budget, rows in ((1, 1), (cost, 1), (cost + 1, 2), (3 * cost, 3)):
        planes = make_set(kind, points)
        assert not planes.look(weights, budget)
        assert planes._pass.pos[loops.ROW] == rows


@kinds
@forms
def test_a_pass_labels_and_finds_the_mean_slack(kind, form, points, rng):
    planes = make_set(kind, form(points))
    weights = random_weights(rng, 1 if kind == "signs" else K, 4)
    assert planes.look(weights, ALL)
    scores = scores_of(weights, points)
    np.testing.assert_array_equal(planes.labels, labels_of(kind, scores))
    if kind == "signs":
        slacks = np.maximum(0.0, 1.0 - np.abs(scores[:, 0]))
    else:
        ordered = np.sort(scores, axis=1)
        slacks = np.maximum(0.0, 1.0 - (ordered[:, -1] - ordered[:, -2]))
    assert planes.mean_slack == pytest.approx(slacks.mean())
    assert planes.n_inside == np.sum(slacks > 0)


@kinds
@forms
def test_a_pass_that_holds_the_labels(kind, form, points, rng):
    planes = make_set(kind, form(points))
    fill(planes, points, rng, 3)
    sums, labels = planes._planes.sums[:3].copy(), planes.labels.copy()
    weights = random_weights(rng, 1 if kind == "signs" else K, 4)
    assert planes.look(weights, ALL, True)
    np.testing.assert_array_equal(planes.labels, labels)
    np.testing.assert_array_equal(planes._planes.sums[:3], sums)
    scores = scores_of(weights, points)
    if kind == "signs":
        scores = np.column_stack((-scores, scores)) / 2.0
    own = scores[np.arange(len(points)), labels]
    others = scores.copy()
    others[np.arange(len(points)), labels] = -np.inf
    slacks = np.maximum(0.0, 1.0 - (own - others.max(axis=1)))
    assert planes.held_slack == pytest.approx(slacks.mean())
    assert planes.n_inside == np.sum(slacks > 0) and planes.n_changed == 0
    ordered = np.sort(scores, axis=1)
    free = np.maximum(0.0, 1.0 - (ordered[:, -1] - ordered[:, -2]))
    assert planes.mean_slack == pytest.approx(free.mean())
    assert planes.mean_slack < planes.held_slack
    # The constraint that was found is the one that the held labels violate most.
    planes.accept()
    code, X = planes._planes.codes[3], points
    if kind == "signs":
        z, s, share = naive.sign_plane(X, labels, code)
        violation = share - z @ weights.W[0] - s * weights.b[0]
    else:
        g, share = naive.winner_plane(X, labels, code, K)
        offsets = naive.winner_plane(np.ones((len(X), 1)), labels, code, K)[0][:, 0]
        violation = share - np.sum(g * weights.W) - offsets @ weights.b
    assert violation == pytest.approx(slacks.mean())


@pytest.mark.parametrize("seed", range(4))
def test_no_constraint_is_violated_more(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((8, 2))
    for kind, points in (("signs", X), ("winners", X[:5])):
        planes = make_set(kind, points)
        weights = random_weights(rng, 1 if kind == "signs" else K, 2)
        planes.look(weights, ALL)
        scores, code = scores_of(weights, points), planes._planes.codes[0]
        if kind == "signs":
            found = naive.sign_violation(scores[:, 0], code)
            worst = naive.worst_sign_violation(scores[:, 0])
        else:
            found = naive.winner_violation(scores, code)
            worst = naive.worst_winner_violation(scores)
        assert found == pytest.approx(worst)
        assert planes.mean_slack == pytest.approx(worst)


@kinds
def test_the_slack_of_the_planes_is_that_of_their_constraints(kind, points, rng):
    planes = make_set(kind, points)
    fill(planes, points, rng, 5)
    weights = random_weights(rng, 1 if kind == "signs" else K, 4)
    planes.look(weights, ALL)
    scores = scores_of(weights, points)
    codes = planes._planes.codes[:5]
    if kind == "signs":
        wanted = max(naive.sign_violation(scores[:, 0], c) for c in codes)
    else:
        wanted = max(naive.winner_violation(scores, c) for c in codes)
    assert planes.slack(weights) == pytest.approx(max(0.0, wanted))


def solve_primal(kind, X, planes, C, balance, constant):
    """The program as it is printed, with d + 2 variables, by another solver."""
    cp = pytest.importorskip("cvxpy")
    n, d = X.shape
    xi = cp.Variable(nonneg=True)
    codes = planes._planes.codes[: planes.n_planes]
    total = X.sum(axis=0)
    if kind == "signs":
        w, b = cp.Variable(d), cp.Variable()
        parts = [naive.sign_plane(X, planes.labels, c) for c in codes]
        rules = [z @ w + s * b >= share - xi for z, s, share in parts]
        rules.append(cp.abs(total @ w + n * b) <= balance * n)
        norm = cp.sum_squares(w)
    else:
        X, total = (np.column_stack((A, c * np.sqrt(constant))) for A, c in _with_ones(X, total, n))
        w = cp.Variable((K, X.shape[1]))
        parts = [naive.winner_plane(X, planes.labels, c, K) for c in codes]
        rules = [cp.sum(cp.multiply(g, w)) >= h - xi for g, h in parts]
        rules += [
            cp.abs((w[p] - w[q]) @ total.ravel()) <= balance * n for p in range(K) for q in range(p)
        ]
        norm = cp.sum_squares(w)
    problem = cp.Problem(cp.Minimize(0.5 * norm + C * xi), rules)
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return problem.value


def _with_ones(X, total, n):
    return (X, np.ones(n)), (total[None], np.array([float(n)]))


@kinds
@pytest.mark.parametrize("balance", [0.0, 0.02, 0.3])
@pytest.mark.parametrize("C", [0.5, 50.0])
def test_primal_and_dual_are_equal(kind, balance, C, points):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        planes = make_set(kind, points, C, balance)
        fill(planes, points, rng, 6 + 10 * seed)
        weights, gap, ended = solve(planes)
        assert ended
        value = weights.half_norm + C * planes.slack(weights)
        assert abs(gap) <= 1e-6 * value
        assert value == pytest.approx(solve_primal(kind, points, planes, C, balance, 1.0), rel=1e-6)
        means = scores_of(weights, points).mean(axis=0)
        spread = np.abs(means[0]) if kind == "signs" else means.max() - means.min()
        assert spread <= balance + 1e-9


@kinds
def test_weights_are_made_of_the_points(kind, points, rng):
    planes = make_set(kind, points, balance=0.01)
    fill(planes, points, rng, 12)
    weights, _, _ = solve(planes)
    frozen = planes.coefficients()
    W = frozen.T @ points
    np.testing.assert_allclose(np.atleast_2d(W), weights.W, atol=1e-10)
    if kind == "winners":
        np.testing.assert_allclose(frozen.sum(axis=0), weights.b, atol=1e-10)
    # A pass moves the labels on; what the weights are made of stays.
    planes.look(weights, ALL)
    assert planes.n_changed > 0
    np.testing.assert_array_equal(planes.coefficients(), frozen)


@kinds
def test_known_products_are_used_only_while_no_label_changes(kind, points, rng):
    planes = make_set(kind, points)
    for step in range(6):
        fill(planes, points, rng, 2)
        weights, gap, _ = solve(planes)
        if step % 2:  # again with one plane more, and labels as they were
            planes.look(weights, ALL, True)
            planes.accept()
            weights, gap, _ = solve(planes)
        coordinates = planes._program()[0]
        np.testing.assert_allclose(planes._gram, coordinates @ coordinates.T, atol=1e-12)
        assert abs(gap) <= 1e-6 * (weights.half_norm + 5.0 * planes.slack(weights))
        planes.begin_pass()


@kinds
def test_idle_planes_are_dropped_when_the_room_is_full(monkeypatch, kind, points, rng):
    monkeypatch.setattr(planes_module, "IDLE", 3)
    planes, all_planes = make_set(kind, points), make_set(kind, points)
    other = np.random.default_rng(0)
    dropped = False
    for _ in range(40):
        fill(planes, points, rng, 1)
        weights, _, _ = solve(planes)
        before = planes.n_planes
        planes.look(weights, ALL)
        planes.begin_pass()
        dropped |= planes.n_planes < before or len(planes._planes.sums) == planes_module.FIRST_ROOM
    assert dropped and planes.n_planes < 40
    assert len(planes._shares) == planes.n_planes
    monkeypatch.setattr(planes_module, "IDLE", 10**9)
    fill(all_planes, points, other, 40)
    assert all_planes.n_planes == 40 and len(all_planes._planes.sums) == 64


def test_centred_features_leave_winners_nothing_to_balance(points, rng):
    centred = points - points.mean(axis=0)
    planes = WinnerSet(centred, np.zeros(4), 1.0, 0.0, K, 0.0)
    fill(planes, centred, rng, 6)
    weights, _ = planes.solve()
    assert not planes.tighten(weights)


def test_only_violated_rows_of_the_balance_join_a_program(points, rng):
    k, most = 20, []
    planes = WinnerSet(points + 1.0, points.mean(axis=0) + 1.0, 50.0, 0.01, k, 1.0)
    for _ in range(8):
        weights = random_weights(rng, k, 4)
        planes.begin_pass()
        planes.look(weights, ALL)
        planes.accept()
        weights, ended = planes.solve()
        while ended and planes.tighten(weights):
            most.append(planes._extra.size)
            weights, ended = planes.solve()
        assert ended and abs(weights.gap) <= 1e-6 * (
            weights.half_norm + 50.0 * planes.slack(weights)
        )
        means = scores_of(weights, points + 1.0).mean(axis=0)
        assert means.max() - means.min() <= 0.01 + 1e-8
        # Those with a multiplier stay; an optimum has no more than there are mean scores.
        assert planes._extra.size <= k and (planes._extra > 0).all()
    assert 0 < max(most) < 3 * k


def test_two_winners_are_signs():
    """Spec 5.2: C of the one is half the objective of the other at 2 C."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 3))
    for _ in range(5):
        u, C = rng.standard_normal(3), rng.uniform(0.1, 10.0)
        both = naive.winner_objective(X, np.stack((-u / 2, u / 2)), C)
        assert both == pytest.approx(0.5 * naive.sign_objective(X, u, 0.0, 2.0 * C))
