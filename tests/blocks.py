"""Code of the documents: its blocks, its command lines, and a reader who runs them from top to bottom."""

import contextlib
import functools
import importlib.util
import json
import logging
import re
import runpy
import shlex
import shutil
import subprocess
import textwrap
import tomllib
from collections.abc import Callable, Generator, Mapping, Sequence, Set
from pathlib import Path
from socket import socket
from threading import Thread
from typing import Any, NamedTuple

import pytest
import typer

from heedful.cli import main as command_line
from heedful.cli.main import COMMANDS
from heedful.export.web_runtime import has_runtime
from tests.cli.command import heedful
from tests.js.node import NODE, PACKAGE, QUICK_START

PART = re.compile(
    r"^#+ (?P<section>[^\n]+)$|^(?P<indent> *)```(?P<kind>\w*)\n(?P<code>.*?)^(?P=indent)```$"
    r"|^ {4}(?P<line>heedful (?:[^\n]*\\\n)*[^\n]*)$",
    re.MULTILINE | re.DOTALL,
)
"""Headings, fenced blocks, and lines of heedful that are indented, as in a block without a fence."""
INSTALLS = r"make |\. |pip install |pipx run |python3? -m (venv|pip) |npm |npx |cp node_modules/|g\+\+ |\./pronounce "
"""Beginnings of lines that install packages, or make something with what was installed; tests of examples compile."""
TRAINS = ("demo", "train", "distil", "compare", "reproduce")
"""Commands that take minutes: their lines are parsed, and run only where they are made shorter."""
RUNTIME = """import {{ readFileSync }} from "node:fs";
import {{ gunzipSync }} from "node:zlib";
import {{ ort }} from "{0}/ort.js";
ort.env.wasm.numThreads = 1;
ort.env.wasm.wasmBinary = gunzipSync(readFileSync("{0}/ort.wasm.gz"));
export const {{ env, InferenceSession, Tensor }} = ort;
"""
"""ONNX Runtime for browsers as `make runtime` fetched it, in the place of the package that npm installs."""
ADDRESS = re.compile(r"(?:127\.0\.0\.1|localhost):5000")


class Block(NamedTuple):
    """One block of code."""

    section: str
    """Heading above it."""
    kind: str
    code: str


def blocks_of(text: str) -> list[Block]:
    """The blocks of a page, in order, those within lists too."""
    found: list[Block] = []
    section = ""
    for part in PART.finditer(text):
        section = part["section"] or section
        if part["code"] is not None:
            found.append(Block(section, part["kind"], textwrap.dedent(part["code"])))
        if part["line"]:
            found.append(Block(section, "sh", part["line"]))
    return found


def blocks(text: str, *kinds: str) -> list[str]:
    """The code of a page, block by block."""
    return [block.code for block in blocks_of(text) if block.kind in kinds]


def without_comments(code: str) -> str:
    return re.sub(r"(^|\s+)(#|//)\s.*$", "", code, flags=re.MULTILINE)


class Line(NamedTuple):
    """A line for a shell, and what the page shows of its output."""

    command: str
    shown: Sequence[str]


def lines_of(block: Block) -> list[Line]:
    """The command lines of a block; in one of the kind `console` they begin with $, and outputs stand between them."""
    if block.kind == "sh":
        code = without_comments(block.code).replace("\\\n", " ")
        return [Line(each, ()) for each in code.split("\n") if each.strip()]
    parts = re.split(r"^\$ ", block.code, flags=re.MULTILINE)[1:]
    return [Line(first, rest) for first, *rest in (part.rstrip("\n").split("\n") for part in parts)]


@functools.cache
def command_named(name: str) -> Any:
    """A command of heedful, as typer's parser has it."""
    assert name in COMMANDS, f"no command {name}"
    group: Any = typer.main.get_command(command_line._app([name]))  # pyright: ignore[reportPrivateUsage]
    return group.commands[name]


def options(name: str) -> set[str]:
    """All options of a command."""
    own = {option for each in command_named(name).params for option in (*each.opts, *each.secondary_opts)}
    return own | {"--code", "--debug", "--help"}


