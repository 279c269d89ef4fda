"""What one run found, as a file that is there whole or not at all; what the runs are measured on."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from heedful.config import Config, ConfigType, validate
from heedful.errors import ConfigError, FileRefused, ResourceError
from heedful.files import written_whole
from heedful.formats import COMPARISON_FORMAT


class RunResult(Config):
    """One row trained with one seed, and what came of it."""

    row: str
    seed: int
    key: str
    """Names data, settings, budget and seed: equal keys, same run."""
    command: str
    """The `heedful train` that does this run alone."""
    settings: str
    """The configuration as TOML, every value resolved."""
    tokenizers: tuple[str, ...]
    """SHA-256 of each: rows of equal tokenizers have comparable perplexities."""
    num_parameters: int
    step: int
    num_target_tokens: int
    """Trained on, in all epochs together."""
    seconds: float
    """Trained, validation included."""
    tokens_per_second: float
    """Target tokens per second of updates."""
    ended: str
    """Why training ended."""
    best_step: int
    """Of the model that was kept and measured."""
    device: str
    versions: str
    """Of heedful and PyTorch."""
    perplexity: float
    """Of a target token of the references."""
    bits_per_character: float
    measures: dict[str, float] = Field(default_factory=dict)
    """Figures beside those made from the outputs, by column key; see `heedful.comparison.summary.COLUMNS`."""
    gold: str = ""
    """Names the pairs and links made by hand that the alignment was measured with; empty = with none."""
    outputs: tuple[str, ...]
    """One for each source of the items."""


class Items(Config):
    """The sources and references that all rows are measured on."""

    sources: tuple[str, ...]
    references: tuple[tuple[str, ...], ...]
    target_language: str
    """A code such as ``de``; may be empty."""
    is_validation: bool
    """Whether they are what models were chosen on, for want of a test set."""
    default_metrics: tuple[str, ...]
    """Keys of the table of metrics, where the grid names none."""
    data: str
    """Names the data of the comparison."""


def run_key(facts: dict[str, Any]) -> str:
    """Name a run by all that decides what it finds.

    Args:
        facts: plain values.

    Returns:
        A SHA-256 in hexadecimal.
    """
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode("ascii")).hexdigest()


def write_record(path: Path, record: Config) -> None:
    """Write a finding or items as JSON.

    Args:
        path: where to; whole or not at all.
        record: what to write.

    Raises:
        ResourceError: the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with written_whole(path) as stream:
            stream.write(
                json.dumps(COMPARISON_FORMAT.stamp(record.model_dump(mode="json")), ensure_ascii=False, indent=1) + "\n"
            )
    except OSError as error:
        raise ResourceError(f"{path}: not written: {error.strerror or error}") from None


def read_record(path: Path, kind: type[ConfigType]) -> ConfigType:
    """Read what `write_record` wrote.

    Args:
        path: a file.
        kind: what it should be.

    Returns:
        The finding or items.

    Raises:
        FileRefused: it was changed by somebody else.
        NewerFormat: a newer heedful wrote it.
    """
    try:
        facts = COMPARISON_FORMAT.strip(path, dict(json.loads(path.read_bytes().decode("utf-8"))))
        return validate(kind, facts)
    except (ConfigError, ValueError, TypeError) as error:
        raise FileRefused(f"{path}: not what a comparison writes: {error}; delete it and run again") from None


def find_run_result(path: Path, key: str, num_items: int) -> RunResult | None:
    """Read what an earlier run found, if it was the same run.

    Args:
        path: of its file.
        key: of the run wanted.
        num_items: that outputs should be there for.

    Returns:
        The finding; None where there is none, or one of another run.
    """
    if not path.is_file():
        return None
    found = read_record(path, RunResult)
    return found if found.key == key and len(found.outputs) == num_items else None


def differing_tokenizers(results: Sequence[RunResult]) -> bool:
    """Say whether perplexities are of different tokens.

    Args:
        results: of all rows.

    Returns:
        Whether any two runs had different tokenizers.
    """
    return len({found.tokenizers for found in results}) > 1
