import os
import pickle
import signal
import threading
import time
from contextlib import nullcontext

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import ConvergenceWarning

import fastmmc
from fastmmc import Status
from fastmmc.core import execution
from fastmmc.rls import known, methods, source


def run(X, **kwargs):
    return fastmmc.umc_rls(
        X, 4, **({"n_init": 6, "random_state": 3, "sigma": 1.5} | kwargs), sizes="equal"
    )


def first_draw(seed, index=0):
    return execution.restart_stream(execution.fixed_seed(seed), index).random()


def test_every_restart_has_a_stream_of_its_own():
    assert len({first_draw(7, index) for index in range(5)}) == 5
    assert first_draw(7, 3) == first_draw(7, 3) != first_draw(8, 3)
    spawned = np.random.SeedSequence(7).spawn(4)[3]
    assert np.random.default_rng(spawned).random() == first_draw(7, 3)


def test_a_seed_sequence_is_not_used_up():
    root = np.random.SeedSequence(1)
    assert first_draw(root) == first_draw(root)


@pytest.mark.parametrize("seed", [np.random.default_rng(0), np.random.RandomState(0)])
def test_a_generator_moves_on(seed):
    assert first_draw(seed) != first_draw(seed)


@pytest.mark.parametrize(
    ("value", "error"), [(-1, ValueError), ("x", TypeError), (1.5, TypeError), (True, TypeError)]
)
def test_bad_random_state(overlapping, value, error):
    with pytest.raises(error, match="random_state"):
        run(overlapping, random_state=value)


@pytest.mark.parametrize("n_jobs", [2, 4, -1])
@pytest.mark.parametrize("method", ["shaking", "stochastic"])
def test_labels_do_not_depend_on_the_number_of_threads(overlapping, n_jobs, method):
    alone = run(overlapping, n_jobs=1, method=method)
    together = run(overlapping, n_jobs=n_jobs, method=method)
    np.testing.assert_array_equal(alone.labels, together.labels)
    np.testing.assert_array_equal(alone.objectives, together.objectives)
    assert alone.best_init == together.best_init


def test_the_best_start_wins(overlapping):
    result = run(overlapping)
    assert result.objectives.shape == (6,)
    assert result.best_init == np.argmin(result.objectives)
    assert result.objective == result.objectives.min()
    assert run(overlapping, n_init=1).objective == result.objectives[0]


def test_no_global_seed_is_touched(overlapping):
    np.random.seed(5)
    before = np.random.get_state()[1].copy()
    run(overlapping, random_state=None)
    np.testing.assert_array_equal(before, np.random.get_state()[1])


def test_time_limit_gives_back_labels_and_says_so(overlapping):
    with pytest.warns(ConvergenceWarning, match="time limit"):
        result = run(overlapping, n_init=10_000, max_time=0.2)
    assert result.status == Status.TIME_LIMIT and not result.converged
    assert result.sizes.min() >= 1 and result.sizes.sum() == 60
    assert 0 < len(result.objectives) < 10_000
    assert result.objective == result.objectives.min()


@pytest.mark.parametrize("method", ["shaking", "stochastic"])
def test_a_run_without_a_finished_start_still_gives_labels(rng, monkeypatch, method):
    monkeypatch.setattr(execution, "FIRST_BUDGET", 1)
    monkeypatch.setattr(execution, "MOST_BUDGET", 1)
    monkeypatch.setattr(execution, "POLL_SECONDS", 0.0)
    with pytest.warns(ConvergenceWarning, match="0 of 6 starts"):
        result = run(rng.standard_normal((600, 3)), method=method, max_time=1e-9, balance=0.5)
    assert result.status == Status.TIME_LIMIT
    assert (result.sizes >= 75).all() and (result.sizes <= 225).all()


def test_callback_hears_of_progress_and_can_stop(overlapping):
    heard = []

    def stop_late(progress):
        heard.append(progress)
        return progress.n_done >= 20

    with pytest.warns(ConvergenceWarning, match="callback"):
        result = run(overlapping, n_init=100_000, callback=stop_late)
    assert result.status == Status.CALLBACK
    assert len(result.objectives) >= 20
    elapsed = [p.elapsed for p in heard]
    assert elapsed == sorted(elapsed)
    assert all(0 <= p.fraction <= 1 and p.n_init == 100_000 for p in heard)
    assert heard[-1].objective == pytest.approx(result.objectives[: heard[-1].n_done].min())


