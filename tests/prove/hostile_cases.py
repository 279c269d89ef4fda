"""Hostile cases: damaged files, full disks, kills, options out of range and closed streams, for every command."""

import itertools
import json
import os
import random
import re
import shutil
import signal
import stat
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from zlib import crc32

import typer

from heedful.cli.main import COMMANDS, _app
from heedful.config.base import Config, _config_classes
from heedful.models.table import MODELS
from heedful.tasks.experiment import Experiment
from heedful.tasks.table import TASKS
from tests.prove.hostile_files import DAMAGES, VALUES, Damage, places, read_tree, rehash, replace_value
from tests.prove.hostile_process import PLAIN, Surroundings

Prepare = Callable[[Path, random.Random], bool]
"""Changes the folder of a case; returns whether it could."""


@dataclass(frozen=True)
class Command:
    """A command as it is given in cases."""

    name: str
    arguments: tuple[str, ...]
    needs: tuple[str, ...]
    """Files and folders that it reads."""
    results: tuple[str, ...] = ()
    """Files and model folders that it writes."""
    is_exact: bool = True
    """Whether its standard output is the same each time."""
    damages: str = "all"
    """What is damaged in the sweep of reads: "all", "few" for a command much like another, or "none"."""
    share: int = 1
    """A command that takes seconds is run with one of so many cases."""
    passing: str = ""
    """Pattern of lines of standard output that may differ: sizes of what is damaged."""


