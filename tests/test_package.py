"""The package as others meet it: what importing it does, and what its wheel holds."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tomllib
from importlib import metadata
from pathlib import Path
from zipfile import ZipFile

import pytest

import rewardfree as rf

ROOT = Path(__file__).parents[1]
HEAVY = ["torch", "minari", "dask", "plotly", "matplotlib", "gymnasium", "typer", "rich", "sklearn", "pandas"]
# SciPy adds a filter for a warning of its own when it is imported: that is not our doing.
STATE = """
import json, os, sys, warnings
import numpy as np, scipy.linalg, scipy.special, threadpoolctl

held = threadpoolctl.threadpool_limits(2)

def state():
    blas = [(i["filepath"], i["num_threads"]) for i in threadpoolctl.threadpool_info()]
    values = {"environment": dict(os.environ), "errors": np.geterr(), "warnings": warnings.filters}
    values |= {"random": np.random.get_state(legacy=False), "blas": sorted(blas)}
    return {name: repr(value) for name, value in values.items()}

np.set_printoptions(threshold=10**6)
before = state()
import rewardfree
after = state()
print(json.dumps([name for name in before if before[name] != after[name]]))
"""


def python(*arguments, **options):
    result = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, **options)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def bare():
    """An environment without what importing rewardfree here may have added to this process's own."""
    kept = ["PATH", "HOME", "PYTHONPATH", "LD_LIBRARY_PATH"]
    return {name: os.environ[name] for name in kept if name in os.environ}


def test_import_loads_nothing_heavy():
    code = f"import json, sys, rewardfree; print(json.dumps([m for m in {HEAVY} if m in sys.modules]))"
    assert json.loads(python("-W", "error", "-c", code, env=bare())) == []


def test_import_changes_nothing():
    assert json.loads(python("-c", STATE, env=bare())) == []


def test_state_check_sees_changes():
    meddling = "os.environ['A_NEW_ONE'] = '1'; np.seterr(over='raise'); warnings.simplefilter('error')"
    meddling += "; np.random.seed(1); one = threadpoolctl.threadpool_limits(1)"
    found = json.loads(python("-c", STATE.replace("import rewardfree", meddling), env=bare()))
    assert found == ["environment", "errors", "warnings", "random", "blas"]


def test_all_is_sorted_and_complete():
    assert rf.__all__ == sorted(rf.__all__, key=lambda name: (not name.isupper(), name))  # as ruff sorts
    assert len(set(rf.__all__)) == len(rf.__all__)
    assert [name for name in rf.__all__ if not hasattr(rf, name)] == []
    assert [name for name in rf.__all__ if not getattr(rf, name).__doc__] == []
    assert len(rf.__all__) <= 45  # what is needed rarely is in its room


def test_an_interpreter_lists_the_names_and_the_rooms_and_no_more():
    rooms = {"baselines", "doubts", "evaluation", "experiments", "kernels", "planning", "posterior"}
    assert set(dir(rf)) == {*rf.__all__, *rooms, "strategies", "theory", "worlds", "__version__"}
    assert [name for name in dir(rf) if not hasattr(rf, name)] == []


@pytest.mark.parametrize(
    "room", ["baselines", "evaluation", "kernels", "planning", "posterior", "strategies", "worlds"]
)
def test_rooms_offer_what_they_name(room):
    names = getattr(rf, room).__all__
    assert [name for name in names if not hasattr(getattr(rf, room), name)] == []
    assert len(set(names)) == len(names)


def test_rooms_that_few_programs_need_are_loaded_when_they_are_asked_for():
    code = "import sys, rewardfree as rf; before = set(sys.modules); rf.theory, rf.experiments; "
    code += "print(sorted({'rewardfree.theory', 'rewardfree.experiments'} & (set(sys.modules) - before)))"
    assert python("-c", code, env=bare()) == "['rewardfree.experiments', 'rewardfree.theory']\n"
    with pytest.raises(AttributeError, match="module 'rewardfree' has no attribute 'Lattice'"):
        rf.Lattice  # noqa: B018  it is rf.posterior.Lattice


def test_version_is_the_installed_one():
    assert rf.__version__ == metadata.version("rewardfree")


