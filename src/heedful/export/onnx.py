"""Export of a model as ONNX graphs: the encoder, a single decoding step, and small graphs around them.

encode   source, source_lengths -> memory, state of one hypothesis
step     tokens, memory, state -> log probabilities, next state, attention weights
select   memory, state, keep -> memory and state of the sources to keep
reorder  state, parents -> state of each hypothesis, copied from its parent
top      log probabilities, adjustments, k -> the k best tokens
best     log probabilities, k -> the k best tokens
pick     log probabilities, indices -> log probabilities of single tokens

With a vocabulary shortlist, step returns features in place of log probabilities, and there are three graphs more:

output   features -> log probabilities
list     token ids -> weights and biases of the output layer
listed   features, weights, biases -> log probabilities of these tokens

The search stays outside the graphs, in `heedful.search`. All axes except feature sizes are dynamic: the numbers of
sources, hypotheses, positions and generated tokens.
"""

import io
import logging
import warnings
from collections.abc import Generator, Mapping
from contextlib import contextmanager, redirect_stderr
from copy import deepcopy
from pathlib import Path
from typing import Any, Final, TypeVar, final

import numpy as np
import torch
from torch import Tensor, nn

from heedful.config.plugins import custom_line
from heedful.engines.onnx import FEATURES
from heedful.errors import MissingExtra, UsageError
from heedful.export.onnx_recurrent import record_units, translations
from heedful.export.onnx_small import IR_VERSION, OPSET, graph_properties, write_listed_graphs, write_small_graphs
from heedful.export.records import flatten, rebuild
from heedful.files.collector import paused_collector
from heedful.layers.normalizing import NormalizerLayer
from heedful.layers.positions import SinusoidalPositions
from heedful.models.inputs import Inputs, inputs_on
from heedful.models.interface import Decoded, Memory, Seq2Seq, State
from heedful.search.inputs import InputDraw, token_draw

AnyModule = TypeVar("AnyModule", bound=nn.Module)

_ANY_SIZE: Final = 2**40
_SOURCES, _HYPOTHESES, _SAID = 3, 5, 11
EXAMPLE_LENGTHS: Final = (7, 4, 2)
"""Lengths of the sources in the recorded example. All sizes of the example differ, so that no axis is mistaken for
another, and none is 1."""
_ONE_TOKEN: Final = token_draw(5)


@final
class _Encode(nn.Module):
    def __init__(self, model: Seq2Seq, kind: type[Inputs]) -> None:
        super().__init__()
        self.model = model
        self.kind = kind

    def forward(self, tensors: list[Tensor]) -> tuple[Tensor, ...]:
        memory = self.model.encode(self.kind(*tensors))
        state = self.model.start(memory)
        parts = flatten(self.model.prepare_steps(memory), "memory") | flatten(state, "state")
        return tuple(tensor for name, tensor in parts.items() if name != "memory.lengths")


@final
class _Step(nn.Module):
    def __init__(self, model: Seq2Seq, memory: Memory, state: State, has_list: bool) -> None:
        super().__init__()
        self.model = model
        self.memory = memory
        self.state = state
        self.has_list = has_list

    def forward(self, tokens: Tensor, tensors: list[Tensor]) -> tuple[Tensor, ...]:
        remaining = iter(tensors)
        memory, state = rebuild(self.memory, remaining), rebuild(self.state, remaining)
        has_weights = gives_weights(self.model)
        decoded, state = self.model.step(tokens, state, memory, ("weights",) if has_weights else ())
        scores = decoded.features if self.has_list else self.model.log_probs(decoded)
        results = [scores, *flatten(state, "state").values()]
        if has_weights and (weights := decoded.attended[self.model.alignment].weights) is not None:
            results.append(weights.mean(dim=1) if weights.dim() == 4 else weights)  # mean over heads
        return tuple(results)


@final
class _Output(nn.Module):
    def __init__(self, model: Seq2Seq) -> None:
        super().__init__()
        self.model = model

    def forward(self, features: Tensor) -> Tensor:
        return self.model.log_probs(Decoded(features, {}))