SIZES: Final = r"(?m)^(size|run|engine) .*\n"
PLACES_OF_WORDS: Final = ("--task", "captioning", "--set", "training.alignment_weight=1")
TINY: Final = ("train", "words.tsv", "--config", "tiny.toml", "--set", "training.max_steps=8", "--out")
COMMAND_LINES: Final = (
    Command("translate", ("translate", "tiny.model", "abc", "fed"), ("tiny.model",)),
    Command("translate-pieces", ("translate", "pieces.model", "abc fed", "--align"), ("pieces.model",)),
    Command("translate-words", ("translate", "words.model", "abc fed", "--replace-unknown"), ("words.model",)),
    Command(
        "translate-file",
        ("translate", "tiny.model", "-i", "test.src", "-o", "out.txt", "--format", "jsonl", "--nbest", "2"),
        ("tiny.model", "test.src"),
        ("out.txt",),
    ),
    Command("translate-onnx", ("translate", "tiny-engines.model", "abc"), ("tiny-engines.model",)),
    Command(
        "translate-ctranslate2",
        ("translate", "tiny-engines.model", "abc", "--engine", "ctranslate2", "--beam", "1"),
        ("tiny-engines.model",),
    ),
    Command("translate-named", ("translate", "tiny-engines.model", "a", "--engine", "onnx"), ("tiny-engines.model",)),
    Command(
        "translate-ensemble",
        ("translate", "tiny.model", "abc", "--ensemble", "tiny-engines.model"),
        ("tiny.model", "tiny-engines.model"),
        damages="few",
    ),
    Command(
        "translate-corrected",
        ("translate", "corrected.model", "abc", "--format", "jsonl"),
        ("corrected.model",),
        (),
        False,
    ),
    Command(
        "translate-confident",
        ("translate", "calibrated.model", "abc", "--min-confidence", "0.5", "--format", "jsonl"),
        ("calibrated.model",),
    ),
    Command(
        "distil",
        ("distil", "tiny.model", "words.tsv", "--config", "tiny.toml", "--out", "student.model"),
        ("tiny.model", "words.tsv", "tiny.toml"),
        is_exact=False,
        damages="few",
        share=4,
    ),
    Command("calibrate", ("calibrate", "calibrated.model", "words.tsv"), ("calibrated.model", "words.tsv")),
    Command(
        "evaluate-confident",
        ("evaluate", "calibrated.model", "test.tsv", "--risk-png", "out.png"),
        ("calibrated.model", "test.tsv"),
        ("out.png",),
        damages="few",
    ),
    Command("correct", ("correct", "corrected.model", "abc", "w"), ("corrected.model",)),
    Command("correct-undo", ("correct", "corrected.model", "--undo"), ("corrected.model",), damages="few"),
    Command("correct-list", ("correct", "corrected.model", "--list"), ("corrected.model",), damages="few"),
    Command(
        "correct-import",
        ("correct", "corrected.model", "--import", "test.tsv"),
        ("corrected.model", "test.tsv"),
        damages="few",
    ),
    Command(
        "correct-export",
        ("correct", "corrected.model", "--export", "out.tmx"),
        ("corrected.model",),
        ("out.tmx",),
        damages="few",
    ),
    Command(
        "translate-terms",
        ("translate", "tiny.model", "abc", "--terms", "test.tsv"),
        ("tiny.model", "test.tsv"),
        damages="few",
    ),
    Command("classify", ("classify", "labels.model", "abc fed"), ("labels.model",)),
    Command("classify-onnx", ("classify", "labels-engines.model", "abc fed"), ("labels-engines.model",)),
    Command("caption", ("caption", "scenes.model", "scenes/0.png"), ("scenes.model", "scenes/0.png")),
    Command(
        "caption-onnx", ("caption", "scenes-engines.model", "scenes/0.png"), ("scenes-engines.model", "scenes/0.png")
    ),
    Command("answer", ("answer", "stories.model", "stories.jsonl"), ("stories.model", "stories.jsonl")),
    Command(
        "answer-onnx",
        ("answer", "stories-engines.model", "stories.jsonl", "--format", "jsonl", "-o", "answers.jsonl"),
        ("stories-engines.model", "stories.jsonl"),
        ("answers.jsonl",),
        damages="few",
    ),
    Command("answer-spans", ("answer", "passages.model", "passages.jsonl"), ("passages.model", "passages.jsonl")),
    Command(
        "answer-spans-onnx",
        ("answer", "passages-engines.model", "passages.jsonl", "-o", "answers.tsv"),
        ("passages-engines.model", "passages.jsonl"),
        ("answers.tsv",),
        damages="few",
    ),
    Command("encode", ("encode", "labels.model", "abc fed"), ("labels.model",), damages="few"),
    Command(
        "evaluate", ("evaluate", "tiny.model", "test.tsv", "--format", "json"), ("tiny.model", "test.tsv"), (), False
    ),
    Command("evaluate-labels", ("evaluate", "labels.model", "labels.tsv"), ("labels.model", "labels.tsv")),
    Command("evaluate-answers", ("evaluate", "stories.model", "stories.jsonl"), ("stories.model", "stories.jsonl")),
    Command("evaluate-spans", ("evaluate", "passages.model", "passages.jsonl"), ("passages.model", "passages.jsonl")),
    Command(
        "evaluate-captions",
        ("evaluate", "scenes.model", "scenes.tsv"),
        ("scenes.model", "scenes.tsv", "scenes"),
        damages="few",
        share=2,
    ),
    Command("score", ("score", "tiny.model", "test.tsv"), ("tiny.model", "test.tsv")),
    Command(
        "score-files",
        ("score", "tiny.model", "test.src", "test.tgt"),
        ("tiny.model", "test.src", "test.tgt"),
        damages="few",
    ),
    Command("score-gzip", ("score", "tiny.model", "test.tsv.gz"), ("tiny.model", "test.tsv.gz"), damages="few"),
    Command("score-csv", ("score", "tiny.model", "test.csv"), ("tiny.model", "test.csv"), damages="few"),
    Command("score-jsonl", ("score", "tiny.model", "test.jsonl"), ("tiny.model", "test.jsonl"), damages="few"),
    Command(
        "align",
        ("align", "words.model", "test-texts.tsv", "--gold", "gold.links", "-o", "out.links"),
        ("words.model", "test-texts.tsv", "gold.links"),
        ("out.links",),
    ),
    Command("info", ("info", "tiny.model"), ("tiny.model",), passing=SIZES),
    Command("info-engines", ("info", "tiny-engines.model"), ("tiny-engines.model",), passing=SIZES),
    Command("info-words", ("info", "words.model"), ("words.model",), damages="few", passing=SIZES),
    Command("info-labels", ("info", "labels.model"), ("labels.model",), damages="few", passing=SIZES),
    Command("inspect", ("inspect", "tiny.model", "abc"), ("tiny.model",)),
    Command(
        "inspect-page",
        ("inspect", "tiny-engines.model", "abc", "--html", "page.html"),
        ("tiny-engines.model",),
        ("page.html",),
        damages="few",
    ),
    Command("report", ("report", "words.model", "-o", "page.html"), ("words.model",), ("page.html",)),
    Command("pack", ("pack", "tiny-engines.model", "-o", "packed"), ("tiny-engines.model",), ("packed",), False),
    Command("pack-zip", ("pack", "tiny.model", "-o", "packed.zip"), ("tiny.model",), ("packed.zip",), False),
    Command("pack-tar", ("pack", "tiny.model", "-o", "packed.tar"), ("tiny.model",), ("packed.tar",), False, "few"),
    Command("check", ("check", "words.tsv", "--dev", "test.tsv"), ("words.tsv", "test.tsv")),
    Command("import", ("import", "marian", "--out", "imported"), ("marian",), ("imported",)),
    Command("train", (*TINY, "new.model"), ("words.tsv", "tiny.toml"), ("new.model",), False),
    Command(
        "train-again", (*TINY, "tiny.model"), ("words.tsv", "tiny.toml", "tiny.model"), ("tiny.model",), False, share=4
    ),
    Command(
        "train-on",
        (*TINY, "tiny.model", "--set", "training.max_steps=10"),
        ("words.tsv", "tiny.toml", "tiny.model"),
        ("tiny.model",),
        False,
        share=2,
    ),
    Command(
        "train-from",
        ("train", "words.tsv", "--from", "tiny.model", "--set", "training.max_steps=8", "--out", "adapted.model"),
        ("words.tsv", "tiny.model"),
        ("adapted.model",),
        False,
        share=3,
    ),
    Command(
        "train-from-mixed",
        (
            *("train", "words.tsv", "--from", "tiny.model", "--mix", "test.tsv"),
            *("--set", "training.max_steps=8", "--out", "adapted.model"),
        ),
        ("words.tsv", "test.tsv", "tiny.model"),
        ("adapted.model",),
        False,
        "few",
        share=3,
    ),
    Command(
        "train-monolingual",
        (
            *("train", "words.tsv", "--config", "tiny.toml", "--monolingual", "test.tgt"),
            *("--set", "training.max_steps=8", "--out", "adapted.model"),
        ),
        ("words.tsv", "test.tgt"),
        ("adapted.model",),
        False,
        "few",
        share=5,
    ),
    Command(
        "train-labels-on",
        (
            "train",
            "labels.tsv",
            "--task",
            "classification",
            "--config",
            "labels.toml",
            "--out",
            "labels.model",
            "--set",
            "training.max_steps=10",
        ),
        ("labels.tsv", "labels.toml", "labels.model"),
        ("labels.model",),
        False,
        share=3,
    ),
    Command(
        "train-answers-on",
        (
            *("train", "stories.jsonl", "--task", "answering", "--config", "stories.toml", "--out", "stories.model"),
            *("--set", "training.max_steps=10"),
        ),
        ("stories.jsonl", "stories.toml", "stories.model"),
        ("stories.model",),
        False,
        share=3,
    ),
    Command(
        "train-spans-on",
        (
            *("train", "passages.jsonl", "--task", "answering", "--config", "passages.toml", "--out", "passages.model"),
            *("--set", "training.max_steps=10"),
        ),
        ("passages.jsonl", "passages.toml", "passages.model"),
        ("passages.model",),
        False,
        share=3,
    ),
    Command(
        "train-captions-on",
        (
            *("train", "scenes.tsv", "--task", "captioning", "--config", "scenes.toml", "--out", "scenes.model"),
            *("--set", "training.max_steps=10"),
        ),
        ("scenes.tsv", "scenes.toml", "scenes", "scenes.model"),
        ("scenes.model",),
        False,
        "few",
        share=3,
    ),
    Command(
        "train-boxes",
        (
            *("train", "scenes.tsv", "--task", "captioning", "--config", "scenes.toml", "--links", "boxes.tsv"),
            *("--set", "training.alignment_weight=1", "--set", "training.max_steps=4", "--out", "boxed.model"),
        ),
        ("scenes.tsv", "scenes.toml", "scenes", "boxes.tsv"),
        ("boxed.model",),
        False,
        "few",
        share=3,
    ),
    Command(
        "compare-again",
        ("compare", "grid.toml", "words.tsv", "--out", "compared", "--test", "test.tsv"),
        ("grid.toml", "words.tsv", "test.tsv", "compared"),
        ("compared/table.md",),
        False,
        share=6,
    ),
    Command("export-onnx", ("export", "tiny.model", "--to", "onnx"), ("tiny.model",), (), False, "none"),
    Command("export-ctranslate2", ("export", "tiny.model", "--to", "ctranslate2"), ("tiny.model",), (), False, "few"),
    Command(
        "export-shortlist",
        ("export", "pieces.model", "--to", "ctranslate2", "--shortlist"),
        ("pieces.model",),
        (),
        False,
        "few",
    ),
    Command(
        "export-onnx-shortlist",
        ("export", "pieces.model", "--to", "onnx", "--shortlist"),
        ("pieces.model",),
        (),
        False,
        "few",
    ),
    Command(
        "export-huggingface",
        ("export", "pieces.model", "--to", "huggingface", "exported"),
        ("pieces.model",),
        ("exported/model.safetensors",),
        False,
        "few",
    ),
)
BY_NAME: Final = {command.name: command for command in COMMAND_LINES}
READ_AS_STREAMS: Final = (
    ("translate-file", "test.src"),
    ("answer", "stories.jsonl"),
    ("answer-onnx", "stories.jsonl"),
    ("answer-spans", "passages.jsonl"),
    ("answer-spans-onnx", "passages.jsonl"),
)
"""Commands and the files that they read line by line, from pipes too."""
USER_FILES: Final = (".tsv", ".src", ".tgt", ".gz", ".csv", ".links", "test.jsonl", "stories.jsonl", "passages.jsonl")
"""Names of files whose content a user writes: there is nothing that a changed one could differ from."""


