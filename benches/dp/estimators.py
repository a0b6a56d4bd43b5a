"""Other people's private k-means, written again from their papers, for rows in the box [-1, 1]^d.

Each estimator takes rows, k, a Budget and a generator, and returns k centres. A neighbour has one row more or less. What the papers hide by
replacement of a row costs them half as much here.
"""

import math
from dataclasses import dataclass

import numpy as np
from sklearn.cluster import KMeans


@dataclass
class Budget:
    epsilon: float
    delta: float
    rho: float  # zCDP that gives (epsilon, delta), by the product's accountant


@dataclass
class Public:
    """What a method may know without paying for it."""

    server: np.ndarray | None = None  # rows that the server has (FedDP-KMeans only)
    radius: float | None = None  # farthest that a row lies from the middle of the box; the half diagonal if nothing is known


def squares(rows, centres):
    """Squared distances of all rows to all centres."""
    return np.maximum((rows**2).sum(1)[:, None] - 2 * rows @ centres.T + (centres**2).sum(1), 0)


def objective(rows, centres):
    return float(squares(rows, centres).min(1).sum())


def fuzzy_objective(rows, centres):
    """That of fuzzy c-means at m = 2."""
    return float((1 / (1 / np.maximum(squares(rows, centres), 1e-300)).sum(1)).sum())


def gauss(rng, shape, sensitivity, rho):
    """Noise of rho-zCDP; none at an infinite rho."""
    return rng.normal(0, sensitivity / math.sqrt(2 * rho), shape)


def sums(rows, owner, k):
    """Counts and sums of the groups. Rows of owner k are in none."""
    counts = np.bincount(owner, minlength=k + 1)[:k].astype(float)
    return counts, np.stack([np.bincount(owner, column, minlength=k + 1)[:k] for column in rows.T], 1)


def analytic_sigma(epsilon, delta):
    """Deviation of the Gaussian mechanism of sensitivity 1 at (epsilon, delta) (Balle & Wang 2018)."""
    phi = lambda x: math.erfc(-x / math.sqrt(2)) / 2

    def excess(sigma):
        near, far = 1 / (2 * sigma) - epsilon * sigma, -1 / (2 * sigma) - epsilon * sigma
        return phi(near) - (math.exp(epsilon) * phi(far) if epsilon < 700 else 0) - delta

    low, high = 1e-9, 1e9
    for _ in range(300):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return high


def apart(rng, k, d, tries=100):
    """Uniform centres in the box that keep as far from each other and from its sides as can be had by halving the distance."""
    gap = 1.0
    while True:
        centres, failed = [], 0
        while len(centres) < k and failed < tries:
            centre = rng.uniform(-1 + gap, 1 - gap, d)
            if all(np.linalg.norm(centre - other) >= 2 * gap for other in centres):
                centres.append(centre)
                failed = 0
            else:
                failed += 1
        if len(centres) == k:
            return np.array(centres)
        gap /= 2


def fold(x):
    """Reflects at the sides of the box."""
    x = (x + 1) % 4
    return np.where(x > 2, 4 - x, x) - 1


ALPHA = 0.8  # FastLloyd's radius, as a share of what k balls in the box would have


def fastlloyd_noise(n, d, k, budget):
    """Rounds, radius of the later rounds, and the deviations of sums (for radius 1) and counts."""
    frac = ALPHA / (2 * k ** (1 / d))
    sigma = analytic_sigma(budget.epsilon, budget.delta)
    room = 1 + math.sqrt(4 * d)
    rounds = 0.016 * n**2 / (k**3 * (2 * math.sqrt(d) * frac) ** 2 * room**2 * sigma**2)
    rounds = int(min(max(rounds, 2), 7))
    each = sigma * math.sqrt(rounds)
    return rounds, 2 * math.sqrt(d) * frac, each * math.sqrt(room) / (4 * d) ** 0.25, each * math.sqrt(room)


def fastlloyd(rows, k, budget, rng, public=None):
    """FastLloyd (arXiv 2405.02437): sums around the current centres, of rows within a radius, which is as far as a centre moves."""
    n, d = rows.shape
    rounds, later, of_sums, of_counts = fastlloyd_noise(n, d, k, budget)
    start, noise = rng.spawn(2)
    centres = apart(start, k, d)
    for turn in range(rounds):
        radius = math.sqrt(d) if turn == 0 else later
        radius = min(radius, 2 * math.sqrt(d))
        square = squares(rows, centres)
        owner = np.where(square.min(1) <= radius**2, square.argmin(1), k)
        counts, total = sums(rows, owner, k)
        total = total - centres * counts[:, None] + noise.normal(0, of_sums * radius, (k, d))
        counts = np.maximum(counts, 1) + np.round(noise.normal(0, of_counts, k))  # an empty group is as if its centre were a row
        step = total / np.where(counts == 0, 1e-9, counts)[:, None]
        length = np.linalg.norm(step, axis=1, keepdims=True)
        centres = fold(centres + step * np.minimum(1, radius / np.maximum(length, 1e-300)))
    return centres


FEWEST = 5  # a server's row with a smaller noisy weight does not count


