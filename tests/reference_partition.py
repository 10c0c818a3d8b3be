"""A partition by the textbook: every cell from scratch, one sample after the other."""

import numpy as np

import reference


def unit(points, low, high):
    """Points of a box on [0,1]^d, those beyond it on its edge."""
    span = np.where(high > low, high - low, 1.0)
    return np.clip((points - low) / span, 0.0, 1.0)


def cell_at(point, splits):
    """The cell (lower corner, side) of a point of the unit cube, by walking down through what was split."""
    corner, side = np.zeros(len(point)), 1.0
    while (tuple(corner), side) in splits:
        side /= 2.0
        corner = corner + side * (point >= corner + side)
    return tuple(corner), side


def grown(points, alpha, drop):
    """What was split, and the samples that count in each cell: {cell: [i, ...]}."""
    splits, inside = set(), {}
    for i in range(len(points)):
        inside.setdefault(cell_at(points[i], splits), []).append(i)
        while True:
            full = [c for c, own in inside.items() if alpha is not None and c[1] ** -alpha < len(own) + 1]
            if not full:
                break
            for cell in full:
                own = inside.pop(cell)
                splits.add(cell)
                for j in [] if drop else own:
                    inside.setdefault(cell_at(points[j], splits), []).append(j)
    return splits, inside


def predictions(kernel, points, ridge, targets, at, alpha, drop=False, low=0.0, high=1.0):
    """Mean (m,c) and variance (m,) at queries, each from the samples of its own cell by a dense inverse."""
    splits, inside = grown(unit(points, low, high), alpha, drop)
    mean, variance = np.zeros((len(at), targets.shape[1])), kernel.diag(at).copy()
    for q, place in enumerate(unit(at, low, high)):
        own = inside.get(cell_at(place, splits), [])
        if own:
            here = at[q : q + 1]
            mean[q] = reference.mean(kernel, points[own], ridge, targets[own], here)[0]
            variance[q] = reference.variance(kernel, points[own], ridge, here)[0]
    return mean, variance
