"""Kernels as frozen values: `k(x, y)` is the (n,m) matrix of k(x_i, y_j), `k.diag(x)` the (n,) k(x_i, x_i).

Points are x (n,d) and y (m,d). Kernels have k(x, x) = 1 unless scaled, except `Linear`. `+` and `*` add,
multiply and scale them. Any object with `k(x, y)` and `k.diag(x)`, such as a scikit-learn kernel, is accepted
as a kernel.
"""

from rewardfree.kernels.algebra import Foreign, Kernel, Product, Scaled, Sum, as_kernel
from rewardfree.kernels.fitting import AutoKernel, first_guess, fit_next_states
from rewardfree.kernels.linear import Delta, Linear
from rewardfree.kernels.stationary import Matern, SquaredExponential
from rewardfree.kernels.tangent import NeuralTangent

__all__ = [
    "AutoKernel",
    "Delta",
    "Foreign",
    "Kernel",
    "Linear",
    "Matern",
    "NeuralTangent",
    "Product",
    "Scaled",
    "SquaredExponential",
    "Sum",
    "as_kernel",
    "first_guess",
    "fit_next_states",
]
