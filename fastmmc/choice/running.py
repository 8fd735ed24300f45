"""How searches are carried out within the time, who hears of them, and what stops them."""

from contextlib import contextmanager, nullcontext

import numpy as np

from fastmmc.execution import finish, without_warnings
from fastmmc.rls import umc_rls
from fastmmc.status import STOPPED, Status

# Seconds that a search may take at least.
LEAST_TIME = 1e-3


class Stopped(Exception):
    """Ends a phase of the choice."""


class Run:
    """How the searches are carried out, who hears of them, and what stopped them."""

    def __init__(self, seed, control, n_steps):
        self.seed = seed
        self.status = Status.CONVERGED
        self.n_done = 0
        # The share of max_time that the phase may take; None outside of one, where nothing stops.
        self._share = None
        self._control = control
        self._n_steps = n_steps

    @contextmanager
    def phase(self, share=1.0):
        """Run a phase, until this share of max_time is over, or the run is stopped."""
        self._share = share
        try:
            yield
        except Stopped:
            pass
        except KeyboardInterrupt:
            self.status = Status.INTERRUPTED
        finally:
            self._share = None

    def look(self, fraction=0.0, ahead=0.0):
        """Report the share of the step that is done; end the phase where there is reason to.

        ``ahead`` is as for :meth:`RunControl.prepare`.
        """
        self._report(fraction, ahead)
        if self._share is not None and (self.is_told() or self.time_left() < ahead):
            raise Stopped

    def finish(self, work):
        """Return what is still to be made of all that was found; one interrupt does not end it."""
        made, interrupted = finish(work)
        if interrupted:
            self.status = Status.INTERRUPTED
        return made

    def end_step(self):
        """Count a step."""
        self.n_done += 1
        self.look()

    def cluster(self, source, k, share=1.0, **params):
        """Return the result of :func:`umc_rls` in this share of the time that is left.

        Of a run that was stopped, it is soon there and warns of nothing.
        """
        told = self.is_told()
        left = 0.0 if told else self.time_left()
        with without_warnings() if told else nullcontext():
            result = umc_rls(
                source,
                k,
                random_state=self.seed,
                n_jobs=self._control.n_jobs,
                max_time=None if left == np.inf else max(LEAST_TIME, share * left),
                callback=None if told else lambda progress: self._report(progress.fraction),
                **params,
            )
        if not self.is_told() and result.status in STOPPED:
            self.status = result.status
        return result

    def _report(self, fraction, ahead=0.0):
        """Report the share of the step that is done; return whether the user wants to stop."""
        if not self.is_told():
            status = self._control.report(
                fraction=min(1.0, (self.n_done + fraction) / self._n_steps),
                n_done=self.n_done,
                n_init=self._n_steps,
                objective=np.inf,
            )
            late = status == Status.CONVERGED and self.time_left() < ahead
            if late or status != Status.CONVERGED:
                self.status = Status.TIME_LIMIT if late else status
        return self.is_told()

    def is_told(self):
        """Return whether the user has stopped the run, and not only the clock a part of it."""
        return self.status in (Status.CALLBACK, Status.INTERRUPTED)

    def time_left(self):
        """Return the seconds that are left of the phase."""
        left = self._control.time_left()
        if self._share is None or left == np.inf:
            return left
        return left - (1.0 - self._share) * self._control.max_time
