"""Slow twins of the cutting-plane family, written from the formulas."""

import itertools

import numpy as np


def sign_objective(X, w, b, C):
    """|w|^2 / 2 + C mean max(0, 1 - |f|)."""
    f = X @ w + b
    return 0.5 * w @ w + C * np.mean(np.maximum(0.0, 1.0 - np.abs(f)))


def winner_objective(X, W, C):
    """sum |w_p|^2 / 2 + C mean max(0, 1 - (best - second best))."""
    scores = np.sort(X @ W.T, axis=1)
    margins = scores[:, -1] - scores[:, -2] if len(W) > 1 else np.ones(len(X))
    return 0.5 * np.sum(W * W) + C * np.mean(np.maximum(0.0, 1.0 - margins))


def sign_violation(f, c):
    """How much slack the constraint of the points c asks for, at scores f."""
    return np.mean(c * (1.0 - np.abs(f)))


def winner_violation(scores, rivals):
    """The same for winners; -1 where the point does not belong to the constraint."""
    total = 0.0
    for f, rival in zip(scores, rivals, strict=True):
        best = np.argmax(f)
        if rival >= 0:
            total += 1.0 - (f[best] + (best == rival) - f[rival])
    return total / len(scores)


def worst_sign_violation(f):
    """The greatest of all 2^n constraints."""
    return max(sign_violation(f, np.array(c)) for c in itertools.product((0, 1), repeat=f.size))


def worst_winner_violation(scores):
    """The greatest of all (k + 1)^n constraints."""
    n, k = scores.shape
    choices = itertools.product(range(-1, k), repeat=n)
    return max(winner_violation(scores, rivals) for rivals in choices)


def sign_plane(X, labels, c):
    """(z, s, cbar) of a constraint at frozen labels."""
    signs = 2.0 * labels - 1.0
    return (c * signs) @ X / len(X), np.mean(c * signs), np.mean(c)


def winner_plane(X, labels, rivals, k):
    """(g, h) of a constraint at frozen winners; g is (k, d)."""
    g, h = np.zeros((k, X.shape[1])), 0.0
    for x, winner, rival in zip(X, labels, rivals, strict=True):
        if rival >= 0:
            g[winner] += x
            g[rival] -= x
            h += 1.0 - (winner == rival)
    return g / len(X), h / len(X)
