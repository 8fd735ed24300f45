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


@contextmanager
def fit_tasks(estimator, n_tasks, unit):
    """Report a fit, decorated with ``with_callbacks``, as one task; yield what tells its subtasks.

    These are starts, or splits, of which ``n_tasks`` is None where their number is not known.
    ``tell(n_done)`` tells scikit-learn's callbacks of those that ended, and returns whether one
    asks to stop. None is yielded where there are no callbacks to tell.
    """
    if not hasattr(estimator, "_init_callback_context"):
        yield None
        return
    # Starts end in any order when they run in threads.
    context = estimator._init_callback_context(max_subtasks=n_tasks, sequential_subtasks=False)
    context.call_on_fit_task_begin(estimator=estimator)
    n_told = 0

    def tell(n_done):
        nonlocal n_told
        stop = False
        for task_id in range(n_told, n_done):
            task = context.subcontext(task_name=unit, task_id=task_id)
            task.call_on_fit_task_begin(estimator=estimator)
            stop |= bool(task.call_on_fit_task_end(estimator=estimator))
        n_told = max(n_told, n_done)
        return stop

    yield tell
    context.call_on_fit_task_end(estimator=estimator)


def telling(tell, callback):
    """Return a callback of a solver that tells the subtasks of a fit, and the user's own."""
    if tell is None or not (callback is None or callable(callback)):
        return callback  # a wrong one is for the solver to refuse
    return lambda progress: tell(progress.n_done) or (callback is not None and callback(progress))
