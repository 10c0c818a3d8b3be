"""tools/install.py, the pinned requirements and the script that continuous integration runs."""

import ast
import fcntl
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "tools" / "install.py"
REQUIREMENTS = (ROOT / "requirements" / "dev.txt").read_text()


@pytest.fixture
def copy(tmp_path):
    """The files that an installation is made from, elsewhere."""
    for name in ["tools", "requirements"]:
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def functions(copy):
    """The names of the copied script, without its last line, which starts the work."""
    path = copy / "tools" / "install.py"
    tree = ast.parse(path.read_text())
    assert ast.unparse(tree.body.pop()) == "main()"
    names = {"__file__": str(path)}
    exec(compile(tree, path, "exec"), names)
    return names


def stamp(copy):
    """Make `.venv` look finished."""
    (copy / ".venv").mkdir(exist_ok=True)
    (copy / ".venv" / "bin").mkdir()
    (copy / ".venv" / "bin" / "python").touch()
    (copy / ".venv" / "installed").write_text(functions(copy)["fingerprint"]())


def everything(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.name != ".venv.lock"}


def start(copy):
    call = [sys.executable, copy / "tools" / "install.py"]
    return subprocess.Popen(call, cwd=copy, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("version", [(2, 7, 18, "final", 0), (3, 6, 0, "final", 0), (3, 10, 14, "final", 0)])
def test_old_python_gets_one_line(copy, version):
    path = copy / "tools" / "install.py"
    fake = f"import sys; sys.version_info = {version}; __file__ = {str(path)!r}; "
    fake += "exec(compile(open(__file__).read(), __file__, 'exec'))"
    before = everything(copy)
    done = subprocess.run([sys.executable, "-c", fake], cwd=copy, capture_output=True, text=True)
    assert done.returncode != 0
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1 and done.stderr.endswith("\n")
    assert "needs Python 3.11 or newer, this is Python {}.{}".format(*version) in done.stderr
    assert everything(copy) == before


def test_old_python_can_parse_the_script():
    ast.parse(SCRIPT.read_text(), feature_version=(3, 6))


def test_script_and_package_ask_for_the_same_python():
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    assert wanted == ">=" + re.search(r"Python (\S+) or newer", SCRIPT.read_text())[1]


def test_up_to_date_does_nothing(copy):
    stamp(copy)
    before = everything(copy)
    running = start(copy)
    assert running.communicate(timeout=60) == ("", "")
    assert running.returncode == 0
    assert everything(copy) == before


@pytest.mark.parametrize("name", ["pyproject.toml", "requirements/dev.txt", "tools/install.py"])
def test_a_changed_input_installs_again(copy, name):
    names, calls = functions(copy), []
    names["install"] = lambda: calls.append(name)
    stamp(copy)
    names["main"]()
    assert calls == []
    (copy / name).write_text((copy / name).read_text() + "\n")
    names["main"]()
    assert calls == [name]


def test_no_environment_installs(copy):
    names, calls = functions(copy), []
    names["install"] = lambda: calls.append(1)
    names["main"]()
    assert calls == [1]


def test_failing_pip_is_one_line_and_no_stamp(copy):
    names = functions(copy)
    python = copy / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\nexit 3\n")
    python.chmod(0o755)
    with pytest.raises(SystemExit, match="pip failed") as stop:
        names["pip"]("--no-index", "nothing")
    assert "\n" not in stop.value.code
    assert names["installed"]() is None


def test_second_install_waits_for_the_first(copy):
    with (copy / ".venv.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        running = start(copy)
        time.sleep(0.5)
        assert running.poll() is None
        stamp(copy)  # what the first one does last
    assert running.communicate(timeout=60) == ("", "")
    assert running.returncode == 0


def pinned():
    lines = REQUIREMENTS.replace("\\\n", " ").splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]


def test_every_requirement_is_pinned_and_hashed():
    pattern = r"[a-z0-9][a-z0-9._-]*==[0-9][^\s;]*( +; [^\\]+?)?( +--hash=sha256:[0-9a-f]{64})+ *"
    assert len(pinned()) > 10
    assert [line[:60] for line in pinned() if not re.fullmatch(pattern, line)] == []


def test_requirements_name_no_index():
    assert "http" not in REQUIREMENTS
    assert "index" not in REQUIREMENTS
    assert "find-links" not in REQUIREMENTS


def test_every_dependency_is_pinned():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = project["build-system"]["requires"] + project["project"]["dependencies"]
    wanted += project["project"]["optional-dependencies"]["dev"]
    names = {re.match(r"[\w-]+", requirement)[0].lower() for requirement in wanted}
    assert names - {line.split("==")[0] for line in pinned()} == set()


def test_ci_runs_tests_and_linters():
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert {"make test", "make lint"} <= set(script.read_text().splitlines())


def test_the_lowest_versions_are_the_floors_of_the_project(copy):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["parquet"], *extras["cluster"], *extras["render"]]
    floors = {requirement.split(",")[0].replace(">=", "==") for requirement in wanted}
    assert len(floors) == len(wanted) and all(re.fullmatch(r"[\w-]+==[\d.]+", floor) for floor in floors)
    chosen = functions(copy)["lowest"]()
    assert floors <= set(chosen) and len({re.match(r"[\w-]+", name)[0] for name in chosen}) == len(chosen)
    tools = {re.match(r"[\w-]+", name)[0] for name in set(chosen) - floors}
    assert {"pytest", "hypothesis", "scikit-learn", "hatchling"} <= tools and not tools & {"ruff", "mypy"}


def test_the_lowest_versions_have_a_command_and_an_environment_of_their_own(copy, monkeypatch):
    assert "make test-lowest" not in (ROOT / ".ci" / "run").read_text()
    recipe = (ROOT / "Makefile").read_text().partition("\ntest-lowest:")[2].partition("\n\n")[0]
    assert "tools/install.py --lowest" in recipe and ".venv-lowest/bin/python -m pytest" in recipe
    assert functions(copy)["VENV"] == str(copy / ".venv")
    monkeypatch.setattr(sys, "argv", ["install.py", "--lowest"])
    assert functions(copy)["VENV"] == str(copy / ".venv-lowest")
