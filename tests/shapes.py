"""Checks of tensor shapes at run time, for all tests: an import hook over the modules that are annotated.

Each function with shapes in its annotations goes through jaxtyping and beartype, which see those annotations and
nothing else. All others stay as they are: the hook of jaxtyping wraps them too, which doubles the time of tests.
"""

import functools
import inspect
import re
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any, Final, TypeVar, get_args
from weakref import WeakKeyDictionary

import beartype
import torch
from jaxtyping import AbstractArray, config, jaxtyped

_SHAPED: Final = re.compile(r"from jaxtyping import|\bRowIds\b")
"""The sign of an annotated module: jaxtyping itself, or the names that attention/interface.py gives its shapes."""
SOURCE: Final = Path(__file__).resolve().parents[1] / "src"

AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])


def annotated_modules() -> list[str]:
    """Dotted names of the modules with annotations of shapes."""
    paths = (path for path in SOURCE.rglob("*.py") if _SHAPED.search(path.read_text(encoding="utf-8")))
    return sorted(".".join(path.relative_to(SOURCE).with_suffix("").parts) for path in paths)


def install(modules: Sequence[str] = ()) -> MetaPathFinder:
    """Check modules that are imported from now on; by default all that are annotated."""
    finder = _Finder(frozenset(modules or annotated_modules()))
    sys.meta_path.insert(0, finder)
    return finder


class _Finder(MetaPathFinder):
    """Finds the modules to check, as Python does."""

    def __init__(self, modules: frozenset[str]) -> None:
        self._modules = modules

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path, target) if fullname in self._modules else None
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


class _Loader(SourceFileLoader):
    """Runs a module, then has its functions checked before anybody imports them."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        for name, value in [*vars(module).items()]:
            if getattr(value, "__module__", None) != module.__name__:
                continue
            if inspect.isfunction(value) and is_shaped(value):
                setattr(module, name, checked(value))
            elif inspect.isclass(value):
                _check_class(value)


def _check_class(owner: type) -> None:
    for name, value in [*vars(owner).items()]:
        function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
        if inspect.isfunction(function) and is_shaped(function):
            # A wrapper of ours is inside, so that compilers find nothing of jaxtyping.
            setattr(owner, name, staticmethod(checked(function)) if isinstance(value, staticmethod) else checked(value))


def checked(function: Any) -> Any:
    """Have shapes of a function, method or property checked at the first call with each combination of shapes."""
    strict = jaxtyped(function, typechecker=check_shapes)
    if not inspect.isfunction(function):
        return strict
    seen: set[tuple[object, ...]] = set()

    @functools.wraps(function)
    def once(*values: Any, **named: Any) -> Any:
        # Sizes are symbols while a graph is recorded, and comparing them would make them numbers.
        if config.jaxtyping_disable or torch.compiler.is_exporting() or torch.compiler.is_compiling():
            return function(*values, **named)
        if any(isinstance(value, torch.Tensor) and value.is_nested for value in (*values, *named.values())):
            return function(*values, **named)  # nested tensors have no shape
        call = (*map(_shape_of, values), *named, *map(_shape_of, named.values()))
        if call in seen:
            return function(*values, **named)
        result = strict(*values, **named)
        seen.add(call)
        return result

    return once


def _shape_of(value: object) -> object:
    """What the shapes of a call hang on: sizes and type of a tensor, the module, and plain values."""
    if isinstance(value, torch.Tensor):
        return value.shape, value.dtype
    if isinstance(value, torch.nn.Module):
        return _number_of(value)
    return value if isinstance(value, int | str | None) else type(value)


_NUMBERS: Final[dict[object, int]] = {}
_OF_MODULES: Final[WeakKeyDictionary[torch.nn.Module, int]] = WeakKeyDictionary()


def _number_of(module: torch.nn.Module) -> int:
    """Number of a module, the same for all of equal classes, sizes and plain settings, down to its parts."""
    number = _OF_MODULES.get(module)
    if number is None:
        parts = tuple(
            (type(part), *((name, each) for name, each in vars(part).items() if isinstance(each, int | str | float)))
            for part in module.modules()
        )
        sizes = tuple(parameter.shape for parameter in module.parameters())
        number = _OF_MODULES[module] = _NUMBERS.setdefault((parts, sizes), len(_NUMBERS))
    return number


def is_shaped(function: Callable[..., Any]) -> bool:
    """Whether a function says anything of a shape."""
    return any(has_shape(hint) for hint in function.__annotations__.values())


def check_shapes(function: AnyFunction) -> AnyFunction:
    """Have beartype check the annotations of a function's tensors, and no others."""
    if not is_shaped(function):
        return function
    function.__annotations__ = {
        name: hint if has_shape(hint) else Any for name, hint in function.__annotations__.items()
    }
    return beartype.beartype(function)


def has_shape(hint: object) -> bool:
    """Whether an annotation says anything of a shape."""
    if isinstance(hint, type) and issubclass(hint, AbstractArray):
        return True
    return any(has_shape(part) for part in get_args(hint))
