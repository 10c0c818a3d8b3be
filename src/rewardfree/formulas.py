"""Formulas that a user types, over named variables: parsed and checked against a short list, never run."""

import ast
import math
import warnings
from collections.abc import Callable, Collection, Mapping
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np

#: Limits that a formula typed by hand does not reach.
MOST_CHARACTERS, MOST_NESTED = 4000, 100
CONSTANTS = {"pi": math.pi, "e": math.e}
#: The functions that a formula may call, with the number of their arguments.
FUNCTIONS: dict[str, tuple[Callable[..., Any], int]] = {
    "sin": (np.sin, 1),
    "cos": (np.cos, 1),
    "tan": (np.tan, 1),
    "tanh": (np.tanh, 1),
    "exp": (np.exp, 1),
    "log": (np.log, 1),
    "sqrt": (np.sqrt, 1),
    "abs": (np.abs, 1),
    "sign": (np.sign, 1),
    "floor": (np.floor, 1),
    "min": (np.minimum, 2),
    "max": (np.maximum, 2),
    "clip": (np.clip, 3),
    "where": (lambda test, yes, no: np.where(np.asarray(test) != 0, yes, no), 3),
}
_BINARY: dict[type, Callable[..., Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.Mod: np.mod,
    ast.Pow: np.power,
}
_UNARY: dict[type, Callable[..., Any]] = {
    ast.USub: np.negative,
    ast.UAdd: np.positive,
    ast.Not: lambda value: 1.0 * (np.asarray(value) == 0),
}
_COMPARISONS: dict[type, Callable[..., Any]] = {
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
}
_EXAMPLE = "such as -(theta**2 + 0.1*omega**2) or where(abs(x) < 0.1, 1, 0)"


class Formula:
    """An expression such as "-(theta**2 + 0.1*omega**2)" over some of the named `variables`.

    Numbers, + - * / % **, comparisons (1 or 0), `and`, `or`, `not`, `a if c else b`, and FUNCTIONS. A call
    with arrays evaluates it element by element in float64. Values may be infinite or NaN: the caller checks.
    """

    def __init__(self, text: str, variables: Collection[str]) -> None:
        if not isinstance(text, str) or not text.strip():
            raise ValueError(f"a formula must be text, {_EXAMPLE}, got {text!r:.100}")
        if len(text) > MOST_CHARACTERS:
            raise ValueError(f"a formula may have {MOST_CHARACTERS} characters, got {len(text)}")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Python warns of code that is refused below anyway
                self._tree = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise ValueError(f"{text!r:.100} is no formula, {_EXAMPLE}: {error}") from None
        self.text, self.variables = text, frozenset(variables)
        self.used = self._checked()
        self._value = _compiled(self._tree)

    def __repr__(self) -> str:
        return f"Formula({self.text!r})"

    def __reduce__(self) -> Any:
        return Formula, (self.text, self.variables)  # the compiled functions cannot be pickled

    def __call__(self, values: Mapping[str, Any]) -> Any:
        """Its value, given an array for each variable that it uses."""
        with np.errstate(all="ignore"):
            return np.asarray(self._value(values), np.float64)

    def set_against(self) -> list[tuple[str, float, bool]]:
        """Variables, numbers that they are compared with or that are subtracted, and whether by == or !=."""
        pairs = []
        for node in ast.walk(self._tree):
            sides: list[tuple[ast.expr, ast.expr, bool]] = []
            if isinstance(node, ast.Compare):
                couples = pairwise([node.left, *node.comparators])
                equal = [isinstance(op, ast.Eq | ast.NotEq) for op in node.ops]
                sides = [(*couple, same) for couple, same in zip(couples, equal, strict=True)]
            elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
                sides = [(node.left, node.right, False)]
            for left, right, same in sides:
                for one, other in ((left, right), (right, left)):
                    if isinstance(one, ast.Name) and one.id in self.variables and _is_fixed(other):
                        with np.errstate(all="ignore"):
                            pairs.append((one.id, float(_compiled(other)({})), same))
        return pairs

    def _checked(self) -> frozenset[str]:
        """The variables that are used. Every node is checked; only checked nodes are ever evaluated."""
        used, unchecked = set(), [(self._tree, 1)]
        while unchecked:
            node, depth = unchecked.pop()
            if depth > MOST_NESTED:
                raise ValueError(f"a formula may be nested {MOST_NESTED} deep, this one is deeper")
            unchecked += [(part, depth + 1) for part in self._parts(node)]
            if isinstance(node, ast.Name) and node.id not in CONSTANTS:
                used.add(node.id)
        return frozenset(used)

    def _parts(self, node: ast.expr) -> list[ast.expr]:
        """The expressions inside an allowed node. Any other node is refused."""
        match node:
            case ast.Constant(value=bool() | int() | float()):
                return []
            case ast.Name(id=name):
                if name not in CONSTANTS and name not in self.variables:
                    raise ValueError(f"there is no variable {name!r} here: {self._choices()}")
                return []
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                return [left, right]
            case ast.UnaryOp(op=op, operand=operand) if type(op) in _UNARY:
                return [operand]
            case ast.BoolOp(values=values):
                return list(values)
            case ast.Compare(left=left, ops=ops, comparators=others) if {*map(type, ops)} <= {*_COMPARISONS}:
                return [left, *others]
            case ast.IfExp(test=test, body=body, orelse=other):
                return [test, body, other]
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
                self._check_call(name, arguments)
                return list(arguments)
        source = ast.get_source_segment(self.text.strip(), node) or "that"
        power = isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitXor)
        hint = "a power is written x**2" if power else f"it is an expression of numbers, {_EXAMPLE}"
        raise ValueError(f"a formula cannot hold {source:.60}: {hint}")

    def _check_call(self, name: str, arguments: list[ast.expr]) -> None:
        if name not in FUNCTIONS:
            raise ValueError(f"there is no function {name!r} here: there are {', '.join(FUNCTIONS)}")
        arity = FUNCTIONS[name][1]
        if len(arguments) != arity:
            raise ValueError(f"{name} takes {arity} argument{'s' * (arity > 1)}, got {len(arguments)}")

    def _choices(self) -> str:
        return f"there are {', '.join(sorted(self.variables))}, pi and e"


