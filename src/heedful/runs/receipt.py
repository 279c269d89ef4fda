"""Receipt of a training: data with their hashes, the recipe, published scores, and those that were recorded."""

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Literal, final

from pydantic import Field

from heedful.config.base import Config, read_toml, validate
from heedful.errors import ConfigError, DataError
from heedful.files.atomic_write import digest

Output = Literal["pack", "page", "graph", "lexicon"]
"""Form in which the model is written beside its folder."""


@final
class Published(Config):
    """Score that others published."""

    by: str
    metric: str
    score: float
    source: str = ""
    """Paper and table, or file."""


@final
class Recorded(Config):
    """Score of an earlier training by this receipt, with its interval of 95 %."""

    score: float
    low: float
    high: float


@final
class Recipe(Config):
    """Options of `heedful train`; files are named relative to the folder of the data."""

    files: list[str] = Field(min_length=1, max_length=1000)
    dev: list[str] = Field(default=[], max_length=1000)
    test: list[str] = Field(default=[], max_length=1000)
    """Pairs that the scores are of; empty = pairs of the files that are held out."""
    columns: str = ""
    languages: str = ""
    task: str = ""
    preset: str = ""
    minutes: float = Field(default=0.0, ge=0)
    seed: int | None = Field(default=None, ge=0)
    together: bool = False
    settings: dict[str, Any] = Field(default={})
    """Values by dotted key."""


@final
class Receipt(Config):
    """Everything that a training and its scores depend on."""

    title: str
    address: str = ""
    """Address from which the data can be fetched."""
    license: str = ""
    """Licence that cards and pages name."""
    sha256: dict[str, str] = Field(default={})
    """Hash of each file of the recipe."""
    train: Recipe
    published: list[Published] = Field(default=[])
    recorded: dict[str, Recorded] = Field(default={})
    """Scores by metric."""
    outputs: list[Output] = Field(default=["pack"])
    """Files that are made of the model."""

    @property
    def files(self) -> list[str]:
        """Names of all files of the recipe, each once."""
        return [*dict.fromkeys((*self.train.files, *self.train.dev, *self.train.test))]


def read_receipt(path: Path) -> Receipt:
    """Read a receipt.

    Raises:
        ConfigError: it is no receipt, or names a file outside the folder of its data.
    """
    receipt = validate(Receipt, read_toml(path), str(path))
    for name in receipt.files:
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            raise ConfigError(f"{path}: {name}: name a file in the folder of the data")
    return receipt


def check_data(receipt: Receipt, folder: Path) -> dict[str, str]:
    """Compare the files of a receipt with their hashes.

    Returns:
        The hash of each file, also of those for which the receipt has none.

    Raises:
        DataError: a file is missing or another one.
    """
    advice = f"fetch it from {receipt.address}" if receipt.address else "name the folder of the data by --data"
    hashes: dict[str, str] = {}
    for name in receipt.files:
        path = folder / name
        if not path.is_file():
            raise DataError(f"{path}: no such file; {advice}")
        hashes[name] = digest(path)
        if (wanted := receipt.sha256.get(name, hashes[name])) != hashes[name]:
            raise DataError(f"{path}: sha256 {hashes[name][:12]}…, the receipt's is {wanted[:12]}…; {advice}")
    return hashes


def comparison(receipt: Receipt, scores: list[dict[str, Any]]) -> tuple[list[str], bool | None]:
    """Compare scores with those that are recorded and published.

    Args:
        scores: scores of the model as its folder has them, with key, name, unit, score, low and high.

    Returns:
        Lines of text, and whether each score is within the recorded interval; None = nothing is recorded.
    """
    lines: list[str] = []
    within: list[bool] = []
    for one in scores:
        key, end = one["key"], " %" if one["unit"] == "%" else ""
        rows = [("here", _shown(one, end))]
        if earlier := receipt.recorded.get(key):
            rows.append(("recorded", _shown(earlier.model_dump(), end)))
            within.append(earlier.low <= one["score"] <= earlier.high)
        for each in receipt.published:
            if each.metric == key:
                rows.append((each.by, f"{each.score:.2f}{end}{f'   {each.source}' if each.source else ''}"))
        if len(rows) > 1 or one is scores[0]:
            width = max(len(name) for name, _ in rows)
            lines += [one["name"], *(f"  {name:{width}}  {text}" for name, text in rows)]
    return lines, all(within) if within else None


def _shown(score: Mapping[str, Any], end: str) -> str:
    if score["low"] is None:
        return f"{score['score']:.2f}{end}"
    return f"{score['score']:.2f}{end} [{score['low']:.2f}, {score['high']:.2f}]"


def missing_lines(receipt: Receipt, hashes: Mapping[str, str], scores: list[dict[str, Any]]) -> list[str]:
    """List what a receipt lacks, as lines of TOML to add to it.

    Args:
        hashes: result of `check_data`.
        scores: as for `comparison`.
    """
    lines: list[str] = []
    if unknown := {name: value for name, value in hashes.items() if name not in receipt.sha256}:
        lines += ["[sha256]", *(f'"{name}" = "{value}"' for name, value in unknown.items())]
    with_interval = [one for one in scores if one["low"] is not None]
    if not receipt.recorded and with_interval:
        lines.append("[recorded]")
        lines += [
            f"{one['key']} = {{ score = {one['score']:.2f}, low = {one['low']:.2f}, high = {one['high']:.2f} }}"
            for one in with_interval
        ]
    return lines
