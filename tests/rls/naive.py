"""Slow twins of the RLS family, written from the papers' formulas: no caches, all from scratch."""

import numpy as np


def hat_matrix(K, lam):
    return K @ np.linalg.inv(K + lam * np.eye(len(K)))


def codes(labels, k):
    """P: +1 in the own cluster's column, -1 elsewhere."""
    return np.where(labels[:, None] == np.arange(k), 1.0, -1.0)


def risk(R, labels, k):
    """Q = sum_h (n - p_h^T R p_h)."""
    P = codes(labels, k)
    return sum(len(R) - P[:, h] @ R @ P[:, h] for h in range(k))


def risk_by_fitting(K, lam, labels, k):
    """Q as the minimum of sum_h ||p_h - K a||^2 + lam a^T K a, term by term."""
    total = 0.0
    for p in codes(labels, k).T:
        a = np.linalg.solve(K + lam * np.eye(len(K)), p)
        total += np.sum((p - K @ a) ** 2) + lam * a @ K @ a
    return total


def shifts(R, labels, k):
    """(n, k) changes of Q if point j moved to cluster d, over 8."""
    E = (labels[:, None] == np.arange(k)).astype(float)
    U = R @ E
    own = U[np.arange(len(R)), labels]
    change = own[:, None] - U - np.diag(R)[:, None]
    change[np.arange(len(R)), labels] = 0.0
    return change


def sizes_of(labels, k, masses):
    """What the points of each cluster count for; None: 1 each."""
    return np.bincount(labels, masses, k).astype(int)