@dataclass(frozen=True)
class Case:
    """One run of a command under one fault."""

    name: str
    command: Command
    prepare: Prepare = field(default=lambda folder, draw: True)
    about: Surroundings = PLAIN
    more: tuple[str, ...] = ()
    """Further arguments."""
    is_compared: bool = False
    """Whether an end without an error must have the results of a run without the fault."""
    then: bool = False
    """Whether the same command runs again without the fault, and must have the results of an undisturbed run."""
    beside: bool = False
    """Whether the same command runs beside it at the same time."""
    is_real: bool = False
    """Whether it runs in a new process of Python."""
    check: Callable[[Path], str] = field(default=lambda folder: "")
    """What is wrong with the folder at the end; empty = nothing."""
    arguments: tuple[str, ...] = ()
    """All arguments, in the place of the command's."""

    @property
    def words(self) -> tuple[str, ...]:
        """Words after `heedful`."""
        return self.arguments or (*self.command.arguments, *self.more)


def fingerprint(command: Command, folder: Path, out: bytes) -> dict[str, str]:
    """Results of a command: its standard output, and the files and models that it wrote."""
    text = re.sub(command.passing, "", out.decode("utf-8", "replace")) if command.passing else str(out)
    found = {"standard output": text} if command.is_exact else {}
    for name in command.results:
        path = folder / name
        if (path / "heedful.json").is_file():
            facts = json.loads((path / "heedful.json").read_text(encoding="utf-8"))
            found[name] = str(sorted((key, value) for key, value in facts["files"].items() if key != "config.toml"))
        elif path.is_file():
            content = path.read_bytes()
            if path.suffix == ".jsonl":  # without a damaged engine the model itself answers, to the same four digits
                content = re.sub(rb"(\d\.\d{4})\d+", rb"\1", content)
            if path.suffix == ".zip":  # the card has the date
                with zipfile.ZipFile(path) as archive:
                    found[name] = str(sum(each.file_size for each in archive.infolist()))
            else:
                found[name] = str(len(content)) if path.suffix in (".tar", ".html") else sha256(content).hexdigest()
        else:
            found[name] = "missing"
    return found


# ------------------------------------------------------------------------------------------------------- reads


