"""scikit-learn's callback protocol (new in 1.9), where the installed version has it."""

from __future__ import annotations

from contextlib import contextmanager

from fastmmc._sklearn import CallbackSupport as CallbackSupport
from fastmmc._sklearn import with_callbacks as with_callbacks


class FitTasks:
    """The subtasks of a fit: one for each start, or split, that has ended."""

    def __init__(self, context, estimator, unit):
        self._context, self._estimator, self._unit = context, estimator, unit
        self._n_told = 0

    def tell(self, n_done):
        """Tell scikit-learn's callbacks of those that ended; return whether one asks to stop."""
        stop = False
        while self._context is not None and self._n_told < n_done:
            task = self._context.subcontext(task_name=self._unit, task_id=self._n_told)
            task.call_on_fit_task_begin(estimator=self._estimator)
            stop |= bool(task.call_on_fit_task_end(estimator=self._estimator))
            self._n_told += 1
        return stop

    def with_callback(self, callback):
        """Return a callback of a solver that tells these, and the user's own."""
        if self._context is None or not (callback is None or callable(callback)):
            return callback  # a wrong one is for the solver to refuse
        return lambda progress: (
            self.tell(progress.n_done) or (callback is not None and callback(progress))
        )


@contextmanager
def fit_tasks(estimator, n_tasks, unit):
    """Report a fit, decorated with ``with_callbacks``, as one task; yield its subtasks.

    ``n_tasks`` is None where their number is not known.
    """
    if not hasattr(estimator, "_init_callback_context"):
        yield FitTasks(None, estimator, unit)
        return
    # Starts end in any order when they run in threads.
    context = estimator._init_callback_context(max_subtasks=n_tasks, sequential_subtasks=False)
    context.call_on_fit_task_begin(estimator=estimator)
    yield FitTasks(context, estimator, unit)
    context.call_on_fit_task_end(estimator=estimator)
