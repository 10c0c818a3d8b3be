"""How long `import rewardfree` takes, against the NumPy and SciPy that it needs."""

from __future__ import annotations

import subprocess
import sys

from table import Row, seconds, show


def fresh(code: str) -> float:
    return seconds(lambda: subprocess.run([sys.executable, "-c", code], check=True), repeats=5)


def rows(quick: bool = False) -> list[Row]:
    nothing = fresh("pass")
    ours = fresh("import rewardfree") - nothing
    theirs = fresh("import numpy, scipy.linalg, scipy.special") - nothing
    return [
        Row(
            "import rewardfree",
            f"{ours:.2f} s",
            f"numpy and scipy alone {theirs:.2f} s",
            f"{ours / theirs:.1f}x",
        )
    ]


if __name__ == "__main__":
    show(rows())
