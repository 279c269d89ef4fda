"""Graphs of models that are recorded once: a test that exports a model again is given the file of the first time.

Recording takes seconds, and most tests of exports are about what is done with the graphs. Graphs are kept for one run
of the tests, by all that they depend on, and shared by its processes.
"""

import copy
import functools
import hashlib
import io
import os
import pickle
import sys
from collections.abc import Callable, Set
from pathlib import Path
from typing import Any, Final, final

import torch
from torch import Tensor, nn

RECORDERS: Final = tuple(f"heedful.export.{name}" for name in ("onnx", "layers", "labels", "documents"))
"""Modules with the function that records a graph."""
REGISTRY: Final = "torch.onnx._internal.exporter._registration"
"""Module of PyTorch that lists all operators of graphs anew for each graph, a fifth of the time of a small one."""
KNOWN: Final = ("heedful", "torch")
"""Packages whose classes are what they are as long as the tests run."""


def keep_graphs(folder: Path) -> None:
    """Have the modules that were imported until now keep the graphs that they record."""
    for name in RECORDERS:
        module: Any = sys.modules.get(name)
        if module is not None and not hasattr(module.record_graph, "__wrapped__"):
            module.record_graph = kept(module.record_graph, folder)
    registry: Any = getattr(sys.modules.get(REGISTRY), "ONNXRegistry", None)
    if registry is not None and not hasattr(registry.from_torchlib, "__wrapped__"):
        registry.from_torchlib = staticmethod(listed_once(registry.from_torchlib))


def listed_once(list_all: Callable[..., Any]) -> Callable[..., Any]:
    """List the operators of graphs once, and give a copy each time, to which operators may be added."""
    list_first = functools.cache(list_all)

    @functools.wraps(list_all)
    def list_again(**options: int) -> Any:
        registry = copy.copy(list_first(**options))
        registry.functions = {name: [*each] for name, each in registry.functions.items()}
        return registry

    return list_again


def kept(record: Callable[..., None], folder: Path) -> Callable[..., None]:
    """Record a graph unless one of the same module, arguments and name is in a folder."""

    @functools.wraps(record)
    def record_once(
        module: nn.Module, inputs: Any, listed: Any, outputs: list[str], path: Path, *more: Any, **named: Any
    ) -> None:
        examples = {id(tensor) for tensor, _ in (*inputs.values(), *listed.values())}
        name = _name(module, (inputs, listed, outputs, path.name, more, named), examples)
        graph = folder / name
        if name and graph.is_file():
            path.write_bytes(graph.read_bytes())
            return
        record(module, inputs, listed, outputs, path, *more, **named)
        if name:
            draft = folder / f"{name}.{os.getpid()}"
            draft.write_bytes(path.read_bytes())
            draft.replace(graph)

    return record_once


def _name(module: nn.Module, arguments: Any, examples: Set[int]) -> str:
    """Name of a graph by all that it depends on, or none where that is not told by what can be stored."""
    if any(type(each).__module__.partition(".")[0] not in KNOWN for each in module.modules()):
        return ""
    tensors = [*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)]
    names = {id(tensor): name for name, tensor in reversed(tensors)}
    content = io.BytesIO()
    try:
        _Writer(content, examples).dump((module, [names[id(tensor)] for _, tensor in tensors], arguments))
    except (pickle.PicklingError, AttributeError, RecursionError, TypeError, ValueError):
        return ""
    return hashlib.sha256(content.getvalue()).hexdigest()


@final
class _Writer(pickle._Pickler):  # pyright: ignore[reportPrivateUsage]
    """Writes what is equal equally, in every process; of tensors the numbers, and of examples only the sizes.

    The pickler in C asks nobody about sets, whose order differs between processes.
    """

    def __init__(self, file: io.BytesIO, examples: Set[int]) -> None:
        super().__init__(file)
        self.fast = True
        self._examples = examples

    def reducer_override(self, value: object) -> Any:
        if isinstance(value, set | frozenset):
            return type(value), (sorted(value, key=repr),)
        if not isinstance(value, Tensor):
            return NotImplemented
        tensor = value.detach()
        is_example = id(value) in self._examples
        numbers = b"" if is_example else tensor.contiguous().view(-1).view(torch.uint8).numpy().tobytes()
        return Tensor, (type(value), str(tensor.dtype), tuple(tensor.shape), tensor.stride(), numbers)