def parse(words: Sequence[str]) -> Any:
    """Parse a command line of heedful, without running it; gives the context of its command."""
    from heedful.config.base import merge, parse_overrides
    from heedful.runs.settings import load_experiment
    from heedful.tasks.table import find_task

    rest, _ = command_line._without_code([*words])  # pyright: ignore[reportPrivateUsage]
    name, *rest = rest
    context = command_named(name).make_context(name, rest)
    given = context.params
    if name == "train" and not given["config"]:  # whose settings complete those of the line
        task = find_task(given["task"] or "translation")
        limit = {"max_minutes": given["minutes"]} if given["minutes"] else {}
        if given["mix"]:
            limit["mix"] = [str(path) for path in given["mix"]]
        settings = merge(parse_overrides(given["settings"]), {"task": task.name, "training": limit})
        load_experiment(given["preset"], settings, default_preset=task.default_preset)
    return context


class Background:
    """Server that runs in a thread, so that `heedful serve` returns and the reader goes on."""

    def __init__(self, server: Any) -> None:
        self.server = server
        self.server.capture_signals = contextlib.nullcontext  # only the main thread has signals
        self.thread: Thread | None = None
        self.port = 0

    def run(self, sockets: Sequence[socket]) -> None:
        own = [each.dup() for each in sockets]  # the command closes its own
        self.port = own[0].getsockname()[1]
        self.thread = Thread(target=self.server.run, args=(own,), daemon=True)
        self.thread.start()

    def stop(self) -> None:
        self.server.should_exit = True
        if self.thread:
            self.thread.join()


