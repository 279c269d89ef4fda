"""Record of a training run, read from the model folder; missing or damaged parts are left out."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast, final

from heedful.errors import DamagedFile, UsageError
from heedful.formats import HISTORY_FORMAT, METRICS_FORMAT, MODEL_FORMAT, TEST_SCORES_FORMAT, Format
from heedful.regular_files import MOST_BULK_BYTES, parse_json, parse_toml, read_bytes

METRICS: Final = "metrics.jsonl"
HISTORY: Final = "history.jsonl"
CONFIG_PLACES: Final = ("run/experiment.toml", "config.toml")


@final
@dataclass(frozen=True)
class RunRecord:
    """Record of one training run."""

    name: str
    validations: tuple[Mapping[str, Any], ...]
    """Lines of metrics.jsonl, in order of steps."""
    history: tuple[Mapping[str, Any], ...]
    """Lines of history.jsonl: "began", "resumed", "finished", "stopped" and "failed", in order of time."""
    config: str
    """Configuration as TOML, every value resolved."""
    about: Mapping[str, Any]
    """Entries of `heedful.json` about the selected model."""
    tested: Mapping[str, Any]
    """Test scores of the selected model, as `heedful train` stored them."""
    checkpoint: Mapping[str, Any]
    """State of the newest checkpoint."""

    @property
    def best(self) -> Mapping[str, Any]:
        """Validation of the selected model; empty before the first validation."""
        return next((line for line in reversed(self.validations) if line.get("is_best")), {})

    @property
    def settings(self) -> Mapping[str, Any]:
        """Configuration as a tree; empty where it is missing or damaged."""
        try:
            return parse_toml(self.config)
        except ValueError:
            return {}

    @property
    def metric(self) -> str:
        """Name of the score that selects the model; ``loss`` where the configuration does not name one."""
        for line in self.config.split("\n"):
            key, _, value = line.partition("=")
            if key.strip() == "select_by":
                return value.strip().strip('"')
        return "loss"


def read_run(model: Path) -> RunRecord:
    """Read the record of a run.

    Args:
        model: a model folder, finished or still in training.

    Returns:
        The record of the run.

    Raises:
        UsageError: the folder holds no training run.
        NewerFormat: a newer heedful wrote the folder.
    """
    run = model / "run"
    validations = [line for line in read_lines(run / METRICS, METRICS_FORMAT) if {"step", "scores"} <= line.keys()]
    history = read_lines(run / HISTORY, HISTORY_FORMAT)
    if not validations and not history:
        raise UsageError(
            f"{model}: holds no training run (no {run.name}/{METRICS}); give a folder that heedful train made"
        )
    config = next((text for name in CONFIG_PLACES if (text := _text(model / name))), "")
    states = sorted((run / "checkpoints").glob("[0-9]*/state.json"), key=lambda path: path.parent.name.rjust(20))
    newest = _tree(states[-1]).get("state", {}) if states else {}
    about, tested = _tree(model / "heedful.json", MODEL_FORMAT), _tree(run / "test.json", TEST_SCORES_FORMAT)
    return RunRecord(model.resolve().name, tuple(validations), tuple(history), config, about, tested, newest)


def read_lines(path: Path, kind: Format) -> list[dict[str, Any]]:
    """Read a file of JSON objects, one a line.

    Args:
        path: the file; a missing file has no lines.
        kind: the format of each line.

    Returns:
        The objects without their versions; a line that a crash cut off is left out.

    Raises:
        NewerFormat: a newer heedful wrote a line.
    """
    objects: list[dict[str, Any]] = []
    for line in _text(path).split("\n"):
        try:
            value = parse_json(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            objects.append(kind.strip(path, cast(dict[str, Any], value)))
    return objects


def points(validations: Sequence[Mapping[str, Any]], key: str, score: str = "") -> list[tuple[float, float]]:
    """Collect the values of a figure over steps.

    Args:
        validations: lines of metrics.jsonl.
        key: name of the figure in a line.
        score: name of the score, where `key` is "scores".

    Returns:
        Pairs (step, value); a value that is not a number becomes nan.
    """
    pairs: list[tuple[float, float]] = []
    for line in validations:
        value = line.get(key)
        if score and isinstance(value, dict):
            value = cast(dict[str, Any], value).get(score)
        pairs.append((float(line["step"]), float(value) if isinstance(value, int | float) else math.nan))
    return pairs


def _text(path: Path) -> str:
    try:
        return read_bytes(path, MOST_BULK_BYTES).decode("utf-8", "replace")
    except (OSError, DamagedFile):
        return ""


def _tree(path: Path, kind: Format | None = None) -> dict[str, Any]:
    try:
        value = parse_json(_text(path) or "{}")
    except ValueError:
        return {}
    tree = cast(dict[str, Any], value) if isinstance(value, dict) else {}
    if kind is not None and tree:
        kind.check(path, tree)
    return tree
