"""Record of a training run, read from the model folder; missing or damaged parts are left out."""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, cast, final

from pydantic import Field

from heedful.data.split import validated_on
from heedful.errors import DamagedFile, FileRefused, NewerFormat, UsageError
from heedful.files.bounded_read import MOST_BULK_BYTES, parse_json, parse_toml, read_bytes
from heedful.files.formats import HISTORY_FORMAT, METRICS_FORMAT, MODEL_FORMAT, TEST_SCORES_FORMAT, Format
from heedful.files.records import CHECKSUM, RecordSchema, is_as_written, read_facts

METRICS: Final = "run/metrics.jsonl"
HISTORY: Final = "run/history.jsonl"
TEST: Final = "run/test.json"
"""File of the test scores and of the entry in `heedful.json` about the weights that they belong to."""
EVALUATION: Final = "run/evaluation.json"
"""File of the scores that `heedful evaluate --record` stored, in the same format."""
CONFIG_PLACES: Final = ("run/experiment.toml", "config.toml")


Finite = Annotated[float, Field(allow_inf_nan=False)]
Sample = Annotated[list[str], Field(min_length=3, max_length=3)]


@final
class _ValidationSchema(RecordSchema):
    """Schema of the entries of a line of metrics.jsonl."""

    step: int
    scores: dict[str, float]
    epoch: Finite = 0.0
    seconds: Finite = 0.0
    loss: float = 0.0
    learning_rate: float = 0.0
    tokens_per_second: float = 0.0
    is_best: bool = False
    sample: Sample = Field(default=["", "", ""])
    samples: list[Sample] = Field(default=[])


@final
class _EventSchema(RecordSchema):
    """Schema of the entries of a line of history.jsonl."""

    event: str
    step: int = 0
    time: str = ""
    num_parameters: int = 0
    report: list[str] = Field(default=[])


@final
class _BucketSchema(RecordSchema):
    """Schema of the entries of a score by source length."""

    shortest: int
    longest: int
    num_items: int
    score: Finite
    low: Finite
    high: Finite


@final
class _ResultSchema(RecordSchema):
    """Schema of the entries of one test score."""

    name: str
    score: float
    low: float
    high: float
    metric: str = ""
    signature: str = ""
    by_length: list[_BucketSchema] = Field(default=[])


@final
class _OutputSchema(RecordSchema):
    """Schema of the entries of one of the worst outputs."""

    source: str
    references: list[str]
    output: str
    score: Finite


@final
class _ScoresSchema(RecordSchema):
    """Schema of the entries of test.json."""

    weights: str = ""
    text: str = ""
    results: list[_ResultSchema] = Field(default=[])
    num_items: int = 0
    length_unit: str = ""
    worst_by: str = ""
    worst: list[_OutputSchema] = Field(default=[])


@final
class _AboutSchema(RecordSchema):
    """Schema of the entries of heedful.json that are shown."""

    kind: str = ""
    languages: list[str] = Field(default=[])