def export_graphs(
    model: Seq2Seq,
    folder: Path,
    max_length: int,
    is_int8: bool = False,
    draw: InputDraw = _ONE_TOKEN,
    has_list: bool = False,
) -> None:
    """Write the graphs of a model.

    Args:
        model: any sequence-to-sequence model; it is not changed.
        max_length: maximum number of positions of a source or tokens of an output.
        is_int8: whether weight matrices are quantised to int8; activations are then quantised at run time.
        draw: function that draws random sources of the kind that the model reads.
        has_list: whether the output layer can be restricted to a vocabulary shortlist.

    Raises:
        MissingExtra: the packages that write graphs are not installed.
        UsageError: the model has an operation that a graph cannot represent, or has a list and copies.
    """
    if has_list and not model.has_linear_output:
        kind = "copies" if model.copy_gate is not None else "sums over alignments"
        raise UsageError(f"onnx: a model that {kind} needs the whole vocabulary; leave out --shortlist")
    refuse_unexportable(model)
    model = recordable(model, max_length)
    arrays = draw(np.array(EXAMPLE_LENGTHS), np.random.default_rng(0))
    sources, other_sources = (inputs_on(torch.device("cpu"), each) for each in (arrays, arrays.take((1, 2))))
    with torch.no_grad():
        memory, state = _example(model, sources, _SAID)
        other_memory, other_state = _example(model, other_sources, _SAID)
        _, longer_state = _example(model, sources, _SAID + 2)
    fields, other_fields = flatten(sources, ""), flatten(other_sources, "")
    of_source = free_axes(fields, other_fields, {0: "source"}, "position")
    of_memory = free_axes(flatten(memory, "memory"), flatten(other_memory, "memory"), {0: "source"}, "position")
    known, parts = {0: "source", 1: "hypothesis"}, flatten(state, "state")
    with_position = free_axes(parts, flatten(other_state, "state"), known, "position")
    with_said = free_axes(parts, flatten(longer_state, "state"), known, "said")
    of_state = {name: with_position[name] | with_said[name] for name in parts}
    outputs = [name for name in (*of_memory, *of_state) if name != "memory.lengths"]
    try:
        record_graph(
            _Encode(model, type(sources)),
            {},
            dict(zip(arrays.named_arrays(), [(fields[name], of_source[name]) for name in fields], strict=True)),
            outputs,
            folder / "encode.onnx",
            max_length,
            is_int8,
        )
        step = _Step(model, memory, state, has_list)
        _write_step(step, of_memory | of_state, folder, max_length, is_int8)
        if has_list:
            _write_output(model, folder, max_length, is_int8)
    except ModuleNotFoundError as error:
        raise MissingExtra(str(error.name), "train", "writing ONNX") from None
    write_small_graphs(folder, flatten(memory, "memory"), flatten(state, "state"))
    if is_int8:
        quantize(folder)


def gives_weights(model: Seq2Seq) -> bool:
    """Tell whether the steps of an exported model give its alignment; posteriors of whole outputs need PyTorch."""
    return bool(model.alignment) and not model.has_posteriors


def _write_step(step: _Step, axes: Mapping[str, dict[int, str]], folder: Path, max_length: int, is_int8: bool) -> None:
    parts = flatten(step.memory, "memory") | flatten(step.state, "state")
    first = FEATURES if step.has_list else "log_probs"
    following = [f"next.{name}" for name in flatten(step.state, "state")]
    record_graph(
        step,
        {"tokens": (torch.full((_SOURCES, _HYPOTHESES), 4), {0: "source", 1: "hypothesis"})},
        {name: (tensor, axes[name]) for name, tensor in parts.items()},
        [first, *following, *(["weights"] if gives_weights(step.model) else [])],
        folder / "step.onnx",
        max_length,
        is_int8,
    )


def _write_output(model: Seq2Seq, folder: Path, max_length: int, is_int8: bool) -> None:
    """Write the output layer as graphs of its own: whole, and for some of its tokens."""
    layer = model.output
    features = torch.zeros(_SOURCES, _HYPOTHESES, layer.weight.shape[1])
    axes = {0: "source", 1: "hypothesis"}
    inputs, path = {FEATURES: (features, axes)}, folder / "output.onnx"
    record_graph(_Output(model), inputs, {}, ["log_probs"], path, max_length, is_int8)
    write_listed_graphs(folder, layer.weight, layer.bias)


