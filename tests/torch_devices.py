"""Where the torch tests run: torch on the CPU, and a CUDA device where there is one."""

import importlib.util


def on_every_device(metafunc):
    """`pytest_generate_tests` of a module whose tests take a `device`."""
    if "device" not in metafunc.fixturenames:
        return
    devices = ["cpu"]
    if importlib.util.find_spec("torch"):  # without it these tests are collected, and left out
        import torch

        devices += ["cuda"] * torch.cuda.is_available()
    metafunc.parametrize("device", devices)
