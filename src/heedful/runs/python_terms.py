"""Messages in Python's terms: arguments of `heedful.train` in place of options, and rows in place of lines."""

import json
import re
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Final

from heedful.data.in_memory import in_rows
from heedful.errors import HeedfulError

_ARGUMENTS: Final = {
    **{name: name for name in ("columns", "config", "dev", "device", "languages", "minutes", "out", "preset")},
    **{name: name for name in ("task", "test", "threads", "together")},
    "from": "origin",
}
"""Name of the argument for each option."""
_OPTION: Final = rf"--({'|'.join(_ARGUMENTS)})\b"
_SETTINGS: Final = re.compile(r"--set ([\w.]+=[^\s;,]+(?: --set [\w.]+=[^\s;,]+)*)")
_TASK: Final = re.compile(r"heedful train --task (\w+)")
_COLUMNS: Final = re.compile(r"--columns (\w[\w.]*),(\w[\w.]*)")
_PLACEHOLDER: Final = re.compile(rf"{_OPTION} [A-Z]+\b")
_NAMED: Final = re.compile(r"--(device|preset|task) (\w[\w:-]*\w)")
_BARE: Final = re.compile(_OPTION)
_PHRASES: Final = {
    "run the same command": "make the same call",
    "the same command": "the same call",
    "--no-memory": "memory=False",
}


def in_python(text: str) -> str:
    """Write a message in Python's terms.

    Args:
        text: message of a training, with options as the command line has them.

    Example:
        >>> in_python("m: holds another run; choose another --out, or name it with --columns TEXT,LABEL")
        'm: holds another run; choose another out=, or name it with columns=("TEXT", "LABEL")'
        >>> in_python("otherwise: --set text.source_units=pieces --set model.dropout=0.1; give --dev FILE")
        'otherwise: settings={"text.source_units": "pieces", "model.dropout": 0.1}; give dev=...'
    """
    text = in_rows(text)
    for phrase, other in _PHRASES.items():
        text = text.replace(phrase, other)
    text = _TASK.sub(r'heedful.train(..., task="\1")', text)
    text = _SETTINGS.sub(lambda match: _settings(match[1]), text)
    text = _COLUMNS.sub(lambda match: f"columns=({_quoted(match[1])}, {_quoted(match[2])})", text)
    text = _PLACEHOLDER.sub(lambda match: f"{_ARGUMENTS[match[1]]}=...", text)
    text = _NAMED.sub(r'\1="\2"', text)
    return _BARE.sub(lambda match: f"{_ARGUMENTS[match[1]]}=", text)


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
