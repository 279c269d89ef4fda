"""Custom code: classes outside the package, imported only where the user names them."""

import importlib
import sys
from collections.abc import Iterable, Mapping
from threading import Lock
from typing import Final, TypeVar, cast

from heedful.errors import FileRefused, UsageError

Class = TypeVar("Class", bound=type)

_lock: Final = Lock()
_allowed: Final[set[str]] = set()


def is_custom(name: str) -> bool:
    """Say whether a name stands for a class outside the package.

    Args:
        name: a word of a configuration.

    Returns:
        Whether it has the form ``module:Class``.

    Example:
        >>> is_custom("mine.scores:Mine"), is_custom("additive")
        (True, False)
    """
    module, colon, attribute = name.partition(":")
    return bool(colon) and attribute.isidentifier() and all(part.isidentifier() for part in module.split("."))


def allow_code(names: Iterable[str]) -> None:
    """Allow this process to import the classes that the user named.

    Args:
        names: each ``module:Class``, from the command line or from an argument of a Python call.

    Raises:
        UsageError: a name has another form.
    """
    for name in names:
        if not is_custom(name):
            raise UsageError(f"--code {name}: expected module:Class, such as mine.scores:Mine")
        with _lock:
            _allowed.add(name)


def allowed_code() -> tuple[str, ...]:
    """List the classes that this process may import.

    Returns:
        Each ``module:Class``, sorted.
    """
    with _lock:
        return tuple(sorted(_allowed))


def require_allowed(names: Iterable[str], where: object) -> None:
    """Refuse a file that needs code which the user did not name.

    Args:
        names: classes that the file needs.
        where: the file.

    Raises:
        FileRefused: the user did not name one of them.
    """
    if missing := sorted(set(names) - set(allowed_code())):
        raise FileRefused(f"{where}: needs the code of {missing[0]}; if you trust it, add --code {missing[0]}")


def named_code(tree: object) -> set[str]:
    """Find the classes outside the package that a configuration names.

    Args:
        tree: nested tables and values.

    Returns:
        Each ``module:Class`` among the values of the keys `score`, `normalizer` and `kind`.

    Example:
        >>> named_code({"model": {"attention": {"score": "mine.scores:Mine"}}})
        {'mine.scores:Mine'}
    """
    if not isinstance(tree, Mapping):
        return set()
    table = cast(Mapping[str, object], tree)
    own = {value for key, value in table.items() if key in KEYS and isinstance(value, str) and is_custom(value)}
    return own.union(*(named_code(value) for value in table.values()))


KEYS: Final = frozenset({"score", "normalizer", "kind"})
"""Keys of a configuration that a class may stand under."""


def import_class(name: str, base: Class) -> Class:
    """Import a class that the user allowed.

    Args:
        name: ``module:Class``; the module is looked for in the working directory too.
        base: what the class must be a subclass of.

    Returns:
        The class.

    Raises:
        FileRefused: the user did not name this class.
        UsageError: there is no such module or class, or the class is of another kind.
    """
    if name not in allowed_code():
        raise FileRefused(f"{name}: code from outside the package; if you trust it, add --code {name}")
    module_name, _, attribute = name.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not module_name.startswith(error.name):
            raise UsageError(f"{name}: {error}") from None
        module = _import_beside(name, module_name)
    imported = getattr(module, attribute, None)
    if not isinstance(imported, type) or not issubclass(imported, base):
        what = "no such class" if imported is None else f"not a subclass of {base.__name__}"
        raise UsageError(f"{name}: {what} in {getattr(module, '__file__', module_name)}")
    return imported  # pyright: ignore[reportReturnType]


def _import_beside(name: str, module_name: str) -> object:
    """Import a module of the working directory, which a console script does not search.

    Raises:
        UsageError: there is no such module.
    """
    sys.path.append("")
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise UsageError(f"{name}: {error}") from None
    finally:
        sys.path.remove("")
