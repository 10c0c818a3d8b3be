"""What the README and the examples show is run as it stands there."""

import ast
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
ENVIRONMENT = Path(sys.executable).parent
FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w*)[^\n]*\n(?P<body>.*?)^(?P=indent)```", re.M | re.S)
ELSEWHERE = re.compile(r"(git clone|cd|pip install|python3? -m pip install)\b")
# Never from inside the tests: themselves, what would remove the environment they run in, and the network.
LEFT_OUT = re.compile(r"make (\S+=\S+ )*(test|clean|lock)( |$)|\S*\.ci/run\b")


def blocks(text, *languages):
    """(line number, text) of the fenced blocks in these languages."""
    for match in FENCE.finditer(text):
        if match["language"] in languages:
            yield text[: match.start("body")].count("\n"), textwrap.dedent(match["body"])


def script(text):
    """All python blocks as one file, each on the lines that it has in the README."""
    lines = []
    for start, body in blocks(text, "python"):
        lines += [""] * (start - len(lines)) + body.splitlines()
    return "\n".join(lines) + "\n"


def commands(text):
    """Every command of the shell blocks; in console blocks the lines behind a prompt."""
    shell = [body for _, body in blocks(text, "sh", "bash", "shell")]
    for _, body in blocks(text, "console"):
        prompts = [line.strip()[2:] for line in body.splitlines() if line.strip().startswith("$ ")]
        shell.append("\n".join(prompts))
    lines = [
        re.sub(r"(^|\s)#.*$", "", line) for body in shell for line in body.replace("\\\n", " ").splitlines()
    ]
    return [" ".join(part.split()) for line in lines for part in line.split("&&") if part.strip()]


def together(lines):
    """Commands of ours that follow each other, as one: a later one may read what an earlier one wrote."""
    joined = []
    for line in lines:
        if joined and line.startswith("rewardfree") and joined[-1].startswith("rewardfree"):
            joined[-1] += f" && {line}"
        else:
            joined.append(line)
    return joined


def targets():
    return set(re.findall(r"^([\w-]+):(?!=)", (ROOT / "Makefile").read_text(), re.M))


def quick(command, out):
    """The command as the tests run it: the long ones small, and pictures out of the way."""
    return re.sub(r"^make (.*\b)?(bench|demo|reproduce)\b.*", rf"\g<0> QUICK=1 OUT={out}", command)


def surroundings():
    """The environment of a plain shell in which .venv is active, also when `make test` started us."""
    of_make = {"MAKEFLAGS", "MAKELEVEL", "MFLAGS", "MAKEOVERRIDES", "PYTHON", "OUT", "QUICK", "JOBS"}
    plain = {name: value for name, value in os.environ.items() if name not in of_make}
    return {**plain, "PATH": f"{ENVIRONMENT}:{os.environ['PATH']}", "MPLBACKEND": "agg"}


def up_to_date():
    """Whether `make` would find nothing to install: it must not replace .venv under the running tests."""
    path = ROOT / "tools" / "install.py"
    tree = ast.parse(path.read_text())
    tree.body.pop()  # the call of main()
    names = {"__file__": str(path)}
    exec(compile(tree, path, "exec"), names)
    return names["installed"]() == names["fingerprint"]()


def test_our_commands_run_where_those_before_them_did():
    assert together(["make a", "rewardfree b", "rewardfree c", "make d", "rewardfree e"]) == [
        "make a",
        "rewardfree b && rewardfree c",
        "make d",
        "rewardfree e",
    ]


def test_make_test_is_in_the_readme():
    assert "make test" in commands(README.read_text())


def test_every_make_target_exists():
    named = re.findall(r"`make ([\w-]+)", README.read_text())
    for command in commands(README.read_text()):
        words = command.split()
        if words[0] == "make":
            named += [word for word in words[1:] if "=" not in word and not word.startswith("-")]
    assert set(named) - targets() == set()


@pytest.mark.parametrize("command", dict.fromkeys(["make help", *together(commands(README.read_text()))]))
def test_command_runs(command, tmp_path):
    if ELSEWHERE.match(command) or LEFT_OUT.match(command):
        return
    if command.startswith("make ") and command != "make help":
        assert up_to_date(), "run `make install` first"
    where = tmp_path if command.startswith("rewardfree") else ROOT
    line = quick(command, tmp_path)
    done = subprocess.run(line, shell=True, cwd=where, env=surroundings(), capture_output=True, text=True)
    assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"


PAGES = ["README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]
SHOWN_CODE = [name for name in PAGES if script((ROOT / name).read_text()).strip() and "extending" not in name]
EXAMPLES = sorted(f"examples/{path.name}" for path in ROOT.glob("examples/*.py"))


@pytest.mark.parametrize("name", [*SHOWN_CODE, *EXAMPLES])
def test_python_runs(name, tmp_path):
    """Every page with code but docs/extending.md, which test_extending.py runs."""
    path = ROOT / name
    if path.suffix == ".md":
        path = tmp_path / f"{path.stem}.py"
        path.write_text(script((ROOT / name).read_text()))
    call = [sys.executable, "-W", "error", path]
    done = subprocess.run(call, cwd=tmp_path, env=surroundings(), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


SHOWN = """
```python
x = 1
```
- item
  ```python
  assert x == 1
  ```
```sh
git clone somewhere && cd there   # get it
make test      # a comment
rewardfree query-plan --format csv \\
  -n 3 > plan.csv
# only a comment
```
```console
$ make demo OUT=elsewhere  # draws
a line that it prints
```
```
make nothing
```
"""


def test_blocks_are_found():
    assert script(SHOWN) == "\n\nx = 1\n\n\n\nassert x == 1\n"
    assert commands(SHOWN) == [
        "git clone somewhere",
        "cd there",
        "make test",
        "rewardfree query-plan --format csv -n 3 > plan.csv",
        "make demo OUT=elsewhere",
    ]


def test_long_commands_run_small():
    assert quick("make demo OUT=elsewhere", "tmp") == "make demo OUT=elsewhere QUICK=1 OUT=tmp"
    assert quick("make bench", "tmp") == "make bench QUICK=1 OUT=tmp"
    assert quick("make PYTHON=python3 reproduce", "tmp") == "make PYTHON=python3 reproduce QUICK=1 OUT=tmp"
    assert quick("make lint", "tmp") == "make lint"


@pytest.mark.parametrize(
    "command", ["make test", "make JOBS=2 test", "make test JOBS=2", "make clean", ".ci/run"]
)
def test_left_out(command):
    assert LEFT_OUT.match(command)


@pytest.mark.parametrize("command", ["make test-gpu", "make demo", "make lint", "rewardfree demo"])
def test_not_left_out(command):
    assert not LEFT_OUT.match(command) and not ELSEWHERE.match(command)


def test_a_snippet_that_needs_another_package_says_what_to_install():
    """rewardfree does without scikit-learn; whoever pastes such a block may not have it."""
    pages = [README, *sorted((ROOT / "docs").glob("*.md"))]
    needing = [body for page in pages for _, body in blocks(page.read_text(), "python") if "sklearn" in body]
    assert needing and all("# pip install scikit-learn" in body for body in needing)
