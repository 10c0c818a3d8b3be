"""The prior systems that the paper names, as strategies, and well-known explorers by a kernel."""

from rewardfree.baselines.jin import Jin
from rewardfree.baselines.kernel_analogues import KernelRFExpress, KernelRFUCRL, MeanEmbedding
from rewardfree.baselines.linear import LinearRewardFree, linear_beta
from rewardfree.baselines.partitioned import Partitioned
from rewardfree.baselines.rf_ucrl import RFUCRL, RFExpress

__all__ = [
    "RFUCRL",
    "Jin",
    "KernelRFExpress",
    "KernelRFUCRL",
    "LinearRewardFree",
    "MeanEmbedding",
    "Partitioned",
    "RFExpress",
    "linear_beta",
]
