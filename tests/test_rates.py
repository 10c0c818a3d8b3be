"""Table 1 by hand."""

import math

import pytest

import rewardfree as rf
from rewardfree.theory import complexity
from rewardfree.theory import spectrum as spectra


def test_epsilon_exponents_of_matern_kernels():
    assert complexity.eps_exponent(2.5, 2) == pytest.approx(2.8)
    for nu, dim in ((0.5, 1), (1.5, 3)):
        p = spectra.known_exponent(rf.Matern(nu), dim)
        assert complexity.eps_exponent(nu, dim) == pytest.approx(2.0 + 2.0 / (p - 1.0))


def test_table_1_by_hand():
    polynomial = complexity.Rates(10, 0.5, states=100, actions=7, features=3, dim=2, p=3.5).table()
    assert polynomial["tabular"] == pytest.approx(100 * 100 * 7 * 1e5 / 0.25)
    assert polynomial["linear"] == pytest.approx(27 * 1e6 * 4)
    kernel = 2000.0**2.8
    assert polynomial["kernel, polynomial eigendecay"] == pytest.approx(kernel)
    assert polynomial["kernel, polynomial eigendecay, online"] == pytest.approx(10 * kernel)
    smooth = complexity.Rates(10, 0.01, states=100, actions=7, features=3, dim=2, p=math.inf).table()
    logs = math.log(100.0) ** 3
    assert smooth["kernel, exponential eigendecay"] == pytest.approx(1e6 * logs * 1e4)
    assert smooth["kernel, exponential eigendecay, online"] == pytest.approx(1e7 * logs * 1e4)


def test_rows_of_table_1_that_do_not_apply_are_none():
    absent = {
        p: {
            name
            for name, value in complexity.Rates(10, 0.5, 100, 7, 3, 2, p).table().items()
            if value is None
        }
        for p in (3.5, math.inf)
    }
    assert absent[3.5] == {name for name in complexity.PRINTED if "exponential" in name}
    assert absent[math.inf] == {name for name in complexity.PRINTED if "polynomial" in name}
    assert set(complexity.Rates(10, 0.5, 100, 7, 3, 2, 3.5).table()) == set(complexity.PRINTED)
    assert complexity.Rates(10, 0.5, 100, 7, 3, 2, 1.0).table()["kernel, polynomial eigendecay"] == math.inf
    assert complexity.Rates(10, 0.5, 100, 7, 3, 2, 1.001).table()["kernel, polynomial eigendecay"] == math.inf
