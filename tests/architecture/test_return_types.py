"""Types that public functions, methods and properties return are in the reference, or have a reason not to be."""

import ast
import functools
import importlib
import inspect
import sys
import typing
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple, TypeVar

import pytest

from tests.architecture.package import ROOT

KERNELS: Final = "form of a score or a mask that only kernels read"
ARRAYS: Final = "arrays that pass between engines and searches"
ARCHIVES: Final = "a model as the archive for JavaScript has it; only its writer reads it"
STEPS: Final = "what a model keeps for its own next step; only the model reads it"
PROTOCOL: Final = "protocol; the classes that follow it are listed"
INTERNAL: Final = {
    "heedful.attention.lowered.LoweredAdditive": KERNELS,
    "heedful.attention.lowered.LoweredDistance": KERNELS,
    "heedful.attention.lowered.LoweredDot": KERNELS,
    "heedful.attention.lowered.LoweredScore": KERNELS,
    "heedful.attention.mask_bounds.MaskBounds": KERNELS,
    "heedful.attention.stepwise.StepwiseValue": KERNELS,
    "heedful.data.batch.Batch": PROTOCOL,
    "heedful.engines.label_arrays.LabelArrays": ARRAYS,
    "heedful.engines.exported.Exported": "facts about an engine, as its manifest has them",
    "heedful.export.archive.ArchivedModel": ARCHIVES,
    "heedful.export.archive.ArchivedTranslator": ARCHIVES,
    "heedful.export.archived_captions.ArchivedCaptioner": ARCHIVES,
    "heedful.export.archived_labels.ArchivedLabels": ARCHIVES,
    "heedful.models.interface.Memory": STEPS,
    "heedful.models.interface.State": STEPS,
    "heedful.models.luong.LuongMemory": STEPS,
    "heedful.models.luong.LuongState": STEPS,
    "heedful.models.rnn_encoder_decoder.RNNEncoderDecoderMemory": STEPS,
    "heedful.models.rnn_encoder_decoder.RNNEncoderDecoderState": STEPS,
    "heedful.models.rnnsearch.RNNsearchMemory": STEPS,
    "heedful.models.rnnsearch.RNNsearchState": STEPS,
    "heedful.models.transformer.DecoderLayer": "part of a model, for fast forms of it",
    "heedful.models.transformer.EncoderLayer": "part of a model, for fast forms of it",
    "heedful.models.transformer.TransformerMemory": STEPS,
    "heedful.models.transformer.TransformerState": STEPS,
    "heedful.predictors.interface.Items": PROTOCOL,
    "heedful.predictors.interface.Measured": PROTOCOL,
    "heedful.search.inputs.InputArrays": ARRAYS,
    "heedful.search.interface.StepScores": ARRAYS,
}
"""Types that public methods return and that may change any day, each with the reason."""
OPERATORS: Final = ("__call__", "__enter__", "__getitem__", "__iter__")
"""Special methods whose results users hold."""


@pytest.fixture(scope="module")
def reference() -> Iterator[Any]:
    """The module that writes the pages of the reference."""
    sys.path.insert(0, str(ROOT / "docs"))
    yield importlib.import_module("site_reference")
    sys.path.remove(str(ROOT / "docs"))


@functools.cache
def namespace(module: str) -> dict[str, Any]:
    """Names of a module, with those that it imports for type checkers only."""
    loaded = importlib.import_module(module)
    names = dict(vars(loaded))
    for node in ast.walk(ast.parse(inspect.getsource(loaded))):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for line in node.body:
                if isinstance(line, ast.ImportFrom):
                    source = importlib.import_module(line.module or "")
                    names |= {each.asname or each.name: getattr(source, each.name) for each in line.names}
                else:
                    exec(ast.unparse(line), names)
    return names


