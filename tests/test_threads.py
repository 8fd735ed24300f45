"""Limits of BLAS that nest across threads, and pieces of work in threads."""

import threading

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

import fastmmc
from fastmmc.core import threads
from fastmmc.core.threads import map_of_threads, one_blas_thread


def blas_threads():
    pools = ThreadpoolController().select(user_api="blas").lib_controllers
    return {pool.num_threads for pool in pools}


def test_calls_that_overlap_in_time_leave_the_limit_as_it_was():
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        if max(before) == 1:
            pytest.skip("this BLAS takes one thread whatever one asks for")
        began, may_end = threading.Event(), threading.Event()

        def other():
            with one_blas_thread():
                began.set()
                may_end.wait()

        thread = threading.Thread(target=other)
        with one_blas_thread():
            thread.start()
            began.wait()
        assert blas_threads() == {1}, "one call is still under way"
        may_end.set()
        thread.join()
        assert blas_threads() == before


@pytest.mark.jit
def test_overlapping_runs_leave_the_limit_as_it_was(overlapping):
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        inside = threading.Barrier(2, timeout=60)
        ended = threading.Event()

        def run(first):
            waited = []

            def callback(progress):
                if not waited:
                    waited.append(True)
                    inside.wait()
                    if not first:
                        ended.wait(60)

            fastmmc.umc_rls(
                overlapping, 4, n_init=3, random_state=0, callback=callback, sizes="equal"
            )
            if first:
                ended.set()

        workers = [threading.Thread(target=run, args=(first,)) for first in (True, False)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert blas_threads() == before


def test_pieces_come_in_their_order_and_few_are_begun_ahead(monkeypatch):
    monkeypatch.setattr(threads._BlasLimit, "configured", lambda self: 2)
    begun = []

    def work(piece):
        begun.append(piece)
        return piece * piece

    with map_of_threads(np.inf) as map_pieces:
        results = map_pieces(work, range(100))
        assert [next(results) for _ in range(3)] == [0, 1, 4]
        assert len(begun) < 10
        assert list(results) == [i * i for i in range(3, 100)]


def test_an_error_in_a_piece_reaches_the_caller(monkeypatch):
    monkeypatch.setattr(threads._BlasLimit, "configured", lambda self: 2)
    with pytest.raises(ZeroDivisionError), map_of_threads(np.inf) as map_pieces:
        list(map_pieces(lambda piece: 1 / piece, [1, 0, 1]))


def test_the_number_of_threads_is_what_blas_was_given():
    with threadpool_limits(2, user_api="blas"):
        wanted = max(blas_threads())
        with one_blas_thread():
            assert threads._LIMIT.configured() == wanted
        with threadpool_limits(1, user_api="blas"):
            assert threads._LIMIT.configured() == 1


def test_small_examples():
    with map_of_threads(10) as map_pieces:
        assert list(map_pieces(abs, [-1, 2])) == [1, 2]
    heard = []
    threads.run_to_end((n for n in [1, 2]), heard.append)
    advance = threads.counter(4, heard.append)
    advance(1), advance(3)
    assert heard == [1, 2, 0.25, 1.0]
