"""Tabular explorers that several files of tests run."""

import pytest

import rewardfree as rf
from reference_runs import small_world

DELTA = 0.1
COLUMNS = ("h", "state", "action", "next_state")
CERTIFIED = [
    rf.baselines.RFUCRL(0.5, DELTA, bonus_scale=0.01),
    rf.baselines.RFExpress(1.0, DELTA, bonus_scale=1e-5),
]
certified = pytest.mark.parametrize("strategy", CERTIFIED, ids=lambda strategy: type(strategy).__name__)


def world(states=3, actions=2, horizon=3, **options):
    return small_world(states=states, actions=actions, horizon=horizon, **{"start": 0, **options})


def rows(data):
    return list(zip(*(getattr(data, name).tolist() for name in COLUMNS), strict=True))
