"""Checks of the inputs of a compiled kernel: shapes that agree, and indices within them.

Compiled code reads and writes wherever an index points, so wrong inputs would corrupt memory. A kernel states the
shapes of its arrays in words, by which every call is checked first.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, NoReturn, final

from heedful.errors import ShapeError

_MOST_KNOWN: Final = 1 << 12
"""Combinations of shapes that one kernel remembers as right."""
_AXIS: Final = re.compile(r"(?P<name>\w+)(\*(?P<factor>\d+)/(?P<divisor>\d+))?")


class Axis(NamedTuple):
    """Size of an axis: a number, or that of a name times a fraction."""

    name: str
    factor: int = 1
    divisor: int = 1

    @property
    def number(self) -> int | None:
        """The size, if it is stated as a number."""
        return int(self.name) if self.name.isdigit() else None


class ArraySpec(NamedTuple):
    """Shape of an array in words, such as "row feature"."""

    name: str
    """Name of the argument; "points.query" is a field of a named tuple."""
    axes: tuple[Axis, ...]
    is_optional: bool
    """Whether its first axis may be 0 instead, for no array."""


Rule = Callable[[tuple[Any, ...], Mapping[str, int]], bool]
"""Whether arguments, by position, are within the sizes of axes, by name: indices, ranges, sums of sizes."""


_BEYOND: Final = "an index or a range reaches beyond the arrays"


class CheckedKernel(ABC):
    """Kernel that refuses wrong inputs."""

    def __init__(self, kernel: Any, shapes: Mapping[str, str]) -> None:
        """Wrap a kernel.

        Args:
            kernel: result of `cached_njit`.
            shapes: see `checked`.
        """
        from numba.core.errors import TypingError

        self._kernel: Final = kernel
        self._typing_error: Final = TypingError
        code = kernel.py_func.__code__
        self.names: Final[tuple[str, ...]] = code.co_varnames[: code.co_argcount]
        self.arrays: Final = tuple(_array_spec(name, text) for name, text in shapes.items())
        self._getters: Final = tuple(self._getter(spec.name) for spec in self.arrays)

    @abstractmethod
    def __call__(self, *arguments: Any) -> Any:
        """Check the arguments, run the kernel, and return its result.

        Raises:
            ShapeError: shapes differ that must agree, an index is out of range, or the kernel cannot compute with
                numbers of such types; it has not run.
        """

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kernel, name)

    def _getter(self, name: str) -> tuple[int, int]:
        """Positions of the argument and of its field, -1 = none."""
        argument, _, field = name.partition(".")
        position = self.names.index(argument)
        fields: Any = getattr(self._kernel.py_func.__annotations__.get(argument), "_fields", ())
        return position, fields.index(field) if field else -1

    def _compare(self, shapes: tuple[tuple[int, ...], ...]) -> dict[str, int]:
        sizes: dict[str, int] = {}
        pairs = list(zip(self.arrays, shapes, strict=True))
        for spec, shape in pairs:
            if spec.is_optional and shape[:1] == (0,):
                continue
            for axis, size in zip(spec.axes, shape, strict=False):
                if axis.number is None and axis.factor == axis.divisor:
                    sizes.setdefault(axis.name, size)
        for spec, shape in pairs:
            if spec.is_optional and shape[:1] == (0,):
                continue
            wanted = [axis.number if axis.number is not None else _size(axis, sizes) for axis in spec.axes]
            if list(shape) != wanted:
                self._refuse(
                    f"{spec.name} {list(shape)} does not fit {' '.join(_word(axis) for axis in spec.axes)}, "
                    f"which is {wanted} by the other arrays",
                    shapes,
                )
        return sizes

    def _refuse(self, problem: str, shapes: tuple[tuple[int, ...], ...]) -> NoReturn:
        listing = ", ".join(f"{spec.name} {list(shape)}" for spec, shape in zip(self.arrays, shapes, strict=True))
        raise ShapeError(f"kernel {self._kernel.py_func.__name__}: {problem} ({listing})")

    def _refuse_types(self, arguments: tuple[Any, ...], shapes: tuple[tuple[int, ...], ...]) -> NoReturn:
        arrays = zip(self.names, arguments, strict=True)
        kinds = ", ".join(f"{name} {each.dtype}" for name, each in arrays if hasattr(each, "dtype"))
        self._refuse(f"numbers of types that it is not made for: {kinds}", shapes)


@final
class BeforeCheckedKernel(CheckedKernel):
    """Kernel whose inputs are checked before each call.

    Cost: 0.5 us, 0.1 us for each array and about 0.5 us for a test of indices; new shapes 10 us once.
    """

    def __init__(self, kernel: Any, shapes: Mapping[str, str], rule: Rule | None) -> None:
        """Wrap a kernel.

        Args:
            kernel: result of `cached_njit`.
            shapes: see `checked`.
            rule: see `checked`.
        """
        super().__init__(kernel, shapes)
        self._rule: Final = rule
        self._positions: Final = tuple(i for i, _ in self._getters)
        self._known: Final[dict[tuple[tuple[int, ...], ...], dict[str, int]]] = {}
        # One value, so that a thread never pairs its shapes with the sizes of another thread's call.
        self._last: tuple[tuple[tuple[int, ...], ...], dict[str, int]] = ((), {})

    def __call__(self, *arguments: Any) -> Any:
        """See `CheckedKernel`."""
        shapes = tuple([arguments[i].shape for i in self._positions])
        last, sizes = self._last
        if shapes != last:
            sizes = self._known.get(shapes) or self._remember(shapes)
            self._last = shapes, sizes
        if self._rule is not None and not self._rule(arguments, sizes):
            self._refuse(_BEYOND, shapes)
        try:
            return self._kernel(*arguments)
        except self._typing_error:
            self._refuse_types(arguments, shapes)

    def _remember(self, shapes: tuple[tuple[int, ...], ...]) -> dict[str, int]:
        sizes = self._compare(shapes)
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[shapes] = sizes
        return sizes


@final
class SelfCheckedKernel(CheckedKernel):
    """Kernel of many arrays that checks them itself, in compiled code: its result is true if it has run.

    The shapes in words explain a refusal.

    Cost: 0.2 us.
    """

    def __call__(self, *arguments: Any) -> Any:
        """See `CheckedKernel`."""
        try:
            if result := self._kernel(*arguments):
                return result
            is_typed = True
        except (self._typing_error, TypeError):
            is_typed = False
        shapes = tuple((arguments[i] if j < 0 else arguments[i][j]).shape for i, j in self._getters)
        self._compare(shapes)
        if not is_typed:
            self._refuse_types(arguments, shapes)
        self._refuse(_BEYOND, shapes)


def checked(rule: Rule | None = None, **shapes: str) -> Callable[[Any], CheckedKernel]:
    """Check the inputs of a kernel before each call from Python; kernels that call it reach it unchecked.

    Args:
        rule: what must hold of indices and ranges.
        shapes: shape of each array in words, such as "row feature", "row 2", "slot*3/2"; "none or feature" allows an
            array without elements. Fields of named tuples: points__query="batch query size".

    Returns:
        A decorator for the result of `cached_njit`.

    Example:
        >>> from heedful.layers.cpu.layernorm_numba import rectify
        >>> import numpy as np
        >>> rectify(np.zeros((2, 3), np.int16), np.zeros(4, np.float32))
        Traceback (most recent call last):
        ...
        heedful.errors.ShapeError: kernel rectify: bias [4] does not fit feature, which is [3] by the other arrays \
