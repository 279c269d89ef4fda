"""Custom code: classes and functions outside the package, imported only if the user allows them by name."""

import importlib
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from threading import Lock
from types import FunctionType
from typing import Any, Final, TypeVar, cast

from heedful.errors import FileRefused, UsageError

Class = TypeVar("Class", bound=type)

_lock: Final = Lock()
_allowed: Final[set[str]] = set()


def is_custom(name: str) -> bool:
    """Tell whether a name refers to a class outside the package.

    Returns:
        Whether it has the form ``module:Class``.

    Example:
        >>> is_custom("mine.scores:Mine"), is_custom("additive")
        (True, False)
    """
    module, colon, attribute = name.partition(":")
    return bool(colon) and attribute.isidentifier() and all(part.isidentifier() for part in module.split("."))


def allow_code(names: Iterable[str]) -> None:
    """Allow this process to import classes that the user named.

    Args:
        names: names of the form ``module:Class``, from the command line or from an argument of a Python call.

    Raises:
        UsageError: a name does not have this form.
    """
    for name in names:
        if not is_custom(name):
            raise UsageError(f"code {name!r}: expected module:Class, such as mine.scores:Mine")
        with _lock:
            _allowed.add(name)


def allowed_code() -> tuple[str, ...]:
    """List the classes that this process may import.

    Returns:
        Their names, of the form ``module:Class``, sorted.
    """
    with _lock:
        return tuple(sorted(_allowed))


def require_allowed(names: Iterable[str], where: object) -> None:
    """Refuse a file that needs custom code which the user did not allow.

    Raises:
        FileRefused: one of the classes is not allowed.
    """
    if missing := sorted(set(names) - set(allowed_code())):
        raise FileRefused(f"{where}: needs the code of {missing[0]}; if you trust it, add {_permission(missing[0])}")


def _permission(name: str) -> str:
    return f"--code {name}, or in Python code=[{name!r}]"


def named_code(tree: object) -> set[str]:
    """Find the classes outside the package that a configuration names.

    Returns:
        All ``module:Class`` names among the values of `KEYS`.

    Example:
        >>> named_code({"model": {"attention": {"score": "mine.scores:Mine"}}})
        {'mine.scores:Mine'}
    """
    if not isinstance(tree, Mapping):
        return set()
    table = cast(Mapping[str, object], tree)
    own = {value for key, value in table.items() if key in KEYS and isinstance(value, str) and is_custom(value)}
    return own.union(*(named_code(value) for value in table.values()))


KEYS: Final = frozenset({"score", "bias", "normalizer", "encoder", "kind"})
"""Configuration keys whose value may name a class or function."""


def import_class(name: str, base: Class) -> Class:
    """Import a class that the user allowed.

    Args:
        name: name of the form ``module:Class``; the working directory is searched for the module too.

    Raises:
        FileRefused: the user did not allow this class.
        UsageError: there is no such module or class, or the class is not a subclass of `base`.
    """
    imported = _import(name)
    if not isinstance(imported, type) or not issubclass(imported, base):
        raise UsageError(f"{name}: not a subclass of {base.__name__}, in {_file_of(name)}")
    return imported  # pyright: ignore[reportReturnType]


def import_class_or_function(name: str, base: Class) -> Class | Callable[..., Any]:
    """Import a class or a plain function that the user allowed.

    Args:
        name: name of the form ``module:Class`` or ``module:function``.

    Raises:
        FileRefused: the user did not allow it.
        UsageError: there is no such module or name, or it is neither a subclass of `base` nor a function.
    """
    imported = _import(name)
    if isinstance(imported, FunctionType):
        return imported
    if not isinstance(imported, type) or not issubclass(imported, base):
        raise UsageError(f"{name}: neither a function nor a subclass of {base.__name__}, in {_file_of(name)}")
    return imported  # pyright: ignore[reportReturnType]


def custom_line(error: BaseException) -> str:
    """Find the line of custom code that an error comes from.

    Args:
        error: any exception, with its traceback; those that caused it are searched too.

    Returns:
        ``file:line`` of the innermost call within an allowed module; empty if there is none.
    """
    files = {getattr(sys.modules.get(name.partition(":")[0]), "__file__", None) for name in allowed_code()}
    chain: BaseException | None = error
    while chain is not None:
        for frame in reversed(traceback.extract_tb(chain.__traceback__)):
            if frame.filename in files:
                return f"{frame.filename}:{frame.lineno}"
        chain = chain.__cause__ or chain.__context__
    return ""


def _import(name: str) -> object:
    """Import what a name stands for.

    Raises:
        FileRefused: the user did not allow it.
        UsageError: there is no such module, or nothing of this name in it.
    """
    if name not in allowed_code():
        raise FileRefused(f"{name}: code from outside the package; if you trust it, add {_permission(name)}")
    module_name, _, attribute = name.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not module_name.startswith(error.name):
            raise UsageError(f"{name}: {error}") from None
        module = _import_beside(name, module_name)
    imported = getattr(module, attribute, None)
    if imported is None:
        raise UsageError(f"{name}: no such class or function in {_file_of(name)}")
    return imported


def _file_of(name: str) -> str:
    module = name.partition(":")[0]
    return getattr(sys.modules.get(module), "__file__", None) or module


def _import_beside(name: str, module_name: str) -> object:
    """Import a module from the working directory, which is not on the search path of a console script.

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
