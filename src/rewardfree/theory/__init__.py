"""The paper's theory as numbers: one function per equation, in `printed` and corrected readings.

`Problem` and the functions of answers.py put them together; docs/theory.md has the derivations.
"""

from rewardfree.theory.answers import Problem, Result, complexities, gains, spectra, table_1, widths
from rewardfree.theory.complexity import theorem_2_gap
from rewardfree.theory.gain import greedy_upper, spectral_law
from rewardfree.theory.norms import law_norms, norm_curve
from rewardfree.theory.width import (
    every_reward_width,
    generative_width,
    theorem_1_corrected,
    theorem_1_printed,
    theorem_1_tight,
)

__all__ = [
    "Problem",
    "Result",
    "complexities",
    "every_reward_width",
    "gains",
    "generative_width",
    "greedy_upper",
    "law_norms",
    "norm_curve",
    "spectra",
    "spectral_law",
    "table_1",
    "theorem_1_corrected",
    "theorem_1_printed",
    "theorem_1_tight",
    "theorem_2_gap",
    "widths",
]
