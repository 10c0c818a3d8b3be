"""The paper's Table 1 as it is printed; `rewardfree theory table1` has it as numbers."""

from rewardfree.theory.complexity import PRINTED, eps_exponent

#: The Matern kernels of the experiments, whose eigenvalues fall as m^-p with p = 1 + 2 nu / d.
SMOOTHNESS, DIMENSION = (2.5, 1.5), 2


def complexity_table() -> list[str]:
    """Table 1 as printed, its exponents for the kernels of the experiments, and what is wrong with it."""
    exponents = ", ".join(f"{eps_exponent(nu, DIMENSION):.2f} for nu = {nu}" for nu in SMOOTHNESS)
    return [
        "Table 1 of the paper: sample complexities, as printed",
        *(f"  {setting:40s}{method:22s}{rate}" for setting, (method, rate) in PRINTED.items()),
        f"  2 + 2/(p-1) is 2 + d/nu for Matern kernels; here d = {DIMENSION}: {exponents}",
        "  With a generative model the proof gives (H^2 / eps)^(2 + 2/(p-1)) per step, not the text's H^3;",
        "  the polynomial H of the online rate is not proven (docs/paper-notes.md).",
    ]