def test_interrupt_gives_back_the_best_so_far(overlapping, interruptible):
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))

    def when_running(progress):
        if timer.ident is None:
            timer.start()

    with pytest.warns(ConvergenceWarning, match="interrupted"):
        result = run(overlapping, n_init=1_000_000, callback=when_running, max_time=60)
    assert result.status == Status.INTERRUPTED
    assert len(result.objectives) >= 1


def stop(how):
    def callback(progress):
        if how is not None:
            raise how
        return True

    return callback


@pytest.mark.jit
@pytest.mark.parametrize(
    ("how", "status"),
    [
        (None, Status.CALLBACK),
        (StopIteration, Status.CALLBACK),
        (KeyboardInterrupt, Status.INTERRUPTED),
    ],
)
@pytest.mark.parametrize(
    "method",
    [one for one in fastmmc.METHODS.values() if "callback" in one.parameters],
    ids=lambda method: method.name,
)
def test_a_callback_stops_every_method(method, how, status, overlapping):
    given = {"k": 3, "n_init": 200, "n_jobs": 1, "random_state": 0, "callback": stop(how)}
    given = {name: value for name, value in given.items() if name in method.parameters}
    with pytest.warns(ConvergenceWarning):
        result = method.function(overlapping[:60], **given)
    assert result.status == status
    assert result.sizes.sum() == 60


def test_progress_never_falls():
    class Search:
        objective, n_steps = 0.0, 0

        def step(self, budget):
            self.n_steps += 1
            time.sleep(2 * execution.POLL_SECONDS)
            return self.n_steps == 4

        def fraction(self):
            return (0.5, 0.2, 0.6, 0.1)[self.n_steps - 1]

        def finish(self):
            pass

    heard = []
    control = execution.RunControl(callback=heard.append)
    execution.run_restarts(lambda index: Search(), 1, control)
    shares = [progress.fraction for progress in heard]
    assert shares == sorted(shares) and {0.5, 0.6, 1.0} <= {*shares}


