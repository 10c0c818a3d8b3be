"""Changes of files and odd formulas, for fuzz.py: each is decided by a generator of random numbers."""

import contextlib
import io
import json
import pickle
import sqlite3
import tempfile
import zipfile
from pathlib import Path

import numpy as np

from rewardfree.formulas import FUNCTIONS

#: A module that a file may name, and must not get imported.
EVIL = "evilmod"
#: A member of a zip that says and holds so many bytes of zeros.
BOMB = 300_000_000


class Malice:
    """It runs code when it is unpickled."""

    def __reduce__(self):
        return __import__, (EVIL,)


DEEP = "DEEP"  # stands for brackets that no encoder would write
ODD = [
    None, True, False, -1, 0, 1, 2, 2.5, 1e308, -1e308, 5e-324, 10**6, 10**9, 10**18, 10**400,
    float("nan"), float("inf"), "", "nan", f"{EVIL}:Evil-v0", f"{EVIL}:Evil", "x" * 5000, "a\x00b", "\ud800",
    "9**9**9**9", "(" * 3000, "~" + "-" * 900 + "1", "1/0", [], [[]], [1, 2, 3], ["a"], {}, DEEP,
    {"number": "nan"}, {"number": "1e999"}, {"number": 10**400}, {"number": []}, {"table": {}}, {"table": 3},
    {"table": {"gymnasium": f"{EVIL}:Evil-v0", "options": {"table": {}}, "horizon": 3}},
    {"table": {"gymnasium": "GymV26Environment-v0", "horizon": 3,
               "options": {"table": {"env_id": f"{EVIL}:Evil-v0"}}}},
    {"type": "os.system"}, {"type": []}, {"type": "Delta"}, {"type": "Matern", "nu": 0.7},
    {"type": "NeuralTangent", "depth": 10**18}, {"type": "PolynomialFeatures", "degree": 10**18},
    {"type": "Discrete", "n": 10**9}, {"type": "AutoKernel"}, {"type": "DynamicsPlanner", "depths": [10**18]},
    {"type": "Partitioned", "beta": 0.1}, {"type": "Box", "names": ["x"], "low": [0], "high": [1],
                                           "angles": [False]},
]  # fmt: skip


def damaged(content, rng):
    """Bytes with a few of them changed, lost, repeated or added."""
    content = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        place = rng.randrange(len(content) or 1)
        if rng.random() < 0.4:  # where a format keeps what is most important
            place = (
                min(place % 200, len(content)) if rng.random() < 0.5 else max(0, len(content) - place % 200)
            )
        end = place + rng.choice((1, 4, 40, 400))
        how = rng.randrange(7)
        if how < 3 and content:
            content[place % len(content)] ^= 1 << rng.randrange(8)
        elif how == 3:
            content = content[:place]
        elif how == 4:
            del content[place:end]
        elif how == 5:
            content[place:place] = content[place:end]
        else:
            content[place:end] = rng.randbytes(rng.choice((1, 8, 60)))
    return bytes(content)


def changed_tree(tree, rng):
    """What JSON holds, with one value replaced, removed or put elsewhere."""
    places = []

    def walk(node):
        for key in (
            list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
        ):
            places.append((node, key))
            walk(node[key])

    walk(tree)
    node, key = rng.choice(places)
    how = rng.random()
    if how < 0.15 and isinstance(node, dict):
        del node[key]
    elif how < 0.25:
        other, place = rng.choice(places)
        node[key] = json.loads(json.dumps(other[place]))
    else:
        node[key] = rng.choice(ODD)
    deep = "[" * 3000 + "]" * 3000
    return json.dumps(tree).replace(f'"{DEEP}"', deep)