def types_in(annotation: Any, module: str) -> Iterator[type]:
    """Classes that an annotation names, inside unions, lists, tuples and type variables too."""
    if isinstance(annotation, str):
        annotation = eval(annotation, namespace(module))
    if isinstance(annotation, TypeVar):
        bound = annotation.__bound__
        for each in (*(() if bound is None else (bound,)), *annotation.__constraints__):
            yield from types_in(each, module)
    elif isinstance(annotation, type) and typing.get_origin(annotation) is None:
        yield annotation
    elif isinstance(annotation, typing.ForwardRef):
        yield from types_in(annotation.__forward_arg__, module)
    elif isinstance(annotation, list):
        for each in annotation:
            yield from types_in(each, module)
    elif (origin := typing.get_origin(annotation)) not in (None, typing.Literal):
        for each in (*((origin,) if isinstance(origin, type) else ()), *typing.get_args(annotation)):
            yield from types_in(each, module)


def functions(name: str, value: Any) -> Iterator[tuple[str, Callable[..., Any]]]:
    """A public function, or the public methods and properties of a class, inherited ones of ours included."""
    if not isinstance(value, type):
        yield from [(name, inspect.unwrap(value))] if callable(value) else []
        return
    for kind in value.__mro__:
        for own, member in vars(kind).items() if kind.__module__.partition(".")[0] == "heedful" else ():
            inner = getattr(member, "fget", None) or getattr(member, "func", None) or member
            function = inspect.unwrap(getattr(inner, "__func__", inner))
            if inspect.isfunction(function) and (not own.startswith("_") or own in OPERATORS):
                yield f"{name}.{own}", function


def returned(name: str, value: Any) -> dict[str, str]:
    """Types of ours that a public name returns, each with the first function that does."""
    found: dict[str, str] = {}
    for own, function in functions(name, value):
        if function.__module__.partition(".")[0] == "heedful":
            kinds = types_in(function.__annotations__.get("return"), function.__module__)
            for kind in kinds:
                if kind.__module__.partition(".")[0] == "heedful":
                    found.setdefault(f"{kind.__module__}.{kind.__qualname__}", own)
    return found


def all_returned(reference: Any) -> tuple[set[str], dict[str, str]]:
    """Dotted names of public classes where they are defined, and the types that public names return."""
    public: set[str] = set()
    found: dict[str, str] = {}
    for module in (*reference.PUBLIC, *reference.PARTS):
        loaded = importlib.import_module(module)
        for name in reference.public_names(module):
            value = getattr(loaded, name)
            public.add(f"{getattr(value, '__module__', module)}.{getattr(value, '__qualname__', name)}")
            found = returned(f"{module}.{name}", value) | found
    return public, found


def test_every_type_that_is_returned_is_public(reference: Any):
    public, found = all_returned(reference)
    assert {kind: name for kind, name in found.items() if kind not in public | {*INTERNAL}} == {}
    assert {kind for kind in INTERNAL if kind not in found or kind in public} == set(), "no longer returned, or public"
    assert len(found) > 80


class Point(NamedTuple):
    """Point."""

    x: int


PointT = TypeVar("PointT", bound=Point)


class Maker:
    """Class with methods of all kinds."""

    def many(self) -> "dict[str, list[Point | None]]":
        """Make many."""
        return {}

    @functools.cached_property
    def one(self) -> Point:
        """A point."""
        return Point(1)

    @property
    def other(self) -> tuple[Point, ...]:
        """Points."""
        return ()

    @classmethod
    def parsed(cls, kind: type[PointT]) -> PointT:
        """Make one of a kind."""
        return kind(1)

    def _hidden(self) -> Point:
        return Point(1)

    def __getitem__(self, index: int) -> Point:
        return Point(index)


def test_all_returned_types_are_seen(monkeypatch: pytest.MonkeyPatch):
    for kind in (Maker, Point):
        monkeypatch.setattr(kind, "__module__", "heedful")
    found = {name: function for name, function in functions("Maker", Maker)}
    assert {*found} == {"Maker.many", "Maker.one", "Maker.other", "Maker.parsed", "Maker.__getitem__"}
    for function in found.values():
        assert Point in types_in(function.__annotations__["return"], __name__)


def test_a_type_that_is_not_listed_is_found(reference: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delitem(reference.PARTS, "heedful.evaluation.report")
    public, found = all_returned(reference)
    assert "heedful.evaluation.report.Report" in found
    assert "heedful.evaluation.report.Report" not in public