@final
class _StateSchema(RecordSchema):
    """Schema of the entries of a checkpoint's state that are shown."""

    step: int = 0
    seconds: Finite = 0.0
    finished: str = ""


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
    """Test scores of the selected model, as `heedful train` stored them; empty where they are of other weights."""
    checkpoint: Mapping[str, Any]
    """State of the newest checkpoint."""

    @property
    def best(self) -> Mapping[str, Any]:
        """Validation of the selected model; empty before the first validation."""
        return next((line for line in reversed(self.validations) if line.get("is_best")), {})

    @property
    def validated_on(self) -> str:
        """Items that the scores of validations are on: "validation", or such as "the training pairs"."""
        return validated_on(line for event in self.history for line in event.get("report", ()))

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

    Raises:
        UsageError: the folder holds no training run.
        NewerFormat: a newer heedful wrote the folder.
    """
    validations, history = read_validations(model), _lines(model / HISTORY, HISTORY_FORMAT, _EventSchema)
    if not validations and not history:
        raise UsageError(f"{model}: holds no training run (no {METRICS}); give a folder that heedful train made")
    config = next((text for name in CONFIG_PLACES if (text := _text(model / name))), "")
    checkpoints = (model / "run/checkpoints").glob("[0-9]*/state.json")
    newest = max(checkpoints, key=lambda path: path.parent.name.rjust(20), default=None)
    state = _object(newest).get("state", {}) if newest else {}
    state = state if isinstance(state, dict) and not _StateSchema.error(state) else {}
    about = _object(model / "heedful.json")
    if about:
        MODEL_FORMAT.check(model / "heedful.json", about)
    about = {} if _AboutSchema.error(about) else about
    tested = scores_of(model, about.get("weights"))
    return RunRecord(model.resolve().name, tuple(validations), tuple(history), config, about, tested, state)


def training_size(model: Path) -> int:
    """Count the rows that a model was trained on, headings and repeated ones included.

    Returns:
        The number; 0 where the folder does not say.
    """
    train = _object(model / "run/data.json").get("train")
    files = train.get("files") if isinstance(train, dict) else None
    lines = [one.get("lines") for one in files if isinstance(one, dict)] if isinstance(files, list) else []
    return max((number for number in lines if isinstance(number, int)), default=0)  # two files are aligned


def read_validations(model: Path) -> list[dict[str, Any]]:
    """Read the validations of a run.

    Returns:
        Lines of metrics.jsonl without their versions; damaged lines are left out.

    Raises:
        NewerFormat: a newer heedful wrote a line.
    """
    return _lines(model / METRICS, METRICS_FORMAT, _ValidationSchema)


def scores_of(model: Path, weights: object) -> dict[str, Any]:
    """Read the test scores of the selected model, not those of other weights that training has selected before.

    Args:
        weights: name of the file of the selected model's weights.

    Returns:
        The scores; empty if there are none, as for `read_scores`.
    """
    scores = read_scores(model)
    return scores if scores.get("weights") == weights else {}


def read_scores(model: Path, name: str = TEST) -> dict[str, Any]:
    """Read the test scores stored in a model folder.

    Args:
        name: `TEST` or `EVALUATION`.

    Returns:
        The scores; empty if there are none, or if they are damaged and so have to be computed again.

    Raises:
        NewerFormat: a newer heedful wrote them.
    """
    try:
        scores = read_facts(model / name, TEST_SCORES_FORMAT, "")
    except NewerFormat:
        raise
    except (OSError, FileRefused):
        return {}
    return {} if _ScoresSchema.error(scores) else scores


def damaged_parts(model: Path) -> list[str]:
    """List the files of a run that are there but cannot be read whole, so that a part of the record is left out.

    Returns:
        Names of the files. A last line without a line end, as a crash leaves it, is no damage.

    Raises:
        NewerFormat: a newer heedful wrote a file.
    """
    logs = {METRICS: (METRICS_FORMAT, _ValidationSchema), HISTORY: (HISTORY_FORMAT, _EventSchema)}
    damaged = [
        name
        for name, (kind, kinds) in logs.items()
        if os.path.lexists(model / name)
        and len(_lines(model / name, kind, kinds)) < max(1, _text(model / name).count("\n"))
    ]
    about = model / "heedful.json"
    damaged += ["heedful.json"] if os.path.lexists(about) and not _object(about) else []
    damaged += [name for name in CONFIG_PLACES if os.path.lexists(model / name) and not _is_toml(model / name)]
    return [*damaged, *([TEST] if os.path.lexists(model / TEST) and not read_scores(model) else [])]


def _is_toml(path: Path) -> bool:
    text = _text(path)
    try:
        return bool(text) and bool(parse_toml(text))
    except ValueError:
        return False


def _lines(path: Path, kind: Format, kinds: type[RecordSchema]) -> list[dict[str, Any]]:
    """Lines of a file of JSON objects, without their versions; damaged lines, and those cut by a crash, are left out.

    Raises:
        NewerFormat: a newer heedful wrote a line.
    """
    objects: list[dict[str, Any]] = []
    for line in _text(path).split("\n"):
        try:
            value = parse_json(line)
            content = kind.strip(path, value) if isinstance(value, dict) and is_as_written(value) else {}
        except NewerFormat:
            raise
        except (ValueError, FileRefused):
            continue
        if not kinds.error(content):
            objects.append({key: value for key, value in content.items() if key != CHECKSUM})
    return objects


def points(validations: Sequence[Mapping[str, Any]], key: str, score: str = "") -> list[tuple[float, float]]:
    """Collect the values of a figure over steps.

    Args:
        validations: lines of metrics.jsonl.
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


def _object(path: Path) -> dict[str, Any]:
    """JSON object of a file; empty if there is none."""
    try:
        value = parse_json(_text(path))
    except ValueError:
        return {}
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}
