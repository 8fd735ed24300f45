"""CPMMC on points in blocks: the weights of a sample, their bias and figures of all points.

The objective is a mean over the points, so that a sample tells it to within its sampling error.
"""

from dataclasses import replace

import numpy as np

from fastmmc.core.execution import rate_figures, show_progress
from fastmmc.data.blocks import make_blocks
from fastmmc.kernels.block_factor import SampleRun, sample_size


def search_in_blocks(call, control, solve_sample):
    """Return the result of :func:`cpmmc`, which ``solve_sample`` is, on points in blocks."""
    if not isinstance(call.init, str):
        raise ValueError("init: points in blocks are not started from labels; give a name")
    if call.kernel == "precomputed":
        raise ValueError("kernel='precomputed' needs the whole Gram matrix, and X is in blocks")
    blocks = make_blocks(call.X, n_jobs=call.n_jobs)
    n = blocks.shape[0]
    run = SampleRun(call, blocks, sample_size(2, 1))
    if run.is_whole:
        return run.of_all(solve_sample)
    with show_progress(control) as control:
        sample, given = run.draw(control)
        found = solve_sample(sample, **given)
        squared = found.objective - call.C * float(_losses(_margins(found.model, sample)).mean())
        mean = float(blocks.total(blocks.map(_sum, found.model))[0]) / n
        # The scores of all points are to balance, not those of the sample.
        excess = mean - float(np.clip(mean, -call.score_balance, call.score_balance))
        model = replace(found.model, intercept=found.model.intercept - excess)
        _, loss, n_inside, n_plus = blocks.total(blocks.map(_sum, model))
        objective = squared + call.C * float(loss) / n
        found = replace(
            found,
            labels=blocks.join(blocks.map(_label, model)),
            objective=objective,
            objectives=np.array([objective]),
            best_init=0,
            status=rate_figures(found.status, objective=objective),
            sizes=np.array([n - n_plus, n_plus]),
            model=model,
            dual_coef=None,
            support=None,
            intercept=found.intercept - excess,
            n_violated=int(n_inside),
        )
        return run.end(found, control)


def _margins(model, rows):
    return model.decision_function(rows)[:, 1]


def _losses(margins):
    return np.maximum(0.0, 1.0 - np.abs(margins))


def _sum(rows, model):
    """Return the sums of scores and losses, and how many points are inside the margin, and in 1."""
    margins = _margins(model, rows)
    inside = np.abs(margins) < 1.0
    return margins.sum(), _losses(margins).sum(), inside.sum(), (margins > 0).sum()


def _label(rows, model):
    return (_margins(model, rows) > 0).astype(np.int64)