class Reader:
    """Somebody who does what pages say, in a folder with the files that they speak of."""

    def __init__(
        self, folder: Path, models: Mapping[str, Path], files: Mapping[str, Callable[[Path], object]], free: Set[str]
    ) -> None:
        self.folder = folder
        self.models = {**models}
        """Models by the names that pages give them; a page gets copies of those that it names."""
        self.files = files
        """Code that makes the files of a section, before its first block."""
        self.shorter: Mapping[str, Sequence[str]] = {}
        """Further words for lines that train, by their beginning, with which they are over in a moment."""
        self.free = free
        """Lines of output that depend on weights."""
        self.names: dict[str, Any] = {}
        self.servers: list[Background] = []
        self.num_run = 0
        self.parsed: list[str] = []
        self.lacking: list[str] = []

    def read(self, text: str, left_out: Sequence[str] = ()) -> None:
        """Run the blocks of a page, but for those of the kinds that another test runs."""
        for name, model in self.models.items():
            target = self.folder / f"{name}.model"
            if target.name in text and not target.exists():
                shutil.copytree(model, target)
        section, output = "", ""
        for block in blocks_of(text):
            if block.kind in left_out:
                continue
            if block.section != section:
                section = block.section
                self.files.get(section, bool)(self.folder)
            if block.kind in ("sh", "console"):
                for line in lines_of(block):
                    output = self.run(line.command)
                    self._compare(line.shown, output)
            elif block.kind == "text":
                self._compare(block.code.rstrip("\n").split("\n"), output)
            else:
                self._check(block)

    def finish(self) -> None:
        """Skip the test if this machine lacks something that a block needs, after all others have run."""
        if self.lacking:
            pytest.skip("; ".join(self.lacking))

    def _compare(self, shown: Sequence[str], output: str) -> None:
        lines = output.split("\n")
        missing = [line for line in shown if line not in self.free and line not in lines]
        assert missing == [], f"not in the output: {missing}\n{output}"

    def _check(self, block: Block) -> None:
        from heedful.comparison.grid import read_grid, rows_of
        from heedful.config.base import parse_overrides
        from heedful.runs.receipt import read_receipt
        from heedful.runs.settings import load_experiment

        if block.kind == "python":
            code = ADDRESS.sub(self.address, block.code)
            try:
                exec(compile(code, block.section, "exec"), self.names)
            except ModuleNotFoundError as error:
                if error.name and error.name.partition(".")[0] == "heedful":
                    raise
                self.lacking.append(str(error))
            return
        path = self.folder / f"block.{block.kind}"
        path.write_bytes(block.code.encode())
        if block.kind == "toml":
            if "axes" in tomllib.loads(block.code):
                for row in rows_of(read_grid(path)):
                    load_experiment(row.preset, parse_overrides(row.settings))
            else:
                read_receipt(path)
        elif block.kind == "js":
            self._run_node(block)
        else:
            assert block.kind in ("html", "bat"), f"nothing runs blocks of the kind {block.kind}"

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.servers[-1].port if self.servers else 5000}"

    def run(self, line: str) -> str:
        """Run a line and give its output, both streams together; a line that installs is left out."""
        words = shlex.split(ADDRESS.sub(self.address, line))
        if words[0] == "heedful":
            return self._run_heedful(words[1:], line)
        if words[0] == "curl":
            return self._run_curl(words)
        if words[0] == "printf":
            subprocess.run(["sh", "-c", line], cwd=self.folder, check=True)
            self.num_run += 1
            return ""
        if words[0] == "python" and words[1].endswith(".py"):
            runpy.run_path(str(self.folder / words[1]), run_name="__main__")
            self.num_run += 1
            return ""
        assert re.match(INSTALLS, line), f"nothing runs {line!r}"
        return ""

    def _run_heedful(self, words: list[str], line: str) -> str:
        file = words[words.index("<") + 1] if "<" in words else ""
        words = words[: words.index("<")] if file else words
        parse(words)
        added = next((more for start, more in self.shorter.items() if line.startswith(start)), None)
        if words[0] in TRAINS and added is None:
            self.parsed.append(line)
            return ""
        if words[0] == "serve":
            added = ("--port", "0")
        done = heedful(*words, *(added or ()), stdin=Path(file).read_bytes() if file else b"")
        if done.code == 6:
            self.lacking.append(done.err.strip())
            return ""
        assert done.code == 0, f"{line}\n{done.err}"
        self.num_run += 1
        return (done.out + done.err).replace(self.address, "127.0.0.1:5000")

    def _run_curl(self, words: list[str]) -> str:
        if not shutil.which("curl"):
            self.lacking.append("needs curl")
            return ""
        done = subprocess.run([*words, "--fail-with-body", "--max-time", "60"], capture_output=True, check=False)
        output = done.stdout.decode()
        assert done.returncode == 0, f"{shlex.join(words)}\n{output}"
        assert "error" not in json.loads(output)
        self.num_run += 1
        return output

    def _run_node(self, block: Block) -> None:
        """Run a module of JavaScript beside the packages that npm would have installed."""
        if not (NODE and has_runtime()):
            self.lacking.append("needs Node and ONNX Runtime for browsers: make runtime")
            return
        modules = self.folder / "node_modules"
        runtime = modules / "onnxruntime-web"
        if not modules.exists():
            runtime.mkdir(parents=True)
            (modules / "heedful").symlink_to(PACKAGE)
        (runtime / "package.json").write_text('{"type": "module", "exports": "./index.js"}', "utf-8")
        (runtime / "index.js").write_text(RUNTIME.format(PACKAGE / "runtime"), "utf-8")
        (self.folder / "block.mjs").write_bytes(block.code.encode())
        # The package finds ONNX Runtime where it is linked, not where it lies.
        command = [NODE, QUICK_START, "--preserve-symlinks", "block.mjs"]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()


@contextlib.contextmanager
def reader(folder: Path, patch: pytest.MonkeyPatch, *given: Any) -> Generator[Reader]:
    """Give a reader whose servers run in threads until the end."""
    made = Reader(folder, *given)
    if importlib.util.find_spec("uvicorn"):
        from heedful.serving import server

        make = server.make_server

        def make_background(*given: Any) -> Background:
            made.servers.append(Background(make(*given)))
            return made.servers[-1]

        logger = logging.getLogger("uvicorn.error")  # which a server takes over for good
        for name in ("handlers", "propagate", "level"):
            patch.setattr(logger, name, getattr(logger, name))
        patch.setattr(server, "make_server", make_background)
    try:
        yield made
    finally:
        for each in made.servers:
            each.stop()
