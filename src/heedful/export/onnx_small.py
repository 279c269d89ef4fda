"""Small ONNX graphs that search needs beside the model's: select sources, reorder hypotheses, top-k, pick tokens."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heedful.text.vocabulary import SPECIAL_TOKENS
from heedful.version import __version__

OPSET: Final = 18
IR_VERSION: Final = 8
"""Format version of the release that introduced this operator set, so that older readers accept a graph too."""
_SHAPES: Final = {
    "log_probs": ("source", "hypothesis", "token"),
    "banned": ("banned",),
    "places": ("changed", 3),
    "values": ("changed",),
}


def write_small_graphs(folder: Path, memory: Mapping[str, Tensor], state: Mapping[str, Tensor]) -> None:
    """Write select.onnx, reorder.onnx, top.onnx, best.onnx and pick.onnx.

    Args:
        memory: [source, ...] tensors by name; only their types and numbers of axes matter.
        state: [source, hypothesis, ...] tensors by name.
    """
    _write(folder / "select.onnx", *_select({**memory, **state}))
    _write(folder / "reorder.onnx", *_reorder(state))
    _write(folder / "top.onnx", *_top())
    _write(folder / "best.onnx", *_best())
    _write(folder / "pick.onnx", *_pick())


def graph_properties(name: str) -> dict[str, str]:
    """Return the metadata of a graph's file: the version of heedful, the name of the graph, and the special ids."""
    special = {token.strip("<>"): str(index) for index, token in enumerate(SPECIAL_TOKENS)}
    return {"heedful": __version__, "graph": name, **special}


def write_listed_graphs(folder: Path, weight: Tensor, bias: Tensor | None) -> None:
    """Write list.onnx and listed.onnx, the output layer for some of its tokens.

    Args:
        weight: [token, feature] weights of the output layer.
        bias: [token] its biases; None = zeros.
    """
    biases = weight.new_zeros(len(weight)) if bias is None else bias
    _write(folder / "list.onnx", *_list(weight.detach().numpy(), biases.detach().numpy()))
    _write(folder / "listed.onnx", *_listed(weight.shape[1]))


Graph = tuple[list[Any], list[Any], list[Any], list[Any]]
"""Nodes, inputs, outputs and constants of a graph."""


def _select(tensors: Mapping[str, Tensor]) -> Graph:
    from onnx import TensorProto, helper

    nodes = [helper.make_node("Gather", [name, "keep"], [f"kept.{name}"], axis=0) for name in tensors]
    keep = helper.make_tensor_value_info("keep", TensorProto.INT64, ["kept"])
    inputs = [keep, *(_like(name, tensor) for name, tensor in tensors.items())]
    return nodes, inputs, [_like(f"kept.{name}", tensor) for name, tensor in tensors.items()], []


def _reorder(state: Mapping[str, Tensor]) -> Graph:
    from onnx import TensorProto, helper

    nodes = [helper.make_node("Unsqueeze", ["parents", "last"], ["places"])]
    nodes += [helper.make_node("GatherND", [name, "places"], [f"kept.{name}"], batch_dims=1) for name in state]
    parents = helper.make_tensor_value_info("parents", TensorProto.INT64, ["source", "hypothesis"])
    inputs = [parents, *(_like(name, tensor) for name, tensor in state.items())]
    return nodes, inputs, [_like(f"kept.{name}", tensor) for name, tensor in state.items()], [_constant("last", [2])]


def _top() -> Graph:
    from onnx import TensorProto, helper

    nodes = [
        helper.make_node("ScatterND", ["log_probs", "places", "values"], ["changed"], reduction="add"),
        # Banned tokens are the same for all hypotheses: a row of zeros and -inf is added to every row.
        helper.make_node("Shape", ["log_probs"], ["num_tokens"], start=2),
        helper.make_node(
            "ConstantOfShape", ["num_tokens"], ["zeros"], value=helper.make_tensor("zero", TensorProto.FLOAT, [1], [0])
        ),
        helper.make_node("Shape", ["banned"], ["num_banned"]),
        helper.make_node(
            "ConstantOfShape",
            ["num_banned"],
            ["never"],
            value=helper.make_tensor("infinite", TensorProto.FLOAT, [1], [-np.inf]),
        ),
        helper.make_node("Unsqueeze", ["banned", "last"], ["columns"]),
        helper.make_node("ScatterND", ["zeros", "columns", "never"], ["bans"]),
        helper.make_node("Add", ["changed", "bans"], ["adjusted"]),
        helper.make_node("TopK", ["adjusted", "k"], ["best", "ids"], axis=-1, largest=1, sorted=1),
    ]
    types = {"log_probs": TensorProto.FLOAT, "places": TensorProto.INT64, "values": TensorProto.FLOAT}
    inputs = [helper.make_tensor_value_info(name, types[name], _SHAPES[name]) for name in types]
    inputs.append(helper.make_tensor_value_info("banned", TensorProto.INT64, _SHAPES["banned"]))
    inputs.append(helper.make_tensor_value_info("k", TensorProto.INT64, [1]))
    shape = ("source", "hypothesis", "k")
    outputs = [
        helper.make_tensor_value_info("best", TensorProto.FLOAT, shape),
        helper.make_tensor_value_info("ids", TensorProto.INT64, shape),
    ]
    return nodes, inputs, outputs, [_constant("last", [1])]


