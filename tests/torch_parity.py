"""Run by `make test-gpu`: the torch tests, on the CPU and on every kind of CUDA device that torch sees."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest


def main() -> int:
    if importlib.util.find_spec("torch") is None:
        sys.stdout.write(
            "torch parity was NOT run: torch is not installed here. Install it into .venv, or name a Python "
            "that has it: make test-gpu TORCH_PYTHON=python3\n"
        )
        return 0
    import torch

    if not torch.cuda.is_available():
        sys.stdout.write(f"torch {torch.__version__} sees no CUDA device: parity is run on the CPU alone\n")
    files = ("test_torch.py", "test_torch_states.py")
    return pytest.main(["-m", "torch", *(str(Path(__file__).with_name(name)) for name in files)])


if __name__ == "__main__":
    root = Path(__file__).resolve().parent.parent
    sys.path.insert(0, str(root / "src"))  # a Python of its own has no rewardfree installed
    sys.exit(main())
