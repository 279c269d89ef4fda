"""Reference of all settings: key, type with its bounds, default and meaning, from the classes that read them."""

import ast
import inspect
import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import Annotated, Any, Final, Literal, NamedTuple, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from heedful.models.table import MODELS
from heedful.tasks.experiment import Experiment
from heedful.tasks.table import TASKS

_ATTRIBUTE: Final = re.compile(r"^    (\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)
"""Entry of the section "Attributes" of a docstring."""

_TYPES: Final = {int: "whole number", float: "number", bool: "true, false", str: "text"}

LARGE: Final = {1e12: "10^12", 1e38: "10^38", 2.0**63: "2^63"}
"""Bounds that a reader knows as powers."""


class SettingLine(NamedTuple):
    """One setting."""

    key: str
    """Dotted key, as `--set` takes it."""
    default: str
    meaning: str
    """Docstring of the field."""
    values: str = ""
    """Values that it takes: a type with its bounds, or the words to choose from."""
    kinds: tuple[str, ...] = ()
    """Kinds of models that have it; empty = every training has it."""
    tasks: tuple[str, ...] = ()
    """Tasks that take it; empty = all, or those of its kinds of models. The others refuse it."""


def all_settings() -> list[SettingLine]:
    """List every setting of a training.

    Returns:
        Settings of text, images, training and search, then those of models; a setting that several kinds of models have
        with the same default and meaning is listed once.
    """
    lines = (line for line in _lines(Experiment, "") if not line.key.startswith("model."))
    shared = [line._replace(tasks=_tasks(line.key)) for line in lines]
    kinds: dict[SettingLine, list[str]] = {}
    for kind, config in MODELS.items():
        for line in _lines(config, "model"):
            kinds.setdefault(line, []).append(kind)
    return [*shared, *(line._replace(kinds=tuple(names)) for line, names in kinds.items())]


def _tasks(key: str) -> tuple[str, ...]:
    """Names of the tasks that take a setting, where they are not all."""
    own = {key, key.partition(".")[0]}
    names = tuple(name for name, task in TASKS.items() if own.isdisjoint(task.without_effect))
    return names if len(names) < len(TASKS) else ()


def _lines(config: type[BaseModel], prefix: str) -> Iterator[SettingLine]:
    meanings = _meanings(config)
    for name, field in config.model_fields.items():
        key = f"{prefix}.{name}" if prefix else name
        default = field.get_default(call_default_factory=True)
        if isinstance(default, BaseModel):
            yield from _lines(type(default), key)
        elif name not in ("kind", "task"):
            yield SettingLine(key, _shown(default), meanings.get(name, ""), _values(field))


def _values(field: FieldInfo) -> str:
    """Words to choose from, or the name of the type with its bounds."""
    words = _words(field.annotation)
    bounds = {name: value for each in field.metadata for name, value in _bounds(each)}
    if not bounds:
        return words
    if {"ge", "le"} <= bounds.keys():
        return f"{words} from {_number(bounds['ge'])} to {_number(bounds['le'])}"
    ends = (("ge", "from"), ("gt", "above"), ("lt", "below"), ("le", "at most"))
    return f"{words} {', '.join(f'{word} {_number(bounds[end])}' for end, word in ends if end in bounds)}"


def _number(value: float) -> str:
    if value in LARGE:
        return LARGE[value]
    return f"{value:,.0f}" if value.is_integer() and abs(value) < 1e10 else f"{value:g}"


def _bounds(constraint: object) -> Iterator[tuple[str, float]]:
    for name in ("ge", "gt", "le", "lt"):
        value = getattr(constraint, name, None)
        if isinstance(value, int | float):
            yield name, float(value)


def _words(kind: Any) -> str:
    origin = get_origin(kind)
    if origin is Literal:
        return ", ".join(map(str, get_args(kind)))
    if origin is Annotated:
        return _words(get_args(kind)[0])
    if isinstance(kind, type) and origin is None:
        return _TYPES.get(kind, kind.__name__)
    parts = [each for each in get_args(kind) if each not in (type(None), Ellipsis)]
    if origin in (tuple, list, Sequence):
        return f"list of: {_words(parts[0])}"
    return " or ".join(map(_words, parts)) if parts else str(kind)


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else '""' if value == "" else str(value)


@cache
def _meanings(config: type[BaseModel]) -> dict[str, str]:
    """Docstrings of fields, by name; those of a class stand over those of its bases."""
    meanings: dict[str, str] = {}
    for base in reversed(config.__mro__):
        if base is BaseModel or not issubclass(base, BaseModel):
            continue
        (node,) = ast.parse(inspect.cleandoc("\n" + inspect.getsource(base))).body
        if not isinstance(node, ast.ClassDef):
            continue
        _, _, listed = (ast.get_docstring(node) or "").partition("Attributes:\n")
        meanings |= {name: " ".join(text.split()) for name, text in _ATTRIBUTE.findall(listed)}
        body = node.body
        for field, text in pairwise(body):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr):
                if isinstance(text.value, ast.Constant) and isinstance(text.value.value, str):
                    meanings[field.target.id] = " ".join(text.value.value.split())
    return meanings
