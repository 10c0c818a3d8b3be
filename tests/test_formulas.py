"""Formulas: what they compute, what they refuse, and that nothing in them is ever run."""

import math
import pickle
import string

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewardfree.formulas import FUNCTIONS, MOST_CHARACTERS, Formula

X = np.linspace(-2.0, 2.0, 9)
Y = np.array([3.0, -1.0, 0.0, 2.0, 0.5, -0.5, 1.0, 7.0, -3.0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-(x**2 + 0.1*y**2)", -(X**2 + 0.1 * Y**2)),
        ("2 * sin(x) / 3 - y % 2", 2 * np.sin(X) / 3 - Y % 2),
        ("where(abs(x) < 0.6, 1, 0)", (np.abs(X) < 0.6) * 1.0),
        ("1 if x > 0 else y", np.where(X > 0, 1.0, Y)),
        ("-1 < x <= 1", ((X > -1) & (X <= 1)) * 1.0),
        ("x > 0 and y > 0 or not x", (((X > 0) & (Y > 0)) | (X == 0)) * 1.0),
        ("clip(x, -1, 1) + max(x, y) - min(x, y)", np.clip(X, -1, 1) + np.abs(X - Y)),
        ("(x == 0) + (x != 0)", np.ones(9)),
        ("pi + e + +x", math.pi + math.e + X),
        ("floor(x) + sign(y) + tanh(x) + exp(x) + cos(x) + tan(x)",
         np.floor(X) + np.sign(Y) + np.tanh(X) + np.exp(X) + np.cos(X) + np.tan(X)),
        ("sqrt(x*x) + log(exp(y))", np.abs(X) + Y),
        ("True + 2", 3.0),
    ],
)  # fmt: skip
def test_value(text, expected):
    formula = Formula(text, ["x", "y", "z"])
    np.testing.assert_allclose(formula({"x": X, "y": Y}), expected, rtol=1e-14, atol=1e-15)
    assert formula.used == {name for name in ("x", "y") if name in text.replace("max", "").replace("exp", "")}


def test_integers_do_not_overflow():
    assert Formula("10**400", [])({}) == math.inf
    assert Formula("9**9**9**9", [])({}) == math.inf
    assert Formula("1" * 1000, [])({}) == math.inf
    assert np.isnan(Formula("0/0", [])({}))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("__import__('os').system('true')", "a formula cannot hold"),
        ("open('x')", "there is no function 'open' here: there are sin, cos"),
        ("x.real", "a formula cannot hold x.real"),
        ("x[0]", r"a formula cannot hold x\[0\]"),
        ("-(x^2)", r"a formula cannot hold x\^2: a power is written x\*\*2"),
        ("[x for x in y]", "a formula cannot hold"),
        ("lambda: 1", "a formula cannot hold"),
        ("'text'", "a formula cannot hold 'text'"),
        ("1j", "a formula cannot hold 1j"),
        ("None", "a formula cannot hold None"),
        ("x is y", "a formula cannot hold x is y"),
        ("x @ y", "a formula cannot hold x @ y"),
        ("x // y", "a formula cannot hold x // y"),
        ("~x", "a formula cannot hold ~x"),
        ("sin(*x)", r"a formula cannot hold \*x"),
        ("sin(x=1)", r"a formula cannot hold sin\(x=1\)"),
        ("sin(x, y)", "sin takes 1 argument, got 2"),
        ("where(x, y)", "where takes 3 arguments, got 2"),
        ("theta", "there is no variable 'theta' here: there are x, y, pi and e"),
        ("sin", "there is no variable 'sin' here"),
        ("x +", "is no formula"),
        ("x; y", "is no formula"),
        ("import os", "is no formula"),
        ("x = 1", "is no formula"),
        ("\0", "is no formula"),
        ("(" * 3000, "is no formula"),
        ("-" * 3000 + "1", "is no formula|may be nested"),
        ("~" + "-" * 900 + "1", "a formula cannot hold ~---"),
        ("[" + "-" * 900 + "1]", r"a formula cannot hold \[---"),
        ("+".join(["x"] * 150), "may be nested 100 deep"),
        ("x" * (MOST_CHARACTERS + 1), "may have 4000 characters, got 4001"),
        ("", "a formula must be text"),
        ("  ", "a formula must be text"),
        (3, "a formula must be text"),
    ],
)
def test_refused(text, said):
    with pytest.raises(ValueError, match=said):
        Formula(text, ["x", "y"])


def test_what_python_warns_of_is_no_warning_here():
    with pytest.raises(ValueError, match="a formula cannot hold"):
        Formula(r"'\d'", [])


NAMES = ["x", "y", *FUNCTIONS, "__class__", "os", "lambda", "if", "else", "and", "not", "None", "eval"]
SIGNS = [*"+-*/%()[]{}.,:;=<>!@~^&|'\"\\# 0123456789", "**", "\n", "\0", "1e999", "٣"]


@given(
    st.lists(st.sampled_from([*NAMES, *SIGNS]), max_size=60).map("".join)
    | st.text(string.printable, max_size=200)
)
@settings(deadline=None, max_examples=400)
def test_anything_typed_is_a_number_or_one_kind_of_error(text):
    try:
        formula = Formula(text, ["x", "y"])
    except ValueError:
        return
    value = formula({"x": X, "y": Y})
    assert value.dtype == np.float64 and value.shape in ((), X.shape)


@given(st.recursive(
    st.sampled_from(["x", "y", "1.5", "2"]),
    lambda inner: st.builds("({} {} {})".format, inner, st.sampled_from(["+", "-", "*"]), inner),
    max_leaves=20,
))  # fmt: skip
@settings(deadline=None, max_examples=100)
def test_arithmetic_is_pythons(text):
    expected = eval(text, {"__builtins__": {}}, {"x": X, "y": Y})
    np.testing.assert_allclose(Formula(text, ["x", "y"])({"x": X, "y": Y}), expected, rtol=1e-13)


def test_a_formula_travels_to_another_process():
    formula = Formula("where(x > 1, 2, -x)", ["x"])
    formula({"x": np.zeros(2)})
    again = pickle.loads(pickle.dumps(formula))
    np.testing.assert_array_equal(again({"x": np.array([0.5, 3.0])}), [-0.5, 2.0])
