"""Weights in 16 bits: graphs of half the size, which a runtime unpacks to 32 bits when it loads them."""

from typing import Final

SMALLEST: Final = 256
"""Number of values below which a constant stays as it is: it saves nothing, and may be a bound or an epsilon."""


def half_weights(graph: bytes) -> bytes:
    """Store the weights of a graph in 16 bits.

    Each is followed by a conversion to 32 bits, which a runtime computes once, when it loads the graph; sums and
    products stay those of 32 bits.

    Args:
        graph: bytes of an ONNX graph.

    Returns:
        Bytes of a graph with the same inputs and outputs. Weights are rounded to 11 significant bits; a constant with
        values beyond the range of 16 bits stays as it is.
    """
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    model = onnx.load_model_from_string(graph)
    casts: list[onnx.NodeProto] = []
    for constant in model.graph.initializer:
        if constant.data_type != TensorProto.FLOAT:
            continue
        values = numpy_helper.to_array(constant)
        if values.size < SMALLEST or np.abs(values).max() > np.finfo(np.float16).max:
            continue
        name = constant.name
        constant.CopyFrom(numpy_helper.from_array(values.astype(np.float16), f"{name}.half"))
        casts.append(helper.make_node("Cast", [f"{name}.half"], [name], to=TensorProto.FLOAT))
    nodes = [*casts, *model.graph.node]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model.SerializeToString()
