"""Create or refresh `.venv` from the hash-pinned requirements; do nothing when it is up to date.

With --lowest it is `.venv-lowest`: every dependency in the lowest version that pyproject.toml allows.
Called by the Makefile with whatever python3 the machine has, so this file uses the standard library
alone and only syntax that an old Python can still parse (it must live to say that it is too old).
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys

if sys.version_info < (3, 11):
    sys.exit(
        "rewardfree needs Python 3.11 or newer, this is Python %d.%d: run `make PYTHON=python3.11 ...`"
        % sys.version_info[:2]
    )

import fcntl  # after the version check: the message above matters more than a missing module

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LOWEST = "--lowest" in sys.argv[1:]
VENV = os.path.join(ROOT, ".venv-lowest" if LOWEST else ".venv")
STAMP = os.path.join(VENV, "installed")
REQUIREMENTS = os.path.join(ROOT, "requirements", "dev.txt")
PROJECT = os.path.join(ROOT, "pyproject.toml")
INPUTS = [REQUIREMENTS, PROJECT, os.path.abspath(__file__)]
#: What users get: these hold the floors. What only checks the code may be new, and some of it is not needed.
EXTRAS = ["parquet", "cluster", "render"]
NOT_NEEDED = ["ruff", "mypy"]


def fingerprint():
    """What the environment was made from: the interpreter, the place and the content of the inputs."""
    digest = hashlib.sha256(repr((sys.version, sys.base_prefix, ROOT)).encode())
    for path in INPUTS:
        with open(path, "rb") as handle:
            digest.update(handle.read())
    return digest.hexdigest()


def installed():
    """The fingerprint of the finished environment, or None while there is none."""
    if not os.path.exists(os.path.join(VENV, "bin", "python")):
        return None
    try:
        with open(STAMP) as handle:
            return handle.read()
    except OSError:
        return None


def pip(*arguments):
    python = os.path.join(VENV, "bin", "python")
    command = [python, "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
    result = subprocess.run(command + list(arguments), cwd=ROOT)
    if result.returncode != 0:
        sys.exit(
            "make install: pip failed (its message is above); the environment is incomplete, run it again"
        )


def lowest():
    """Every dependency and what the extras need at its floor; the tests' own tools at any version."""
    import tomllib

    with open(PROJECT, "rb") as handle:
        project = tomllib.load(handle)["project"]
    extras = project["optional-dependencies"]
    wanted = project["dependencies"] + [each for extra in EXTRAS for each in extras[extra]]
    floors = [re.sub(r",.*", "", each).replace(">=", "==") for each in wanted]
    held = {each.split("==")[0] for each in floors} | set(NOT_NEEDED)
    return floors + [each for each in extras["dev"] if each.split(">=")[0] not in held]


def install():
    print("installing into %s (a minute or two) ..." % os.path.basename(VENV), flush=True)
    if os.path.exists(STAMP):  # first, so that a half-removed environment never counts as a finished one
        os.remove(STAMP)
    shutil.rmtree(VENV, ignore_errors=True)
    # Not sys.executable: inside an activated .venv that one has just been removed.
    subprocess.run([sys._base_executable, "-m", "venv", VENV], check=True)
    if LOWEST:
        pip("--only-binary", ":all:", *lowest())
    else:
        pip("--require-hashes", "--only-binary", ":all:", "-r", REQUIREMENTS)
    # The build backend is pinned above too, so nothing unpinned is fetched to build the package.
    pip("--no-deps", "--no-build-isolation", "--editable", ROOT)
    with open(STAMP, "w") as handle:
        handle.write(fingerprint())


def main():
    try:
        # Two makes at once: the second waits here, then finds the stamp and has nothing to do.
        with open(VENV + ".lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if installed() != fingerprint():
                install()
    except (OSError, subprocess.CalledProcessError) as problem:
        sys.exit("make install: cannot set up %s: %s" % (VENV, problem))


main()
