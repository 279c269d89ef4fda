"""Training request: all choices that a user makes for a training, with the settings merged into one tree."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

from heedful.config.base import Tree, merge, parse_overrides, read_toml
from heedful.config.renamed import with_new_keys
from heedful.data.folders import folder_parts
from heedful.tasks.experiment import upgraded
from heedful.tasks.interface import DataPaths
from heedful.text.text_files import stem


@final
@dataclass(frozen=True, kw_only=True)
class TrainRequest(DataPaths):
    """Request for a training; a folder that has the folders train, dev and test is these three."""

    out: Path | None = None
    """The model folder; None = named after the data."""
    task: str = ""
    """Key of `heedful.tasks.table.TASKS`; empty = the task in the settings, or translation."""
    preset: str = ""
    settings: Tree = field(default_factory=dict[str, object])
    """Settings of the user, from `merged_settings`."""
    device: str = "cpu"
    is_compared: bool = False
    """Whether the run is one of a comparison: a limit of time then limits the training alone and shapes no settings,
    and the data are not checked again for each run."""

    def __post_init__(self) -> None:
        parts = folder_parts(self.data[0]) if len(self.data) == 1 else {}
        if parts:
            out = self.out or Path(f"{stem(self.data[0].resolve())}.model")
            own = {"data": parts["train"], "dev": self.dev or parts.get("dev"), "test": self.test or parts.get("test")}
            paths = {name: each if isinstance(each, tuple) else (each,) for name, each in own.items() if each}
            for name, value in {**paths, "out": out}.items():
                object.__setattr__(self, name, value)


def merged_settings(
    file: Path | None = None, overrides: Sequence[str] = (), options: Mapping[str, object] | None = None
) -> Tree:
    """Merge the settings of a user into one tree; the file is read here and nowhere else.

    Args:
        file: TOML file of settings; None = none.
        overrides: settings of the form ``dotted.key=value``, which take precedence over all others.
        options: values by dotted key, which take precedence over the file; a mapping is a table of settings.

    Raises:
        ConfigError: the file does not exist or is not TOML, an override has no key, or a setting is given by its old
            and its new name.

    Example:
        >>> merged_settings(overrides=["model.dropout=0.3"], options={"model.dropout": 0.1, "training": {"seed": 2}})
        {'model': {'dropout': 0.3}, 'training': {'seed': 2}}
    """
    tree = upgraded(read_toml(file, is_told=True)) if file else {}
    for key, value in (options or {}).items():
        tree = merge(tree, upgraded(with_new_keys(_nested(key, value), is_told=True)))
    return merge(tree, upgraded(with_new_keys(parse_overrides(overrides), is_told=True)))


def _nested(key: str, value: object) -> Tree:
    first, dot, rest = key.partition(".")
    if dot:
        return {first: _nested(rest, value)}
    if not isinstance(value, Mapping):
        return {first: value}
    table: Tree = {}
    for name, each in value.items():
        table = merge(table, _nested(str(name), each))
    return {first: table}
