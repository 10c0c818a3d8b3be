"""What exploration leaves behind: every environment step, kept or passed by, and no reward."""

from rewardfree.data.experience import Experience, Fitted
from rewardfree.data.loading import load
from rewardfree.data.record import Record
from rewardfree.data.transitions import Transitions

__all__ = ["Experience", "Fitted", "Record", "Transitions", "load"]
