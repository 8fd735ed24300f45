"""scikit-learn's callback protocol (new in 1.9), where the installed version has it."""

from __future__ import annotations

from contextlib import contextmanager

try:
    from sklearn.callback import CallbackSupportMixin as CallbackSupport
    from sklearn.callback import with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupport:
        """Stands in for scikit-learn's mixin: no callbacks can be set."""

    def with_callbacks(method):
        """Return the method as it is."""
        return method


@contextmanager
def fit_tasks(estimator, n_init, unit="start"):
    """Report a fit as one task with a subtask for each start.

    Parameters
    ----------
    estimator : CallbackSupport
        Its ``fit`` must be decorated with ``with_callbacks``.
    n_init : int or None
        Starts; None where their number is not known.
    unit : str, default="start"
        What the subtasks are.

    Yields
    ------
    callable or None
        To be called with (index, n_init) when a start has ended; true asks to stop. None where
        scikit-learn has no callbacks.
    """
    if not hasattr(estimator, "_init_callback_context"):
        yield None
        return
    # Starts end in any order when they run in threads, so each names itself.
    context = estimator._init_callback_context(max_subtasks=n_init, sequential_subtasks=False)
    context.call_on_fit_task_begin(estimator=estimator)

    def on_start_done(index, _):
        task = context.subcontext(task_name=unit, task_id=index)
        task.call_on_fit_task_begin(estimator=estimator)
        return task.call_on_fit_task_end(estimator=estimator)

    yield on_start_done
    context.call_on_fit_task_end(estimator=estimator)
