"""Epsilon of rho at delta: the numbers of the test vectors (spec section 17.4), which the reference writes and the program is held to, are those of
Google's dp-accounting."""

import json
import pathlib

import numpy
import pytest

VECTORS = pathlib.Path(__file__).parents[3] / "protocol/vectors/v4/noise.json"


def test_epsilon_is_that_of_dp_accounting():
    accounting = pytest.importorskip("dp_accounting")
    rdp = pytest.importorskip("dp_accounting.rdp.rdp_privacy_accountant")
    orders = list(1 + numpy.exp(numpy.linspace(-12, 25, 20001)))
    cases = [case for case in json.loads(VECTORS.read_text())["cases"] if case["function"] == "epsilon"]
    assert len(cases) == 27
    for case in cases:
        theirs = rdp.RdpAccountant(orders=orders).compose(accounting.ZCDpEvent(case["rho"])).get_epsilon(case["delta"])
        # Theirs is the best of so many orders, so it errs upwards alone.
        assert 0 <= theirs - case["epsilon"] <= 1e-6 * theirs + 1e-12, (case, theirs)
