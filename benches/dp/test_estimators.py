"""`python -m unittest discover benches/dp`: without noise an estimator is what it is without privacy, and noise has the right scale."""

import math
import unittest
import warnings

import numpy as np
from sklearn.cluster import KMeans

import estimators as e

warnings.filterwarnings("ignore")
FREE = e.Budget(1e9, 1e-6, math.inf)


def clear(n=600, d=2, k=3):
    """Clear clusters in the box."""
    rng = np.random.default_rng(7)
    middles = e.apart(rng, k, d) * 0.8
    return np.clip(middles[np.arange(n) % k] + rng.normal(0, 0.03, (n, d)), -1, 1)


def server(rows):
    return e.Public(rows[::10])


class Noiseless(unittest.TestCase):
    def near(self, rows, centres, k, within):
        least = KMeans(k, n_init=10, random_state=1).fit(rows).inertia_
        self.assertLess(e.objective(rows, centres), within * least)

    def test_feddp_is_lloyd_from_weighted_server_rows(self):
        for d in (2, 8):
            rows = clear(d=d)
            self.near(rows, e.feddp(rows, 3, FREE, np.random.default_rng(1), server(rows)), 3, 1.0001)

    def test_pe_finds_the_clusters(self):
        rows = clear()
        self.near(rows, e.pe(rows, 3, FREE, np.random.default_rng(1)), 3, 1.5)

    def test_fastlloyd_is_lloyd_where_no_row_is_outside_the_radius(self):
        rows, rng = clear(), np.random.default_rng(3)
        found = e.fastlloyd(rows, 3, FREE, rng)
        centres = e.apart(np.random.default_rng(3).spawn(2)[0], 3, 2)
        rounds, later, *_ = e.fastlloyd_noise(600, 2, 3, FREE)
        for turn in range(rounds):
            radius = math.sqrt(2) if turn == 0 else later
            square = e.squares(rows, centres)
            inside = square.min(1) <= radius**2
            own = [rows[inside & (square.argmin(1) == j)] for j in range(3)]
            step = np.stack([part.mean(0) - centre if len(part) else 0 * centre for part, centre in zip(own, centres)])
            length = np.linalg.norm(step, axis=1, keepdims=True)
            centres = centres + step * np.minimum(1, radius / np.maximum(length, 1e-300))
        np.testing.assert_allclose(found, centres, atol=1e-3)

    def test_bootstrap_of_many_rows_is_the_best(self):
        rows = clear(6000)
        self.near(rows, e.bootstrap(rows, 3, FREE, np.random.default_rng(1)), 3, 1.01)

    def test_best_fuzzy_is_a_fixed_point(self):
        rows = clear()
        centres = KMeans(3, n_init=10, random_state=1).fit(rows).cluster_centers_
        self.assertLessEqual(e.best_fuzzy(rows, 3, centres, 3), e.fuzzy_objective(rows, centres))
        memberships = 1 / e.squares(rows, centres)
        memberships /= memberships.sum(1, keepdims=True)
        by_hand = (memberships**2 * e.squares(rows, centres)).sum()
        self.assertAlmostEqual(e.fuzzy_objective(rows, centres), by_hand, places=8)


class Scales(unittest.TestCase):
    def test_gauss_has_the_deviation_of_rho(self):
        noise = e.gauss(np.random.default_rng(1), 200_000, 3, 0.02)
        self.assertAlmostEqual(noise.std(), 3 / math.sqrt(0.04), delta=0.1)
        self.assertEqual(e.gauss(np.random.default_rng(1), 5, 3, math.inf).tolist(), [0] * 5)

    def test_analytic_sigma_is_that_of_diffprivlib(self):
        from diffprivlib.mechanisms import GaussianAnalytic

        for epsilon in (0.1, 0.5, 1.0):
            theirs = GaussianAnalytic(epsilon=epsilon, delta=1e-6, sensitivity=1)._scale
            self.assertAlmostEqual(e.analytic_sigma(epsilon, 1e-6) / theirs, 1, places=4)

    def test_a_row_costs_fastlloyd_one_budget(self):
        """Deviations in units of what a row changes: the squares of their inverses add up to those of one Gaussian release."""
        budget = e.Budget(0.5, 1e-6, 0.0066)
        for n, d, k in ((5000, 2, 15), (2048, 64, 2)):
            rounds, _, of_sums, of_counts = e.fastlloyd_noise(n, d, k, budget)
            spent = rounds * (of_sums**-2 + of_counts**-2)
            self.assertAlmostEqual(spent * e.analytic_sigma(0.5, 1e-6) ** 2, 1, places=9)

    def spent(self, estimator, rows, rho, public):
        """What the calls of gauss spend: each says its rho."""
        calls, real = [], e.gauss
        e.gauss = lambda rng, shape, sensitivity, of: calls.append(of) or real(rng, shape, sensitivity, of)
        try:
            estimator(rows, 3, e.Budget(1, 1e-6, rho), np.random.default_rng(1), public)
        finally:
            e.gauss = real
        return sum(calls)

    def test_stages_spend_rho(self):
        for d in (2, 8):
            rows = clear(d=d)
            self.assertAlmostEqual(self.spent(e.feddp, rows, 0.03, server(rows)), 0.03)
            self.assertAlmostEqual(self.spent(e.pe, rows, 0.03, None), 0.03)

    def test_folding_reflects(self):
        np.testing.assert_allclose(e.fold(np.array([-1.2, -1, 0.3, 1.1, 3.2])), [-0.8, -1, 0.3, 0.9, -0.8])


if __name__ == "__main__":
    unittest.main()
