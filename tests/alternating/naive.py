"""Slow twins of the alternating family, written from the formulas."""

import numpy as np


def margin_loss(y, f, loss, epsilon=0.0):
    """Loss of every point."""
    if loss == "hinge":
        return np.maximum(0.0, 1.0 - y * f)
    if loss == "square":
        return (f - y) ** 2
    return np.maximum(0.0, np.abs(f - y) - epsilon)


def best_bias(o, y, s, loss, epsilon=0.0, low=-np.inf, high=np.inf):
    """Least sum of s loss(y, o + b) over low <= b <= high, and its b: at a kink or an end."""
    if loss == "square":
        candidates = np.array([np.sum(s * (y - o)) / np.sum(s)])
    else:
        candidates = np.concatenate((y - o - epsilon, y - o + epsilon))
    candidates = np.clip(candidates, low, high)
    values = (s * margin_loss(y, o + candidates[:, None], loss, epsilon)).sum(axis=1)
    return values.min(), candidates[np.argmin(values)]


def bias_search(o, s, lower, upper, loss, epsilon=0.0, tied=False):
    """Least loss over all labels whose weight of +1 is within bounds, and over the bias."""
    best = np.inf
    for code in range(2 ** len(o)):
        y = np.where(code >> np.arange(len(o)) & 1, 1.0, -1.0)
        if not lower - 1e-9 <= np.sum(s[y > 0]) <= upper + 1e-9:
            continue
        low, high = -np.inf, np.inf
        if tied:
            low, high = np.max(-o[y > 0], initial=-np.inf), np.min(-o[y < 0], initial=np.inf)
            if low >= high:
                continue
        best = min(best, best_bias(o, y, s, loss, epsilon, low, high)[0])
    return best


def merge_near(points, weights, most):
    """Cut the cells that scatter at least the mean of all in two, until there are ``most``."""
    cells = [np.arange(len(points))]
    while len(cells) < most:
        squares = [_squares(points[c], weights[c]) for c in cells]
        scatter = np.array([s.sum() for s in squares])
        worst = np.argsort(-scatter, kind="stable")[: most - len(cells)]
        new = []
        for i in sorted(w for w in worst if scatter[w] >= scatter.mean()):
            own, axis = cells[i], squares[i].argmax()
            above = points[own, axis] > np.average(points[own, axis], weights=weights[own])
            if above.any() and not above.all():
                new.append(own[above])
                cells[i] = own[~above]
        if not new:
            break
        cells += new
    numbers = np.empty(len(points), dtype=int)
    for i, own in enumerate(cells):
        numbers[own] = i
    return numbers


def _squares(points, weights):
    """Weighted sum of squares of every column about its mean."""
    return weights @ (points - np.average(points, axis=0, weights=weights)) ** 2
