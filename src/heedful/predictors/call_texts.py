"""Texts of a call from Python, checked before any work."""

from collections.abc import Iterable
from typing import Any, cast

from heedful.errors import UsageError


def checked_texts(texts: Iterable[str], name: str) -> list[str]:
    """List the texts of a call.

    Args:
        texts: an iterable of texts.
        name: name of the call, for messages.

    Raises:
        UsageError: a single string was given, or an item is no text, such as None or NaN; the message has its index.

    Example:
        >>> checked_texts(("one", "two"), "translate")
        ['one', 'two']
    """
    if isinstance(texts, str):
        raise UsageError(f"{name}: expected a list of texts, got a string; put it into a list")
    try:
        iterator = iter(cast(Iterable[Any], texts))  # a sequence may have no method __iter__
    except TypeError:
        raise UsageError(f"{name}: expected a list of texts, got {texts!r:.40}") from None
    items: list[str] = []
    for index, text in enumerate(iterator):
        if not isinstance(text, str):
            raise UsageError(f"{name}: item {index} is {text!r:.40}, of type {type(text).__name__}; give texts")
        items.append(str(text))  # NumPy's strings are texts that show their type
    return items
