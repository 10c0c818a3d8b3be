"""The rooms of the package: who may import whom, and how large a file may grow."""

import ast
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "rewardfree"
SMALL = [
    "arrays",
    "threads",
    "ties",
    "streams",
    "files",
    "progress",
    "formulas",
    "registry",
    "interruption",
    "doubts",
]
ENGINE = [
    *SMALL, "kernels", "posterior", "model", "presets", "budget", "worlds", "rewards", "data", "estimates",
    "dynamics", "strategies", "baselines", "planning", "evaluation",
]  # fmt: skip
# Studies stand after report: a study draws its figures with report's tools.
ORDER = [*ENGINE, "theory", "certificates", "experiments", "report", "studies", "studio", "cli"]
FRONT = "__init__"  # the package's own __init__.py: it gathers names, so it may import any room
WHOLE_PACKAGE = {"experiments", "report", "studies", "studio", "cli"}  # may say `import rewardfree as rf`
THEORY = {*SMALL, "kernels", "posterior", "theory"}
ENGINE_NEEDS = {"numpy", "scipy", "array_api_compat", "threadpoolctl"} | sys.stdlib_module_names
WITH_GYMNASIUM = {"worlds/gymnasium.py"}  # inside functions: nobody waits for it who does not use it
WITH_TORCH = {f"posterior/engine/{name}.py" for name in ("backend_torch", "linear_algebra_torch", "replay")}
#: The public doors, and the commands of the command line, where every argument is one that a user names.
DOORS = {"explore", "explore_many", "plan", "plan_many", "learning_curves"}
MOST_PARAMETERS = 10
NAMES_THAT_SAY_NOTHING = {"utils", "common", "helpers", "manager", "base"}
MOST_LINES = 500


def sources():
    return {path.relative_to(PACKAGE).as_posix(): path.read_text() for path in PACKAGE.rglob("*.py")}


def room_of(name):
    return Path(name).parts[0].removesuffix(".py")


def at_top_level(tree):
    """The nodes that run on import: all but the bodies of functions and of `if TYPE_CHECKING`."""
    waiting = list(tree.body)
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting.extend(node.orelse)
        else:
            waiting.extend(ast.iter_child_nodes(node))


