"""Results of runs, stored one a file, and the items that all runs are evaluated on."""

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, Field

from heedful.config.base import Config, ConfigType, validate
from heedful.errors import ConfigError, DamagedFile, FileRefused, ResourceError
from heedful.files.atomic_write import atomic_write
from heedful.files.bounded_read import MOST_BULK_BYTES, read_json_object
from heedful.files.formats import COMPARISON_FORMAT


class DrawnAttention(Config):
    """Attention of a model for one source, drawn for a page."""

    title: str
    """Source and output."""
    explanation: str
    """Clause that says how to read the drawing."""
    html: str


class RunResult(Config):
    """Result of one row trained with one seed."""

    model_config = ConfigDict(allow_inf_nan=True)  # a perplexity may be infinite

    row: str
    seed: int
    key: str
    """Hash of data, settings, budget and seed: equal keys mean the same run."""
    command: str
    """Command that repeats this run alone: `heedful train`, or for an ensemble `heedful evaluate`."""
    settings: str
    """Configuration as TOML, every value resolved."""
    tokenizers: tuple[str, ...]
    """SHA-256 of each tokenizer: rows with equal tokenizers have comparable perplexities."""
    num_parameters: int
    step: int
    num_target_tokens: int
    """Target tokens trained on, in all epochs together."""
    seconds: float
    """Seconds of training, validation included."""
    tokens_per_second: float
    """Target tokens per second of updates."""
    ended: str
    """Reason why training ended."""
    best_step: int
    """Step of the selected model, which is the one evaluated."""
    device: str
    versions: str
    """Versions of heedful and PyTorch."""
    perplexity: float | None = None
    """Perplexity per target token of the references; None where outputs are not generated from texts."""
    bits_per_character: float | None = None
    measures: dict[str, float] = Field(default_factory=dict)
    """Further figures by column key; see `heedful.comparison.summary.COLUMNS`."""
    gold: str = ""
    """Key of the pairs and manual alignments behind the alignment error rate; empty = none."""
    attention: tuple[DrawnAttention, ...] = ()
    """Attention for the first sources; none for ensembles and for models without attention."""
    outputs: tuple[str, ...]
    """Output for each source of the items."""


class ComparedItems(Config):
    """Sources and references that all rows are evaluated on; a label or an answer is a reference too."""

    sources: tuple[str, ...]
    references: tuple[tuple[str, ...], ...]
    supporting: tuple[tuple[int, ...], ...] = ()
    """Indices of the facts from which each answer follows; empty where sources are no stories."""
    target_language: str
    """Language code such as ``de``; may be empty."""
    trained_unit: str = "target tokens"
    """Noun for the units that training is counted in."""
    are_images: bool = False
    """Whether the sources are paths of images, so that only references have a length."""
    is_validation: bool
    """Whether the items are the validation set, on which models were selected, because there is no test set."""
    default_metrics: tuple[str, ...]
    """Keys of the table of metrics, used where the grid names none."""
    data: str
    """Fingerprint of the data of the comparison."""


def run_key(facts: dict[str, Any]) -> str:
    """Return a hash of everything that determines the result of a run.

    Returns:
        A SHA-256 in hexadecimal.
    """
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode("ascii")).hexdigest()


def write_record(path: Path, record: Config) -> None:
    """Write a result or items as JSON.

    Args:
        path: the file; it is written completely or not at all.
        record: the result or items.

    Raises:
        ResourceError: the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path, is_internal=True) as stream:
            stream.write(
                json.dumps(COMPARISON_FORMAT.stamp(record.model_dump(mode="json")), ensure_ascii=False, indent=1) + "\n"
            )
    except OSError as error:
        raise ResourceError(f"{path}: not written: {error.strerror or error}") from None


def read_record(path: Path, kind: type[ConfigType]) -> ConfigType:
    """Read a file that `write_record` wrote.

    Returns:
        The result or items.

    Raises:
        FileRefused: the file does not hold such a record.
        NewerFormat: a newer heedful wrote the file.
    """
    try:
        facts = COMPARISON_FORMAT.strip(path, read_json_object(path, MOST_BULK_BYTES))
        return validate(kind, facts)
    except (ConfigError, DamagedFile) as error:
        raise FileRefused(f"{path}: not what a comparison writes: {error}; delete it and run again") from None


def find_run_result(path: Path, key: str, num_items: int) -> RunResult | None:
    """Read the result of an earlier run, if it was the same run.

    Args:
        num_items: number of outputs that the result must have.

    Returns:
        The result; None where there is none, or only that of another run.
    """
    if not os.path.lexists(path):
        return None
    result = read_record(path, RunResult)
    return result if result.key == key and len(result.outputs) == num_items else None


def differing_tokenizers(results: Sequence[RunResult]) -> bool:
    """Return whether runs have different tokenizers, so that their perplexities cannot be compared."""
    return len({result.tokenizers for result in results}) > 1