def feddp(rows, k, budget, rng, public):
    """FedDP-KMeans (arXiv 2506.05408): the server's own rows, projected to the first k directions and weighted with how many rows are
    nearest, give first centres; these are lifted by noisy means, and one noisy round follows. Every stage has the same rho. With d <= k
    nothing is projected, and the other stages have its rho."""
    d = rows.shape[1]
    radius = public.radius or math.sqrt(d)
    choice, noise = rng.spawn(2)
    stages = 4 if d > k else 3
    rho = budget.rho / stages
    rows = rows * np.minimum(1, radius / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300))
    basis = np.eye(d)
    if d > k:
        upper = np.triu(gauss(noise, (d, d), radius**2, rho))
        basis = np.linalg.eigh(rows.T @ rows + upper + np.triu(upper, 1).T)[1][:, -k:]
    flat, server = rows @ basis, public.server @ basis
    weights = np.bincount(squares(flat, server).argmin(1), minlength=len(server)) + gauss(noise, len(server), 1, rho)
    heavy = weights >= FEWEST
    if heavy.sum() < k:
        heavy = np.argsort(-weights)[: max(k, 2)]
    fit = KMeans(k, n_init=10, random_state=int(choice.integers(2**31)))
    low = fit.fit(server[heavy], sample_weight=np.maximum(weights[heavy], 1e-3)).cluster_centers_

    def means(owner, before):
        counts, total = sums(rows, owner, k)
        counts = counts + gauss(noise, k, 1, rho / 2)
        total = total + gauss(noise, (k, d), radius, rho / 2)
        return np.where(counts[:, None] >= 1, np.clip(total / np.maximum(counts, 1)[:, None], -1, 1), before)

    centres = means(squares(flat, low).argmin(1), np.clip(low @ basis.T, -1, 1))
    return means(squares(rows, centres).argmin(1), centres)


GENERATIONS = 6
MIXED = 0.6  # children with two parents


def pe(rows, k, budget, rng, public=None):
    """Private evolution for k-means, after the abstract of PE-means (arXiv 2606.00342) and the idea of private evolution: candidates are
    points, every row votes for the nearest, the noisy votes (sensitivity 1) decide who has children, and these lie around their parents,
    ever nearer. The centres are those of the weighted survivors of the last generation."""
    d = rows.shape[1]
    choice, noise = rng.spawn(2)
    rho = budget.rho / GENERATIONS
    sigma = 1 / math.sqrt(2 * rho)
    size = int(min(max(20 * k, 40), max(4 * k, len(rows) / max(2 * sigma, 1e-9))))  # a candidate's votes are to be above the noise
    points = choice.uniform(-1, 1, (size, d)) * choice.uniform(0, 1, (size, 1)) ** 0.5
    for turn in range(GENERATIONS):
        votes = np.bincount(squares(rows, points).argmin(1), minlength=len(points)) + gauss(noise, len(points), 1, rho)
        alive = votes > min(2 * sigma, np.partition(votes, -k)[-k] - 1e-9)
        parents, weights = points[alive], np.maximum(votes[alive], 1e-3)
        if turn + 1 == GENERATIONS:
            break
        share = np.maximum(size - len(parents), 0)
        first, second = choice.choice(len(parents), (2, share), p=weights / weights.sum())
        mixed = np.where(choice.uniform(size=(share, 1)) < MIXED, choice.uniform(size=(share, 1)), 0)
        length = 0.7**turn * d ** choice.uniform(-0.5, 0, (share, 1)) * choice.uniform(0.1, 1, (share, 1))  # short and long steps
        moved = length * choice.normal(size=(share, d))
        points = np.concatenate([parents, np.clip(parents[first] + mixed * (parents[second] - parents[first]) + moved, -1, 1)])
    if len(parents) <= k:
        return np.concatenate([parents, choice.uniform(-1, 1, (k - len(parents), d))])
    fit = KMeans(k, n_init=10, random_state=int(choice.integers(2**31)))
    return fit.fit(parents, sample_weight=weights).cluster_centers_


def diffprivlib(rows, k, budget, rng, public=None):
    """The central k-means of diffprivlib, which is pure epsilon-DP."""
    from diffprivlib.models import KMeans as Private

    d = rows.shape[1]
    seed = int(rng.integers(2**31))
    return Private(k, epsilon=budget.epsilon, bounds=(-np.ones(d), np.ones(d)), random_state=seed).fit(rows).cluster_centers_


def bootstrap(rows, k, budget, rng, public=None):
    """No privacy: centres of rows that were drawn again. What is lost is the error of sampling."""
    drawn = rows[rng.integers(len(rows), size=len(rows))]
    return KMeans(k, n_init=5, random_state=int(rng.integers(2**31))).fit(drawn).cluster_centers_


def best(rows, k, starts=20):
    """The best objective without privacy."""
    return KMeans(k, n_init=starts, random_state=1).fit(rows)


def best_fuzzy(rows, k, centres, starts):
    """The best fuzzy objective without privacy: from the centres of k-means, and from rows."""
    rng = np.random.default_rng(1)
    found = math.inf
    for start in range(starts):
        at = centres if start == 0 else rows[rng.choice(len(rows), k, replace=False)]
        before = math.inf
        for _ in range(200):
            inverse = 1 / np.maximum(squares(rows, at), 1e-12)
            weights = (inverse / inverse.sum(1, keepdims=True)) ** 2
            at = weights.T @ rows / weights.sum(0)[:, None]
            now = fuzzy_objective(rows, at)
            if before - now < 1e-7 * now:
                break
            before = now
        found = min(found, now)
    return found


ESTIMATORS = {"FastLloyd": fastlloyd, "FedDP-KMeans": feddp, "PE": pe, "diffprivlib": diffprivlib, "bootstrap": bootstrap}
