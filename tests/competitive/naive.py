"""Slow twins of competitive learning, written from the paper's listings (section and algorithm)."""

import numpy as np


def distances(x, centers):
    return np.array([np.sum((x - c) ** 2) for c in centers])


def partners(pairs, i):
    return [b if a == i else a for a, b in pairs if i in (a, b)]


class Learner:
    """Prototypes, their wins, and who was presented already."""

    def __init__(self, centers, alpha, beta=0.0, robbins_monro=False):
        self.centers = [np.array(c, dtype=float) for c in centers]
        self.wins = np.ones(len(centers))
        self.alpha, self.beta, self.robbins_monro = alpha, beta, robbins_monro

    def slowdown(self, j):
        return 1 + self.alpha * (self.wins[j] - 1) if self.robbins_monro else 1.0

    def learn(self, j, x):
        self.centers[j] += self.alpha / self.slowdown(j) * (x - self.centers[j])
        self.wins[j] += 1

    def unlearn(self, j, x):
        self.centers[j] -= self.beta / self.slowdown(j) * (x - self.centers[j])

    def gamma(self):
        return self.wins / self.wins.sum()


def wta(X, order, learner):
    for i in order:
        learner.learn(np.argmin(distances(X[i], learner.centers)), X[i])


def rpcl(X, order, learner):
    """FSCL where beta is 0."""
    for i in order:
        cost = learner.gamma() * distances(X[i], learner.centers)
        j = np.argmin(cost)
        cost[j] = np.inf
        if len(cost) > 1:
            learner.unlearn(np.argmin(cost), X[i])
        learner.learn(j, X[i])


def c_rpcl(X, order, learner, cannot, must=(), seen=None):
    """Algorithm 2; with must-links the winners of most of their partners come first."""
    k = len(learner.centers)
    for i in order:
        counts = [o for o in partners(cannot, i) if seen is None or o in seen]
        together = [o for o in partners(must, i) if seen is None or o in seen]
        gamma = learner.gamma()
        cost = gamma * distances(X[i], learner.centers)
        j = np.argmin(cost)
        forbidden = {int(np.argmin(gamma * distances(X[o], learner.centers))) for o in counts}
        votes = np.zeros(k)
        for o in together:
            votes[np.argmin(gamma * distances(X[o], learner.centers))] += 1
        allowed = [m for m in range(k) if m not in forbidden] or list(range(k))
        allowed = [m for m in allowed if votes[m] == max(votes[allowed])]
        if j in allowed:
            others = [m for m in range(k) if m != j]
            if others:
                learner.unlearn(min(others, key=lambda m: (cost[m], m)), X[i])
            learner.learn(j, X[i])
        else:
            n = min(allowed, key=lambda m: (cost[m], m))
            learner.unlearn(j, X[i])
            learner.learn(n, X[i])
        if seen is not None:
            seen.add(i)


def o_lcvqe(X, order, learner, cannot, must=(), seen=None, once=False):
    """Algorithm 1. Returns how often leaving a cannot-link violated was the cheaper choice."""
    k = len(learner.centers)
    n_left = 0
    for i in order:
        j = np.argmin(distances(X[i], learner.centers))
        learned = set()

        def learn(m, i=i, learned=learned):
            if not (once and m in learned):
                learner.learn(m, X[i])
                learned.add(m)

        together = [o for o in partners(must, i) if seen is None or o in seen]
        apart = [o for o in partners(cannot, i) if seen is None or o in seen]
        if not together and not apart:
            learn(j)
        for o in together:
            D_i, D_o = distances(X[i], learner.centers), distances(X[o], learner.centers)
            r = np.argmin(D_o)
            if r == j:
                learn(j)
                continue
            keep = 0.5 * (D_i[j] + D_o[r]) + 0.25 * (D_i[r] + D_o[j])
            choice = np.argmin([keep, 0.5 * (D_i[j] + D_o[j]), 0.5 * (D_i[r] + D_o[r])])
            if choice == 0:
                learn(j)
                learner.learn(j, X[o])
                learn(r)
            elif choice == 1:
                learn(j)
                learner.learn(j, X[o])
                learner.unlearn(r, X[o])
            else:
                learn(r)
        for o in apart:
            D_i, D_o = distances(X[i], learner.centers), distances(X[o], learner.centers)
            if np.argmin(D_o) != j or k == 1:
                learn(j)
                continue
            f, D_f, D_c = (o, D_o, D_i) if D_o[j] > D_i[j] else (i, D_i, D_o)
            others = [m for m in range(k) if m != j]
            n = min(others, key=lambda m: (D_f[m], m))
            leave = 0.5 * (D_i[j] + D_o[j] + D_f[n])
            move = 0.5 * (D_c[j] + D_f[n])
            if leave < move:
                n_left += 1
                learn(j)
                learner.learn(n, X[f])
            elif f == o:
                learner.learn(n, X[o])
                learner.unlearn(j, X[o])
                learn(j)
            else:
                learn(n)
        if seen is not None:
            seen.add(i)
    return n_left


