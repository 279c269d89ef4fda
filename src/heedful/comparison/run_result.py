"""Results of runs, stored one a file, and the items that all runs are evaluated on."""

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
    """Result of one row trained with one seed."""

    row: str
    seed: int
    key: str
    """Hash of data, settings, budget and seed: equal keys mean the same run."""
    command: str
    """Command `heedful train` that does this run alone."""
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
    """Step of the model that was kept and evaluated."""
    device: str
    versions: str
    """Versions of heedful and PyTorch."""
    perplexity: float
    """Perplexity per target token of the references."""
    bits_per_character: float
    measures: dict[str, float] = Field(default_factory=dict)
    """Further figures by column key; see `heedful.comparison.summary.COLUMNS`."""
    gold: str = ""
    """Key of the pairs and manual alignments behind the alignment error rate; empty = none."""
    outputs: tuple[str, ...]
    """Output of each source of the items."""


class Items(Config):
    """Sources and references that all rows are evaluated on."""

    sources: tuple[str, ...]
    references: tuple[tuple[str, ...], ...]
    target_language: str
    """Language code such as ``de``; may be empty."""
    is_validation: bool
    """Whether they are the set that models were selected on, in the absence of a test set."""
    default_metrics: tuple[str, ...]
    """Keys of the table of metrics, used where the grid names none."""
    data: str
    """Fingerprint of the data of the comparison."""


def run_key(facts: dict[str, Any]) -> str:
    """Return a hash of everything that determines the result of a run.

    Args:
        facts: plain values.

    Returns:
        A SHA-256 in hexadecimal.
    """
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode("ascii")).hexdigest()


def write_record(path: Path, record: Config) -> None:
    """Write a result or items as JSON.

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
    """Read a file of `write_record`.

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
    """Read the result of an earlier run, if it was the same run.

    Args:
        path: of its file.
        key: of the run wanted.
        num_items: that outputs should be there for.

    Returns:
        The finding; None where there is none, or one of another run.
    """
    if not path.is_file():
        return None
    result = read_record(path, RunResult)
    return result if result.key == key and len(result.outputs) == num_items else None


def differing_tokenizers(results: Sequence[RunResult]) -> bool:
    """Tell whether perplexities are of different tokens.

    Args:
        results: of all rows.

    Returns:
        Whether any two runs had different tokenizers.
    """
    return len({result.tokenizers for result in results}) > 1
