"""The studies by name, and the report of a folder that one of them wrote."""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

from rewardfree.report.report import Report, UserSweep
from rewardfree.studies.baselines.study import Baselines
from rewardfree.studies.beyond.study import Beyond
from rewardfree.studies.control.study import Control
from rewardfree.studies.doubling.study import Doubling
from rewardfree.studies.paper.study import PARTS, Functions, Table, WholePaper
from rewardfree.studies.study import STUDY_FILE, Study
from rewardfree.studies.verdicts.study import Verdicts

STUDIES: dict[str, type[Functions | Table | WholePaper | Study[Any]]] = {
    **PARTS,
    "all": WholePaper,
    **{study.name: study for study in (Beyond, Baselines, Control, Doubling, Verdicts)},
}


def study_named(name: str, **options: Any) -> Functions | Table | WholePaper | Study[Any]:
    """The study of that name; options that are None were not given."""
    if name not in STUDIES:
        raise ValueError(f"there is {', '.join(STUDIES)} to reproduce, got {name!r}")
    given = {option: value for option, value in options.items() if value is not None}
    unknown = set(given) - {field.name for field in fields(STUDIES[name])}
    if "worlds" in unknown:
        raise ValueError(f"--worlds is for doubling, not for {name}")
    if unknown:
        raise ValueError(
            f"--preset, --draws, --kernels and --device are for the paper's figures, not for {name}"
        )
    return STUDIES[name](**given)


def report_of(folder: Path) -> Report[Any]:
    """What a folder's results are shown as: the study that they are of, or a sweep of a user's own."""
    path = folder / STUDY_FILE
    if not path.exists():
        return UserSweep(folder.resolve().name)
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
        study = STUDIES[settings.pop("study")](**settings)
    except Exception as error:  # a value of a file may be anything, and break anything
        raise ValueError(f"{path} is damaged ({error!r}): run the same command again") from error
    if not isinstance(study, Report):  # its parts have folders of their own
        raise ValueError(f"{path} is damaged (it names {study!r}): run the same command again")
    return study
