"""Checks of tensor shapes at run time, for all tests: jaxtyping's import hook over the modules that are annotated.

The hook gives each function to `check_shapes`, which has beartype check the annotations of tensors and nothing else:
functions without any stay as fast as they are, and no test has to give real objects where it needs none.
"""

import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar, cast, get_args

import beartype
import torch
from jaxtyping import AbstractArray, install_import_hook

_SHAPED: Final = re.compile(r"from jaxtyping import|\bRowIds\b")
"""The sign of an annotated module: jaxtyping itself, or the names that attention/interface.py gives its shapes."""
SOURCE: Final = Path(__file__).resolve().parents[1] / "src"

AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])


def annotated_modules() -> list[str]:
    """Dotted names of the modules with annotations of shapes."""
    paths = (path for path in SOURCE.rglob("*.py") if _SHAPED.search(path.read_text(encoding="utf-8")))
    return sorted(".".join(path.relative_to(SOURCE).with_suffix("").parts) for path in paths)


def install() -> None:
    """Check annotated modules that are imported from now on."""
    install_import_hook(annotated_modules(), f"{__name__}.check_shapes")


def check_shapes(function: AnyFunction) -> AnyFunction:
    """Have the annotations of a function's tensors checked at each call."""
    hints = {name: hint if has_shape(hint) else Any for name, hint in function.__annotations__.items()}
    if all(hint is Any for hint in hints.values()):
        return function
    function.__annotations__ = hints
    checked = beartype.beartype(function)

    @functools.wraps(function)
    def unless_recorded(*values: Any, **named: Any) -> Any:
        # Sizes are symbols while a graph is recorded, and comparing them would make them numbers.
        is_recorded = torch.compiler.is_exporting() or torch.compiler.is_compiling()
        return (function if is_recorded else checked)(*values, **named)

    return cast(AnyFunction, unless_recorded)


def has_shape(hint: object) -> bool:
    """Whether an annotation says anything of a shape."""
    if isinstance(hint, type) and issubclass(hint, AbstractArray):
        return True
    return any(has_shape(part) for part in get_args(hint))
