"""Matrices in graphs: stored as the model has them, so that an archive of model and graphs has their bytes once."""

from pathlib import Path

import numpy as np
import pytest

from heedful.export.onnx import export_graphs
from tests.export.conftest import MOST
from tests.models.tiny import make_model
from tests.thorough import thinned

NAMES = thinned(["rnnsearch-after", "transformer-pre", "luong", "hard-monotonic"], 2)


def matrices(path: Path) -> dict[str, np.ndarray]:
    """Matrices of a graph by name."""
    import onnx
    from onnx import numpy_helper

    constants = {one.name: numpy_helper.to_array(one) for one in onnx.load(path).graph.initializer}
    return {name: values for name, values in constants.items() if values.ndim == 2 and min(values.shape) > 1}


@pytest.mark.parametrize("name", NAMES)
def test_rows_of_matrices_are_rows_of_weights(name: str, tmp_path: Path):
    """A matrix may be of two weights, or of some columns of one."""
    model = make_model(name).float()
    export_graphs(model, tmp_path, MOST)
    weights = b"".join(one.detach().numpy().tobytes() for one in model.parameters())
    found = {**matrices(tmp_path / "encode.onnx"), **matrices(tmp_path / "step.onnx")}
    turned = {key: values for key, values in found.items() if key.endswith(".turned")}
    assert len(turned) > 1
    assert all(row.tobytes() in weights for values in turned.values() for row in values)


def test_a_table_that_is_also_the_output_layer_is_stored_once(tmp_path: Path):
    model = make_model("transformer-bias").float()  # ties the target side
    export_graphs(model, tmp_path, MOST)
    table = model.output.weight.detach().numpy()
    stored = [values for values in matrices(tmp_path / "step.onnx").values() if values.size == table.size]
    assert sum(np.array_equal(values, table) or np.array_equal(values.T, table) for values in stored) == 1


@pytest.mark.parametrize("name", thinned(["luong", "transformer-pre"], 2))
def test_quantised_products_are_of_constants(name: str, tmp_path: Path):
    import onnx

    model = make_model(name).float()
    export_graphs(model, tmp_path, MOST, is_int8=True)
    kinds = [node.op_type for node in onnx.load(tmp_path / "step.onnx").graph.node]
    assert "MatMulInteger" in kinds
    assert not any(name.endswith(".turned") for name in matrices(tmp_path / "step.onnx"))
