"""How [PV] is estimated: kernel and ridge, one regression per step or one for all, on which posteriors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np

from rewardfree.arrays import (
    CPU,
    Array,
    DType,
    Floats,
    Integers,
    Placement,
    as_array,
    as_horizon,
    as_points,
    check_fields,
    check_finite,
    count,
    float_dtype,
    is_cpu,
    namespace,
    positive,
    to_numpy,
)
from rewardfree.kernels import AutoKernel, Delta, Kernel, as_kernel, first_guess, fit_next_states
from rewardfree.kernels.fitting.finite import FIRST_RIDGE
from rewardfree.posterior import (
    BasisPosterior,
    Counts,
    Design,
    Lattice,
    Posterior,
    PosteriorList,
    Posteriors,
    Sparse,
)
from rewardfree.posterior.inducing import as_inducing
from rewardfree.registry import registered

P = TypeVar("P")

#: By default posteriors on real states are exact for up to this number of transitions; beyond, they have this
#: number of inducing points.
EXACT_UP_TO, INDUCING = 2000, 1000


@registered("model")
@dataclass(frozen=True)
class Model:
    """The estimate of [PV](z): kernel ridge regression of V(s') on z = (s,a).

    `ridge` is the paper's tau^2, the number on the diagonal. `pooled` uses one regression for all steps, for
    dynamics that do not change with h. `centred` regresses V - c and adds c again, which is exact because
    P(.|z) sums to 1. `timed` (finite worlds) makes the step, from 0 to 1, the first coordinate of z: one
    regression that shares data between steps as far as the kernel allows. With `AutoKernel()` the kernel
    and the ridge are fitted to the data; a ridge that is given is kept. `inducing` (real states): through how
    many inducing points, see `Sparse`; None is exact, "auto" is exact up to `EXACT_UP_TO` transitions.
    """

    kernel: Kernel | AutoKernel
    ridge: float | None = None
    pooled: bool = False
    centred: bool = False
    timed: bool = False
    inducing: int | Literal["auto"] | None = "auto"

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, AutoKernel):
            object.__setattr__(self, "kernel", as_kernel(self.kernel))
            if self.ridge is None:
                raise ValueError("ridge must be given with a fixed kernel, got None: for example ridge=0.5")
        check_fields(self, ridge=positive)
        for name in ("pooled", "centred", "timed"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name} must be True or False, got {getattr(self, name)!r}")
        if self.inducing is not None and not (isinstance(self.inducing, str) and self.inducing == "auto"):
            object.__setattr__(self, "inducing", _as_inducing(self.inducing))
        if self.timed and not self.pooled:
            raise ValueError("timed=True is one regression for all steps: it needs pooled=True")

    def __repr__(self) -> str:
        shown = [field.name for field in fields(self)]
        if self.inducing == "auto":  # as it is for nearly everybody
            shown.remove("inducing")
        return f"Model({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

    def regressions(self, horizon: int) -> int:
        """How many designs a run needs: one for each step, or one for all if pooled."""
        horizon = as_horizon(horizon)
        return 1 if self.pooled else horizon

    @property
    def automatic(self) -> bool:
        """Whether the kernel is still to be fitted to data."""
        return isinstance(self.kernel, AutoKernel)

    def inputs(self, points: Array, horizon: int) -> Array:
        """The kernel's inputs on a finite world: every z (z,f), or if timed every (h,z), step by step."""
        if not self.timed:
            return points
        steps = np.linspace(0.0, 1.0, horizon) if horizon > 1 else np.zeros(1)
        z = len(points)
        return np.concatenate([np.repeat(steps, z)[:, None], np.tile(points, (horizon, 1))], axis=1)

    def fitted(
        self,
        points: Floats,
        targets: Floats,
        groups: Sequence[int] | None = None,
        episode: Integers | None = None,
    ) -> Model:
        """This model; if it is automatic, with a kernel and a ridge fitted by `AutoKernel.fit`."""
        if not isinstance(self.kernel, AutoKernel):
            return self
        fit = self.kernel.fit(points, targets, groups, self.ridge, episode=episode)
        return replace(self, kernel=fit.kernel, ridge=fit.ridge)

    def first_guess(self, inputs: Floats) -> Model:
        """This model; if it is automatic, with a kernel and a ridge to start with on inputs (m,f)."""
        if not self.automatic:
            return self
        return replace(self, kernel=first_guess(inputs), ridge=self.ridge or FIRST_RIDGE)

    def fitted_to_next_states(
        self,
        inputs: Floats,
        z: Integers,
        states: Floats,
        next_state: Integers,
        *,
        most: int | None = None,
        dtype: DType | None = None,
    ) -> Model:
        """This model; if it is automatic, fitted to n transitions from inputs[z] to states[next_state].

        Inputs (m,f), states (s,d); at most `most` transitions are used. Too few leave the first guess.
        """
        if not isinstance(self.kernel, AutoKernel):
            return self
        automatic = self.kernel if most is None else self.kernel.at_most(most)
        single = "float32" in str(dtype)
        fit = fit_next_states(automatic, inputs, z, states, next_state, self.ridge, single)
        return self.first_guess(inputs) if fit is None else replace(self, kernel=fit.kernel, ridge=fit.ridge)

    def at_most(self, points: int) -> Model:
        """This model; if it is automatic, fitted to at most `points` points, which is faster."""
        if not isinstance(self.kernel, AutoKernel):
            return self
        return replace(self, kernel=self.kernel.at_most(points))

    def design(self, placement: Placement = CPU, **options: Any) -> Design | Sparse:
        """An empty posterior for points anywhere; exact unless `inducing` is a number. See `for_points`.

        With inducing points it is computed at `placement`; an exact one is always NumPy's.
        """
        if isinstance(self.inducing, int):
            options = {"device": placement.device or "cpu", "dtype": placement.dtype, **options}
            return self.posterior(Sparse, inducing=self.inducing, **options)
        return self.posterior(Design, **options)

    def for_points(self, points: int, inducing: int = INDUCING) -> Model:
        """This model for that many points: with inducing points, if it is "auto" and they are many."""
        if self.inducing != "auto" or points <= EXACT_UP_TO:
            return self
        return replace(self, inducing=inducing)

    def lattice(self, candidates: Array, **options: Any) -> Lattice:
        """An empty posterior on a finite set; options as for `Lattice` (designs, capacity, device, dtype)."""
        return self.posterior(Lattice, candidates, **options)

    def posteriors(self, candidates: Array, device: str | None = None, **options: Any) -> Posteriors:
        """Empty posteriors on a finite set, in their cheapest form; options as for `Lattice`.

        For the delta kernel on distinct points these are visit counts.
        """
        candidates = as_points(candidates, "candidates")
        if isinstance(self.kernel, Delta) and is_cpu(device) and _distinct(candidates, **options):
            return Counts(candidates, ridge=self._ridge, **options)
        return self.lattice(candidates, device=device, **options)

    def posterior(self, kind: Callable[..., P], *candidates: Array, **options: Any) -> P:
        """An empty posterior of a class: kind(kernel, ridge=...), or kind(kernel, candidates, ridge=...)."""
        return kind(self.fixed, *candidates, ridge=self._ridge, **options)

    def centre(self, values: Array) -> Array:
        """The c of [PV] = c + [P(V - c)] for values (...,s): their midrange if centred, else 0; (...)."""
        values = as_array(values, "values")
        if values.ndim == 0 or values.shape[-1] == 0:
            raise ValueError(f"values must hold V at one state or more, got shape {tuple(values.shape)}")
        check_finite(values, "values")
        centre = midrange(values, axis=-1)
        return centre if self.centred else namespace(values).zeros_like(centre)

    @property
    def fixed(self) -> Kernel:
        """The kernel. One that is still to be fitted is refused."""
        if isinstance(self.kernel, AutoKernel):
            raise ValueError(
                "AutoKernel() is fitted to transitions: give a kernel and a ridge to use without data"
            )
        return self.kernel

    @property
    def _ridge(self) -> float:
        assert self.ridge is not None  # __post_init__ refuses None for a fixed kernel
        return self.ridge


def fitted_model(timed: bool = False) -> Model:
    """The model where nothing better is known: kernel and ridge from the data, one centred regression."""
    return Model(AutoKernel(), pooled=True, centred=True, timed=timed)


class ModelPosteriors:
    """The model's own posteriors; a subclass may make others.

    `open_ends`: variables without bounds are left unscaled: features replace the kernel, so there are no
    lengthscales.
    """

    open_ends: ClassVar[bool] = False

    def posteriors(self, model: Model, inputs: Any, **options: Any) -> Posteriors:
        """Empty posteriors on a finite set (m,f); options as for `Model.posteriors`."""
        return model.posteriors(inputs, **options)

    def posterior(self, model: Model, box: tuple[Any, Any] | None) -> BasisPosterior:
        """An empty posterior for points anywhere, or of the box [low, high], (f,) each, if it needs one."""
        return model.design()

    def needs_box(self, model: Model) -> bool:
        """Whether its posteriors are for points of a box, so that every variable must have bounds."""
        return False

    @property
    def own_posteriors(self) -> bool:
        """Whether these are not the model's."""
        kind = type(self)
        return (
            kind.posteriors is not ModelPosteriors.posteriors
            or kind.posterior is not ModelPosteriors.posterior
        )


class SeparatePosteriors(ModelPosteriors):
    """A posterior of its own kind for every design of a finite world, computed one by one."""

    def __init__(self, make: Callable[[Model], Posterior]) -> None:
        self._make = make

    def posteriors(self, model: Model, inputs: Any, **options: Any) -> Posteriors:
        return PosteriorList([self._make(model) for _ in range(options["designs"])], inputs)


#: The source that most estimates use.
MODEL_POSTERIORS = ModelPosteriors()


def _as_inducing(value: Any) -> int:
    try:
        count(value, "inducing")
    except ValueError:
        raise ValueError(
            f'inducing must be a number of points, "auto" or None (exact), got {value!r:.100}'
        ) from None
    return as_inducing(value)


def _distinct(points: Array, dtype: Any = None, **_: Any) -> bool:
    """Whether the points (m,d) are all different in the dtype that a posterior would use."""
    points = to_numpy(points)
    points = points if dtype is None else points.astype(float_dtype(dtype))
    return len(np.unique(points, axis=0)) == len(points)


def midrange(values: Array, axis: int) -> Array:
    """(min + max)/2 along an axis."""
    xp = namespace(values)
    return 0.5 * (xp.min(values, axis=axis) + xp.max(values, axis=axis))
