"""Sharded competitive learning: one worker is the plain method, more are its average."""

import warnings
from itertools import combinations, product

import numpy as np
import pytest
from joblib import parallel_config
from scipy.sparse import csr_matrix
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import normalized_mutual_info_score

import fastmmc
from fastmmc import Progress, Status
from fastmmc.competitive import sharded
from fastmmc.competitive._loops import Rule
from fastmmc.competitive.space import Plan
from fastmmc.distributed import fit_sharded
from tests.competitive import naive

METHODS = ["wta", "fscl", "rpcl", "c_rpcl", "o_lcvqe"]
LINKED = ["c_rpcl", "o_lcvqe"]
TWINS = {"c_rpcl": naive.c_rpcl, "o_lcvqe": naive.o_lcvqe}
# What the tests compare is not how many prototypes have a point in the end.
few_are_fine = pytest.mark.filterwarnings("ignore:found . clusters?, fewer than")
NO_PAIRS = np.empty((0, 2), dtype=np.int64)


@pytest.fixture
def pairs(blobs):
    """Links that the clusters of the blobs fulfil."""
    y = blobs[1]
    drawn = np.array([np.random.default_rng(3).choice(75, 2, replace=False) for _ in range(80)])
    same = y[drawn[:, 0]] == y[drawn[:, 1]]
    return {"must_link": drawn[same], "cannot_link": drawn[~same]}


def check_same(result, other):
    for name in ("labels", "centers", "all_centers", "weights", "sizes", "objectives"):
        np.testing.assert_array_equal(getattr(result, name), getattr(other, name))
    for name in (
        "objective",
        "status",
        "n_iter",
        "n_moves",
        "n_active",
        "n_constraints",
        "n_violations",
    ):
        assert getattr(result, name) == getattr(other, name)
    # An epoch's sum is added up in slices, wherever these end.
    np.testing.assert_allclose(result.history, other.history, rtol=1e-12)
    np.testing.assert_array_equal(result.trace["objects"], other.trace["objects"])


def run(X, method="c_rpcl", **kwargs):
    return fit_sharded(X, 3, method=method, **({"random_state": 0, "max_iter": 5} | kwargs))


def make_plan(links, shuffle):
    """What workers learn, of which the tests look at how objects and links are dealt out."""
    return Plan(3, "gaussian", 5, links, rule=Rule(True, 0.05), shuffle=shuffle)


# All pairs of a method, an order, first prototypes, a pause and a way to combine.
SINGLE = [
    (method, shuffle, init, (None, 20)[shuffle ^ far], ("mean", "sum")[(at + shuffle + far) % 2])
    for at, method in enumerate(METHODS)
    for shuffle in (False, True)
    for far, init in enumerate(("gaussian", "k-means++"))
]


def test_single_workers_hold_all_pairs():
    for a, b in combinations(zip(*SINGLE, strict=True), 2):
        assert set(zip(a, b, strict=True)) == set(product(set(a), set(b)))


@few_are_fine
@pytest.mark.parametrize("method, shuffle, init, sync_every, combine", SINGLE)
def test_one_worker_is_the_plain_method(blobs, method, shuffle, init, sync_every, combine):
    X, _ = blobs
    common = {"shuffle": shuffle, "init": init, "random_state": 7, "max_iter": 6}
    plain = getattr(fastmmc, method)(X, 5, **common)
    single = {"n_workers": 1, "sync_every": sync_every, "combine": combine}
    check_same(fit_sharded(X, 5, method=method, **single, **common), plain)


@pytest.mark.parametrize("method", LINKED)
@pytest.mark.parametrize("online_first_epoch", [False, True])
@pytest.mark.parametrize("sync_every", [None, 20])
def test_one_worker_with_constraints(blobs, pairs, method, online_first_epoch, sync_every):
    X, y = blobs
    learning = {"online_first_epoch": online_first_epoch, "beta": 0.01, "schedule": "robbins-monro"}
    known = np.where(np.arange(75) % 7 == 0, y, -1)
    common = {"random_state": 7, "max_iter": 6, "known_labels": known, "labels_as": "both", **pairs}
    plain = getattr(fastmmc, method)(X, 4, **learning, **common)
    single = {"n_workers": 1, "sync_every": sync_every, "method_params": learning}
    check_same(fit_sharded(X, 4, method=method, **single, **common), plain)