def read_cases(root: Path) -> Iterator[Case]:
    """Every file that a command reads, damaged in every way."""
    for command in COMMAND_LINES:
        if command.damages == "none":
            continue
        for name in _files(root, command):
            # Models of other tools have no checksums.
            is_user = (
                name.endswith(USER_FILES) or (name.endswith(".toml") and "/" not in name) or command.name == "import"
            )
            for damage in DAMAGES:
                if command.damages == "few" and damage.name not in ("empty", "cut", "flipped-0", "fifo", "endless"):
                    continue
                if damage.name == "fifo" and (command.name, name) in READ_AS_STREAMS:
                    continue  # pipes are read too, and wait for a writer as in every program
                # A run may be deleted: what is shown of it is then shown no more.
                # A flipped bit of a log may give another number: only what is computed with has checksums.
                is_shown = "/run/" in name and command.name.startswith(("info", "report"))
                # A last line that a crash cut off is no damage.
                left_out = ("missing", "flipped", *(["cut"] if name.endswith(".jsonl") else []))
                # Lines of a journal that are damaged are left out, with a warning.
                is_left_out = name.endswith("corrections.jsonl") or (is_shown and damage.name.startswith(left_out))
                yield Case(
                    f"read/{command.name}/{name}/{damage.name}",
                    command,
                    _damaging(name, damage),
                    is_compared=not (is_user or is_left_out),
                )
                if damage.name in ("empty", "cut", "flipped-1", "binary", "deep", "not-utf-8") and _is_hashed(
                    root, name
                ):
                    yield Case(f"read/{command.name}/{name}/{damage.name}-rehashed", command, _rehashing(name, damage))


def value_cases(root: Path) -> Iterator[Case]:
    """Every value of every JSON file that a command reads, replaced by values of other types and sizes."""
    for command in COMMAND_LINES:
        if command.damages != "all":
            continue
        for name in _files(root, command):
            if not name.endswith((".json", ".jsonl")) or name in ("test.jsonl",):
                continue
            is_run = "/run/" in name or "/findings/" in name or name.startswith("marian")
            values = {kind: VALUES[kind] for kind in ("null", "minus", "huge", "surrogate")} if is_run else VALUES
            depth = 2 if is_run else 3
            for place, (kind, value) in itertools.product(places(read_tree(root / name)[0], depth), values.items()):
                dotted = ".".join(map(str, place))
                yield Case(f"value/{command.name}/{name}/{dotted}/{kind}", command, _replacing(name, place, value))


def _files(root: Path, command: Command) -> list[str]:
    names: list[str] = []
    for need in command.needs:
        path = root / need
        if not path.exists():
            return []  # a smaller set of files was made
        files = [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]
        names += [str(each.relative_to(root)) for each in files]
    is_run_read = command.name.startswith(("train", "compare", "info", "report"))
    return sorted(name for name in names if is_run_read or "/run/" not in name)


def _is_hashed(root: Path, name: str) -> bool:
    path = root / name
    beside = [path.parent / "heedful.json", path.parent / "engine.json"]
    return any(each.is_file() and each != path for each in beside)


def _damaging(name: str, damage: Damage) -> Prepare:
    return lambda folder, draw: damage.apply(folder / name, draw)


def _rehashing(name: str, damage: Damage) -> Prepare:
    def prepare(folder: Path, draw: random.Random) -> bool:
        is_done = damage.apply(folder / name, draw)
        rehash(folder, name)
        return is_done

    return prepare


def _replacing(name: str, place: tuple[str | int, ...], value: Any) -> Prepare:
    def prepare(folder: Path, draw: random.Random) -> bool:
        del draw
        replace_value(folder / name, place, value)
        return True

    return prepare


# ------------------------------------------------------------------------------------------------------- writes

WRITERS: Final = (
    "translate-file",
    "align",
    "calibrate",
    "distil",
    "correct",
    "correct-export",
    "report",
    "pack",
    "pack-zip",
    "import",
    "train",
    "train-on",
    "train-from",
    "train-labels-on",
    "train-captions-on",
    "train-answers-on",
    "train-spans-on",
    "compare-again",
    "export-ctranslate2",
    "export-huggingface",
)
GROUPS: Final = (0, 1, 50, 200, 600, 1_500, 4_000, 10_000, 20_000, 30_000, 50_000, 80_000)
"""Sizes in bytes at which the disk is full."""


def write_cases(full: Path, null: Path) -> Iterator[Case]:
    """Every command that writes: on full disks, killed, twice at once, and into what is no file.

    Args:
        full: a device that is always full.
        null: a device that takes everything.
    """
    for name in WRITERS:
        command = BY_NAME[name]
        for size in GROUPS:
            yield Case(f"write/{name}/full-{size}", command, about=Surroundings(file_bytes=size), then=True)
        for number, seconds in ((signal.SIGKILL, 8), (signal.SIGINT, 5), (signal.SIGTERM, 5)):
            for part in range(seconds):
                about = Surroundings(killed_after=0.03 + 0.12 * part**1.5, signal=number)
                yield Case(f"write/{name}/{number.name.lower()}-{part}", command, about=about, then=True)
        yield Case(f"write/{name}/two-writers", command, beside=True)
        result = command.results[0] if command.results else ""
        if result and Path(result).suffix in (".txt", ".links", ".html"):
            yield Case(f"write/{name}/link", command, _linking(result), then=True, check=_still_link(result))
            yield Case(f"write/{name}/dangling", command, _dangling(result), check=_still_link(result))
            for kind, device in (("full-device", full), ("null-device", null)):
                yield Case(f"write/{name}/{kind}", command, _device(result, device), check=_still_device(result))
        for kind, out in OUTPUTS.items():
            if "-o" in command.arguments or "--out" in command.arguments:
                words = list(command.arguments)
                words[words.index("-o" if "-o" in words else "--out") + 1] = out
                yield Case(f"write/{name}/out-{kind}", command, _with_folder, arguments=tuple(words))


OUTPUTS: Final = {
    "root": "/",
    "empty": "",
    "dot": ".",
    "folder": "folder",
    "long": "n" * 300,
    "missing": "no/such/folder/out.txt",
    "below-file": "plain/out.txt",
    "not-utf-8": os.fsdecode(b"\xff\xfe.txt"),
    "newline": "a\nb",
    "input": "tiny.model/heedful.json",
}
"""Outputs that cannot be written, or have odd names."""


