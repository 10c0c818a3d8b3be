"""Feature maps phi(z) that files and sweeps can name."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any, TypeAlias

import numpy as np

from rewardfree.arrays import as_array, as_points, check_finite, count, to_numpy
from rewardfree.registry import registered

#: A map of points (n,d_z) to features (n,d), or the features of every candidate in a table.
FeatureMap: TypeAlias = Callable[[Any], Any]
#: So many features are meant by nobody: every one costs a row of a matrix for each design.
MOST_FEATURES = 4096


@registered("features")
@dataclass(frozen=True)
class PolynomialFeatures:
    """All monomials of the coordinates of z up to `degree`, 1 included, over the root of their number.

    So |phi(z)| <= 1 on the unit cube, as the linear theory assumes.
    """

    degree: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "degree", count(self.degree, "degree", at_least=0))

    def __call__(self, points: Any) -> Any:
        """phi at points (n,d_z): (n,d)."""
        points = to_numpy(as_points(points, "points")).astype(np.float64)
        return _products(points, self.degree, "degree", lambda z, power: z**power)


@registered("features")
@dataclass(frozen=True)
class FourierFeatures:
    """All products of cos(pi k_i z_i) with k_1 + k_2 + ... up to `order`, over the root of their number.

    |phi(z)| <= 1 everywhere; it is of one size from corner to corner of the unit cube, as monomials are not.
    """

    order: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", count(self.order, "order", at_least=0))

    def __call__(self, points: Any) -> Any:
        """phi at points (n,d_z): (n,d)."""
        points = to_numpy(as_points(points, "points")).astype(np.float64)
        return _products(points, self.order, "order", lambda z, wave: np.cos(np.pi * z * wave))


def _products(points: Any, total: int, name: str, function: Callable[[Any, Any], Any]) -> Any:
    """All products of function(z_i, k_i) with k_1 + k_2 + ... <= total, over the root of their number."""
    coordinates = points.shape[1]
    size = math.comb(total + coordinates, coordinates)
    if size > MOST_FEATURES:
        raise ValueError(
            f"{name} must give at most {MOST_FEATURES} features, got {total} with {size} in {coordinates} "
            "coordinates"
        )
    axes = range(coordinates)
    chosen = [each for k in range(total + 1) for each in combinations_with_replacement(axes, k)]
    found = np.full((len(points), size), size**-0.5)
    for axis in axes:
        k = np.array([each.count(axis) for each in chosen])
        found *= function(points[:, axis, None], k)
    return found


def check_features(features: Any) -> Any:
    """A map as it is; a table (z,d) or (s,a,d) as nested tuples: frozen values that files can hold."""
    if isinstance(features, type):
        raise ValueError(
            f"features must be a map or a table, got the class {features.__name__}: call it, as in "
            f"{features.__name__}(...)"
        )
    if callable(features):
        return features
    try:
        features = np.asarray(features)
    except ValueError:  # of rows that differ
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
    """Refuse a table (s,a,d) of other sizes: row by row, pairs would get the features of others."""
    shape = () if callable(features) else np.shape(features)
    if len(shape) == 3 and shape[:2] != sizes:
        raise ValueError(
            f"features must have shape ({sizes[0]}, {sizes[1]}, d) for {sizes[0]} states and {sizes[1]} "
            f"actions of the world, state first, got {shape}"
        )


def features_at(features: Any, points: Any) -> Any:
    """phi at points (n,d_z), (n,d): what the map gives, or the whole table where it has a row for each."""
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
    found = to_numpy(as_array(features(points), "features"))
    if found.ndim != 2 or found.shape[0] != len(points) or found.shape[1] == 0:
        raise ValueError(
            f"features must map points of shape {points.shape} to ({len(points)}, d), got {found.shape}"
        )
    check_finite(found, "features")
    return found.astype(np.float64)