def changed_array(array, rng):
    """Another array in its place."""
    if array.dtype.hasobject:  # changed before
        return array
    how = rng.randrange(9)
    if how == 0:
        return array.astype(
            rng.choice((np.float32, np.int8, np.int64, np.complex128, np.bool_, ">f8", "<U3"))
        )
    if how == 1:
        shapes = [(), (0,), (1,), (*array.shape, 1), (*array.shape[::-1],), (0, *array.shape), (3, 0, 5)]
        return np.resize(array, rng.choice(shapes))
    if how == 2 and array.ndim:
        return array[: rng.randrange(len(array) + 1)]
    if how == 3 and array.ndim:
        return np.concatenate([array, array])
    if how == 4:
        return np.array([Malice(), 1], dtype=object)
    if how == 5:
        return np.array(rng.choice(["", "hello", "[1, 2]", "x" * 1000]))
    array = np.array(array)
    if array.dtype.kind not in "biuf" or not array.size:
        return np.array(rng.choice([0, -1, 1e308]))
    odd = rng.choice((-1, 0, 1, 2, 300, 10**6, 10**18) if array.dtype.kind in "iu" else
                     (np.nan, np.inf, -np.inf, 1e308, -1e308, 1e200, 5e-324, 0.0, -1.0, 1e6))  # fmt: skip
    if array.dtype.kind == "b":
        return ~array
    with np.errstate(all="ignore"):
        if how == 6:
            array[...] = odd
        else:
            array.reshape(-1)[rng.randrange(array.size)] = odd
    return array


HEADS = [
    "{{'descr': '<f8', 'fortran_order': False, 'shape': ({0},), }}".format(10**30),
    "{'descr': '<f8', 'fortran_order': False, 'shape': (-3,), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (0, %d), }" % 10**30,
    "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
    "{'descr': '<f8', 'fortran_order': 3, 'shape': 5, }",
    "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (2,), }",
    "(" * 4000,
    "~" + "-" * 3000 + "1",
    "{" * 500,
]


def with_head(array, rng):
    """An npy member whose head is a lie."""
    head = rng.choice(HEADS).encode() + b"\n"
    form = rng.choice((b"\x01\x00", b"\x02\x00", b"\x03\x00", b"\xff\xff"))
    size = len(head).to_bytes(2 if form[0] == 1 else 4, "little")
    return (
        rng.choice((b"\x93NUMPY", b"\x93NUMPY", b"\x80NUMPY")) + form + size + head + array.tobytes()[:4000]
    )


