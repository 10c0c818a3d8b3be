"""The settings under which the paper's experiments can be read, each one frozen record."""

from dataclasses import dataclass
from typing import Literal

from rewardfree.kernels import Kernel, Matern, SquaredExponential
from rewardfree.ties import Ties


@dataclass(frozen=True)
class Preset:
    """One reading of the paper's experiments: every setting that its text or its scripts fix."""

    name: str
    ridge_squared_exponential: float  # the number on the diagonal, tau^2
    ridge_matern: float
    normalisation: Literal["global", "row"]  # how a draw is made non-negative before rows are normalised
    empty: Literal["zero", "prior"]  # what an explorer's Q is at a step without data
    fresh: bool  # which data Alg 3 uses at h < h0: D_{h,n} or D_{h,n-1}
    ties: Ties
    start: int  # the start state, of 100

    def ridge(self, kernel: Kernel) -> float:
        """The ridge that goes with a kernel; the paper has squared exponential and Matern only."""
        if isinstance(kernel, SquaredExponential):
            return self.ridge_squared_exponential
        if isinstance(kernel, Matern):
            return self.ridge_matern
        raise ValueError(f"the paper sets no ridge for {kernel!r}: give ridge=")


#: What the published figures were made with (but for Alg 3, which uses D_{h,n-1} as the text says).
PUBLISHED = Preset("published", 0.01, 0.5, "global", "zero", False, "lowest", 20)
#: What the text says: the ridge is the square of its tau, P is shifted for each z.
LITERAL = Preset("literal", 1e-4, 0.25, "row", "prior", False, "lowest", 20)
PRESETS = {preset.name: preset for preset in (PUBLISHED, LITERAL)}


def preset_named(preset: Preset | str) -> Preset:
    """A preset as a caller names it."""
    if isinstance(preset, Preset):
        return preset
    if not isinstance(preset, str) or preset not in PRESETS:
        raise ValueError(f"preset must be one of {', '.join(PRESETS)}, got {preset!r}")
    return PRESETS[preset]