def _with_folder(folder: Path, draw: random.Random) -> bool:
    del draw
    (folder / "folder").mkdir()
    (folder / "plain").write_text("text", encoding="utf-8")
    return True


def _linking(name: str) -> Prepare:
    def prepare(folder: Path, draw: random.Random) -> bool:
        del draw
        (folder / "elsewhere").mkdir()
        (folder / "elsewhere" / "file").write_text("before", encoding="utf-8")
        (folder / name).symlink_to("elsewhere/file")
        return True

    return prepare


def _dangling(name: str) -> Prepare:
    def prepare(folder: Path, draw: random.Random) -> bool:
        del draw
        (folder / name).symlink_to("file-elsewhere")
        return True

    return prepare


def _still_link(name: str) -> Callable[[Path], str]:
    return lambda folder: "" if (folder / name).is_symlink() else f"{name} is a symbolic link no more"


def _device(name: str, device: Path) -> Prepare:
    def prepare(folder: Path, draw: random.Random) -> bool:
        del draw
        try:
            os.mknod(folder / name, stat.S_IFCHR | 0o666, device.stat().st_rdev)
            os.close(os.open(folder / name, os.O_WRONLY))
        except OSError:
            return False
        return True

    return prepare


def _still_device(name: str) -> Callable[[Path], str]:
    return lambda folder: "" if stat.S_ISCHR((folder / name).stat().st_mode) else f"{name} is a device no more"


# ------------------------------------------------------------------------------------------------------- options

ODD_VALUES: Final = {
    "zero": "0",
    "minus": "-1",
    "giga": "1000000000",
    "huge": "1" + "0" * 30,
    "exponent": "1e30",
    "nan": "nan",
    "inf": "inf",
    "empty": "",
    "full-width": "\uff11\uff12",
    "digits": "9" * 5000,
    "not-utf-8": os.fsdecode(b"\xff"),
    "fraction": "0.5",
    "path": "/",
    "nested": "[" * 5000,
}
"""Values that an option gets."""
BASES: Final = {
    "translate": "translate",
    "calibrate": "calibrate",
    "distil": "distil",
    "correct": "correct-list",
    "classify": "classify",
    "caption": "caption",
    "answer": "answer",
    "encode": "encode",
    "evaluate": "evaluate",
    "compare": "compare-again",
    "align": "align",
    "score": "score",
    "export": "export-ctranslate2",
    "import": "import",
    "pack": "pack",
    "check": "check",
    "inspect": "inspect",
    "info": "info",
    "report": "report",
    "train": "train",
}
"""Command lines that options are added to."""
ALONE: Final = {
    "demo": ("demo", "--minutes", "0.001"),
    "vectors": ("vectors", "words.tsv", "-o", "words.vec"),
    "list": ("list", "models"),
    "doctor": ("doctor",),
}


def option_cases() -> Iterator[Case]:
    """Every option of every command with every odd value; `serve` does not end by itself, and has tests of its own."""
    for name in COMMANDS:
        if name == "serve":
            continue
        group = typer.main.get_command(_app([name]))
        parameters = [
            each
            for each in _command_of(group, name).params
            if each.param_type_name == "option" and not getattr(each, "is_flag", False)
        ]
        base = BY_NAME[BASES[name]] if name in BASES else Command(name, ALONE[name], ("words.tsv",), (), False)
        for option, (kind, value) in itertools.product(parameters, ODD_VALUES.items()):
            flag = max(option.opts, key=len)
            if name == "demo" and (kind not in ("minus", "huge", "nan", "digits") or flag == "--out"):
                continue  # it makes 75,000 pairs first
            yield Case(f"option/{name}/{flag}/{kind}", base, more=(f"{flag}={value}",))


def _command_of(group: Any, name: str) -> Any:
    return group.commands[name] if hasattr(group, "commands") else group


SET_VALUES: Final = {
    "zero": "0",
    "minus": "-1",
    "giga": "1000000000",
    "huge": "1" + "0" * 30,
    "exponent": "1e30",
    "tiny": "1e-300",
    "nan": "nan",
    "inf": "inf",
    "empty": '""',
    "full-width": "\uff11\uff12",
    "list": "[]",
    "table": "{}",
}


DATA_OF: Final = {
    "translation": ("train", "words.tsv"),
    "classification": ("train-labels-on", "labels.tsv"),
    "answering": ("train-answers-on", "stories.jsonl"),
    "captioning": ("train-captions-on", "scenes.tsv"),
}
"""Command whose files a training of each task finds, and the data."""


def setting_cases() -> Iterator[Case]:
    """Every key of the configuration with every odd value, for every kind of model."""
    keys = [key for key in _keys(Experiment, "") if not key.startswith("model.")]
    small = {"embedding_size": 8, "hidden_size": 8, "maxout_size": 4, "model_size": 16, "feedforward_size": 16}
    for kind, config in MODELS.items():
        task = next(name for name, one in TASKS.items() if kind in one.kinds)
        training, data = ("train-spans-on", "passages.jsonl") if kind == "bidaf" else DATA_OF[task]
        command = BY_NAME[training]
        sizes = [f"--set=model.{key}={size}" for key, size in small.items() if key in config.model_fields]
        sizes += [f"--set=model.{key}=1" for key in config.model_fields if key.endswith("layers")]
        if "num_heads" in config.model_fields:
            sizes.append("--set=model.num_heads=2")
        base = ("train", data, "--task", task, "--out", "new.model", f"--set=model.kind={kind}", *sizes)
        base += tuple(
            f"--set=training.{key}" for key in ("max_steps=2", "validate_every=1", "batch_tokens=256", "export=false")
        )
        if task in ("translation", "captioning"):
            base += ("--set=search.beam=1", "--set=search.max_length_ratio=1", "--set=search.max_length_offset=2")
        of_model = [f"model.{key}" for key in _keys(config, "")]
        for key, (name, value) in itertools.product([*of_model, *keys], SET_VALUES.items()):
            yield Case(f"set/{kind}/{key}/{name}", command, arguments=(*base, f"--set={key}={value}"))
        keys = []


