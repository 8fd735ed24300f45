"""Slow twins of the semidefinite programs and of the machines in them, as the formulas stand."""

from itertools import combinations

import cvxpy as cp
import numpy as np


def solve(objective, constraints):
    problem = cp.Problem(objective, constraints)
    problem.solve(solver="CLARABEL")
    assert problem.status == "optimal"
    return problem.value


def root(A):
    """Some F with A = F^T F."""
    values, vectors = np.linalg.eigh(A)
    return (vectors * np.sqrt(np.maximum(values, 0.0))).T


def svm_primal(K, y, C):
    """min |w|^2 + 2 C sum max(0, 1 - y f), f = Phi w."""
    w = cp.Variable(len(K))
    losses = cp.pos(1 - cp.multiply(y, root(K).T @ w))
    return solve(cp.Minimize(cp.sum_squares(w) + 2 * C * cp.sum(losses)), [])


def svm_dual(K, y, C):
    """max 2 e^T a - a^T (K o y y^T) a, 0 <= a <= C."""
    a = cp.Variable(len(K))
    value = 2 * cp.sum(a) - cp.sum_squares(root(K) @ cp.multiply(y, a))
    return solve(cp.Maximize(value), [a >= 0, a <= C])


def margin_matrix(K, M, C, n):
    """The left-hand side of the constraint, mu, nu and delta."""
    mu, nu, delta = cp.Variable(n), cp.Variable(n), cp.Variable()
    edge = cp.reshape(np.ones(n) + mu - nu, (n, 1), order="C")
    corner = cp.reshape(delta - 2 * C * cp.sum(nu), (1, 1), order="C")
    return cp.bmat([[cp.multiply(M, K), edge], [edge.T, corner]]), mu, nu, delta


def svm_as_program(K, y, C):
    """The inner value of MMC for a fixed M = y y^T."""
    block, mu, nu, delta = margin_matrix(K, np.outer(y, y), C, len(K))
    return solve(cp.Minimize(delta), [block >> 0, mu >= 0, nu >= 0])


def mmc(K, C, largest, least=0.0):
    """Value and M of the relaxed program."""
    n = len(K)
    M = cp.Variable((n, n), symmetric=True)
    block, mu, nu, delta = margin_matrix(K, M, C, n)
    sums = M @ np.ones(n)
    constraints = [block >> 0, mu >= 0, nu >= 0, cp.diag(M) == 1, M >> 0]
    constraints += [sums <= largest, sums >= -largest, cp.sum(M) >= least**2]
    return solve(cp.Minimize(delta), constraints), M.value


def gmmc(K, C_delta, C_e):
    """Value of the program over (z, lambda): n + 1 rows, K with its ridge."""
    n = len(K)
    Pm = np.column_stack((np.eye(n), np.ones(n)))
    e0 = np.append(np.ones(n), 0.0)
    fixed = Pm.T @ np.linalg.inv(K) @ Pm + C_e * np.outer(e0, e0)
    gamma = cp.Variable(n)
    A = (fixed + fixed.T) / 2 - cp.diag(cp.hstack([gamma, np.zeros(1)]))
    return solve(cp.Maximize(cp.sum(gamma)), [A >> 0, gamma >= 0, gamma <= C_delta])


def gmmc_cost(K, z, lam, C_delta, C_e):
    """The soft objective of any scores z with bias -lam."""
    f = z + lam
    loss = np.maximum(0.0, 1.0 - z**2)
    return f @ np.linalg.solve(K, f) + C_e * z.sum() ** 2 + C_delta * loss.sum()


def fixed_signs(K, y, C_e):
    """min over z and lambda where y z >= 1."""
    z, lam = cp.Variable(len(K)), cp.Variable()
    norm = cp.sum_squares(root(np.linalg.inv(K)) @ (z + lam))
    cost = norm + C_e * cp.sum(z) ** 2
    return solve(cp.Minimize(cost), [cp.multiply(y, z) >= 1])


def labellings(n, lower, upper):
    """Labels -1 and 1 with so many positive ones, each partition once if the bounds allow both."""
    for m in range(lower, upper + 1):
        for chosen in combinations(range(n), m):
            y = -np.ones(n)
            y[list(chosen)] = 1.0
            if y[0] < 0 or not lower <= n - m <= upper:
                yield y
