import os
import signal

import matplotlib
import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import fastmmc
from fastmmc.kernels.factors import hat_matrix
from fastmmc.kernels.gram import Kernel

matplotlib.use("Agg")


@pytest.fixture(scope="session", autouse=True)
def one_thread_a_worker():
    """Leave the cores to the workers: more threads, of BLAS or OpenMP, would only wait."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        yield
        return
    with threadpool_limits(1):
        yield


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def blobs():
    """Three clear clusters of unequal size in four dimensions."""
    rng = np.random.default_rng(1)
    centres = 6.0 * rng.standard_normal((3, 4))
    y = np.repeat([0, 1, 2], [20, 30, 25])
    return centres[y] + rng.standard_normal((75, 4)), y


@pytest.fixture
def overlapping():
    """Points with no clear clusters, on which searches have much to do."""
    return np.random.default_rng(2).standard_normal((60, 3))


@pytest.fixture
def hat(overlapping):
    """A hat matrix of the overlapping points."""
    return hat_matrix(Kernel("rbf", sigma=1.5), overlapping, 0.1)


@pytest.fixture(scope="session")
def digits():
    return fastmmc.datasets.load("digits")


@pytest.fixture
def interruptible():
    """Let Ctrl-C interrupt: a shell starts what it puts in the background deaf to it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
