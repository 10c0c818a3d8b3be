"""The paper's theory as numbers: one function per equation, in `printed` and corrected readings.

`Problem` and the functions of answers.py put them together; docs/theory.md has the derivations.
"""

from rewardfree.theory.answers import Problem, Result, complexities, gains, spectra, table_1, widths

__all__ = ["Problem", "Result", "complexities", "gains", "spectra", "table_1", "widths"]