def _keys(config: type[Config], prefix: str) -> Iterator[str]:
    for name, info in config.model_fields.items():
        inner = _config_classes(info.annotation)
        if len(inner) == 1:
            yield from _keys(inner[0], f"{prefix}{name}.")
        elif not inner:
            yield f"{prefix}{name}"


# ------------------------------------------------------------------------------------------------------- streams


def stream_cases(full: Path) -> Iterator[Case]:
    """Every command with closed, full and broken streams, and in a folder that is gone.

    Args:
        full: a device that is always full.
    """
    kinds = {
        "stdin-closed": Surroundings(stdin=None),
        "stdout-closed": Surroundings(stdout="closed"),
        "stderr-closed": Surroundings(stderr="closed"),
        "all-closed": Surroundings(None, "closed", "closed"),
        "stdout-full": Surroundings(stdout="full", full_device=full),
        "stderr-full": Surroundings(stderr="full", full_device=full),
        "both-full": Surroundings(stdout="full", stderr="full", full_device=full),
        "stdout-left": Surroundings(stdout="left"),
        "stderr-left": Surroundings(stderr="left"),
        "both-left": Surroundings(stdout="left", stderr="left"),
        "folder-gone": Surroundings(without_folder=True),
    }
    alone = [
        Command(f"alone-{name}", words, ("words.tsv",), (), False) for name, words in ALONE.items() if name != "demo"
    ]
    alone += [Command(f"list-{what}", ("list", what), ()) for what in ("scores", "presets", "metrics", "tasks")]
    alone += [Command("help", ("--help",), ()), Command("help-train", ("train", "--help"), ())]
    alone += [Command("version", ("--version",), ())]
    for command, (kind, about) in itertools.product((*COMMAND_LINES, *alone), kinds.items()):
        yield Case(f"stream/{command.name}/{kind}", command, about=about, is_compared=kind == "stdin-closed")
    reader = replace(BY_NAME["translate"], arguments=("translate", "tiny.model"))
    classifier = replace(BY_NAME["classify"], arguments=("classify", "labels.model"))
    answerer = replace(BY_NAME["answer"], arguments=("answer", "stories.model"))
    reader_of_spans = replace(BY_NAME["answer-spans"], arguments=("answer", "passages.model"))
    commands = reader, classifier, answerer, reader_of_spans
    for command, (kind, stdin) in itertools.product(commands, STDIN.items()):
        yield Case(f"stream/{command.name}/stdin-{kind}", command, about=Surroundings(stdin=stdin))


STDIN: Final = {
    "empty": b"",
    "blank": b"\n\n\n",
    "nul": b"\0\n\0",
    "not-utf-8": b"abc\n\xff\xfe\nabc\n",
    "utf-16": "abc\nfed\n".encode("utf-16"),
    "long": b"a" * 3_000_000,
    "separators": "a\u2028b\x85c\x0cd\re\n".encode(),
    "gzip": bytes.fromhex("1f8b08000000000000034b4c4ae60200") + b"\xff" * 20,
}


# ------------------------------------------------------------------------------------------------------- usage