def refuse_unexportable(model: nn.Module) -> None:
    """Refuse a model whose attention cannot be written as a graph.

    Raises:
        UsageError: a normalizer needs a loop.
    """
    for layer in model.modules():
        if isinstance(layer, NormalizerLayer) and (reason := layer.normalizer.without_noise().why_not_exported()):
            raise UsageError(f"onnx: {reason}; use --engine torch")


def recordable(model: AnyModule, max_length: int) -> AnyModule:
    """Copy a model into a form that can be recorded as a graph.

    Args:
        model: any model; it is not changed.
        max_length: maximum number of positions of a sequence.

    Returns:
        A copy in float32 on the CPU, with position tables for `max_length` and recurrent units as ONNX operators.
    """
    copied = deepcopy(model).float().cpu().eval()
    for module in copied.modules():
        if isinstance(module, SinusoidalPositions):
            # A graph contains the table as it is at recording, so the table must already have its full length.
            module.codes(0, max_length + 1)
            module.table = module.table[: max_length + 1]
    record_units(copied)
    return copied


def _example(model: Seq2Seq, sources: Inputs, num_said: int) -> tuple[Memory, State]:
    """Memory, and decoder state after `num_said` steps."""
    memory = model.encode(sources)
    state = model.start(memory, _HYPOTHESES)
    prepared = model.prepare_steps(memory)
    plain = rebuild(prepared, iter(flatten(prepared, "").values()))
    tokens = torch.full((len(memory.lengths), _HYPOTHESES), 4)
    for _ in range(num_said):
        _, state = model.step(tokens, state, plain)
    return plain, state


def free_axes(
    one: Mapping[str, Tensor], other: Mapping[str, Tensor], known: dict[int, str], varying: str
) -> dict[str, dict[int, str]]:
    """Name the dynamic axes of tensors: the known ones, and those whose sizes differ between two examples.

    Args:
        other: tensors of an example with other sizes, by name.
        known: names of the axes that are dynamic in every tensor.
        varying: name for all other axes whose sizes differ.

    Returns:
        For each tensor, the names of its dynamic axes by axis index.
    """
    axes: dict[str, dict[int, str]] = {}
    for name, tensor in one.items():
        sizes = zip(tensor.shape, other[name].shape, strict=True)
        differing = {axis for axis, (size, again) in enumerate(sizes) if size != again}
        axes[name] = known | {axis: varying for axis in differing - known.keys()}
    return axes


def record_graph(
    module: nn.Module,
    inputs: Mapping[str, tuple[Tensor, dict[int, str]]],
    listed: Mapping[str, tuple[Tensor, dict[int, str]]],
    outputs: list[str],
    path: Path,
    max_length: int,
    is_int8: bool = False,
) -> None:
    """Write one graph.

    Args:
        inputs: by name, an example tensor and the names of its dynamic axes, for each separate argument of the module.
        listed: the same for the tensors that the module takes as one list, its last argument.
        max_length: maximum number of positions of a sequence.
        is_int8: whether the graph will be quantised, which needs matrices as they are multiplied.

    Raises:
        UsageError: the module cannot be recorded.
    """
    import torch.onnx
    from torch.export import Dim

    names = sorted({axis for _, axes in (*inputs.values(), *listed.values()) for axis in axes.values()})
    most = {"position": max_length, "said": max_length}
    dims = {name: Dim(name, min=0 if name == "said" else 1, max=most.get(name)) for name in names}
    shapes = [{axis: dims[name] for axis, name in axes.items()} for _, axes in inputs.values()]
    more = [{axis: dims[name] for axis, name in axes.items()} for _, axes in listed.values()]
    arguments: list[Any] = [tensor for tensor, _ in inputs.values()]
    if listed:
        arguments.append([tensor for tensor, _ in listed.values()])
    with quiet(), paused_collector(), torch.no_grad():
        try:
            free = (*shapes, more) if listed else tuple(shapes)
            recorded = torch.export.export(module.eval(), tuple(arguments), dynamic_shapes=free, strict=False)
            program = torch.onnx.export(
                recorded,
                dynamo=True,
                verbose=False,
                opset_version=OPSET,
                input_names=[*inputs, *listed],
                output_names=outputs,
                custom_translation_table=translations(),
            )
        except (torch.onnx.OnnxExporterError, RuntimeError, ValueError) as error:
            reason = " ".join(str(error.__cause__ or error).partition("Caused by")[0].split())[:300].rstrip()
            line = custom_line(error)
            where = f"{line} cannot be traced; it may use only operations of PyTorch on tensors: " if line else ""
            raise UsageError(f"{path.name}: this model cannot be written as a graph: {where}{reason}") from error
    if program is None:
        raise UsageError(f"{path.name}: the exporter gave no graph")
    _fold(program.model)
    program.model.ir_version = IR_VERSION
    program.model.metadata_props.update(graph_properties(path.stem))
    model = program.model_proto
    if not is_int8:
        _turn(model.graph)
    path.write_bytes(model.SerializeToString())