def test_an_interrupt_before_anything_began_is_raised(monkeypatch):
    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(execution.ThreadPoolExecutor, "submit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        execution.run_restarts(lambda index: None, 3, execution.RunControl())


@pytest.mark.parametrize("n_interrupts", [0, 1, 2])
def test_what_follows_a_search_outlasts_one_interrupt(n_interrupts, overlapping, monkeypatch):
    fit, left = source.fit_labels, iter([KeyboardInterrupt] * n_interrupts)

    def interrupted(*args):
        if error := next(left, None):
            raise error
        return fit(*args)

    whole = run(overlapping)
    monkeypatch.setattr(source, "fit_labels", interrupted)
    if n_interrupts == 2:
        with pytest.raises(KeyboardInterrupt):
            run(overlapping)
        return
    told = pytest.warns(ConvergenceWarning, match="interrupted") if n_interrupts else nullcontext()
    with told:
        result = run(overlapping)
    assert result.status == (Status.INTERRUPTED if n_interrupts else Status.CONVERGED)
    assert_array_equal(result.labels, whole.labels)


@pytest.fixture
def late_interrupt(monkeypatch):
    """Interrupt the first wait for searches that all have ended, and no other."""
    real, left = execution.wait, iter([KeyboardInterrupt])

    def wait(running, **options):
        finished = real(running, **options)
        if not finished.not_done and all(future.result()[1] for future in running):
            for error in left:
                raise error
        return finished

    monkeypatch.setattr(execution, "wait", wait)


def test_an_interrupt_counts_although_the_last_start_has_ended(overlapping, late_interrupt):
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        result = run(overlapping, n_init=1)
    assert result.status == Status.INTERRUPTED
    assert_array_equal(result.labels, run(overlapping, n_init=1).labels)


def test_an_interrupt_of_a_split_that_has_ended_ends_the_tree(overlapping, late_interrupt):
    with (
        pytest.warns(ConvergenceWarning, match="best labels"),  # of the split
        pytest.warns(ConvergenceWarning, match="interrupted; 2 of 8 clusters"),
    ):
        result = fastmmc.recursive_mmc(overlapping, 8, method="iter_ls_svm", random_state=0)
    assert result.status == Status.INTERRUPTED


def test_a_callback_that_stops_a_split_which_has_ended_stops_the_tree(overlapping):
    told = iter([True])
    with pytest.warns(ConvergenceWarning, match="2 of 8 clusters"):
        result = fastmmc.recursive_mmc(
            overlapping, 8, random_state=0, callback=lambda progress: next(told, False)
        )
    assert result.status == Status.CALLBACK


@pytest.mark.parametrize("name", ["outlier_scores", "search_labels", "_doubted"])
def test_an_interrupt_keeps_what_earlier_searches_found(overlapping, monkeypatch, name):
    module = {"outlier_scores": source, "search_labels": methods, "_doubted": known}[name]
    real, calls = getattr(module, name), []

    def interrupted(*args):
        calls.append(args)
        if len(calls) == (2 if name == "search_labels" else 1):
            raise KeyboardInterrupt
        return real(*args)

    monkeypatch.setattr(module, name, interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        if name == "search_labels":
            results = fastmmc.umc_rls_path(overlapping, 4, [0.1, 1.0, 10.0], random_state=0)
            assert len(results) == 1
            result = results[0]
        else:
            told = np.maximum(np.arange(60) % 12 - 8, -1)
            given = {"known_labels": told, "known_trust": 0.9} if name == "_doubted" else {}
            result = run(overlapping, **given)
    assert result.status == Status.INTERRUPTED and result.sizes.sum() == len(overlapping)


def test_the_progress_of_a_path_is_that_of_all_its_runs(overlapping):
    seen = []
    given = {"n_init": 30, "n_jobs": 1, "random_state": 0, "callback": seen.append}
    fastmmc.umc_rls_path(overlapping, 4, [0.1, 1.0, 10.0], **given)
    fractions = [progress.fraction for progress in seen]
    assert fractions == sorted(fractions) and fractions[-1] == 1.0


def test_an_error_in_a_callback_is_raised(overlapping):
    def broken(progress):
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        run(overlapping, n_init=1000, callback=broken)


def test_iteration_limit(overlapping):
    for method in ("steepest", "stochastic"):
        with pytest.warns(ConvergenceWarning, match="max_iter"):
            result = run(overlapping, method=method, max_iter=1)
        assert result.status == Status.MAX_ITER and result.n_iter == 1


def test_progress_bar(overlapping, capsys):
    run(overlapping, verbose=1)
    assert "start" in capsys.readouterr().err


def test_the_bar_shows_the_hat_matrix_first(overlapping, monkeypatch):
    heard = []
    monkeypatch.setattr(execution._RichBar, "prepare", lambda self, share: heard.append(share))
    show = execution._RichBar.show
    monkeypatch.setattr(
        execution._RichBar, "show", lambda self, p: (heard.append("start"), show(self, p))
    )
    run(overlapping, verbose=1, rank=20)
    shares = heard[: heard.index("start")]
    assert shares == sorted(shares) and 0.0 < shares[-2] < shares[-1] == 1.0
    assert set(heard[len(shares) :]) == {"start"}


def test_a_missing_bar_says_how_to_get_it(overlapping, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "rich.console", None)
    with pytest.raises(ImportError, match=r"needs rich \(python -m pip install rich\)"):
        run(overlapping, verbose=1)


def test_results_can_be_pickled(overlapping):
    result = run(overlapping)
    copy = pickle.loads(pickle.dumps(result))
    np.testing.assert_array_equal(copy.labels, result.labels)
    np.testing.assert_array_equal(copy.predict(overlapping), result.predict(overlapping))


def test_small_examples():
    with execution.show_progress(execution.RunControl()) as control:
        control.bar.prepare(0.5)
    seed = execution.fixed_seed(3)
    assert seed.entropy == 3
    first, second = (execution.restart_stream(seed, index).random() for index in (0, 1))
    assert first != second
    assert execution.rate_figures(Status.CONVERGED, objective=1.0) == Status.CONVERGED
    with pytest.warns(ConvergenceWarning, match="X has only 1 distinct point"):
        assert execution.warn_of_equal_points(np.zeros((5, 2)), 2)
    with pytest.warns(ConvergenceWarning, match="fewer"):
        execution.warn_user("fewer clusters than asked for")