def _best() -> Graph:
    from onnx import TensorProto, helper

    node = helper.make_node("TopK", ["log_probs", "k"], ["best", "ids"], axis=-1, largest=1, sorted=1)
    inputs = [helper.make_tensor_value_info("log_probs", TensorProto.FLOAT, _SHAPES["log_probs"])]
    inputs.append(helper.make_tensor_value_info("k", TensorProto.INT64, [1]))
    shape = ("source", "hypothesis", "k")
    outputs = [
        helper.make_tensor_value_info("best", TensorProto.FLOAT, shape),
        helper.make_tensor_value_info("ids", TensorProto.INT64, shape),
    ]
    return [node], inputs, outputs, []


def _pick() -> Graph:
    from onnx import TensorProto, helper

    types = {"log_probs": TensorProto.FLOAT, "places": TensorProto.INT64}
    inputs = [helper.make_tensor_value_info(name, types[name], _SHAPES[name]) for name in types]
    output = helper.make_tensor_value_info("picked", TensorProto.FLOAT, _SHAPES["values"])
    return [helper.make_node("GatherND", ["log_probs", "places"], ["picked"])], inputs, [output], []


def _list(weight: NDArray[np.float32], bias: NDArray[np.float32]) -> Graph:
    from onnx import TensorProto, helper, numpy_helper

    nodes = [
        helper.make_node("Gather", ["all_weights", "ids"], ["rows"], axis=0),
        helper.make_node("Transpose", ["rows"], ["listed.weights"], perm=[1, 0]),
        helper.make_node("Gather", ["all_biases", "ids"], ["listed.biases"], axis=0),
    ]
    ids = helper.make_tensor_value_info("ids", TensorProto.INT64, ["listed"])
    constants = [numpy_helper.from_array(weight, "all_weights"), numpy_helper.from_array(bias, "all_biases")]
    return nodes, [ids], _listed_values(weight.shape[1]), constants


def _listed(num_features: int) -> Graph:
    from onnx import TensorProto, helper

    nodes = [
        helper.make_node("MatMul", ["features", "listed.weights"], ["products"]),
        helper.make_node("Add", ["products", "listed.biases"], ["logits"]),
        helper.make_node("LogSoftmax", ["logits"], ["log_probs"], axis=-1),
    ]
    axes = ("source", "hypothesis")
    features = helper.make_tensor_value_info("features", TensorProto.FLOAT, [*axes, num_features])
    log_probs = helper.make_tensor_value_info("log_probs", TensorProto.FLOAT, [*axes, "listed"])
    return nodes, [features, *_listed_values(num_features)], [log_probs], []


def _listed_values(num_features: int) -> list[Any]:
    from onnx import TensorProto, helper

    return [
        helper.make_tensor_value_info("listed.weights", TensorProto.FLOAT, [num_features, "listed"]),
        helper.make_tensor_value_info("listed.biases", TensorProto.FLOAT, ["listed"]),
    ]


def _write(path: Path, nodes: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any], constants: Any) -> None:
    import onnx
    from onnx import helper

    graph = helper.make_graph(nodes, path.stem, inputs, outputs, initializer=constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    helper.set_model_props(model, graph_properties(path.stem))
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)


def _like(name: str, tensor: Tensor) -> Any:
    """Graph input or output with a tensor's type and number of axes, all of them dynamic."""
    from onnx import TensorProto, helper

    types = {torch.float32: TensorProto.FLOAT, torch.int64: TensorProto.INT64, torch.bool: TensorProto.BOOL}
    return helper.make_tensor_value_info(name, types[tensor.dtype], [f"{name}.{axis}" for axis in range(tensor.dim())])


def _constant(name: str, values: list[int]) -> Any:
    from onnx import numpy_helper

    return numpy_helper.from_array(np.array(values, dtype=np.int64), name)