WORDS: Final = {
    "none": (),
    "empty": ("",),
    "dash": ("-",),
    "dashes": ("--",),
    "unknown": ("frobnicate",),
    "debug-first": ("--debug", "info", "tiny.model"),
    "quiet-first": ("-q", "info", "tiny.model"),
    "debug-only": ("--debug",),
    "code-only": ("--code",),
    "code-empty": ("--code=", "info", "tiny.model"),
    "code-odd": ("--code", "a.b.c:", "info", "tiny.model"),
    "code-os": ("--code", "os:system", "info", "tiny.model"),
    "not-utf-8": (os.fsdecode(b"\xff"),),
    "not-utf-8-model": ("info", os.fsdecode(b"\xff")),
    "not-utf-8-text": ("translate", "tiny.model", os.fsdecode(b"a\xffb")),
    "long-model": ("info", "m" * 100_000),
    "long-name": ("info", "m" * 300),
    "long-text": ("translate", "tiny.model", "a" * 100_000),
    "long-require": ("translate", "tiny.model", "abc", "--require", "a" * 10_000),
    "long-ban": ("translate", "tiny.model", "abc", "--ban", "a" * 10_000),
    "long-prefix": ("translate", "tiny.model", "abc", "--prefix", "a" * 10_000),
    "many-bans": ("translate", "tiny.model", "abc", *(f"--ban={a}{b}" for a in "abcdef" for b in "abcdef")),
    "model-is-file": ("info", "words.tsv"),
    "model-is-root": ("info", "/"),
    "model-is-null": ("info", "/dev/null"),
    "model-is-proc": ("info", "/proc/self"),
    "model-empty": ("info", ""),
    "data-is-folder": ("check", "tiny.model"),
    "data-is-null": ("check", "/dev/null"),
    "data-is-zero": ("check", "/dev/zero"),
    "data-is-mem": ("check", "/proc/self/mem"),
    "data-three": ("check", "words.tsv", "words.tsv", "words.tsv"),
    "data-same": ("check", "words.tsv", "words.tsv"),
    "train-zero": ("train", "/dev/zero"),
    "train-null": ("train", "/dev/null"),
    "config-zero": ("train", "words.tsv", "--config", "/dev/zero"),
    "config-folder": ("train", "words.tsv", "--config", "/"),
    "train-links-none": ("train", "words.tsv", "--links", "missing"),
    "train-links-empty": ("train", "words.tsv", "--links", "/dev/null"),
    "train-links-zero": ("train", "words.tsv", "--links", "/dev/zero", "--set", "training.alignment_weight=1"),
    "train-links-folder": ("train", "words.tsv", "--links", "tiny.model", "--set", "training.alignment_weight=1"),
    "train-links-pairs": ("train", "words.tsv", "--links", "words.tsv", "--set", "training.alignment_weight=1"),
    "train-links-bytes": (
        *("train", "words.tsv", "--links", "tiny.model/tokenizer.json", "--set", "training.alignment_weight=1"),
    ),
    "train-links-labels": (
        *("train", "labels.tsv", "--task", "classification", "--links", "words.tsv"),
        *("--set", "training.alignment_weight=1"),
    ),
    "train-boxes-zero": ("train", "scenes.tsv", *PLACES_OF_WORDS, "--links", "/dev/zero"),
    "train-boxes-folder": ("train", "scenes.tsv", *PLACES_OF_WORDS, "--links", "scenes"),
    "train-boxes-pairs": ("train", "scenes.tsv", *PLACES_OF_WORDS, "--links", "words.tsv"),
    "train-boxes-captions": ("train", "scenes.tsv", *PLACES_OF_WORDS, "--links", "scenes.tsv"),
    "train-boxes-none": ("train", "scenes.tsv", *PLACES_OF_WORDS),
    "gold-zero": ("align", "words.model", "test-texts.tsv", "--gold", "/dev/zero"),
    "input-zero": ("translate", "tiny.model", "-i", "/dev/zero"),
    "input-folder": ("translate", "tiny.model", "-i", "/"),
    "serve-none": ("serve",),
    "serve-no-model": ("serve", "missing.model"),
    "serve-model-is-file": ("serve", "words.tsv"),
    "serve-model-is-root": ("serve", "/"),
    "serve-model-empty": ("serve", ""),
    "serve-twice": ("serve", "tiny.model", "tiny.model", "--port=0"),
    "serve-port": ("serve", "tiny.model", "--port=65536"),
    "serve-host": ("serve", "tiny.model", "--host=256.0.0.1"),
    "serve-host-long": ("serve", "tiny.model", "--host", "a" * 10_000),
    "serve-host-not-utf-8": ("serve", "tiny.model", "--host", os.fsdecode(b"\xff")),
    "serve-cors": ("serve", "tiny.model", "--cors=example.org", "--port=0"),
    "serve-keys-empty": ("serve", "tiny.model", "--api-key-file=/dev/null", "--port=0"),
    "serve-keys-zero": ("serve", "tiny.model", "--api-key-file=/dev/zero", "--port=0"),
    "serve-keys-missing": ("serve", "tiny.model", "--api-key-file=missing", "--port=0"),
    "serve-links-is-folder": ("serve", "tiny.model", "--links=tiny.model", "--port=0"),
    "serve-links-zero": ("serve", "tiny.model", "--links=/dev/zero", "--port=0"),
    "evaluate-record-ensemble": ("evaluate", "tiny.model", "words.tsv", "--record", "--ensemble", "tiny.model"),
    "evaluate-record-labels": ("evaluate", "labels.model", "labels.tsv", "--record"),
    "export-layers-ctranslate2": ("export", "tiny.model", "--to=ctranslate2", "--layers"),
    "serve-keys-not-utf-8": ("serve", "tiny.model", "--api-key-file=tiny.model/tokenizer.model", "--port=0"),
    "serve-suggestions-root": ("serve", "tiny.model", "--suggestions=/", "--port=0"),
    "serve-suggestions-null": ("serve", "tiny.model", "--suggestions=/dev/null", "--port=0"),
    "serve-timeout": ("serve", "tiny.model", "--timeout=nan"),
    "serve-engine": ("serve", "tiny.model", "--engine=x", "--port=0"),
    "report-root": ("report", "tiny.model", "-o", "/"),
    "set-none": ("train", "words.tsv", "--set", ""),
    "set-dots": ("train", "words.tsv", "--set", "...=1"),
    "set-no-key": ("train", "words.tsv", "--set", "=1"),
    "set-deep-key": ("train", "words.tsv", "--set", ".".join("a" * 3000) + "=1"),
    "set-deep": ("train", "words.tsv", "--set", "model.kind=" + "[" * 5000),
    "set-digits": ("train", "words.tsv", "--set", "training.max_steps=" + "9" * 5000),
    "set-newline": ("train", "words.tsv", "--set", "training.max_steps=1\nb=2"),
    "set-surrogate": ("train", "words.tsv", "--set", "model.kind=" + os.fsdecode(b"\xff")),
    "set-nul": ("train", "words.tsv", "--set", "model.kind=\\u0000"),
    **{
        f"device-{name or 'empty'}": (command, "tiny.model", *rest, f"--device={name}")
        for name in ("meta", "cuda", "cuda:99", "cuda:-1", "cpu:7", "xla", "hpu", "mps", "mkldnn", "privateuseone", "")
        for command, *rest in (("translate", "abc"),)
    },
    **{f"engine-{name or 'empty'}": ("translate", "tiny.model", "a", f"--engine={name}") for name in ("", "x", "../x")},
}
"""Odd command lines."""