def test_hints_to_install_an_extra_work_in_the_checkout():
    """No index has the package: `rewardfree[extra]` would be looked for there."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    pages = [*ROOT.glob("src/**/*.py"), *ROOT.glob("docs/*.md"), ROOT / "README.md"]
    text = "\n".join(path.read_text() for path in pages)
    assert not re.findall(r"rewardfree\[\w+\]", text)
    named = set(re.findall(r"pip install '\.\[(\w+)\]'", text))
    assert named == {"gpu", "parquet", "cluster", "render"} and named <= set(extras)


def test_package_is_typed():
    assert (Path(rf.__file__).parent / "py.typed").is_file()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """A wheel built offline from a copy of what it is made of."""
    copy, out = tmp_path_factory.mktemp("copy"), tmp_path_factory.mktemp("wheel")
    shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ["pyproject.toml", "README.md", "LICENSE"]:
        shutil.copy(ROOT / name, copy)
    offline = ["--no-deps", "--no-build-isolation", "--no-index", "--no-cache-dir"]
    python("-m", "pip", "--disable-pip-version-check", "wheel", *offline, "--wheel-dir", out, copy)
    (built,) = out.glob("*.whl")
    return built


def test_wheel_holds_the_package_and_its_command_alone(wheel):
    names = ZipFile(wheel).namelist()
    info = f"rewardfree-{rf.__version__}.dist-info"
    assert {name.split("/")[0] for name in names} == {"rewardfree", "rewardfree_command.py", info}
    source = {p.relative_to(ROOT / "src").as_posix() for p in (ROOT / "src").rglob("*.py")}
    assert {name for name in names if name.endswith(".py")} == source
    assert {"rewardfree/py.typed", f"{info}/licenses/LICENSE"} <= set(names)


def test_wheel_installs_and_imports(wheel, tmp_path):
    target = tmp_path / "target"
    offline = ["--no-deps", "--no-index", "--no-cache-dir", "--target", target]
    python("-m", "pip", "--disable-pip-version-check", "install", *offline, wheel)
    code = "import rewardfree, rewardfree.cli; print(rewardfree.__file__, rewardfree.__version__)"
    environment = {**os.environ, "PYTHONPATH": str(target)}
    file, version = python("-W", "error", "-c", code, cwd=tmp_path, env=environment).split()
    assert Path(file).parent == target / "rewardfree"
    assert (target / "rewardfree" / "py.typed").is_file()
    (installed,) = metadata.distributions(name="rewardfree", path=[str(target)])
    assert installed.version == version == rf.__version__
    (command,) = installed.entry_points.select(group="console_scripts")
    assert (command.name, command.value) == ("rewardfree", "rewardfree_command:main")
    code = "import sys; sys.argv[1:] = ['--version']; import rewardfree_command; rewardfree_command.main()"
    assert python("-c", code, cwd=tmp_path, env=environment) == f"rewardfree {version}\n"
    assert installed.metadata["Requires-Python"] == ">=3.11"


def test_import_brings_no_databases_or_processes():
    """Sweeps need them, a library that is imported does not; fcntl is not even everywhere."""
    code = (
        "import numpy, scipy.linalg, scipy.special, threadpoolctl, sys; before = set(sys.modules); "
        "import rewardfree; new = set(sys.modules) - before; "
        "print(sorted({'sqlite3', 'tomllib', 'concurrent.futures.process'} & new))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_source_distribution_holds_what_its_readme_needs(tmp_path):
    """Every file that the README links to, what `make` runs, and what the tests look at."""
    copy = tmp_path / "copy"
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout
    if not tracked:
        pytest.skip("not a checkout: this may be the source distribution itself")
    for name in tracked.split():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, copy / name)
    code = f"from hatchling.build import build_sdist; print(build_sdist({str(tmp_path)!r}))"
    built = tmp_path / python("-c", code, cwd=copy).split()[-1]
    with tarfile.open(built) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    links = set(re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", (ROOT / "README.md").read_text()))
    assert len(links) > 10 and links - held == set()
    assert {"Makefile", "pyproject.toml", "tools/install.py", "requirements/dev.txt", ".ci/run"} <= held
    assert [name for name in tracked.split() if name not in held] == []


#: It gets Ctrl-C at a moment of its import, and again when it has said goodbye.
PRESSED = """
import os, signal, sys

class Press:
    def find_spec(self, name, *_):
        if name == MOMENT:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Press())
sys.argv[1:] = ["--version"]
import rewardfree_command
import atexit
atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))
rewardfree_command.main()
"""


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("moment", ["numpy", "rewardfree.model", "typer", "rewardfree.cli.app", "none"])
def test_ctrl_c_is_quiet_from_the_first_import_to_the_end(moment):
    code = PRESSED.replace("MOMENT", repr(moment))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")
    assert done.stdout == (f"rewardfree {rf.__version__}\n" if moment == "none" else "")
