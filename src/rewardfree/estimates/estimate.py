"""What recursions ask of an estimate of [P_h V], and who makes the posteriors that it rests on."""

from collections.abc import Callable
from typing import Any, ClassVar, Protocol

from rewardfree.arrays import Array
from rewardfree.model import Model
from rewardfree.posterior import BasisPosterior, Posterior, PosteriorList, Posteriors


class Estimate(Protocol):
    """[P_h V] by kernel ridge regression of V(s') on z, for every step h.

    A `FiniteEstimate` takes V at all states (b,s,c) and answers at all z. A `SampledEstimate` takes V at the
    next states of step h's samples (n,) and answers with functions of the points as the kernel sees them.
    """

    def mean(self, h: int, values: Array) -> Any:
        """The estimate of [P_h V]."""

    def std(self, h: int) -> Any:
        """sigma_h."""

    def count(self, h: int) -> int:
        """How many samples the regression of step h has."""


class ModelPosteriors:
    """The model's own posteriors; a subclass may make others.

    `open_ends`: variables without bounds are taken as they are, for there are no lengthscales for them.
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
