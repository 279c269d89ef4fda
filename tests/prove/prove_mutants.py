"""Mutation testing: whether the gate notices random small changes of the source.

Cosmic Ray finds the places and makes the changes; places are drawn with a seed, and one operator for each. Each mutant
runs in a copy of the tree until a first test fails: the tests named like its module, those of its package, then the
files that import it and the contracts. Results are lines of JSON in the folder, so that a run goes on where it stopped.

    python -m tests.prove.prove_mutants [--limit 400] [--seed 47] [--folder build/mutants] [--seconds 120] [--renew]

`--renew` copies the tree again, keeps the mutants, and runs those again whose killer has left the gate, and survivors.
"""

import argparse
import ast
import difflib
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
PACKAGES: Final = ("search", "training", "text", "data", "attention", "models", "serving", "predictors")
WITHOUT_EFFECT: Final = ("final", "override", "overload", "cache", "lru_cache", "cached_njit", "runtime_checkable")
"""Decorators whose removal no test can see, or only a clock."""
UNSEEN: Final = ("triton_kernels.py",)
"""Programs for devices, which the gate runs only where Triton is installed."""
CONTRACTS: Final = {"attention": ("tests/contracts",), "models": ("tests/contracts/test_models.py",)}
PYTEST: Final = ("-q", "--no-header", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not thorough")
PRELOADED: Final = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
GATE: Final = ("--randomly-seed=1", "--randomly-dont-reorganize", "--hypothesis-profile=gate")
MEMORY: Final = 10 * 2**30
"""Bytes that a mutant may ask for."""
STILL_SECONDS: Final = 120.0
"""A mutant none of whose threads wants to run for so long hangs."""


# ------------------------------------------------------------------------------------------------- the mutants


def draw(limit: int, seed: int, sources: Path) -> list[dict[str, Any]]:
    """Draw places of the source uniformly, and for each one of the changes that can be made there."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator, operator_names

    places: dict[tuple[str, int, int], list[dict[str, Any]]] = defaultdict(list)
    operators = {name: get_operator(name)() for name in operator_names() if _is_used(name)}
    files = sorted(path for name in PACKAGES for path in (sources / "heedful" / name).rglob("*.py"))
    texts = {
        str(path.relative_to(sources)): path.read_text(encoding="utf-8") for path in files if path.name not in UNSEEN
    }
    for path, source in texts.items():
        silent, tree = _silent_places(source), get_ast(source)
        for name, operator in operators.items():
            starts = [start for node in ast_nodes(tree) for start, _ in operator.mutation_positions(node)]
            for occurrence, (line, column) in enumerate(starts):
                if not any(start <= (line, column) <= end for start, end in silent):
                    mutant = {"path": path, "line": line, "operator": name, "occurrence": occurrence}
                    places[path, line, column].append(mutant)
    drawn, mutants = random.Random(seed), list[dict[str, Any]]()
    for place in drawn.sample(sorted(places), len(places)):
        mutant = drawn.choice(places[place])
        changed = mutate(texts[mutant["path"]], mutant)
        if _is_python(changed):
            change = difference(texts[mutant["path"]], changed)
            mutants.append({"number": len(mutants), **mutant, "change": change})
        if len(mutants) == limit:
            break
    return mutants


def _is_python(source: str) -> bool:
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True


def _is_used(operator: str) -> bool:
    if any(word in operator for word in ("VariableReplacer", "VariableInserter")):
        return False  # need arguments
    # `is` beside `==` differs where equal values are not one object, which small numbers and names always are.
    return not operator.startswith("core/ReplaceComparison") or ("_Is" in operator) == ("Operator_Is" in operator)


def _silent_places(source: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Annotations, decorators without effect, and what runs in a type checker only."""
    silent: list[ast.expr | ast.stmt] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
            silent.append(node.annotation)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns is not None:
            silent.append(node.returns)
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            silent += [each for each in node.decorator_list if ast.unparse(each).split("(")[0] in WITHOUT_EFFECT]
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            silent.append(node)
    return [
        ((node.lineno, max(node.col_offset - 1, 0)), (node.end_lineno or 0, node.end_col_offset or 0))
        for node in silent
    ]


def mutate(source: str, mutant: dict[str, Any]) -> str:
    """Return the source with one change."""
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    return mutate_code(source, get_operator(mutant["operator"])(), mutant["occurrence"])


# ---------------------------------------------------------------------------------------- which tests can see them


class Timer:
    """Pytest plugin: processor time of each test."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, bool, bool]:
        start = sum(os.times()[:4])
        done = yield
        self.seconds[item.nodeid] = sum(os.times()[:4]) - start
        return done


def time_tests(folder: Path) -> None:
    """Run the gate once, for the time of each of its tests."""
    child = os.fork()
    if child == 0:
        _enter(folder, folder / "times.log")
        timer = Timer()
        pytest.main([*PYTEST, *PRELOADED, *GATE, "tests"], plugins=[timer])
        (folder / "seconds.json").write_text(json.dumps(timer.seconds), encoding="utf-8")
        os._exit(0)
    os.waitpid(child, 0)


def seers(path: str, tree: Path, seconds: Mapping[str, float]) -> list[str]:
    """Return the tests that can see a change in a module, in the order to run them.

    First those of the module, by the name of their file, then those of its package, then the files that import it and
    the contracts of its package; of each the quick files first.
    """
    package, module = path.split("/")[1], Path(path).stem
    name = ".".join(Path(path).with_suffix("").parts).removesuffix(".__init__")
    imported = re.compile(rf"\b{re.escape(name)}\b|from {re.escape(name.rpartition('.')[0])} import .*\b{module}\b")
    cost: Counter[str] = Counter()
    for test, taken in seconds.items():
        cost[test.split("::")[0]] += taken
    ranked: list[tuple[int, float, str]] = []
    for file, taken in cost.items():
        if file.endswith(f"/test_{module}.py") and f"/{package}/" in file:
            ranked.append((0, taken, file))
        elif file.startswith(f"tests/{package}/"):
            ranked.append((1, taken, file))
        elif file.startswith(CONTRACTS.get(package, ())) or imported.search((tree / file).read_text(encoding="utf-8")):
            ranked.append((2, taken, file))
    places = {file: place for place, (_, _, file) in enumerate(sorted(ranked))}
    tests = [test for test in seconds if test.split("::")[0] in places]
    return sorted(tests, key=lambda test: places[test.split("::")[0]])


# ------------------------------------------------------------------------------------------------------ one mutant


def within(tests: Sequence[str], seconds: Mapping[str, float], budget: float) -> list[str]:
    """Return all tests if they fit the budget; else the first case of each function, and of the others what fits."""
    if sum(seconds[test] for test in tests) <= budget:
        return [*tests]
    kept, seen, left = set[str](), set[str](), budget
    for is_first in (True, False):
        for test in tests:
            function = test.split("[")[0]
            if (function not in seen) == is_first and test not in kept and seconds[test] <= left:
                seen.add(function)
                kept.add(test)
                left -= seconds[test]
    return [test for test in tests if test in kept]


class Chooser:
    """Pytest plugin: keeps chosen tests in their order, and the first one that fails."""

    def __init__(self, tests: Sequence[str]) -> None:
        self._place = {test: place for place, test in enumerate(tests)}
        self.killer = ""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted(
            (item for item in items if item.nodeid in self._place), key=lambda item: self._place[item.nodeid]
        )

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.killer:
            self.killer = report.nodeid

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed and not self.killer:
            self.killer = f"collection of {report.nodeid}"


def run(folder: Path, tests: Sequence[str], limit: float) -> dict[str, Any]:
    """Run tests in a process of its own; `limit` is in seconds of processor time."""
    reading, writing = os.pipe()
    start = time.monotonic()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _enter(folder, folder / "last.log")
        chooser = Chooser(tests)
        files = [*dict.fromkeys(test.split("::")[0] for test in tests)]
        code = pytest.main([*PYTEST, *PRELOADED, *GATE, "-x", "--tb=short", *files], plugins=[chooser])
        os.write(writing, json.dumps({"code": int(code), "killer": chooser.killer}).encode())
        os._exit(0)
    os.close(writing)
    used, moved, ended = 0.0, start, False
    try:
        while not ended:
            time.sleep(0.2)
            ended = os.waitpid(child, os.WNOHANG)[0] == child
            if not ended:
                used, wants = _session(child)
                moved = time.monotonic() if wants else moved
                if used > limit or time.monotonic() - moved > STILL_SECONDS:
                    break
    finally:
        _kill_session(child)
        if not ended:
            os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as pipe:
        told = pipe.read()
    seconds = {"cpu": round(used, 1), "wall": round(time.monotonic() - start, 1)}
    if not ended:
        return {"result": "killed", "killer": "time limit", **seconds}
    if not told:
        return {"result": "killed", "killer": "process died", **seconds}
    said = json.loads(told)
    if said["code"] == 0:
        return {"result": "survived", "killer": "", **seconds}
    if not said["killer"]:
        return {"result": "failed", "killer": f"pytest ended with {said['code']}", **seconds}
    return {"result": "killed", "killer": said["killer"], **seconds}


def _enter(folder: Path, log: Path) -> None:
    """Make this child process one that tests the copy of the tree."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(output, stream)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    tree, temporary = folder / "tree", folder / "tmp"
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    os.chdir(tree)
    os.environ |= {
        "PYTHONPATH": str(tree / "src"),
        "TMPDIR": str(temporary),
        "NUMBA_CACHE_DIR": str(folder / "kernels"),
        "OMP_NUM_THREADS": "1",
        "OMP_WAIT_POLICY": "passive",
    }
    for name in [name for name in sys.modules if name.split(".")[0] in ("tests", "heedful")]:
        del sys.modules[name]
    here = [place for place in sys.path if place and Path(place).resolve() not in (ROOT, ROOT / "src")]
    sys.path[:] = [str(tree / "src"), str(tree), *here]


def _session(leader: int) -> tuple[float, bool]:
    """Processor time of the processes of a session, and whether one of their threads wants to run."""
    ticks, wants = 0, False
    for process in _processes(leader):
        try:
            fields = (process / "stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))
            states = [
                (thread / "stat").read_text().rpartition(")")[2].split()[0] for thread in (process / "task").iterdir()
            ]
        except OSError:
            continue
        wants = wants or any(state in "RD" for state in states)
    return ticks / os.sysconf("SC_CLK_TCK"), wants


def _processes(leader: int) -> Iterator[Path]:
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                fields = (process / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == leader:
                yield process


def _kill_session(leader: int) -> None:
    for process in [*_processes(leader)]:
        try:
            os.kill(int(process.name), signal.SIGKILL)
        except ProcessLookupError:
            pass


# ------------------------------------------------------------------------------------------------------ the whole


def copy_tree(folder: Path) -> None:
    """Copy all files that git knows or does not ignore."""
    tree = folder / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    names = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    ).stdout.decode()
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)
    shared = ROOT.parent / "shared"
    if shared.is_dir() and not (folder / "shared").exists():
        (folder / "shared").symlink_to(shared)


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def write_lines(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def difference(source: str, changed: str) -> list[str]:
    """Return the lines that differ, with their signs."""
    lines = difflib.unified_diff(source.splitlines(), changed.splitlines(), n=0, lineterm="")
    return [line for line in lines if line[:1] in "+-" and not line.startswith(("+++", "---"))]


def renewed(mutants: Sequence[dict[str, Any]], sources: Path) -> list[dict[str, Any]]:
    """Find the mutants again in sources that may have changed; those whose lines are gone are left out."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator

    found: list[dict[str, Any]] = []
    for mutant in mutants:
        path = sources / mutant["path"]
        source = path.read_text(encoding="utf-8") if path.exists() else ""
        operator, tree = get_operator(mutant["operator"])(), get_ast(source)
        starts = [start for node in ast_nodes(tree) for start, _ in operator.mutation_positions(node)]
        same = [
            {**mutant, "occurrence": occurrence, "line": line}
            for occurrence, (line, _) in enumerate(starts)
            if difference(source, mutate(source, {**mutant, "occurrence": occurrence})) == mutant["change"]
        ]
        found += [min(same, key=lambda each, line=mutant["line"]: abs(each["line"] - line))] if same else []
    return found


def preload() -> None:
    """Import what is slow to import, once for all mutants; nothing of heedful, nothing that starts threads."""
    import beartype
    import hypothesis
    import jaxtyping
    import numba
    import numpy
    import pydantic
    import torch
    import torch._dynamo
    import typer

    del beartype, hypothesis, jaxtyping, numba, numpy, pydantic, torch, typer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=int, default=400, help="number of mutants that are drawn")
    parser.add_argument("--seed", type=int, default=47)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "mutants")
    parser.add_argument("--seconds", type=float, default=120, help="processor time of the tests of a mutant")
    parser.add_argument(
        "--renew", action="store_true", help="take the tree as it is now, and run again what may differ"
    )
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # puts the source back
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    drawn, results = folder / "mutants.jsonl", folder / "results.jsonl"
    sources = folder / "tree" / "src"
    preload()
    if options.renew or not (folder / "tree").exists():
        copy_tree(folder)
    if options.renew:
        (folder / "seconds.json").unlink(missing_ok=True)
    if not drawn.exists():
        write_lines(drawn, draw(options.limit, options.seed, sources))
    mutants = read_lines(drawn)
    if options.renew:
        mutants = renewed(mutants, sources)
        write_lines(drawn, mutants)
    if not (folder / "seconds.json").exists():
        print("timing the tests of the gate ...", flush=True)
        time_tests(folder)
    seconds = json.loads((folder / "seconds.json").read_text(encoding="utf-8"))
    if options.renew:
        in_gate = {"time limit", "process died", *seconds}
        write_lines(results, [row for row in read_lines(results) if row["killer"] in in_gate])
    done = {row["number"] for row in read_lines(results)}
    for mutant in mutants:
        if mutant["number"] in done:
            continue
        tests = seers(mutant["path"], folder / "tree", seconds)
        row = {**mutant, **examine(folder, mutant, within(tests, seconds, options.seconds), seconds), "of": len(tests)}
        with results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        print(
            f"{row['number']:4d} {row['result']:9s} {row['path']}:{row['line']} {row['killer'] or row['change']}",
            flush=True,
        )
    tell(read_lines(results), len(mutants))


def examine(folder: Path, mutant: dict[str, Any], tests: Sequence[str], seconds: Mapping[str, float]) -> dict[str, Any]:
    """Write a mutant into the copy of the tree, run its tests, and put the source back."""
    path = folder / "tree" / "src" / mutant["path"]
    source, times = path.read_text(encoding="utf-8"), path.stat()
    try:
        path.write_text(mutate(source, mutant), encoding="utf-8")
        os.utime(path, (times.st_atime, times.st_mtime + 1 + mutant["number"]))  # no stored bytecode is taken for it
        limit = 60 + 3 * sum(seconds[test] for test in tests)
        return {**run(folder, tests, limit), "tests": len(tests)}
    finally:
        path.write_text(source, encoding="utf-8")
        os.utime(path, (times.st_atime, times.st_mtime))


def tell(rows: Sequence[dict[str, Any]], total: int) -> None:
    """Print killed and survived by package, and the changes that survived."""
    for row in rows:
        if row["result"] != "killed":
            print(
                f"\n{row['number']} {row['result']} {row['path']}:{row['line']} ({row['tests']} of {row['of']} tests)"
            )
            print(*row["change"], sep="\n")
    for name in PACKAGES:
        own = [row["result"] for row in rows if row["path"].split("/")[1] == name]
        print(f"{name:12s} {own.count('killed'):4d} killed of {len(own)}")
    killed = sum(row["result"] == "killed" for row in rows)
    print(f"{killed} killed of {len(rows)} that ran, of {total} drawn: {killed / max(len(rows), 1):.1%}")


if __name__ == "__main__":
    main()
