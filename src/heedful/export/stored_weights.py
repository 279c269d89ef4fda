"""Weights stored in 16 or 8 bits: smaller graphs, whose weights a runtime unpacks to 32 bits when it loads them."""

from collections.abc import Mapping
from typing import Any, Final, Literal

WeightKind = Literal["float32", "float16", "int8"]
KINDS: Final[tuple[WeightKind, ...]] = ("int8", "float16", "float32")
"""Kinds of stored weights, the smallest first."""
SMALLEST: Final = 256
"""Number of values below which a constant stays as it is: it saves nothing, and may be a bound or an epsilon."""
_LEVELS: Final = 127
_LARGE: Final = 4096
"""Number of bytes from which on a constant that two graphs have is stored once."""
Part = tuple[str, int, int]
"""Name of a file, and first byte and number of bytes of a part of it."""


def stored(graph: bytes, kind: WeightKind) -> bytes:
    """Store the weights of a graph in fewer bits.

    Each is followed by its conversion to 32 bits, which a runtime computes once, when it loads the graph; sums and
    products stay those of 32 bits.

    Args:
        graph: bytes of an ONNX graph.
        kind: float16 rounds weights to 11 significant bits; int8 those of matrices to 255 levels, with a scale for each
            row or column, whichever is closer. A constant beyond the range of 16 bits stays as it is.

    Returns:
        Bytes of a graph with the same inputs and outputs.
    """
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    if kind == "float32":
        return graph
    model = onnx.load_model_from_string(graph)
    nodes: list[onnx.NodeProto] = []
    turned: dict[tuple[tuple[int, ...], bytes], str] = {}
    repeated: list[onnx.TensorProto] = []
    scales: list[onnx.TensorProto] = []
    for constant in model.graph.initializer:
        if constant.data_type != TensorProto.FLOAT:
            continue
        values = numpy_helper.to_array(constant)
        if values.size < SMALLEST or np.abs(values).max() > np.finfo(np.float16).max:
            continue
        name = constant.name
        # An output layer may be the table of embeddings, turned.
        if values.ndim == 2 and (same := turned.get((values.shape, values.tobytes()))) is not None:
            nodes.append(helper.make_node("Transpose", [same], [name], perm=[1, 0]))
            repeated.append(constant)
            continue
        turned[values.shape[::-1], np.ascontiguousarray(values.T).tobytes()] = name
        is_matrix = kind == "int8" and sum(side > 1 for side in values.shape) > 1
        if not is_matrix:
            constant.CopyFrom(numpy_helper.from_array(values.astype(np.float16), f"{name}.stored"))
            nodes.append(helper.make_node("Cast", [f"{name}.stored"], [name], to=TensorProto.FLOAT))
            continue
        levels, scale = _levels(values)
        constant.CopyFrom(numpy_helper.from_array(levels, f"{name}.stored"))
        scales.append(numpy_helper.from_array(scale, f"{name}.scale"))
        nodes.append(helper.make_node("Cast", [f"{name}.stored"], [f"{name}.levels"], to=TensorProto.FLOAT))
        nodes.append(helper.make_node("Mul", [f"{name}.levels", f"{name}.scale"], [name]))
    for constant in repeated:
        model.graph.initializer.remove(constant)
    model.graph.initializer.extend(scales)
    nodes += model.graph.node
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model.SerializeToString()


def shared(graphs: Mapping[str, bytes]) -> tuple[dict[str, bytes], dict[str, list[Part]]]:
    """Store large constants that several graphs have once.

    Args:
        graphs: bytes by name.

    Returns:
        Contents by name, those of all graphs but the first without what the first one has; and for each of these the
        parts that it is put together of again.
    """
    import onnx

    first, *others = graphs
    base = graphs[first]
    constants = [one.raw_data for one in onnx.load_model_from_string(base).graph.initializer]
    contents, parts = {first: base}, dict[str, list[Part]]()
    for name in others:
        rest, own, start = graphs[name], list[Part](), 0
        offsets = sorted((rest.find(one), one) for one in constants if len(one) >= _LARGE and one in rest)
        literal = bytearray()
        for offset, constant in offsets:
            if offset < start:
                continue
            own += [(name, len(literal), offset - start), (first, base.index(constant), len(constant))]
            literal += rest[start:offset]
            start = offset + len(constant)
        own.append((name, len(literal), len(rest) - start))
        contents[name], parts[name] = bytes(literal + rest[start:]), own
    return contents, parts


def _levels(values: Any) -> tuple[Any, Any]:
    """Whole numbers of 8 bits, and the scales that they are multiplied by."""
    import numpy as np

    def rounded(axis: int) -> tuple[float, Any, Any]:
        others = tuple(each for each in range(values.ndim) if each != axis)
        scale = np.maximum(np.abs(values).max(axis=others, keepdims=True) / _LEVELS, np.finfo(np.float32).tiny)
        levels = np.rint(values / scale)
        return float(np.square(levels * scale - values).sum()), levels.astype(np.int8), scale.astype(np.float32)

    _, levels, scale = min((rounded(axis) for axis in {0, values.ndim - 1}), key=lambda one: one[0])
    return levels, scale