def npz(members, method=zipfile.ZIP_DEFLATED):
    """Members, which are arrays or bytes, as a zip."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, value in members.items():
            if not isinstance(value, bytes):
                array, value = io.BytesIO(), np.asarray(value)
                np.lib.format.write_array(array, value, allow_pickle=True)
                value = array.getvalue()
            archive.writestr(f"{name}.npy", value)
    return file.getvalue()


def bomb():
    """An npy of zeros that a zip makes a thousand times smaller."""
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        head, {"descr": "<f8", "fortran_order": False, "shape": (BOMB // 8,)}
    )
    return head.getvalue() + bytes(BOMB)


def with_bomb(content, bombs, name):
    """An archive with that member more, or in the place of its own."""
    if name not in bombs:
        bombs[name] = npz({name: bomb()})
    members = _members(content)
    members.pop(name, None)
    file = io.BytesIO(bombs[name])
    with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as archive:
        for other, value in members.items():
            array = io.BytesIO()
            np.lib.format.write_array(array, value)
            archive.writestr(f"{other}.npy", array.getvalue())
    return file.getvalue()


def _members(content):
    with np.load(io.BytesIO(content)) as stored:
        return {name: stored[name] for name in stored.files}


def changed_npz(content, rng, bombs):
    """An archive whose sums are right, and which holds something else."""
    how, members = rng.random(), _members(content)
    if how < 0.02:
        return with_bomb(content, bombs, rng.choice(("unknown", "P", "state", "tables", "about", "kind")))
    if how < 0.04:
        return npz(members, rng.choice((zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2, zipfile.ZIP_STORED)))
    if how < 0.06:
        return rng.choice((pickle.dumps(Malice()), b"", b"PK\x05\x06" + bytes(18), b"\x93NUMPY\x01\x00"))
    for _ in range(rng.choice((1, 1, 2))):
        name = rng.choice(sorted(members)) if members else "kind"
        if "about" in members and rng.random() < 0.5 and isinstance(members["about"], np.ndarray):
            with contextlib.suppress(ValueError, TypeError, IndexError, AttributeError, RecursionError):
                tree = json.loads(str(members["about"]))
                members["about"] = np.array(changed_tree(tree, rng))
        elif rng.random() < 0.1:
            members.pop(name, None)
        elif rng.random() < 0.15:
            members[name] = with_head(np.asarray(members.get(name, 0)), rng)
        elif name in members and isinstance(members[name], np.ndarray):
            try:
                members[name] = changed_array(members[name], rng)
            except (ValueError, OverflowError):  # text that is no number, a number too large for its type
                members[name] = np.array(0)
    return npz(members, zipfile.ZIP_STORED)


CELLS = ["1e308", "-1e308", "1e999", "nan", "inf", "-1", "99999999999", "1" * 400, "False", "TRUE", "", " ",
         "x", "0x10", "1_0", '"', '"1\n2"', "٣", "1e-320", "=1+1", "\x00"]  # fmt: skip
NAMES = ["episode", "h", "terminated", "kept", "next_theta", "next_", "reward", "", "theta", "lambda", "a b",
         "e", "x" * 200_000]  # fmt: skip
TOKENS = [
    *map(str, (0, -1, 2.5, 1e308, 10**18, 10**400)), "nan", "inf", '"x"', f'"{EVIL}:Evil"', '"Scout"',
    '"Delta"', '"PolynomialFeatures"', "[]", "[[]]", "{}", "true", "1979-05-27", "[" * 3000, "{a=" * 900,
    "[" * 900 + "]" * 900, "a.b.c", '"\\ud800"', "'''", "\x00", '{type="NeuralTangent", depth=10}',
]  # fmt: skip


def changed_csv(content, rng):
    """A table with an odd cell, name, row or column."""
    rows = [line.split(",") for line in content.decode().splitlines()]
    for _ in range(rng.choice((1, 1, 3))):
        row, column = rng.randrange(len(rows)), rng.randrange(len(rows[0]))
        how = rng.randrange(6)
        if how < 3:
            rows[row][column % len(rows[row])] = rng.choice(CELLS)
        elif how == 3:
            rows[0][column] = rng.choice(NAMES)
        elif how == 4:
            for line in rows[1:]:
                line[column % len(line)] = (
                    rng.choice(CELLS) if rng.random() < 0.1 else rows[1][column % len(rows[1])]
                )
        else:
            rows.insert(row, rows[row][: rng.randrange(len(rows[row]) + 1)])
        rows = [line for line in rows if line] or [["x"]]
        rows[0] = rows[0] or ["x"]
    return "\n".join(map(",".join, rows)).encode("utf-8", "surrogatepass")


def changed_toml(content, rng):
    """A sweep with an odd token."""
    words = content.decode().split(" ")
    for _ in range(rng.choice((1, 1, 2))):
        place = rng.randrange(len(words))
        words[place : place + rng.randrange(2)] = [rng.choice(TOKENS) + rng.choice(("", "\n", "\n\n"))]
    return " ".join(words).encode("utf-8", "surrogatepass")


def changed_store(content, rng):
    """A store in which a statement of SQL changed what was written."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.sqlite")
        path.write_bytes(content)
        statements = [
            "UPDATE records SET start = start + 1 WHERE rowid = {0}",
            "UPDATE records SET planner = 'other' WHERE rowid = {0}",
            "UPDATE records SET mean = 'text' WHERE rowid = {0}",
            "UPDATE records SET samples = NULL WHERE rowid = {0}",
            "DELETE FROM records WHERE rowid = {0}",
            "DELETE FROM units WHERE rowid = 1 + {0} % 5",
            "UPDATE units SET world = 'elsewhere' WHERE rowid = 1 + {0} % 5",
            "UPDATE units SET key = key || '0' WHERE rowid = 1 + {0} % 5",
            "DELETE FROM wanted WHERE rowid = 1 + {0} % 5",
            "UPDATE wanted SET key = key || '0' WHERE rowid = 1 + {0} % 5",
            "DELETE FROM hashes WHERE rowid = 1 + {0} % 5",
            "UPDATE hashes SET hash = X'00' WHERE rowid = 1 + {0} % 5",
            "DROP TABLE json_records",
            "PRAGMA user_version = {0}",
        ]
        base = sqlite3.connect(path, isolation_level=None)
        base.execute(rng.choice(statements).format(rng.randrange(1, 30)))
        base.execute("PRAGMA journal_mode = WAL")
        base.close()
        return path.read_bytes()


