"""scikit-learn's callback protocol (new in 1.9), where the installed version has it."""

from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self, TypeVar

if TYPE_CHECKING:
    Method = TypeVar("Method", bound=Callable[..., Any])

    def with_callbacks(method: Method) -> Method: ...

    class CallbackSupport:
        def set_callbacks(self, callbacks: Any) -> Self: ...

else:
    try:
        from sklearn.callback import CallbackSupportMixin as CallbackSupport
        from sklearn.callback import with_callbacks
    except ImportError:  # scikit-learn before 1.9

        class CallbackSupport:
            """Stands in for scikit-learn's mixin: no callbacks can be set."""

        def with_callbacks(method):
            """Return the method as it is."""
            return method


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
