"""k-means, LIBSVM and LIBLINEAR as they are called from worker threads."""

import numpy as np

from fastmmc.core.threads import run_to_end
from fastmmc.kernels.kmeans import begin_choice, k_means, scale_rows
from fastmmc.kernels.libsvm import LINEAR_HINGE, train_kernel_machine, train_linear_machine


def test_means():
    scaled, exponent = scale_rows(np.array([[0.0], [12.0]]))
    assert scaled.tolist() == [[0.0], [12.0]] and exponent == 0
    scaled, exponent = scale_rows(np.array([[0.0], [12.0 * 2.0**900]]))
    assert scaled.tolist() == [[0.0], [0.75]] and exponent == 904
    choice = begin_choice(np.array([[0.0], [0.0], [5.0]]), 2, 0)
    assert max(run_to_end(choice.choosing())) == 2
    labels, centers = k_means(np.array([[0.0], [1.0], [8.0]]), 2, 0)
    assert labels.tolist() in ([0, 0, 1], [1, 1, 0]) and sorted(centers.ravel()) == [0.5, 8.0]


def test_machines():
    y = np.array([-1.0, 1.0])
    u, _, _, ended = train_kernel_machine(np.eye(2), y, 10.0, np.ones(2), True, 0.0, 1e-6, 100)
    assert u.tolist() == [-1.0, 1.0] and ended
    Z, classes = y[:, None], np.array([0, 1])
    W, _, _, ended = train_linear_machine(
        Z, classes, 9.0, np.ones(2), LINEAR_HINGE, 0.0, 1e-4, 1000, 0
    )
    assert np.round(W, 3).tolist() == [[1.0]] and ended