@pytest.mark.parametrize("kind", ["float32", "sparse"])
def test_one_worker_with_other_points(blobs, pairs, kind):
    X = blobs[0].astype(np.float32) if kind == "float32" else csr_matrix(blobs[0])
    common = {"random_state": 7, "max_iter": 6, **pairs}
    check_same(fit_sharded(X, 4, n_workers=1, **common), fastmmc.c_rpcl(X, 4, **common))


def test_sparse_points_are_as_dense_ones(blobs, pairs):
    X, _ = blobs
    start = X[[0, 30, 60]]
    check_same(run(csr_matrix(X), init=start, **pairs), run(X, init=start, **pairs))


def average(before, workers, combine):
    """Combine what workers found, one prototype after the other."""
    centers, wins = np.array(before.centers), before.wins.copy()
    for j in range(len(centers)):
        taught = [w.wins[j] - before.wins[j] for w in workers]
        if combine == "sum":
            centers[j] += sum(w.centers[j] - before.centers[j] for w in workers)
        elif sum(taught):
            centers[j] = np.average([w.centers[j] for w in workers], axis=0, weights=taught)
        else:
            centers[j] += np.mean([w.centers[j] - before.centers[j] for w in workers], axis=0)
        wins[j] += sum(taught)
    return centers, wins


