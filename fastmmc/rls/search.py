"""The search of labels on one hat matrix that a plan asks for."""

from dataclasses import replace

import numpy as np

from fastmmc.core.execution import OutOfTime, warn_user
from fastmmc.rls.bound import free_bound, risk_bound
from fastmmc.rls.claims import claim_searches
from fastmmc.rls.engine.coarse import mass_slack, mass_unit
from fastmmc.rls.known import search_overruling, search_with_known
from fastmmc.rls.multilevel import group_searches
from fastmmc.rls.other_sizes import warn_of_other_sizes
from fastmmc.rls.source import best_result


def search_labels(seed, factor, plan, control):
    """Run the restarts on one hat matrix and return the best as a result."""

    def search(plan, control):
        # Given labels are improved once.
        plan = plan if isinstance(plan.init, str) else replace(plan, n_init=1)
        return search_labels(seed, factor, plan, control)

    if plan.trust is not None and plan.k > 1:
        return search_overruling(search, plan, control)
    if plan.known is not None and isinstance(plan.init, str) and plan.k > 1:
        return search_with_known(search, factor, plan, control)
    is_grouped = plan.links is not None or plan.cells > 0 or plan.is_memetic
    make_search = (group_searches if is_grouped else claim_searches)(seed, factor, plan, control)
    result = best_result(
        factor,
        make_search,
        plan.n_starts,
        control,
        plan.k,
        plan.params,
        (lambda sizes: _bound(factor, sizes, plan, control)) if plan.bound else None,
        size_bounds=plan.rule.bounds,
    )
    if plan.links is not None:
        hard = plan.link_penalty is None
        result = judge_links(result, plan.links, plan.rule, plan.weights, plan.asked_sizes, hard)
    if plan.default_sizes and not (plan.free or plan.links) and result.converged:
        warn_of_other_sizes(factor, result.labels, plan.k)
    return result


def _bound(factor, sizes, plan, control):
    """Return a lower bound on the objective of labels of these sizes, None for want of time."""
    unit = mass_unit(plan.weights)
    lower, upper = plan.rule.bounds_at(sizes * unit)
    # Sizes of weighted points may be beyond.
    bounds = np.minimum(lower / unit, sizes), np.maximum(upper / unit, sizes)
    try:
        if plan.free:
            return free_bound(factor, plan.k, control.check_time)
        return risk_bound(factor, *bounds, control.check_time)
    except OutOfTime:
        warn_user(f"max_time={control.max_time:g} leaves no time for the bound")
        return None


def judge_links(result, links, rule, weights, asked_sizes, hard=True):
    """Return a result with links or weights; say where links or sizes could not be kept."""
    n, k, unit = result.labels.size, result.sizes.size, mass_unit(weights)
    sizes = np.bincount(result.labels, weights, k)
    too_far = np.maximum(rule.lower - sizes * unit, sizes * unit - rule.upper)
    too_far = too_far > mass_slack(unit, n)
    if too_far.any() and asked_sizes:
        h = np.flatnonzero(too_far)[0]
        raise ValueError(
            f"no labels were found that keep to the links, weights and sizes asked for: cluster "
            f"{h} has the size {sizes[h]:g}, which must be at least {rule.lower[h] / unit:g} and "
            f"at most {rule.upper[h] / unit:g}; raise balance or max_size, or give fewer links"
        )
    n_violations = links.n_violations(result.labels)
    if n_violations and hard:
        a, b = links.cannot[np.ptp(result.labels[links.cannot], axis=1) == 0][0]
        warn_user(
            f"{n_violations} of {len(links.cannot)} cannot-links are broken, such as that of rows "
            f"{a} and {b}: no labels that keep all were found; raise k, or remove links"
        )
    bounds = None
    if unit == 1:
        least, most = np.minimum(rule.lower, sizes), np.maximum(rule.upper, sizes)
        bounds = np.column_stack((least, most)).astype(np.int64)
    return replace(
        result,
        n_violations=n_violations,
        n_constraints=len(links.must) + len(links.cannot),
        size_bounds=bounds,
    )
