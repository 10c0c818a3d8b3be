"""What exploration leaves behind: every environment step, kept or passed by, and no reward."""

from rewardfree.data.experience import Experience
from rewardfree.data.loading import load
from rewardfree.data.run_data import Explorer, RunData
from rewardfree.data.samples import COLUMNS, Row, Samples
from rewardfree.data.transitions import Transitions

__all__ = ["COLUMNS", "Experience", "Explorer", "Row", "RunData", "Samples", "Transitions", "load"]
