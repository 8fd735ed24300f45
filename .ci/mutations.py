"""Change the source in one place at a time, and tell which changes no test of its folder notices.

``python .ci/mutations.py --count 60`` draws as many changes over the compiled loops and the choice;
names of files draw from these only, and ``--seed`` draws others. Tests run in a copy of the tree,
without the compiler first; with ``--compile`` those that all pass run once more with it.
"""

import argparse
import ast
import os
import queue
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Tests that hold each family's loops against their twins; they are quick without the compiler.
TESTS = {
    "alternating": ["bias", "machines", "merging"],
    "annealing": ["points"],
    "competitive": ["online", "batch"],
    "cutting_plane": ["program", "planes"],
    "evolution": ["evolution"],
    "rls": ["groups", "linked", "genie", "claims", "low_rank_claims", "blocks"],
}
# And those of what several families share.
SHARED = {
    "choice": ["tests/test_choice.py", "tests/test_choice_given.py"],
    "kernels": ["tests/test_gram.py", "tests/competitive/test_online.py"],
    "data": ["tests/test_sizes.py", "tests/rls/test_linked.py"],
}
# What became of a change. These survive by right. Anywhere: what is taken off a ``budget``, and the
# room for records, which only cut the same work into other slices; and `<` for `<=` at a tolerance.
# Of alternating/_loops.py: N_POS = 3, as nothing looks at one slot more; `>=` in lower_bias, where
# of two equal values the other leaves first; the bound in raise_split, as what stays in a set by
# mistake leaves first there; and `or` before raise_split, which then changes sets that nobody
# reads. Of rls/_loops_claims.py: `at = 1` in claim_pass, which is set before it is read; and the
# partner in best_swap before there is one. Of competitive/_loops.py: `>=` for the rate of a rival,
# which is 0 there. Of rls/engine/_loops_groups.py: the partner in swap before there is one, of
# which only the sign is looked at.
SURVIVES = "SURVIVES"
SWAPS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
NAMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum"}
NAMES |= {"argmin": "argmax", "argmax": "argmin"}


def swap(holder, name):
    """Return a change of an operator."""
    old = getattr(holder, name)
    return lambda: setattr(holder, name, SWAPS[type(old)]())


def changes_of(node):
    """Yield (what is done, a function that does it to the tree) of a node."""
    if isinstance(node, ast.BinOp | ast.AugAssign | ast.BoolOp) and type(node.op) in SWAPS:
        yield "operator", swap(node, "op")
    elif isinstance(node, ast.Compare):
        for at, op in enumerate(node.ops):
            if type(op) in SWAPS:
                new = SWAPS[type(op)]()
                yield "comparison", lambda at=at, new=new: node.ops.__setitem__(at, new)
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        new = node.value + 1 if isinstance(node.value, int) else 1.4 * node.value
        if new != node.value:
            yield f"{node.value} -> {new:g}", lambda: setattr(node, "value", new)
    elif isinstance(node, ast.Name) and node.id in NAMES:
        yield node.id, lambda: setattr(node, "id", NAMES[node.id])
    elif isinstance(node, ast.Attribute) and node.attr in NAMES:
        yield node.attr, lambda: setattr(node, "attr", NAMES[node.attr])
    for body in (getattr(node, "body", []), getattr(node, "orelse", [])):
        for at, line in enumerate(body if isinstance(body, list) else []):
            drops = isinstance(line, ast.AugAssign | ast.Continue | ast.Break)
            stores = isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Subscript)
            calls = isinstance(line, ast.Expr) and isinstance(line.value, ast.Call)
            if drops or stores or calls:
                new = ast.copy_location(ast.Pass(), line)
                yield "dropped", lambda body=body, at=at, new=new: body.__setitem__(at, new)


def functions_and_numbers(tree):
    """Yield the nodes that do something: bodies of functions, and numbers at the top of a file."""
    for node in tree.body:
        if isinstance(node, ast.Assign):
            yield from ast.walk(node.value)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            for line in node.body:
                yield from ast.walk(line)


def mutate(text, wanted):
    """Return a text with one of its changes made, a line on it, and how many changes there are."""
    tree = ast.parse(text)
    found = [
        (node, *change)
        for node in dict.fromkeys(functions_and_numbers(tree))
        for change in changes_of(node)
    ]
    if wanted is None:
        return None, None, len(found)
    node, what, do = found[wanted]
    before = ast.unparse(tree).splitlines()
    do()
    after = ast.unparse(tree)
    changed = [b for a, b in zip(before, after.splitlines(), strict=False) if a != b][0].strip()
    return after, f"line {getattr(node, 'lineno', 0)}: {what}: {changed}", len(found)