(vectors [2, 3], bias [4])
    """

    def decorated(kernel: Any) -> CheckedKernel:
        return BeforeCheckedKernel(kernel, _named(shapes), rule)

    return decorated


def self_checked(**shapes: str) -> Callable[[Any], SelfCheckedKernel]:
    """Refuse what a kernel has found wrong before it wrote anything: its result is false, or none.

    Args:
        shapes: as for `checked`.

    Returns:
        A decorator for the result of `cached_njit`.
    """

    def decorated(kernel: Any) -> SelfCheckedKernel:
        return SelfCheckedKernel(kernel, _named(shapes))

    return decorated


def _named(shapes: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("__", "."): text for name, text in shapes.items()}


def _array_spec(name: str, text: str) -> ArraySpec:
    words = text.removeprefix("none or ").split()
    matches = [match for word in words if (match := _AXIS.fullmatch(word))]
    axes = [Axis(match["name"], int(match["factor"] or 1), int(match["divisor"] or 1)) for match in matches]
    return ArraySpec(name, tuple(axes), text.startswith("none or "))


def _size(axis: Axis, sizes: Mapping[str, int]) -> int:
    return sizes.get(axis.name, 0) * axis.factor // axis.divisor


def _word(axis: Axis) -> str:
    return axis.name if axis.factor == axis.divisor else f"{axis.name}*{axis.factor}/{axis.divisor}"
