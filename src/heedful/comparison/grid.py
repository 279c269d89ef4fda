"""Grid of variants in one TOML file: shared settings, settings by kind of model, and the changes of each row."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Final, final

from pydantic import Field, field_validator

from heedful.config.base import Config, Tree, leaves, merge, read_toml, validate
from heedful.config.plugins import is_custom
from heedful.errors import ConfigError, UsageError, did_you_mean
from heedful.evaluation.by_length import require_increasing
from heedful.evaluation.interface import Setting
from heedful.evaluation.metrics.table import build_metric
from heedful.models.store import DEFAULT_TASK
from heedful.models.table import MODELS, PRESETS
from heedful.tasks.table import find_task

MOST_ROWS: Final = 1000
MOST_LENGTH: Final = 1_000_000_000
"""Largest source length at which a range of lengths can begin."""
NAME_LENGTH: Final = 80
"""Longest name of a row, in characters; the name is also a folder's."""


class Settings(Config):
    """Preset and the settings that change it, as for `heedful train`; each section may be empty."""

    preset: str = ""
    model: dict[str, Any] = Field(default_factory=dict)
    text: dict[str, Any] = Field(default_factory=dict)
    images: dict[str, Any] = Field(default_factory=dict)
    training: dict[str, Any] = Field(default_factory=dict)
    search: dict[str, Any] = Field(default_factory=dict)

    def tree(self) -> Tree:
        """Return the sections that are not empty."""
        names = ("model", "text", "images", "training", "search")
        return {name: section for name in names if (section := getattr(self, name))}


class NamedSettings(Settings):
    """Row of the grid: its name in the table and its settings."""

    name: str = Field(min_length=1, max_length=NAME_LENGTH)
    ensemble: tuple[str, ...] = ()
    """Names of earlier rows whose models decode together; an ensemble is not trained and has no settings of its own."""
    seeds: tuple[int, ...] = ()
    """Seeds of this row; empty = the grid's, or for an ensemble the seeds that all its members share."""


class GoldSettings(Config):
    """Manual word alignments that each row's alignment is compared with."""

    links: str = ""
    """File in any notation that `heedful align --gold` reads; empty = no alignment error rate."""
    pairs: tuple[str, ...] = ()
    """Pairs of the alignments, in one file or two; empty = the test pairs."""
    is_one_based: bool = False
    """Whether words are counted from 1 in a file with one sentence a line."""
    is_turned: bool = False
    """Whether links are written target-source instead of source-target."""


class Grid(Config):
    """Grid of model variants: all combinations of the axes, then the listed rows; the shared settings apply to each."""

    title: str = ""
    task: str = ""
    """Task of all rows; empty = translation."""
    baseline: str = ""
    """Row that all others are compared with; empty = the first."""
    seeds: tuple[int, ...] = Field(default=(1,), min_length=1)
    """Seeds of every row that has none of its own."""
    metrics: tuple[str, ...] = ()
    """Metrics by key, the primary one first; empty = metrics that suit the outputs."""
    length_edges: tuple[Annotated[int, Field(ge=0, le=MOST_LENGTH)], ...] = ()
    """Source lengths at which a new range begins; empty = ranges of about equally many sources."""
    gold: GoldSettings = GoldSettings()
    """Manual alignments."""
    base: Settings = Settings()
    """Settings that all rows share."""
    kinds: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Settings for models of one kind, such as [kinds.luong]."""
    axes: dict[str, tuple[Any, ...]] = Field(default_factory=dict)
    """Dotted keys and the values of each; every combination is a row."""
    rows: tuple[NamedSettings, ...] = ()

    @field_validator("metrics")
    @classmethod
    def _check_metrics(cls, keys: tuple[str, ...]) -> tuple[str, ...]:
        try:
            for key in keys:
                build_metric(key, Setting())
        except UsageError as error:
            raise ValueError(str(error)) from None
        return keys

    @field_validator("length_edges")
    @classmethod
    def _check_edges(cls, edges: tuple[int, ...]) -> tuple[int, ...]:
        try:
            require_increasing(edges)
        except UsageError as error:
            raise ValueError(str(error)) from None
        return edges


@final
@dataclass(frozen=True)
class Row:
    """Row of the table, with the settings of its model.

    Attributes:
        name: name as printed.
        preset: preset as for `heedful train`; empty = none, the model kind then comes from the settings.
        settings: settings, each written ``dotted.key=value``.
        members: names of the rows whose models decode together; empty for a row that is trained.
        seeds: seeds; the row is trained once with each.
    """

    name: str
    preset: str
    settings: tuple[str, ...]
    members: tuple[str, ...] = ()
    seeds: tuple[int, ...] = (1,)

    @property
    def folder(self) -> str:
        """Folder name: letters, digits, dots and hyphens of the row's name."""
        return re.sub(r"[^\w.-]+", "-", self.name).strip(".-_") or "row"


def read_grid(path: Path) -> Grid:
    """Read a grid.

    Returns:
        The grid; its rows are checked by `rows_of`.

    Raises:
        ConfigError: there is no such file, or a key or value in it is wrong.
    """
    try:
        return validate(Grid, read_toml(path))
    except ConfigError as error:
        message = str(error)
        raise ConfigError(message if message.startswith(str(path)) else f"{path}: {message}") from None


