"""Feature maps phi(z) that files and sweeps can name."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any, TypeAlias

import numpy as np

from rewardfree.arrays import Array, Floats, Integers, as_array, as_points, check_finite, count, to_numpy
from rewardfree.registry import registered

#: A map of points (n,d_z) to features (n,d).
FeatureMap: TypeAlias = Callable[[Array], Array]
#: The most features of a map: each feature costs a row of a matrix in each design.
MOST_FEATURES = 4096


@registered("features")
@dataclass(frozen=True)
class PolynomialFeatures:
    """All monomials of the coordinates of z up to `degree`, with 1, over the root of their number.

    This gives |phi(z)| <= 1 on the unit cube, as the linear theory assumes.
    """

    degree: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "degree", count(self.degree, "degree", at_least=0, at_most=MOST_FEATURES))

    def __call__(self, points: Array) -> Floats:
        """phi at points (n,d_z): (n,d)."""
        return _products(points, self.degree, "degree", lambda z, power: z**power)


@registered("features")
@dataclass(frozen=True)
class FourierFeatures:
    """All products of cos(pi k_i z_i) with k_1 + k_2 + ... up to `order`, over the root of their number.

    |phi(z)| <= 1 everywhere. Unlike monomials, these are of the same size in all corners of the unit cube.
    """

    order: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", count(self.order, "order", at_least=0, at_most=MOST_FEATURES))

    def __call__(self, points: Array) -> Floats:
        """phi at points (n,d_z): (n,d)."""
        return _products(points, self.order, "order", lambda z, wave: np.cos(np.pi * z * wave))


def _products(points: Array, total: int, name: str, function: Callable[[Floats, Integers], Floats]) -> Floats:
    """All products of function(z_i, k_i) with k_1 + k_2 + ... <= total, over the root of their number."""
    points = to_numpy(as_points(points, "points")).astype(np.float64)
    coordinates = points.shape[1]
    size = math.comb(total + coordinates, coordinates)
    if size > MOST_FEATURES:
        raise ValueError(
            f"{name} must give at most {MOST_FEATURES} features, got {total} with {size} in {coordinates} "
            "coordinates"
        )
    axes = range(coordinates)
    multisets = [factors for k in range(total + 1) for factors in combinations_with_replacement(axes, k)]
    products = np.full((len(points), size), size**-0.5)
    for axis in axes:
        k = np.array([factors.count(axis) for factors in multisets])
        products *= function(points[:, axis, None], k)
    return products


def check_features(features: Any) -> Any:
    """A map, unchanged, or a table (z,d) or (s,a,d) as nested tuples, which are frozen and go into files."""
    if isinstance(features, type):
        raise ValueError(
            f"features must be a map or a table, got the class {features.__name__}: call it, as in "
            f"{features.__name__}(...)"
        )
    if callable(features):
        return features
    try:
        features = np.asarray(features)
    except ValueError:  # rows of different lengths
        features = np.asarray("rows")
    if features.dtype.kind in "OUS":
        raise ValueError(
            "features must be rows of numbers, all of one length, or a function of points (n, d_z)"
        )
    table = as_array(features, "features")
    if table.ndim not in (2, 3) or 0 in table.shape:
        raise ValueError(
            "features must be a table (|Z|, d) or (|S|, |A|, d), or a function of points (n, d_z) such as "
            f"rf.posterior.PolynomialFeatures(2), got shape {table.shape}"
        )
    check_finite(table, "features")
    return _frozen(table.astype(np.float64).tolist())


def _frozen(values: Any) -> Any:
    return tuple(map(_frozen, values)) if isinstance(values, list) else values


def check_table(features: Any, sizes: tuple[int, int]) -> None:
    """Refuse a table (s,a,d) that is not of `sizes` (s,a): its rows would go to the wrong pairs."""
    shape = () if callable(features) else np.shape(features)
    if len(shape) == 3 and shape[:2] != sizes:
        raise ValueError(
            f"features must have shape ({sizes[0]}, {sizes[1]}, d) for {sizes[0]} states and {sizes[1]} "
            f"actions of the world, state first, got {shape}"
        )


def features_at(features: Any, points: Array) -> Floats:
    """phi at points (n,d_z), (n,d): by the map, or the table, which must have a row for each point."""
    points = to_numpy(as_points(points, "points"))
    if not callable(features):
        table = np.array(features, np.float64)
        table = table.reshape(-1, table.shape[-1])  # z = s |A| + a
        if len(table) != len(points):
            raise ValueError(
                f"features must have a row for each of {len(points)} pairs of state and action, "
                f"got {len(table)}"
            )
        return table
    phi = to_numpy(as_array(features(points), "features"))
    if phi.ndim != 2 or phi.shape[0] != len(points) or phi.shape[1] == 0:
        raise ValueError(
            f"features must map points of shape {points.shape} to ({len(points)}, d), got {phi.shape}"
        )
    check_finite(phi, "features")
    return np.array(phi, np.float64)