def usage_cases() -> Iterator[Case]:
    """Odd command lines, and files with odd names and contents."""
    needs = ("tiny.model", "words.model", "words.tsv", "test-texts.tsv", "tiny.toml")
    for name, words in WORDS.items():
        yield Case(f"usage/{name}", Command(name, words, needs, (), False), arguments=words)
    reader = Command("read", ("score", "tiny.model"), ("tiny.model", "test.tsv"), (), False)
    for name, make in DATA_FILES.items():
        for verb in ("score", "check", "train", "evaluate"):
            before = ("tiny.model",) if verb in ("score", "evaluate") else ()
            after = ("--set=training.max_steps=2", "--set=training.export=false") if verb == "train" else ()
            words = (verb, *before, "odd", *after)
            yield Case(f"usage/data-{name}/{verb}", reader, _making("odd", make), arguments=words)
        if name == "fifo":
            continue  # a text may come through a pipe, and its writer may take its time
        yield Case(
            f"usage/data-{name}/translate",
            reader,
            _making("odd", make),
            arguments=("translate", "tiny.model", "-i", "odd"),
        )
    odd = os.fsdecode(b"odd\xff.tsv")
    for words in (
        ("check", odd),
        ("score", "tiny.model", odd),
        ("train", odd, "--set=training.max_steps=2", "--set=training.export=false"),
    ):
        yield Case(f"usage/name-not-utf-8/{words[0]}", reader, _renaming(odd), arguments=words)


def _making(name: str, make: Callable[[Path], object]) -> Prepare:
    def prepare(folder: Path, draw: random.Random) -> bool:
        del draw
        make(folder / name)
        return True

    return prepare


def _renaming(name: str) -> Prepare:
    def prepare(folder: Path, draw: random.Random) -> bool:
        del draw
        shutil.copy(folder / "test.tsv", folder / name)
        return True

    return prepare


def _bomb(content: bytes) -> Callable[[Path], object]:
    def make(path: Path) -> None:
        import gzip

        with gzip.open(path, "wb", compresslevel=1) as packed:
            for _ in range(10):
                packed.write(content * ((1 << 22) // len(content)))

    return make


DATA_FILES: Final[dict[str, Callable[[Path], object]]] = {
    "fifo": os.mkfifo,
    "bomb-newlines": _bomb(b"\n"),
    "bomb-tabs": _bomb(b"\t"),
    "bomb-zeros": _bomb(b"\0"),
    "gzip-flipped": lambda path: path.write_bytes(bytes.fromhex("1f8b0800000000000003ffffffff") + b"\x12" * 40),
    "gzip-header": lambda path: path.write_bytes(b"\x1f\x8b"),
    "json-deep": lambda path: path.write_bytes(b'{"source": ' + b"[" * 100_000 + b"\n"),
    "json-digits": lambda path: path.write_bytes(b'{"source": ' + b"9" * 5000 + b', "target": "a"}\n' * 3),
    "json-surrogate": lambda path: path.write_bytes(b'{"source": "\\ud800", "target": "\\udfff"}\n' * 30),
    "json-array": lambda path: path.write_bytes(b"[1, 2]\n" * 30),
    "parquet": lambda path: path.write_bytes(b"PAR1" + b"\0" * 40 + b"PAR1"),
    "arrow": lambda path: path.write_bytes(b"ARROW1\0\0" + b"\xff" * 40),
    "pickle": lambda path: path.write_bytes(b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00\x8c\x07os.path\x94."),
    "zip": lambda path: path.write_bytes(b"PK\x03\x04" + b"\0" * 60),
    "bom-only": lambda path: path.write_bytes(b"\xef\xbb\xbf"),
    "quotes": lambda path: path.write_bytes(b'"a\tb\n' * 30),
    "columns": lambda path: path.write_bytes(b"a\t" * 100_000 + b"\n"),
    "one-line": lambda path: path.write_bytes(b"a" * 1_000_000 + b"\t" + b"b" * 1_000_000 + b"\n"),
}
"""Files of pairs that nobody should have written."""


# ------------------------------------------------------------------------------------------------------- processes


def process_cases() -> Iterator[Case]:
    """New processes: environments, and Ctrl-C while Python starts."""
    command = BY_NAME["translate"]
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "COLUMNS", "LINES"):
        for kind in ("zero", "minus", "giga", "huge", "nan", "empty", "digits", "full-width"):
            about = Surroundings(environment=((name, ODD_VALUES[kind]),))
            words = ("translate", "--help") if name in ("COLUMNS", "LINES") else ()
            yield Case(f"process/{name}/{kind}", command, about=about, is_real=True, arguments=words)
    for name, value in {
        "LC_ALL": "C",
        "LANG": "xx",
        "PYTHONUTF8": "0",
        "TERM": "odd",
        "HOME": "/no",
        "TMPDIR": "/no",
    }.items():
        yield Case(f"process/{name}", command, about=Surroundings(environment=((name, value),)), is_real=True)
    for part in range(40):
        about = Surroundings(killed_after=0.02 + 0.02 * part, signal=signal.SIGINT)
        yield Case(f"process/sigint-{part}", command, about=about, is_real=True)


def all_cases(root: Path, full: Path, null: Path) -> Sequence[Case]:
    """All cases, in a fixed order.

    Args:
        root: folder of `hostile_files.make_all`.
        full: a device that is always full.
        null: a device that takes everything.
    """
    families = (
        read_cases(root),
        value_cases(root),
        write_cases(full, null),
        option_cases(),
        setting_cases(),
        stream_cases(full),
        usage_cases(),
        process_cases(),
    )
    every = itertools.chain.from_iterable(families)
    return [case for case in every if crc32(case.name.encode("utf-8", "surrogateescape")) % _share(case) == 0]


def _share(case: Case) -> int:
    return case.command.share if case.name.startswith(("read/", "value/")) else 1