def rows_of(grid: Grid, seeds: Sequence[int] = ()) -> tuple[Row, ...]:
    """List the rows: every combination of the axes, the last axis changing fastest, then the rows listed one by one.

    Args:
        seeds: seeds of every row, in place of those in the grid; empty = the grid's.

    Returns:
        At least one row; all have different names and different folders.

    Raises:
        ConfigError: there are no rows or too many, two rows would share a folder, the baseline is not a row, an
            ensemble names something other than a trained row above it or has a seed that one of its members lacks,
            or a seed is listed twice.

    Example:
        >>> grid = Grid(axes={"model.window": ("global", "local-p"), "model.has_feeding": (True,)})
        >>> [row.name for row in rows_of(grid)]
        ['global, has_feeding=true', 'local-p, has_feeding=true']
    """
    for kind in grid.kinds:
        if kind not in MODELS and not is_custom(kind):
            raise ConfigError(f"kinds.{kind}: no model {kind!r}{did_you_mean(kind, MODELS)}")
    named = [*_product(grid.axes), *grid.rows]
    if not named:
        raise ConfigError("the grid has no rows: give [[rows]] with a name each, or [axes]")
    if len(named) > MOST_ROWS:
        raise ConfigError(f"the grid has {len(named):,} rows, at most {MOST_ROWS:,}: give fewer or shorter axes")
    rows: list[Row] = []
    for each in named:
        rows.append(replace(_row(grid, each), seeds=tuple(seeds) or _seeds(grid, each, rows)))
    by_folder: dict[str, Row] = {}
    for row in rows:
        other = by_folder.setdefault(row.folder.casefold(), row)
        if other is not row:
            raise ConfigError(f"rows {other.name!r} and {row.name!r} would share the folder {row.folder}: rename one")
    names = [row.name for row in rows]
    for index, row in enumerate(rows):
        trained = [above.name for above in rows[:index] if not above.members]
        if unknown := [name for name in row.members if name not in trained]:
            raise ConfigError(f"row {row.name!r}: ensemble: no trained row {unknown[0]!r} above it")
    if grid.baseline and grid.baseline not in names:
        raise ConfigError(f"baseline: no row {grid.baseline!r}{did_you_mean(grid.baseline, names)}")
    return tuple(rows)


def baseline_of(grid: Grid, rows: Sequence[Row]) -> str:
    """Return the name of the row that all others are compared with."""
    return grid.baseline or rows[0].name


def _seeds(grid: Grid, row: NamedSettings, above: Sequence[Row]) -> tuple[int, ...]:
    seeds = row.seeds or grid.seeds
    if twice := [seed for seed in seeds if seeds.count(seed) > 1]:
        raise ConfigError(f"row {row.name!r}: seeds: {twice[0]} twice")
    members = [other for other in above if other.name in row.ensemble]
    if not members:
        return seeds
    shared = [seed for seed in members[0].seeds if all(seed in other.seeds for other in members)]
    if lacking := [seed for seed in row.seeds if seed not in shared]:
        raise ConfigError(f"row {row.name!r}: seeds: not every row of the ensemble has {lacking[0]}")
    if not shared:
        raise ConfigError(f"row {row.name!r}: no seed that all rows of the ensemble have")
    return row.seeds or tuple(shared)


def _product(axes: Mapping[str, Sequence[Any]]) -> list[NamedSettings]:
    if not axes:
        return []
    if empty := [key for key, values in axes.items() if not values]:
        raise ConfigError(f"axes.{empty[0]}: has no values")
    count = 1
    for values in axes.values():
        count *= len(values)
    if count > MOST_ROWS:
        raise ConfigError(f"axes: {count:,} combinations, at most {MOST_ROWS:,}: give fewer or shorter ones")
    rows: list[NamedSettings] = []
    for values in product(*axes.values()):
        tree: Tree = {}
        for key, value in zip(axes, values, strict=True):
            section: Tree = value
            for part in reversed(key.split(".")):
                section = {part: section}
            tree = merge(tree, section)
        name = ", ".join(_label(key, value) for key, value in zip(axes, values, strict=True))
        rows.append(validate(NamedSettings, {**tree, "name": name}, "axes"))
    return rows


def _label(key: str, value: Any) -> str:
    """Label of a value: a text as it is, any other value after the name of its key."""
    return value if isinstance(value, str) else f"{key.rpartition('.')[2]}={json.dumps(value)}"


def _row(grid: Grid, row: NamedSettings) -> Row:
    if row.ensemble:
        if row.tree() or row.preset:
            raise ConfigError(f"row {row.name!r}: an ensemble is not trained: give it no settings")
        return Row(row.name, "", (), row.ensemble)
    own, base = row.tree(), grid.base.tree()
    # A preset or a model kind in the row replaces both the preset and the model kind of the base.
    preset = row.preset or ("" if "kind" in row.model else grid.base.preset)
    if row.preset:
        base = {name: {k: v for k, v in section.items() if k != "kind"} for name, section in base.items()}
    kind = _kind(row.name, preset, str(row.model.get("kind", base.get("model", {}).get("kind", ""))))
    usual = PRESETS[find_task(grid.task or DEFAULT_TASK).default_preset].kind
    of_kind = {"model": grid.kinds.get(kind or usual, {})}
    tree = merge(merge(base, of_kind), own)
    settings = tuple(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in leaves(tree))
    return Row(row.name, preset, settings)


def _kind(name: str, preset: str, kind: str) -> str:
    if preset and preset not in PRESETS:
        raise ConfigError(f"row {name!r}: no preset {preset!r}{did_you_mean(preset, PRESETS)}")
    if kind and kind not in MODELS and not is_custom(kind):
        raise ConfigError(f"row {name!r}: no model {kind!r}{did_you_mean(kind, MODELS)}")
    return PRESETS[preset].kind if preset else kind
