"""Who hears of the choice, and what stops it."""

from contextlib import contextmanager

import numpy as np

from fastmmc.core.execution import OutOfTime
from fastmmc.core.status import Status


class Run:
    """How far the choice is, who hears of it, and what stopped it."""

    def __init__(self, control, n_steps):
        self.status = Status.CONVERGED
        self.n_done = 0
        # The share of max_time that the phase may take; None outside of one, where nothing stops.
        self._share = None
        self._control = control
        self._fraction = 0.0
        self._n_steps = n_steps

    @contextmanager
    def phase(self, share=1.0):
        """Run a phase, until this share of max_time is over, or the run is stopped."""
        self._share = share
        try:
            yield
        except OutOfTime:
            pass
        except KeyboardInterrupt:
            self.status = Status.INTERRUPTED
        finally:
            self._share = None

    def look(self, fraction=0.0, ahead=0.0):
        """Report the share of the step that is done; end the phase where there is reason to.

        ``ahead`` is as for :meth:`RunControl.prepare`.
        """
        if not self.is_told():
            done = min(1.0, (self.n_done + fraction) / self._n_steps)
            self._fraction = max(self._fraction, done)
            status = self._control.report(
                fraction=self._fraction,
                n_done=self.n_done,
                n_init=self._n_steps,
                objective=np.inf,
            )
            if status == Status.CONVERGED and self.time_left() < ahead:
                status = Status.TIME_LIMIT
            if status != Status.CONVERGED:
                self.status = status
        if self._share is not None and (self.is_told() or self.time_left() < ahead):
            raise OutOfTime

    def end_step(self):
        """Count a step."""
        self.n_done += 1
        self.look()

    def is_told(self):
        """Return whether the user has stopped the run, and not only the clock a part of it."""
        return self.status in (Status.CALLBACK, Status.INTERRUPTED)

    def time_left(self):
        """Return the seconds that are left of the phase."""
        left = self._control.time_left()
        if self._share is None or left == np.inf:
            return left
        return left - (1.0 - self._share) * self._control.max_time