def _fold(graph: Any) -> None:
    """Fold constant expressions of weights, since the exporter leaves large ones unfolded.

    This saves work at every load, and quantisation applies only to matrices that are constants.
    """
    from onnxscript import optimizer

    optimizer.fold_constants(graph, input_size_limit=_ANY_SIZE, output_size_limit=_ANY_SIZE)
    optimizer.remove_unused_nodes(graph)


def _turn(graph: Any) -> None:
    """Store the matrices of products as the model has them, each followed by its transposition.

    Their bytes are then those of the model's weights, so that an archive of both stores them once, and an output layer
    that is the table of embeddings shares it. Runtimes transpose constants once, when they load a graph.
    """
    from onnx import helper, numpy_helper

    factors = {node.input[1] for node in graph.node if node.op_type == "MatMul"}
    constants: list[Any] = []
    turns: list[Any] = []
    stored: dict[tuple[int, tuple[int, ...], bytes], str] = {}
    for constant in sorted(graph.initializer, key=lambda one: one.name in factors):
        name = constant.name
        is_turned = name in factors and len(constant.dims) == 2
        if is_turned:
            constant = numpy_helper.from_array(numpy_helper.to_array(constant).T.copy(), f"{name}.turned")
        same = stored.setdefault((constant.data_type, tuple(constant.dims), constant.raw_data), constant.name)
        if not is_turned or same == constant.name:
            constants.append(constant)
        if is_turned:
            turns.append(helper.make_node("Transpose", [same], [name], perm=[1, 0]))
    nodes = [*turns, *graph.node]
    del graph.initializer[:], graph.node[:]
    graph.initializer.extend(constants)
    graph.node.extend(nodes)


def quantize(folder: Path) -> None:
    """Quantise a model's graphs to int8, in place.

    Raises:
        MissingExtra: ONNX Runtime, which quantises, is not installed.
    """
    try:
        from onnxruntime.quantization import QuantType, quantize_dynamic
    except ModuleNotFoundError as error:
        raise MissingExtra(str(error.name), "onnx", "writing ONNX in eight bits") from None
    for path in filter(Path.is_file, (folder / f"{name}.onnx" for name in ("encode", "step", "output"))):
        with quiet():
            vectors = _products_with_vectors(path)
            # Weights get seven bits, because with eight, products overflow on processors without int8 instructions.
            quantize_dynamic(
                path, path, weight_type=QuantType.QInt8, per_channel=True, reduce_range=True, nodes_to_exclude=vectors
            )


def _products_with_vectors(path: Path) -> list[str]:
    """Names of products with a constant vector, which has no channels to quantise and is small."""
    import onnx

    graph = onnx.load(path).graph
    shapes = {constant.name: tuple(constant.dims) for constant in graph.initializer}
    return [
        node.name
        for node in graph.node
        if node.op_type == "MatMul" and any(len(shape) != 2 or shape[1] == 1 for shape in _constants(node, shapes))
    ]


def _constants(node: Any, shapes: Mapping[str, tuple[int, ...]]) -> list[tuple[int, ...]]:
    return [shapes[name] for name in node.input if name in shapes]


@contextmanager
def quiet() -> Generator[None]:
    """Suppress output, warnings and logs of exporters, about their internals, which take time."""
    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        # Where a recording fails, PyTorch prints hundreds of lines of the graph so far.
        with redirect_stderr(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)