@few_are_fine
@pytest.mark.parametrize(
    ("method", "per_constraint"),
    [
        ("c_rpcl", None),
        ("o_lcvqe", "once"),
        ("o_lcvqe", "paper"),
    ],
)
@pytest.mark.parametrize("combine", ["mean", "sum"])
@pytest.mark.parametrize("online_first_epoch", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_two_workers_are_as_their_twins(method, per_constraint, combine, online_first_epoch, seed):
    """In the order of the points, which are dealt out in turn: no random numbers are drawn."""
    rng = np.random.default_rng(seed)
    X, start = rng.standard_normal((25, 3)), rng.standard_normal((4, 3))
    # Few objects are near this prototype: in most rounds no worker teaches it, in some one does.
    start[3] = 2.0
    # Groups of objects: together within one, apart between two; so no link contradicts another.
    drawn = [np.sort(rng.choice(25, 2, replace=False)) for _ in range(40)]
    links = np.unique(drawn, axis=0)
    group = rng.integers(3, size=25)
    together = group[links[:, 0]] == group[links[:, 1]]
    must, cannot = links[together], links[~together]
    once = {"once": per_constraint == "once"} if per_constraint else {}
    params = {"per_constraint": per_constraint} if per_constraint else {}
    params |= {"beta": 0.02, "online_first_epoch": online_first_epoch}
    learner = naive.Learner(start, 0.05, 0.02)
    seen = set() if online_first_epoch else None
    for at in [0, 7] * 3:
        workers, presented = [], []
        for worker in range(2):
            own = naive.Learner(learner.centers, 0.05, 0.02)
            own.wins = learner.wins.copy()
            order = np.arange(worker, 25, 2)[at : at + 7]
            own_seen = None if seen is None else set(seen)
            TWINS[method](X, order, own, cannot, must, own_seen, **once)
            workers.append(own)
            presented += list(order)
        centers, learner.wins = average(learner, workers, combine)
        learner.centers = list(centers)
        if seen is not None:
            seen |= set(presented)
    result = fit_sharded(
        X,
        4,
        method=method,
        n_workers=2,
        sync_every=7,
        combine=combine,
        method_params=params,
        must_link=must,
        cannot_link=cannot,
        init=start,
        max_iter=3,
        shuffle=False,
        min_share=0.0,
    )
    np.testing.assert_allclose(result.all_centers, learner.centers, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(result.weights, learner.wins)


def test_names_may_be_those_of_the_registry(blobs):
    for name in ("c-rpcl", "o-lcvqe"):
        found = run(blobs[0], name)
        assert found.params["method"] == name.replace("-", "_")
        check_same(found, run(blobs[0], name.replace("-", "_")))
    with pytest.raises(ValueError, match="method must be one of 'wta', .*'c-rpcl'.*'umc-rls'"):
        run(blobs[0], "umc-rls")


@pytest.mark.parametrize("method", METHODS)
def test_fewer_clusters_than_asked_for_are_said_as_by_the_plain_method(blobs, method):
    init = np.vstack([blobs[0][:2], np.full((1, 4), 1e4)])
    given = {"init": init, "alpha": 0.01, "max_iter": 3, "random_state": 0}
    with warnings.catch_warnings(record=True) as plain:
        warnings.simplefilter("always")
        expected = getattr(fastmmc, method)(blobs[0], 3, **given)
    rate = {"method_params": {"alpha": given.pop("alpha")}}
    with warnings.catch_warnings(record=True) as sharded:
        warnings.simplefilter("always")
        found = fit_sharded(blobs[0], 3, method=method, n_workers=1, **rate, **given)
    assert found.n_active == expected.n_active == 2
    assert found.params["min_share"] == expected.params["min_share"]
    assert [str(w.message) for w in sharded] == [str(w.message) for w in plain]
    assert len(plain) == (0 if method in ("rpcl", "c_rpcl") else 1)


def test_a_worker_that_teaches_more_counts_more():
    before = np.zeros((3, 1)), np.ones(3)
    lessons = [
        sharded._Lesson(np.array([[4.0], [2.0], [7.0]]), np.array([4.0, 1.0, 1.0]), None, 0.0),
        sharded._Lesson(np.array([[8.0], [6.0], [7.0]]), np.array([2.0, 1.0, 1.0]), None, 0.0),
    ]
    centers, wins = sharded._combine(*before, lessons, "mean")
    # Three against one; driven away by both; moved by both to the same place.
    np.testing.assert_array_equal(centers, [[5.0], [4.0], [7.0]])
    np.testing.assert_array_equal(wins, [5.0, 1.0, 1.0])
    np.testing.assert_array_equal(
        sharded._combine(*before, lessons, "sum")[0], [[12.0], [8.0], [14.0]]
    )


@pytest.mark.parametrize("n_workers", [3, 7, 75])
def test_shares_are_disjoint_and_complete(blobs, n_workers):
    seed = np.random.SeedSequence(1)
    links = fastmmc.data.links.Links(NO_PAIRS, NO_PAIRS)
    shards = sharded._deal(blobs[0], make_plan(links, shuffle=True), n_workers, seed)
    members = np.concatenate([shard.members for shard in shards])
    np.testing.assert_array_equal(np.sort(members), np.arange(75))
    assert {shard.members.size for shard in shards} <= {75 // n_workers, -(-75 // n_workers)}


@pytest.mark.parametrize("method", LINKED)
@pytest.mark.parametrize("kind", ["must_link", "cannot_link"])
def test_constraints_between_workers_are_learned_from(method, kind):
    """A heap that is a little wide is cut to be high where links, all between workers, say so."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((400, 2)) * [1.2, 1.0]
    above = X[:, 1] > 0
    # Objects are dealt out in turn.
    even, odd = np.arange(0, 400, 2), np.arange(1, 400, 2)
    wanted = above[even] if kind == "must_link" else ~above[even]
    links = np.array(
        [(i, rng.choice(odd[above[odd] == w])) for i, w in zip(even, wanted, strict=True)]
    )

    def share_violated(**constraints):
        result = fit_sharded(
            X, 2, method=method, init=[[-1, 0], [1, 0]], shuffle=False, max_iter=20, **constraints
        )
        together = result.labels[links[:, 0]] == result.labels[links[:, 1]]
        return np.mean(~together if kind == "must_link" else together)

    assert share_violated() > 0.4
    assert share_violated(**{kind: links}) < 0.2


def test_a_shard_remembers_partners_of_its_own_objects_only(blobs):
    X, _ = blobs
    links = fastmmc.data.links.check_links([(0, 1), (2, 4)], [(1, 3), (0, 74)], 75)
    plan = make_plan(links, shuffle=False)
    even, odd = sharded._deal(X, plan, 2, np.random.SeedSequence(0))
    assert even.linked.tolist() == [0, 1, 2, 4, 74]
    assert odd.linked.tolist() == [0, 1, 3]
    for shard in (even, odd):
        np.testing.assert_array_equal(shard.links.memory, X[shard.linked])
        known = shard.links.own >= 0
        np.testing.assert_array_equal(shard.linked[shard.links.own[known]], shard.members[known])
    # Object 1 is the first of the odd ones: one must-link, to 0, and one cannot-link, to 3.
    assert odd.linked[odd.links.must[: odd.links.must_start[1]]].tolist() == [0]
    assert odd.linked[odd.links.cannot[: odd.links.cannot_start[1]]].tolist() == [3]


@pytest.mark.parametrize("n_jobs", [None, 1, 2, -1])
@pytest.mark.parametrize("sync_every", [None, 10])
def test_the_number_of_threads_does_not_matter(blobs, pairs, n_jobs, sync_every):
    common = {"n_workers": 3, "sync_every": sync_every, **pairs}
    alone = run(blobs[0], n_jobs=1, **common)
    check_same(run(blobs[0], n_jobs=n_jobs, **common), alone)
    with parallel_config(n_jobs=n_jobs):
        check_same(run(blobs[0], **common), alone)
    with parallel_config(backend="threading", n_jobs=n_jobs):
        check_same(run(blobs[0], **common), alone)


def test_processes_find_what_threads_find(pairs):
    # Large enough (1 MB) that joblib maps the points into the memory of the processes.
    X = np.random.default_rng(0).standard_normal((40_000, 4))
    common = {"n_workers": 3, "max_iter": 2, "sync_every": 9000, **pairs}
    threads = run(X, **common)
    with parallel_config(backend="loky", n_jobs=2):
        check_same(run(X, **common), threads)


def test_dask_finds_what_threads_find(blobs, pairs):
    pytest.importorskip("dask")
    client = pytest.importorskip("distributed").Client
    X, _ = blobs
    common = {"n_workers": 3, "max_iter": 2, "sync_every": 20, **pairs}
    threads = run(X, **common)
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with client(processes=False, **options):
        for keep in ([], [X]):
            with parallel_config(backend="dask", scatter=keep):
                check_same(run(X, **common), threads)


def test_same_seed_same_result(blobs):
    X, _ = blobs
    one, same, other = (run(X, random_state=seed, n_workers=4) for seed in (1, 1, 2))
    check_same(one, same)
    assert (one.all_centers != other.all_centers).any()
    by_generator = run(X, random_state=np.random.default_rng(5), n_workers=4)
    check_same(by_generator, run(X, random_state=np.random.default_rng(5), n_workers=4))


def nine_gaussians(seed, n=1500):
    rng = np.random.default_rng(seed)
    y = rng.integers(9, size=n)
    centers = 4.0 * np.array([(a, b) for a in range(3) for b in range(3)])
    return centers[y] + 0.8 * rng.standard_normal((n, 2)), y


@pytest.mark.jit
@pytest.mark.parametrize(
    ("method", "sync_every"), [*((method, None) for method in METHODS), ("c_rpcl", 100)]
)
def test_four_workers_cluster_as_well_as_one(method, sync_every):
    scores = {1: [], 4: []}
    for seed in range(6):
        X, y = nine_gaussians(seed)
        for n_workers, found in scores.items():
            result = fit_sharded(
                X,
                9,
                method=method,
                n_workers=n_workers,
                sync_every=sync_every,
                init="k-means++",
                max_iter=20,
                random_state=seed,
            )
            found.append(normalized_mutual_info_score(y, result.labels))
    assert np.median(scores[4]) > np.median(scores[1]) - 0.02
    assert np.mean(scores[4]) > np.mean(scores[1]) - 0.02


def test_spare_prototypes_are_driven_away_by_many_workers():
    rng = np.random.default_rng(0)
    heaps = 6.0 * np.random.default_rng(1).standard_normal((3, 4))
    X = heaps[np.arange(1500) % 3] + rng.standard_normal((1500, 4))
    common = {"method": "rpcl", "method_params": {"beta": 0.005}, "random_state": 2}
    common["max_iter"] = 50
    for n_workers in (1, 3):
        result = fit_sharded(X, 6, n_workers=n_workers, sync_every=10, combine="sum", **common)
        assert result.n_active == 3


def test_lost_prototypes_are_noticed(blobs):
    """Five workers that each go all the way add up to five times the way."""
    params = {"n_workers": 5, "combine": "sum", "method_params": {"alpha": 0.5}, "max_iter": 2000}
    with pytest.warns(ConvergenceWarning, match="numerical"):
        result = run(blobs[0], method="wta", **params)
    assert result.status == Status.NUMERICAL and result.n_iter < 2000
    assert np.isfinite(result.all_centers).all() and np.isfinite(result.objective)


@pytest.mark.parametrize("method", ["c_rpcl", "wta"])
@pytest.mark.parametrize("n_workers", [10, 50])
def test_prototypes_do_not_get_lost_unnoticed(method, n_workers):
    """Long before their squares overflow; those of the best epoch come back."""
    X, _ = fastmmc.datasets.load("iris")
    spread = ((X - X.mean(axis=0)) ** 2).sum()
    for seed in range(5):
        run = {"method": method, "n_workers": n_workers, "combine": "sum", "random_state": seed}
        with pytest.warns(ConvergenceWarning, match="numerical"):
            result = fit_sharded(X, 3, method_params={"alpha": 0.3}, **run)
        assert result.status == Status.NUMERICAL and result.n_iter < 100
        assert np.abs(result.all_centers).max() < 100
        assert result.objective < 10 * spread
    with pytest.warns(ConvergenceWarning, match="numerical"):
        result = fit_sharded(X, 3, combine="sum", n_workers=10, random_state=0)
    assert result.objective < 10 * spread


@few_are_fine
def test_far_prototypes_are_not_lost_ones(blobs):
    """A first prototype far out comes near by and by, also where changes are added up."""
    X, _ = blobs
    init = np.vstack([X[:2], np.full((1, 4), 1e6)])
    run = {"method": "fscl", "n_workers": 3, "combine": "sum", "sync_every": 2, "init": init}
    assert fit_sharded(X, 3, random_state=0, max_iter=20, **run).converged
    everything = {**run, "init": np.full((3, 4), 1e6)}
    assert fit_sharded(X, 3, random_state=0, max_iter=20, **everything).converged


def test_an_objective_that_overflows_is_said_to(blobs):
    for combine in ("mean", "sum"):
        with pytest.warns(ConvergenceWarning, match="numerical"):
            result = run(blobs[0] * 1e160, combine=combine)
        assert result.status == Status.NUMERICAL and result.objective == np.inf


def test_time_limit(blobs):
    with pytest.warns(ConvergenceWarning, match="time limit"):
        result = run(blobs[0], max_iter=10**8, max_time=0.2)
    assert result.status == Status.TIME_LIMIT
    assert 1 <= result.n_iter == result.history.size < 10**8
    assert result.n_moves == 75 * result.n_iter


def test_interrupt_and_callback(blobs):
    seen = []

    def stop(progress):
        seen.append(progress)
        return len(seen) == 3

    def interrupt(progress):
        raise KeyboardInterrupt

    common = {"sync_every": 20, "max_iter": 50}
    with pytest.warns(ConvergenceWarning, match="callback"):
        result = run(blobs[0], callback=stop, **common)
    # Shards of 38 and 37 objects: two rounds are an epoch.
    assert result.status == Status.CALLBACK and result.n_iter == 1 and result.n_moves == 75 + 40
    assert all(isinstance(progress, Progress) for progress in seen)
    assert [progress.n_done for progress in seen] == [0, 1, 1]
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        result = run(blobs[0], callback=interrupt, **common)
    assert result.status == Status.INTERRUPTED and result.n_iter == 0 and result.n_moves == 40
    assert result.sizes.sum() == 75


def test_an_interrupt_in_a_round_drops_it(blobs, monkeypatch):
    calls = []
    teach = sharded._teach

    def interrupted(*args):
        calls.append(1)
        if len(calls) > 4:
            raise KeyboardInterrupt
        return teach(*args)

    monkeypatch.setattr(sharded, "_teach", interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        result = run(blobs[0], max_iter=50)
    monkeypatch.undo()
    assert result.status == Status.INTERRUPTED and result.n_iter == 2
    np.testing.assert_array_equal(result.all_centers, run(blobs[0], max_iter=2).all_centers)


def test_a_memmap_is_read_where_it_is(tmp_path, blobs, pairs):
    X, _ = blobs
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    check_same(run(mapped, n_workers=3, **pairs), run(X, n_workers=3, **pairs))


def test_the_result_predicts(blobs):
    X, _ = blobs
    result = run(X, method="fscl", n_workers=2)
    np.testing.assert_array_equal(result.predict(X), result.labels)
    assert result.transform(X).shape == (75, result.n_active)
    assert result.params["n_workers"] == 2 and result.params["alpha"] == 0.05


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"method": "lcvqe"}, ValueError, "method"),
        ({"n_workers": 0}, ValueError, "n_workers"),
        ({"n_workers": 76}, ValueError, "number of points"),
        ({"n_workers": 1.5}, TypeError, "n_workers"),
        ({"sync_every": 0}, ValueError, "sync_every"),
        ({"combine": "median"}, ValueError, "combine"),
        ({"method_params": [0.1]}, TypeError, "method_params must be a dict"),
        ({"method_params": {"max_iter": 3}}, ValueError, "give max_iter to fit_sharded itself"),
        ({"method_params": {"features": "nystroem"}}, ValueError, "c_rpcl has no 'features'"),
        ({"method_params": {"per_constraint": "once"}}, ValueError, "has no 'per_constraint'"),
        ({"method_params": {"alpha": 2.0}}, ValueError, "alpha"),
        ({"method": "rpcl", "cannot_link": [(0, 1)]}, ValueError, "rpcl takes no constraints"),
        ({"method": "wta", "known_labels": [-1] * 75}, ValueError, "wta takes no constraints"),
        ({"cannot_link": [(0, 75)]}, ValueError, "cannot_link"),
        ({"init": "random"}, ValueError, "init"),
        ({"init": np.zeros((2, 4))}, ValueError, r"init must have shape \(3, 4\)"),
        ({"max_iter": 0}, ValueError, "max_iter"),
        ({"shuffle": "yes"}, TypeError, "shuffle"),
        ({"min_share": 1.0}, ValueError, "min_share"),
        ({"n_jobs": 0}, ValueError, "n_jobs"),
        ({"max_time": -1}, ValueError, "max_time"),
        ({"callback": 3}, TypeError, "callback"),
    ],
)
def test_bad_input(blobs, given, error, message):
    with pytest.raises(error, match=message):
        run(blobs[0], **given)


def test_bad_points():
    with pytest.raises(ValueError, match="NaN"):
        run(np.array([[0.0], [np.nan], [1.0]]))
    with pytest.raises(ValueError, match="k must be at most 2"):
        run(np.zeros((2, 2)))