def changed(kind, content, rng, bombs):
    """A change of a file, and whether it is plain damage: then what can still be read must be the same."""
    if rng.random() < 0.35:
        return damaged(content, rng), kind not in ("csv", "toml", "study", "made")
    if kind == "store":
        return changed_store(content, rng), True
    if kind in ("study", "made"):
        return changed_tree(json.loads(content), rng).encode("utf-8", "surrogatepass"), False
    change = {"csv": changed_csv, "toml": changed_toml}.get(kind)
    return (change(content, rng) if change else changed_npz(content, rng, bombs)), False


LEAVES = [
    "x",
    "y",
    "h",
    "pi",
    "e",
    "0",
    "1",
    "2.5",
    "1e308",
    "1e999",
    "10**400",
    "True",
    "z",
    "None",
    "'a'",
    "1j",
]
WORDS = [
    *FUNCTIONS, "__import__('evilmod')", "lambda:", "import", "x.real", "x[0]", "[x for x in y]", ":=",
    "(", ")", "((((", "~", "-", "not ", "**", "*", "/", "%", "//", "@", "<", "==", " if x else ", ",", "=",
    "\n", "\0", "#", "\\", '"', "'", "f'{x}'", "٣", "…", "\ud800",
]  # fmt: skip


def formula(rng):
    """A formula that may be one, or a heap of signs."""
    how = rng.random()
    if how < 0.5:
        return _expression(rng, rng.randrange(1, 7))
    if how < 0.85:
        return "".join(rng.choice([*WORDS, *LEAVES]) for _ in range(rng.randrange(1, 40)))
    repeated = rng.choice(["(", "-", "~", "not ", "x+", "sin(", "x if x else ", "[", "9**", "~-", "x and "])
    text = rng.choice(["", "~", "x+", "1,"]) + repeated * rng.randrange(1, 1600) + rng.choice(LEAVES)
    return text + ")" * rng.choice((0, text.count("(")))


def _expression(rng, depth):
    if depth == 0 or rng.random() < 0.1:
        return rng.choice(LEAVES)
    parts = [_expression(rng, depth - 1) for _ in range(3)]
    name = rng.choice(sorted(FUNCTIONS))
    call = f"{name}({', '.join(parts[: FUNCTIONS[name][1]])})"
    sign = rng.choice(("+", "-", "*", "/", "**", "%", "//", "@"))
    a, b, c = parts
    forms = {
        f"({a} {sign} {b})": 8, call: 8, f"-{a}": 2, f"({a} if {b} else {c})": 2, f"({a} < {b} <= {c})": 2,
        f"({a} and {b})": 2, f"not {a}": 1, f"{a}.real": 0.1, f"f({a})": 0.1,
    }  # fmt: skip
    return rng.choices([*forms], [*forms.values()])[0]
