"""What worker threads may not do: warning filters belong to the whole process."""

import sys
import threading
import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning

import fastmmc

RUN = {"n_init": 4, "n_jobs": 4, "random_state": 0}
CALLS = {
    "far points": lambda X, **more: fastmmc.iter_svr(X, max_iter=3, **RUN, **more),
    "k-means": lambda X: fastmmc.iter_svm(X, init="kmeans", max_iter=3, **RUN),
    "normalised cut": lambda X, **more: fastmmc.iter_ls_svm(X, init="ncut", **RUN, **more),
    "libsvm svr": lambda X, **more: fastmmc.iter_svr(X, solver="libsvm", **RUN, **more),
    "libsvm svm": lambda X: fastmmc.iter_svm(X, solver="libsvm", max_iter=3, **RUN),
    "liblinear svr": lambda X: fastmmc.iter_svr(X, C=1.0, rank=9, solver="linear", **RUN),
    "liblinear svm": lambda X: fastmmc.iter_svm(X, C=1.0, rank=9, solver="linear", **RUN),
    "equal points": lambda X: fastmmc.iter_svr(np.ones((20, 2)), **RUN),
    "planes": lambda X: fastmmc.cpm3c(X, 2, init="kmeans", **RUN),
    "memetic": lambda X: fastmmc.sammc(X, 3, patience=3, max_representatives=30, **RUN),
    "annealing": lambda X: fastmmc.sammc(X, 3, search="annealing", T_min=0.0095, **RUN),
    "shaking": lambda X: fastmmc.umc_rls(X, 3, init="kmeans", balance=0.5, **RUN),
    "landmarks": lambda X: fastmmc.umc_rls(
        X, 3, rank=9, landmarks="k-means++", **RUN, sizes="equal"
    ),
    "evolution": lambda X: fastmmc.evo_mmc(X, init="kmeans", **RUN),
    "prototypes": lambda X: fastmmc.o_lcvqe(X, 3, **RUN),
    "batch": lambda X: fastmmc.lcvqe(csr_array(X), 3, **RUN),
    "splits": lambda X: fastmmc.recursive_mmc(X, 3, **RUN),
}


@pytest.fixture
def entered(monkeypatch):
    """Threads that set warning filters, with who asked them to."""
    heard = []
    enter = warnings.catch_warnings.__enter__

    def listen(self):
        if threading.current_thread() is not threading.main_thread():
            heard.append(sys._getframe(1).f_code.co_filename)
        return enter(self)

    monkeypatch.setattr(warnings.catch_warnings, "__enter__", listen)
    return heard


@pytest.mark.filterwarnings("default::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_no_worker_thread_sets_warning_filters(call, two_groups, entered):
    call(two_groups)
    assert not entered


@pytest.mark.parametrize("name", ["far points", "normalised cut", "libsvm svr"])
def test_filters_are_as_before_and_other_warnings_are_heard(name, two_groups):
    n_told = 0

    def tell(progress):
        nonlocal n_told
        warnings.warn("mine", ConvergenceWarning, stacklevel=1)
        n_told += 1

    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        before = list(warnings.filters)
        for _ in range(10):
            CALLS[name](two_groups, callback=tell)
            assert warnings.filters == before
    assert sum("mine" in str(one.message) for one in heard) == n_told > 0


@pytest.fixture
def two_groups():
    rng = np.random.default_rng(0)
    return np.concatenate((rng.standard_normal((30, 3)), rng.standard_normal((30, 3)) + 4.0))
