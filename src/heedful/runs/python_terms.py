"""Messages in Python's terms: arguments of `heedful.train` in place of options, and rows in place of lines."""

import json
import re
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Final

from heedful.data.in_memory import QUOTED, in_rows
from heedful.errors import HeedfulError

_ARGUMENTS: Final = {
    **{name: name for name in ("columns", "config", "dev", "device", "languages", "minutes", "out", "preset")},
    **{name: name for name in ("task", "test", "threads", "together")},
    "from": "origin",
}
"""Name of the argument for each option."""
_DASHES: Final = r"(?<![\w/\\.-])--"
_OPTION: Final = rf"{_DASHES}({'|'.join(_ARGUMENTS)})(?![\w/\\-])"
"""Name of an option as a whole word."""
_VALUE: Final = r"[^\s;,]*[^\s;,.:!?)]"
"""Value without the marks behind it."""
_SETTING: Final = rf"[\w.]+={_VALUE}"
_SETTINGS: Final = re.compile(rf"{_DASHES}set ({_SETTING}(?: --set {_SETTING})*)")
_TASK: Final = re.compile(r"heedful train --task (\w+)(?![\w-])")
_COLUMNS: Final = re.compile(rf"{_DASHES}columns (\w(?:[\w.]*\w)?),(\w(?:[\w.]*\w)?)")
_PLACEHOLDER: Final = re.compile(rf"{_OPTION} [A-Z]+\b")
_NAMED: Final = re.compile(rf"{_DASHES}(device|preset|task) (\w[\w:-]*\w)")
_COUNTED: Final = re.compile(rf"{_DASHES}(minutes|threads) (\d+(?:\.\d+)?)\b")
_FILE: Final = re.compile(rf"{_DASHES}(config|dev|from|out|test) (?=\S*(?:[/\\]|\.\w))({_VALUE})")
_BARE: Final = re.compile(_OPTION)
_PHRASES: Final = {
    "run the same command": "make the same call",
    "the same command": "the same call",
}
_NO_MEMORY: Final = re.compile(rf"{_DASHES}no-memory(?![\w/\\-])")
_QUOTED: Final = re.compile(f"({QUOTED})")


def in_python(text: str) -> str:
    """Write a message in Python's terms.

    Args:
        text: message of a training, with options as the command line has them; texts in quotes stay as they are.

    Example:
        >>> in_python("m: holds another run; choose another --out, or name it with --columns TEXT,LABEL")
        'm: holds another run; choose another out, or name it with columns=("TEXT", "LABEL")'
        >>> in_python("otherwise: --set text.source_units=pieces --set model.dropout=0.1; give --dev FILE")
        'otherwise: settings={"text.source_units": "pieces", "model.dropout": 0.1}; give dev=...'
    """
    parts = _QUOTED.split(in_rows(text))
    return "".join(part if index % 2 else _unquoted_in_python(part) for index, part in enumerate(parts))


def _unquoted_in_python(text: str) -> str:
    """Write a part of a message without quotes in Python's terms."""
    for phrase, other in _PHRASES.items():
        text = text.replace(phrase, other)
    text = _NO_MEMORY.sub("memory=False", text)
    text = _TASK.sub(r'heedful.train(..., task="\1")', text)
    text = _SETTINGS.sub(lambda match: _settings(match[1]), text)
    text = _COLUMNS.sub(lambda match: f"columns=({_quoted(match[1])}, {_quoted(match[2])})", text)
    text = _PLACEHOLDER.sub(lambda match: f"{_ARGUMENTS[match[1]]}=...", text)
    text = _NAMED.sub(r'\1="\2"', text)
    text = _COUNTED.sub(r"\1=\2", text)
    text = _FILE.sub(lambda match: f'{_ARGUMENTS[match[1]]}="{match[2]}"', text)
    return _BARE.sub(lambda match: _ARGUMENTS[match[1]], text)


@contextmanager
def speaking_python() -> Generator[None]:
    """Write the errors that leave the context in Python's terms.

    Raises:
        HeedfulError: any that leaves the context.
    """
    try:
        yield
    except HeedfulError as error:
        error.args = (in_python(str(error)), *error.args[1:])
        raise


def _settings(options: str) -> str:
    """Dictionary of settings for "key=value --set key=value"."""
    pairs = (option.partition("=") for option in options.split(" --set "))
    items = ", ".join(f"{_quoted(key)}: {_quoted(value)}" for key, _, value in pairs)
    return f"settings={{{items}}}"


def _quoted(value: str) -> str:
    """Literal of Python for the value of an option."""
    with suppress(ValueError):
        return repr(json.loads(value))
    return f'"{value}"'