def _is_fixed(node: ast.expr) -> bool:
    """Whether it is a number, or made of numbers alone, such as 5 + 5."""
    parts = list(ast.walk(node))
    called = {id(part.func) for part in parts if isinstance(part, ast.Call)}
    named = [part for part in parts if isinstance(part, ast.Name) and id(part) not in called]
    return all(part.id in CONSTANTS for part in named)


def _compiled(node: ast.expr) -> Callable[[Mapping[str, Any]], Any]:
    """A checked expression as a function of its variables: the tree is read once, not at every call."""
    match node:
        case ast.Constant(value=value):
            return _constant(_number(value))
        case ast.Name(id=name) if name in CONSTANTS:
            return _constant(CONSTANTS[name])
        case ast.Name(id=name):
            return lambda values: np.asarray(values[name], np.float64)
        case ast.BinOp(left=left, op=op, right=right):
            return _applied(_BINARY[type(op)], left, right)
        case ast.UnaryOp(op=op, operand=operand):
            return _applied(_UNARY[type(op)], operand)
        case ast.BoolOp(op=op, values=parts):
            return _applied(_all_of if isinstance(op, ast.And) else _any_of, *parts)
        case ast.Compare(left=left, ops=ops, comparators=others):
            comparisons = [_COMPARISONS[type(op)] for op in ops]
            return _applied(lambda *sides: _chain(comparisons, sides), left, *others)
        case ast.IfExp(test=test, body=body, orelse=other):
            return _applied(FUNCTIONS["where"][0], test, body, other)
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return _applied(FUNCTIONS[name][0], *arguments)
    raise AssertionError(f"{node} was not refused")  # by _parts


def _constant(value: Any) -> Callable[[Mapping[str, Any]], Any]:
    return lambda _: value


def _applied(operation: Callable[..., Any], *parts: ast.expr) -> Callable[[Mapping[str, Any]], Any]:
    functions = [_compiled(part) for part in parts]
    return lambda values: operation(*[function(values) for function in functions])


def _all_of(*parts: Any) -> Any:
    return 1.0 * np.asarray(reduce(np.logical_and, [part != 0 for part in parts]))


def _any_of(*parts: Any) -> Any:
    return 1.0 * np.asarray(reduce(np.logical_or, [part != 0 for part in parts]))


def _chain(comparisons: list[Callable[..., Any]], sides: tuple[Any, ...]) -> Any:
    """a < b <= c as (a < b) and (b <= c)."""
    pairs = zip(comparisons, sides, sides[1:], strict=False)
    return 1.0 * np.asarray(reduce(np.logical_and, [compare(left, right) for compare, left, right in pairs]))


def _number(value: Any) -> Any:
    """A literal as a float; one beyond the largest float is infinite, as in float arithmetic."""
    try:
        return np.float64(value)
    except OverflowError:
        return np.float64(math.inf)