def modules(node, name):
    """The dotted names that an import statement of file `name` brings in, `from` names included."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    start = node.module or ""
    if node.level:
        package = ["rewardfree", *Path(name).parent.parts]
        start = ".".join([*package[: len(package) - node.level + 1], *filter(None, [start])])
    return [f"{start}.{alias.name}" for alias in node.names]


def needs_torch(module):
    torch = ["torch", "array_api_compat.torch"]
    torch += ["rewardfree." + file.removesuffix(".py").replace("/", ".") for file in WITH_TORCH]
    return any(module == name or module.startswith(name + ".") for name in torch)


def faults(name, source):
    """What file `name` of the package does against the order of the rooms."""
    room, tree, found = room_of(name), ast.parse(source), []
    if room not in [*ORDER, FRONT]:
        return [f"{name}: {room} is not a room"]
    if NAMES_THAT_SAY_NOTHING & set(Path(name).with_suffix("").parts):
        found.append(f"{name}: a name that says nothing")
    if len(source.splitlines()) > MOST_LINES:
        found.append(f"{name}: over {MOST_LINES} lines")
    on_import = {id(node) for node in at_top_level(tree)}
    for node in ast.walk(tree):
        for module in modules(node, name):
            fault = import_fault(name, room, module, id(node) in on_import)
            if fault:
                found.append(f"{name}:{node.lineno}: {fault}")
    return found


def import_fault(name, room, module, on_import):
    top, *below = module.split(".")
    if needs_torch(module) and name not in WITH_TORCH and on_import:
        return f"{module} on import"
    if top == "rewardfree":
        return room_fault(room, below)
    if needs_torch(module) and name in WITH_TORCH:
        return None
    if top == "gymnasium" and name in WITH_GYMNASIUM:
        return f"{module} on import" if on_import else None
    if room in [*ENGINE, FRONT] and (top not in ENGINE_NEEDS or needs_torch(module)):
        return f"{module} in the engine"
    return None


def room_fault(room, below):
    imported = below[0] if below and below[0] in ORDER else None
    if imported is None:  # `import rewardfree`, or a name from its front
        return None if room in WHOLE_PACKAGE else f"the whole package in {room}"
    if room == FRONT:
        return None
    if ORDER.index(imported) > ORDER.index(room):
        return f"{imported} stands after {room}"
    if room == "theory" and imported not in THEORY:
        return f"{imported} in theory"
    return None


def test_every_file_keeps_the_order():
    files = sources()
    assert {"__init__.py", "kernels/algebra.py", "posterior/lattice.py"} <= files.keys()
    assert [fault for name, source in sorted(files.items()) for fault in faults(name, source)] == []


@pytest.mark.parametrize(
    ("name", "source", "fault"),
    [
        ("kernels.py", "from rewardfree.model import Model", "kernels.py:1: model stands after kernels"),
        ("kernels.py", "def f():\n    import rewardfree.cli", "kernels.py:2: cli stands after kernels"),
        ("kernels.py", "from . import posterior", "kernels.py:1: posterior stands after kernels"),
        (
            "kernels/fitting/finite.py",
            "from ...model import Model",
            "kernels/fitting/finite.py:1: model stands after kernels",
        ),
        (
            "estimates/backups.py",
            "from rewardfree.strategies import Qiu",
            "estimates/backups.py:1: strategies stands after estimates",
        ),
        (
            "strategies/qiu.py",
            "import rewardfree.baselines",
            "strategies/qiu.py:1: baselines stands after strategies",
        ),
        ("report/gaps.py", "import rewardfree.studies", "report/gaps.py:1: studies stands after report"),
        (
            "studies/paper/sweep.py",
            "import rewardfree.cli",
            "studies/paper/sweep.py:1: cli stands after studies",
        ),
        (
            "posterior/design.py",
            "from ..model import Model",
            "posterior/design.py:1: model stands after posterior",
        ),
        ("model.py", "import rewardfree as rf", "model.py:1: the whole package in model"),
        ("model.py", "from rewardfree import Matern", "model.py:1: the whole package in model"),
        ("theory/rates.py", "import rewardfree.worlds", "theory/rates.py:1: worlds in theory"),
        ("theory.py", "import rewardfree.model", "theory.py:1: model in theory"),
        ("worlds/gym.py", "def f():\n    import gymnasium", "worlds/gym.py:2: gymnasium in the engine"),
        ("worlds/gymnasium.py", "import gymnasium", "worlds/gymnasium.py:1: gymnasium on import"),
        ("posterior/lattice.py", "def f():\n    import torch", "posterior/lattice.py:2: torch in the engine"),
        ("cli/app.py", "import torch.cuda", "cli/app.py:1: torch.cuda on import"),
        ("cli/app.py", "try:\n    import torch\nexcept ImportError: ...", "cli/app.py:2: torch on import"),
        ("cli/app.py", "class A:\n    import torch", "cli/app.py:2: torch on import"),
        (
            "posterior/lattice.py",
            "from rewardfree.posterior.engine.replay import replay",
            "posterior/lattice.py:1: rewardfree.posterior.engine.replay.replay on import",
        ),
        (
            "posterior/lattice.py",
            "from rewardfree.posterior.engine import backend_torch",
            "posterior/lattice.py:1: rewardfree.posterior.engine.backend_torch on import",
        ),
        ("arrays.py", "import array_api_compat.torch", "arrays.py:1: array_api_compat.torch on import"),
        ("__init__.py", "import matplotlib", "__init__.py:1: matplotlib in the engine"),
        ("attic/old.py", "", "attic/old.py: attic is not a room"),
        ("attic.py", "", "attic.py: attic is not a room"),
        ("report/utils.py", "", "report/utils.py: a name that says nothing"),
        ("data/base/rows.py", "", "data/base/rows.py: a name that says nothing"),
        ("model.py", "x = 1\n" * 501, "model.py: over 500 lines"),
    ],
)
def test_a_violation_is_caught(name, source, fault):
    assert faults(name, source) == [fault]


@pytest.mark.parametrize(
    ("name", "source"),
    [
        (
            "model.py",
            "from rewardfree.posterior import Design, Lattice\nimport scipy.linalg, numpy as np, os.path",
        ),
        (
            "posterior/engine/replay.py",
            "import torch\nfrom rewardfree.posterior.engine.backend import Recording",
        ),
        ("posterior/lattice.py", "def f():\n    from rewardfree.posterior.engine.replay import replay"),
        (
            "report/style.py",
            "if TYPE_CHECKING:\n    import torch\nimport matplotlib\nimport rewardfree as rf",
        ),
        ("theory/rates.py", "from rewardfree.kernels import Kernel\nfrom rewardfree.theory import gain"),
        ("worlds/gymnasium.py", "def f():\n    import gymnasium"),
        (
            "studies/paper/figures.py",
            "import rewardfree as rf\nfrom rewardfree.report import style\nimport plotly",
        ),
        ("__init__.py", "from rewardfree.strategies import query_plan"),
        ("model.py", "x = 1\n" * 500),
    ],
)
def test_what_is_allowed_passes(name, source):
    assert faults(name, source) == []


def parameters(function):
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return len(named) + (arguments.vararg is not None) + (arguments.kwarg is not None)


def test_functions_have_few_parameters():
    many = [
        f"{name}:{node.lineno}: {node.name} has {parameters(node)} parameters"
        for name, source in sources().items()
        if not name.startswith("cli/commands/")
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if node.name not in DOORS and parameters(node) > MOST_PARAMETERS
    ]
    assert many == []
