"""The neural tangent kernel of a ReLU network."""

import math
from dataclasses import dataclass

from rewardfree.arrays import Array, count, namespace, non_negative
from rewardfree.kernels.algebra import Kernel, set_fields
from rewardfree.kernels.stationary import check_size
from rewardfree.registry import registered

#: More layers change nothing that floats could show, and take their time.
MOST_LAYERS = 10_000


@registered("kernel", "ntk")
@dataclass(frozen=True)
class NeuralTangent(Kernel):
    """The tangent kernel of a ReLU network of `depth` hidden layers and infinite width, with k(x, x) = 1.

    With q = sqrt(S(x,x) S(y,y)), u = S(x,y)/q, S_0 = T_0 = x.y + bias: S_l = q k1(u) + bias,
    T_l = S_l + T_{l-1} k0(u); k = T(x,y)/sqrt(T(x,x) T(y,y)). Inputs are embedded as (x, 1): otherwise all
    multiples of a point would be one point. `bias` is the variance of the biases.
    """

    depth: int
    bias: float = 0.0

    def __post_init__(self) -> None:
        set_fields(
            self, depth=count(self.depth, "depth", at_most=MOST_LAYERS), bias=non_negative(self.bias, "bias")
        )

    def _check(self, points: Array, name: str) -> None:
        check_size(points, name, power=4, unit=1.0, offset=math.sqrt(self.bias))

    def _between(self, x: Array, y: Array) -> Array:
        """The recursion in v = 1 - u, which keeps k(x, x) = 1 exact: arccos(u) loses digits near 1."""
        xp, bias = namespace(x, y), self.bias
        a, b = _embedded_norm(x) + bias, _embedded_norm(y) + bias  # S(x,x), S(y,y)
        v = self._first_gap(x, y, a, b)
        tangent = xp.sqrt(a[:, None] * b[None, :]) * (1.0 - v)
        for _ in range(self.depth):
            q = xp.sqrt(a[:, None] * b[None, :])
            angle = 2.0 * xp.asin(xp.sqrt(xp.clip(0.5 * v, 0.0, 1.0)))
            k0 = 1.0 - angle / math.pi
            gap = v - (xp.sin(angle) - angle * (1.0 - v)) / math.pi  # 1 - k1(u)
            new_a, new_b = a + bias, b + bias
            new_q = xp.sqrt(new_a[:, None] * new_b[None, :])
            # new_q - q - bias, written so that it vanishes exactly when a = b.
            roots = xp.sqrt(a)[:, None] - xp.sqrt(b)[None, :]
            v = (q * gap + bias * roots * roots / (new_q + q + bias)) / new_q
            a, b = new_a, new_b
            tangent = q * (1.0 - gap) + bias + tangent * k0
        return tangent / xp.sqrt(self._tangent_norm(x)[:, None] * self._tangent_norm(y)[None, :])

    def _first_gap(self, x: Array, y: Array, a: Array, b: Array) -> Array:
        """1 - u in the input layer: half the squared distance of the embedded points on the sphere."""
        xp = namespace(x, y)
        root_a, root_b = xp.sqrt(a), xp.sqrt(b)
        constant = 1.0 / root_a[:, None] - 1.0 / root_b[None, :]
        square = (1.0 + self.bias) * constant * constant
        for axis in range(x.shape[1]):
            difference = (x[:, axis] / root_a)[:, None] - (y[:, axis] / root_b)[None, :]
            square = square + difference * difference
        return 0.5 * square

    def _tangent_norm(self, x: Array) -> Array:
        """T_L(x,x), by the same additions as in `_between`: k(x, x) must come out as exactly 1."""
        a = tangent = _embedded_norm(x) + self.bias
        for _ in range(self.depth):
            a = a + self.bias
            tangent = a + tangent
        return tangent

    def _at(self, x: Array) -> Array:
        return namespace(x).ones_like(x[:, 0])


def _embedded_norm(x: Array) -> Array:
    """|(x, 1)|^2."""
    return 1.0 + namespace(x).sum(x * x, axis=1)