def second(D, j):
    return min((m for m in range(len(D)) if m != j), key=lambda m: (D[m], m))


def lcvqe_labels(X, centers, must, cannot):
    D = np.array([distances(x, centers) for x in X])
    labels = D.argmin(axis=1)
    for a, b in must:
        j, n = labels[a], labels[b]
        if j != n:
            keep = 0.5 * (D[a, j] + D[b, n]) + 0.25 * (D[a, n] + D[b, j])
            both = [0.5 * (D[a, m] + D[b, m]) for m in (j, n)]
            if min(both) < keep:
                labels[a] = labels[b] = (j, n)[int(np.argmin(both))]
    for a, b in cannot:
        j = labels[a]
        if labels[b] == j and len(centers) > 1:
            f, c = (b, a) if D[b, j] > D[a, j] else (a, b)
            v = second(D[f], j)
            leave = 0.5 * (D[a, j] + D[b, j] + D[f, v])
            if 0.5 * (D[c, j] + D[f, v]) <= leave:
                labels[f] = v
    return labels


def lcvqe_objective(X, centers, labels, must, cannot):
    """J of (A.1), the violated constraints taken from the labels."""
    D = np.array([distances(x, centers) for x in X])
    total = D[np.arange(len(X)), labels].sum()
    for a, b in must:
        if labels[a] != labels[b]:
            total += 0.5 * (D[b, labels[a]] + D[a, labels[b]])
    for a, b in cannot:
        j = labels[a]
        if labels[b] == j and len(centers) > 1:
            f = b if D[b, j] > D[a, j] else a
            total += D[f, second(D[f], j)]
    return 0.5 * total


def lcvqe_centers(X, centers, labels, must, cannot):
    """(A.6), the violated constraints taken from the labels."""
    D = np.array([distances(x, centers) for x in X])
    new = []
    for m in range(len(centers)):
        members = [(1.0, X[i]) for i in np.flatnonzero(labels == m)]
        for a, b in must:
            if labels[a] != labels[b]:
                members += [(0.5, X[o]) for o, g in ((b, a), (a, b)) if labels[g] == m]
        for a, b in cannot:
            j = labels[a]
            if labels[b] == j and len(centers) > 1:
                f = b if D[b, j] > D[a, j] else a
                members += [(1.0, X[f])] if second(D[f], j) == m else []
        weight = sum(w for w, _ in members)
        new.append(sum(w * x for w, x in members) / weight if weight else centers[m])
    return np.array(new)


def cvqe_labels(X, centers, must, cannot):
    k = len(centers)
    D = np.array([distances(x, centers) for x in X])
    between = np.array([distances(c, centers) for c in centers])
    labels = D.argmin(axis=1)
    for kind, pairs in (("must", must), ("cannot", cannot)):
        for a, b in pairs:
            if (labels[a] != labels[b]) != (kind == "must"):
                continue
            best = np.inf
            for p in range(k):
                for q in range(k):
                    cost = 0.5 * (D[a, p] + D[b, q])
                    if kind == "must" and p != q:
                        cost += 0.5 * between[p, q]
                    if kind == "cannot" and p == q and k > 1:
                        cost += 0.5 * between[p, second(between[p], p)]
                    if cost < best:
                        best, labels[a], labels[b] = cost, p, q
    return labels


def cvqe_centers(X, centers, labels, must, cannot):
    between = np.array([distances(c, centers) for c in centers])
    new = []
    for m in range(len(centers)):
        members = list(X[labels == m])
        for a, b in must:
            if labels[a] != labels[b] and labels[a] == m:
                members.append(centers[labels[b]])
        for a, b in cannot:
            if labels[a] == labels[b] == m and len(centers) > 1:
                members.append(centers[second(between[m], m)])
        new.append(np.mean(members, axis=0) if members else centers[m])
    return np.array(new)


def cvqe_objective(X, centers, labels, must, cannot):
    between = np.array([distances(c, centers) for c in centers])
    total = sum(np.sum((x - centers[j]) ** 2) for x, j in zip(X, labels, strict=True))
    for a, b in must:
        total += between[labels[a], labels[b]]
    for a, b in cannot:
        if labels[a] == labels[b] and len(centers) > 1:
            total += between[labels[a], second(between[labels[a]], labels[a])]
    return 0.5 * total
