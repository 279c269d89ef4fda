"""Old names of settings, options and commands, which are taken with a warning until the next major version.

A renamed setting, option or command gets a line in the table here and one under *Deprecated* in the changelog, and
leaves both in the next major version. Names of Python are marked by `typing_extensions.deprecated`.
"""

import warnings
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any, Final, final

from heedful.errors import ConfigError

SETTINGS: Final[dict[str, str]] = {}
"""New dotted key of a setting by its old one."""
OPTIONS: Final[dict[str, dict[str, str]]] = {}
"""New name of an option by its old one, both with their dashes, by command."""
COMMANDS: Final[dict[str, str]] = {}
"""New name of a command by its old one."""


@final
class OldName(FutureWarning):
    """Warning that a name is the old one of another."""


def tell(old: str, new: str) -> None:
    """Warn that a name is an old one.

    Args:
        old: the name that was used.
        new: the name that replaces it.
    """
    text = f"{old} is now {new}; the old name goes in the next major version"
    warnings.warn(text, OldName, stacklevel=3)


def with_new_keys(tree: Mapping[str, Any], is_told: bool = False) -> dict[str, Any]:
    """Give the settings of a tree their new names.

    Args:
        tree: settings as nested dictionaries; it is not changed.
        is_told: whether to warn of old names; not in files that heedful wrote.

    Raises:
        ConfigError: a setting is given by its old and by its new name.

    Example:
        >>> with_new_keys({"search": {"beam": 5}})
        {'search': {'beam': 5}}
    """
    changed = dict(tree)
    for old, new in SETTINGS.items():
        changed, values = _without(changed, old.split("."))
        if not values:
            continue
        if _without(changed, new.split("."))[1]:
            raise ConfigError(f"{old}: is now {new}, which is given too; leave {old} out")
        changed = _with(changed, new.split("."), values[0])
        if is_told:
            tell(old, new)
    return changed


def _without(tree: dict[str, Any], path: Sequence[str]) -> tuple[dict[str, Any], list[Any]]:
    """Tree without the value at a path, nor the tables that it leaves empty; and the value, if there is one."""
    first, *rest = path
    if first not in tree or (rest and not isinstance(tree[first], Mapping)):
        return tree, []
    left, values = _without(dict(tree[first]), rest) if rest else ({}, [tree[first]])
    if not values:
        return tree, []
    others = {key: value for key, value in tree.items() if key != first}
    return others | ({first: left} if left else {}), values


def _with(tree: dict[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    """Tree with a value at a path; a value in the place of one of its tables gives way."""
    first, *rest = path
    below = tree.get(first)
    return tree | {first: _with(dict(below) if isinstance(below, Mapping) else {}, rest, value) if rest else value}


def with_new_options(command: str, words: Sequence[str]) -> list[str]:
    """Give the options of a command line their new names, and warn of old ones.

    Args:
        command: name of the command.
        words: words behind it; those behind ``--`` are no options.

    Example:
        >>> with_new_options("translate", ["m.model", "--beam=3"])
        ['m.model', '--beam=3']
    """
    names = OPTIONS.get(command, {})
    options = list(takewhile(lambda word: word != "--", words))
    changed: list[str] = []
    for word in options:
        old, equals, value = word.partition("=")
        if old in names:
            tell(f"{command} {old}", names[old])
            word = f"{names[old]}{equals}{value}"
        changed.append(word)
    return [*changed, *words[len(options) :]]


def with_new_command(words: Sequence[str]) -> list[str]:
    """Give the command of a command line its new name, and warn of an old one.

    Args:
        words: words behind `heedful`; the first that is no option is the command.

    Example:
        >>> with_new_command(["list", "scores"])
        ['list', 'scores']
    """
    options = list(takewhile(lambda word: word.startswith("-"), words))
    rest = words[len(options) :]
    if not rest or rest[0] not in COMMANDS:
        return [*words]
    tell(f"heedful {rest[0]}", f"heedful {COMMANDS[rest[0]]}")
    return [*options, COMMANDS[rest[0]], *rest[1:]]