def shake(R, labels, k, n_rounds=21, start_round=0, targets=None, min_size=1, masses=None):
    """Algorithm 3 with the size rule of equation (11)."""
    labels = labels.copy()
    masses = np.ones(len(R), dtype=int) if masses is None else masses
    n = masses.sum()
    targets = [n / k] * k if targets is None else targets
    for i in range(start_round, n_rounds):
        quota = [min(n, int(np.floor(m + m / 2**i + 1e-9))) for m in targets]
        floor = min(min_size, (n - max(quota)) // max(1, k - 1))
        for d in range(k):
            wanted = quota[d] - sizes_of(labels, k, masses)[d]
            while wanted > 0:
                cost = shifts(R, labels, k)[:, d]
                counts = sizes_of(labels, k, masses)
                cost[(labels == d) | (counts[labels] - masses < floor)] = np.inf
                j = np.argmin(cost)
                if np.isinf(cost[j]) or masses[j] > 2 * wanted:
                    break
                labels[j] = d
                wanted -= masses[j]
    return labels


def steepest(R, labels, k, min_size=1, max_size=np.inf, masses=None):
    """Algorithm 2: the best single move until none helps."""
    labels = labels.copy()
    masses = np.ones(len(R), dtype=int) if masses is None else masses
    while True:
        change = shifts(R, labels, k)
        counts = sizes_of(labels, k, masses)
        change[counts[labels] - masses < min_size] = 0.0
        change[counts + masses[:, None] > max_size] = 0.0
        j, d = np.unravel_index(np.argmin(change), change.shape)
        if change[j, d] > -1e-12:
            return labels
        labels[j] = d


def stochastic(R, labels, k, order, min_size=1):
    """Algorithm 1: each point in turn to its best cluster until none changes."""
    labels = labels.copy()
    changed = True
    while changed:
        changed = False
        for j in order:
            if np.sum(labels == labels[j]) <= min_size:
                continue
            change = shifts(R, labels, k)[j]
            d = np.argmin(change)
            if change[d] < -1e-12:
                labels[j] = d
                changed = True
    return labels


def swap_change(R, labels, k, i, j):
    """Change of Q if points i and j exchanged their clusters."""
    swapped = labels.copy()
    swapped[i], swapped[j] = labels[j], labels[i]
    return risk(R, swapped, k) - risk(R, labels, k)


def leave_one_out_mse(K, lam, labels, k):
    """Refit without each point in turn."""
    P = codes(labels, k)
    n = len(K)
    errors = []
    for j in range(n):
        rest = np.arange(n) != j
        coef = np.linalg.solve(K[np.ix_(rest, rest)] + lam * np.eye(n - 1), P[rest])
        errors.append((P[j] - K[j, rest] @ coef) ** 2)
    return float(np.mean(errors))


def free_cost(R, labels, k):
    """sum_h (1 - e_h^T R e_h / s_h); an empty cluster adds 1."""
    total = 0.0
    for h in range(k):
        e = (labels == h).astype(float)
        total += 1.0 - (e @ R @ e / e.sum() if e.any() else 0.0)
    return total


def free_descent(R, labels, k, lower, upper, tol=1e-12):
    """Each point in turn to the cluster that lowers the cost most, until none has moved."""
    masses, no_links = np.ones(len(R), dtype=int), np.zeros((len(R), len(R)))
    return linked_descent(R, masses, labels, k, no_links, True, lower, upper, tol)


def group_swaps(G, masses, labels, k, free, lower, upper, tol=1e-12):
    """Every group in turn swaps with the partner that lowers the cost most, until none does.

    Sizes stay within the bounds, or as they are.
    """
    labels, n, i, clean = labels.copy(), len(G), 0, 0

    def cost(labels):
        return linked_cost(G, masses, labels, k, np.zeros_like(G), free)

    while clean < n:
        before, best, partner = cost(labels), -tol, -1
        for j in np.flatnonzero(labels != labels[i]):
            new = labels.copy()
            new[[i, j]] = labels[[j, i]]
            ends = labels[[i, j]]
            is_open = within_bounds(new, k, masses, lower, upper, ends)
            if masses[i] != masses[j] and not is_open:
                continue
            change = cost(new) - before
            if change < best - 1e-13:
                best, partner = change, j
        clean += 1
        if partner >= 0:
            labels[[i, partner]] = labels[[partner, i]]
            clean = 0
        i = (i + 1) % n
    return labels


def cheapest_merges(R, k):
    """Merge the pair of clusters that adds least to the cost until k are left."""
    labels = np.arange(len(R))
    while labels.max() >= k:
        m = labels.max() + 1
        costs = {}
        for a in range(m):
            for b in range(a):
                costs[b, a] = free_cost(R, np.where(labels == a, b, labels), m)
        b, a = min(costs, key=costs.get)
        labels = np.unique(np.where(labels == a, b, labels), return_inverse=True)[1]
    return labels


def classifier_scores(X, known, k, lam, sigma):
    """(n, k) predictions of kernel ridge regression on the points whose labels are known."""
    told = known >= 0
    K = np.exp(-((X[:, None] - X[told]) ** 2).sum(axis=2) / sigma**2)
    return K @ np.linalg.inv(K[told] + lam * np.eye(told.sum())) @ codes(known[told], k)


def leave_one_out_scores(K, lam, labels, k):
    """(n, k): each point's scores under the model that is fitted to the others."""
    n, P = len(K), codes(labels, k)
    scores = np.zeros((n, k))
    for j in range(n):
        rest = np.delete(np.arange(n), j)
        A = np.linalg.solve(K[np.ix_(rest, rest)] + lam * np.eye(n - 1), P[rest])
        scores[j] = K[j, rest] @ A
    return scores


def outlier_scores(K, lam, sample, weights):
    """How much of each point's prediction by the sample and itself is its own."""
    scores = np.empty(len(K))
    for j in range(len(K)):
        joined = np.append(np.setdiff1d(sample, j), j)
        roots = np.sqrt(weights[joined])
        row = hat_matrix(K[np.ix_(joined, joined)] * np.outer(roots, roots), lam / 5)[-1]
        # The shares of each of so many copies.
        copies = np.maximum(weights[joined], 1.0)
        shares = row / np.sqrt(copies * copies[-1])
        others = np.sum((copies * shares**4)[:-1]) + (copies[-1] - 1.0) * shares[-1] ** 4
        scores[j] = shares[-1] ** 2 / (shares[-1] ** 2 + np.sqrt(others))
    return scores


def soften(scores, sharpness):
    weights = np.exp(sharpness * (scores - scores.max(axis=1, keepdims=True)))
    return weights / weights.sum(axis=1, keepdims=True)


def sharpness(scores, labels):
    """The b at which softmax(b scores) is as sure as the scores are right, by bisection."""
    n, k = scores.shape
    E = (labels[:, None] == np.arange(k)) - 1 / k
    S = scores - scores.mean(axis=1, keepdims=True)
    cosine = (E * S).sum() / np.sqrt((E**2).sum() * (S**2).sum())
    low, high = 0.0, 1e6
    for _ in range(100):
        middle = (low + high) / 2
        sure = ((soften(scores, middle) ** 2).sum(axis=1).mean() - 1 / k) / (1 - 1 / k)
        low, high = (middle, high) if sure < cosine**2 else (low, middle)
    return low


def share_with_own(p, own):
    """Pool the label's probability with the largest others until none is above their mean."""
    p = p.copy()
    pool = [own]
    for h in sorted(np.delete(np.arange(p.size), own), key=lambda h: -p[h]):
        if p[h] <= p[pool].mean():
            break
        pool.append(h)
    p[pool] = p[pool].mean()
    return p


def hat_distances(R):
    """Return 1 - R_ij / sqrt(R_ii R_jj), infinite on the diagonal."""
    n = len(R)
    return np.array(
        [
            [np.inf if i == j else 1 - R[i, j] / np.sqrt(R[i, i] * R[j, j]) for j in range(n)]
            for i in range(n)
        ]
    )


def neighbour_width(X, rank, metric):
    """Return the median distance of a point to its neighbour of this rank."""
    found = []
    for x in X:
        if metric == "sqeuclidean":
            distances = np.sqrt(np.sum((X - x) ** 2, axis=1))
        else:
            distances = np.sum(np.abs(X - x), axis=1)
        found.append(np.sort(distances)[rank])
    return np.sqrt(np.median(np.square(found))) if metric == "sqeuclidean" else np.median(found)


def linked_cost(G, masses, labels, k, C, free):
    """The cost of groups with the prices C of pairs that are together."""
    E = (labels[:, None] == np.arange(k)).astype(float)
    within, sizes = np.einsum("gh,gi,ih->h", E, G, E), E.T @ masses
    price = np.sum(C * (E @ E.T)) / 2
    return (np.sum(1 - within / np.maximum(sizes, 1)) if free else -within.sum()) + price


def linked_chain(labels, C, i, d):
    """The groups that change sides with group i where it goes to cluster d, and so on."""
    a, chain = labels[i], [i]
    for g in chain:
        for j in np.flatnonzero(C[g]):
            if j not in chain and labels[j] in (a, d) and labels[j] != labels[g]:
                chain.append(j)
    return chain


def within_bounds(labels, k, masses, lower, upper, clusters):
    sizes = sizes_of(labels, k, masses)[clusters]
    return (sizes >= lower[clusters]).all() and (sizes <= upper[clusters]).all()


def linked_descent(G, masses, labels, k, C, free, lower, upper, tol=1e-12):
    """Each group in turn to its best cluster, or else the first chain that helps, until none does.

    A single group may leave a size that is too small as it is, or join one that is too large.
    """
    labels, clean, i = labels.copy(), 0, 0

    def cost(new):
        return linked_cost(G, masses, new, k, C, free)

    while clean < len(labels):
        clean += 1
        a, here, options = labels[i], cost(labels), []
        sizes = sizes_of(labels, k, masses)
        for h in range(k):
            new = labels.copy()
            new[i] = h
            if h != a and sizes[a] - masses[i] >= lower[a] and sizes[h] + masses[i] <= upper[h]:
                options.append((cost(new) - here, h))
        best = min(options, default=(0.0, a))
        if best[0] < -tol:
            labels[i], clean = best[1], 0
        else:
            for h in np.unique(labels[np.flatnonzero(C[i])]):
                chain = linked_chain(labels, C, i, h) if h != a else []
                new = labels.copy()
                new[chain] = np.where(labels[chain] == a, h, a)
                plain = linked_cost(G, masses, new, k, 0 * C, free)
                is_better = plain < linked_cost(G, masses, labels, k, 0 * C, free) - tol
                if chain and is_better and within_bounds(new, k, masses, lower, upper, [a, h]):
                    labels, clean = new, 0
                    break
        i = (i + 1) % len(labels)
    return labels


def part_pairs(G, masses, labels, k, C, free, most):
    """Tabu search: the group in a pair that is together, and the cluster, of the least price."""
    labels, closed = labels.copy(), np.zeros((len(labels), k), dtype=int)
    best, step = (np.inf, labels.copy()), 0
    while True:
        near = np.array([[C[i, labels == h].sum() for h in range(k)] for i in range(len(labels))])
        own = near[np.arange(len(labels)), labels]
        price = own.sum() / 2
        best = min(best, (price, labels.copy()), key=lambda one: one[0])
        if price == 0 or step == most:
            return best
        options = []
        for i in np.flatnonzero(own):
            for h in range(k):
                if h == labels[i] or closed[i, h] > step:
                    continue
                new = labels.copy()
                new[i] = h
                change = linked_cost(G, masses, new, k, C, free)
                options.append((round(near[i, h] - own[i], 9), change, i, h))
        step += 1
        if options:
            _, _, i, h = min(options)
            closed[i, labels[i]] = step + 1 + step % 7 + 6 * np.count_nonzero(own) // 10
            labels[i] = h


def seed_clusters(R, masses, first, draws):
    """k-means++ in the metric of R: of the seeds that are tried the one that leaves least."""

    def distances(i):
        apart = np.diag(R) / masses**2 + R[i, i] / masses[i] ** 2 - 2 * R[i] / masses / masses[i]
        return masses * apart

    labels, nearest = np.zeros(len(R), dtype=int), distances(first)
    for h, row in enumerate(draws, 1):
        total = np.cumsum(nearest)
        tried = [np.flatnonzero(total > draw * total[-1])[0] for draw in row]
        chosen = min((np.minimum(nearest, distances(i)) for i in tried), key=np.sum)
        labels[chosen < nearest] = h
        nearest = chosen
    return labels


def fit_sizes_by_offers(labels, scores, lower, upper, movable, masses):
    """Rounds of offers: clusters that are too large give, then those too small take.

    Each point offers itself to the cluster it fits best of those where one of both sizes comes
    nearer to its bounds and none goes farther from them, as long as that is so. Those that lose
    least for their mass come first, until as many of a cluster were tried as it has too many.
    """
    labels, k = labels.copy(), len(lower)

    def off(labels):
        sizes = sizes_of(labels, k, masses)
        return np.maximum(0, np.maximum(sizes - upper, lower - sizes))

    def helps(i, h):
        change = off(np.where(np.arange(len(labels)) == i, h, labels)) - off(labels)
        return (change <= 0).all() and (change < 0).any()

    for bounds, sign in ((upper, 1), (lower, -1)):
        wish = {}
        while True:
            sizes = sizes_of(labels, k, masses)
            if not (sign * sizes > sign * bounds).any():
                break
            moves = []
            for i in np.flatnonzero(movable):
                goals = [h for h in range(k) if sizes[h] < bounds[h] and helps(i, h)]
                if i in wish and helps(i, wish[i]):
                    goals = [wish[i]]
                if goals and sizes[labels[i]] > bounds[labels[i]]:
                    wish[i] = to = max(goals, key=lambda h: (scores[h, i], -h))
                    moves.append(((scores[labels[i], i] - scores[to, i]) / masses[i], i, to))
            if not moves:
                break
            excess = sizes - bounds
            for _, i, to in sorted(moves):
                own = labels[i]
                if excess[own] > 0 and helps(i, to):
                    labels[i] = to
                excess[own] -= masses[i]
    return labels


def move_groups(G, masses, labels, k, C, free, lower, upper, parting):
    """Moves that part pairs, or that bring sizes nearer to the bounds and join no pair.

    Of those that each group has the cheapest for its mass counts, and of these the cheapest eighth.
    """
    labels = labels.copy()

    def off(labels):
        sizes = sizes_of(labels, k, masses)
        return np.maximum(0, np.maximum(sizes - upper, lower - sizes)).sum()

    def moved(i, h):
        new = labels.copy()
        new[i] = h
        return new

    def helps(i, h):
        saved = C[i, labels == labels[i]].sum() - C[i, labels == h].sum()
        if parting:
            return saved > 0
        return saved >= 0 and off(moved(i, h)) < off(labels)

    def cost(labels):
        return linked_cost(G, masses, labels, k, C, free)

    while True:
        options = {}
        for i in range(len(labels)):
            changes = [
                ((cost(moved(i, h)) - cost(labels)) / masses[i], i, h)
                for h in range(k)
                if h != labels[i] and helps(i, h)
            ]
            if changes:
                options[i] = min(changes)
        if not options:
            return labels
        for _, i, h in sorted(options.values())[: 1 + len(options) // 8]:
            if helps(i, h):
                labels[i] = h


def genie_order(first, second, most_gini):
    """Edges of a spanning tree in the order in which Genie merges along them."""
    clusters = [{i} for i in range(len(first) + 1)]
    left = list(range(len(first)))
    order = []
    while left:
        sizes = np.array([len(c) for c in clusters])
        edges = zip(first, second, strict=True)
        ends = [[c for c in clusters if i in c or j in c] for i, j in edges]
        gini = np.abs(sizes[:, None] - sizes).sum() / 2 / (len(sizes) - 1) / sizes.sum()
        small = [e for e in left if sizes.min() in map(len, ends[e])]
        edge = min(small if gini > most_gini else left)
        left.remove(edge)
        order.append(edge)
        clusters = [c for c in clusters if c not in ends[edge]] + [set.union(*ends[edge])]
    return np.array(order)
