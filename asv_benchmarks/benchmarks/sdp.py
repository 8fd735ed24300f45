"""MMC and GMMC: whole calls over n, and the form of the program against the printed one."""

import numpy as np

import fastmmc
from fastmmc.kernels.gram import Kernel, median_width
from fastmmc.sdp.methods import penalised_kernel
from fastmmc.sdp.relaxation import relax_gmmc

from . import ratio
from .datasets import blobs

SIZES = (20, 40, 60)
FUNCTIONS = {"sdp_mmc": fastmmc.sdp_mmc, "gmmc": fastmmc.gmmc}

C_DELTA, C_E, RIDGE = 100.0, 10.0, 1e-3


def skip_without_extra():
    """Have asv leave a benchmark out where cvxpy is missing."""
    try:
        import cvxpy  # noqa: F401
    except ImportError as error:
        raise NotImplementedError("needs the extra sdp") from error


class Calls:
    """Points to labels: time, peak memory, the solver's iterations, share above the bound."""

    param_names = ("n", "method")
    params = (SIZES, tuple(FUNCTIONS))
    timeout = 300
    number, repeat, warmup_time = 1, (1, 5, 60.0), 0.0

    def setup(self, n, method):
        skip_without_extra()
        self.X = blobs(n, 2)[0]
        FUNCTIONS[method](blobs(10, 2)[0])

    def time_call(self, n, method):
        FUNCTIONS[method](self.X)

    def peakmem_call(self, n, method):
        FUNCTIONS[method](self.X)

    def track_iterations(self, n, method):
        return FUNCTIONS[method](self.X).n_iter

    def track_gap(self, n, method):
        """Return the share of the objective that lies above the bound."""
        result = FUNCTIONS[method](self.X)
        return 1.0 - result.bound / result.objective


def solve_printed(K):
    """Solve GMMC's program over scores and bias, n + 1 rows, as it is printed."""
    import cvxpy as cp

    n = K.shape[0]
    ones = np.ones(n)
    to_f = np.column_stack((np.eye(n), ones))
    scores = np.append(ones, 0.0)
    fixed = to_f.T @ np.linalg.inv(K + RIDGE * np.eye(n)) @ to_f + C_E * np.outer(scores, scores)
    gamma = cp.Variable(n, nonneg=True)
    slack = 0.5 * (fixed + fixed.T) - cp.diag(cp.hstack([gamma, np.zeros(1)]))
    problem = cp.Problem(cp.Maximize(cp.sum(gamma)), [slack >> 0, gamma <= C_DELTA])
    return problem.solve(solver="SCS")


class OverPrintedForm:
    """GMMC's program without the bias and with a bounded matrix over the printed one, by SCS."""

    param_names = ("n",)
    params = (20, 40)
    timeout = 300
    unit = "ours / printed"

    def setup(self, n):
        skip_without_extra()
        X = blobs(n, 2)[0]
        self.K = Kernel("rbf", sigma=median_width(X)).block(X, X)
        assert np.isclose(self.run(), solve_printed(self.K), rtol=1e-2)

    def run(self):
        n = self.K.shape[0]
        K = penalised_kernel(self.K, RIDGE, 1.0 / (C_E * n**2))
        return relax_gmmc(K, C_DELTA, "SCS").bound

    def track_program(self, n):
        return ratio(3, self.run, lambda: solve_printed(self.K))