def tests_of(file):
    family = Path(file).parts[1]
    return SHARED.get(family) or [f"tests/{family}/test_{name}.py" for name in TESTS[family]]


def loop_tests():
    """Return all tests that hold loops against their twins."""
    return [f"tests/{family}/test_{name}.py" for family in TESTS for name in TESTS[family]]


def outcome(folder, file, limit, **environment):
    """Run the tests of a file; return SURVIVES, "noticed" or "timeout", for what never ends."""
    chosen = "not slow" if "NUMBA_CACHE_DIR" in environment else "not jit and not slow"
    command = [sys.executable, "-m", "pytest", "-qx", "-p", "no:cacheprovider", "-m", chosen]
    try:
        ended = subprocess.run(
            [*command, *tests_of(file)],
            cwd=folder,
            env=os.environ | environment | {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(folder)},
            capture_output=True,
            timeout=limit,
        )
    except subprocess.TimeoutExpired:
        return "timeout"
    return "noticed" if ended.returncode else SURVIVES


def judge(folder, file, wanted, limit, compiled):
    """Return a line on a change, and what came of it."""
    original = (folder / file).read_text()
    text, line, _ = mutate(original, wanted)
    (folder / file).write_text(text)
    try:
        if "_loops" not in file:  # what is compiled stays as it is
            came = outcome(folder, file, limit, NUMBA_CACHE_DIR=str(folder / "cache"))
        else:
            came = outcome(folder, file, limit, NUMBA_DISABLE_JIT="1")
            if came == SURVIVES and compiled:  # a new cache, as callers elsewhere are cached too
                with tempfile.TemporaryDirectory() as cache:
                    came = outcome(folder, file, limit, NUMBA_CACHE_DIR=cache)
    finally:
        (folder / file).write_text(original)
    return f"{file}[{wanted}] {line}", came


def copies(work, count):
    """Return folders with a copy of the tree each."""
    folders = queue.SimpleQueue()
    for at in range(count):
        folder = Path(work) / str(at)
        for name in ("fastmmc", "tests", "asv_benchmarks/benchmarks"):  # and the papers' fitness
            shutil.copytree(
                ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__")
            )
        shutil.copy(ROOT / "pyproject.toml", folder)
        folders.put(folder)
    return folders


def warn_unless_sound(work, files, limit):
    """Name what fails without any change, where nothing can be noticed."""
    for tests, file in {tuple(tests_of(file)): file for file in sorted(files)}.items():
        folder = Path(work) / "0"
        off = {"NUMBA_DISABLE_JIT": "1"} if "_loops" in file else {}
        given = off or {"NUMBA_CACHE_DIR": str(folder / "cache")}
        if outcome(folder, file, limit, **given) != SURVIVES:
            print("FAILS without a change, or takes too long:", *tests, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", help="FILE, or FILE[AT] for one change")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=200.0, help="seconds for the tests of one")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="changes at a time")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--list", action="store_true", help="only print the tests of loops")
    args = parser.parse_args()
    if args.list:
        print(*loop_tests())
        return
    loops = sorted(ROOT.glob("fastmmc/**/_loops*.py"))
    choice = [ROOT / f"fastmmc/choice/{name}.py" for name in ("vote", "candidates", "numbers")]
    files = args.files or [f.relative_to(ROOT).as_posix() for f in (*loops, *choice)]
    chosen = []
    for file in files:
        name, _, at = file.partition("[")
        if at:
            chosen.append((name, int(at.rstrip("]"))))
        else:
            chosen += [(name, i) for i in range(mutate((ROOT / name).read_text(), None)[2])]
    if len(chosen) > args.count:
        chosen = random.Random(args.seed).sample(chosen, args.count)
    workers, found = args.jobs, Counter()
    with tempfile.TemporaryDirectory() as work, ThreadPoolExecutor(workers) as pool:
        folders = copies(work, workers)
        warn_unless_sound(work, {file for file, _ in chosen}, args.limit)

        def run(one):
            folder = folders.get()
            try:
                return judge(folder, *one, args.limit, args.compile)
            finally:
                folders.put(folder)

        for line, came in pool.map(run, sorted(chosen)):
            found[came] += 1
            print(f"{came:8}", line, flush=True)
    print(f"of {len(chosen)}:", ", ".join(f"{n} {came}" for came, n in found.most_common()))


if __name__ == "__main__":
    main()
