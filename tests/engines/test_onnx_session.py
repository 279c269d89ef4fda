"""Session of ONNX Runtime with a limit of time."""

import threading
import time
from pathlib import Path

import numpy as np
import pytest

from heedful.engines import onnx_session
from heedful.engines.onnx_session import Session, open_session
from heedful.errors import FileRefused, ResourceError

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")


def write_loop(path: Path) -> None:
    """Write a graph that adds 1 as long as its condition holds, which is always."""
    helper, proto = onnx.helper, onnx.TensorProto
    inner = [helper.make_tensor_value_info(name, kind, []) for name, kind in (("i", 7), ("c", 9), ("x", 1))]
    outer = [helper.make_tensor_value_info(name, kind, []) for name, kind in (("d", 9), ("y", 1))]
    one = helper.make_tensor("one", proto.FLOAT, [], [1.0])
    nodes = [helper.make_node("Identity", ["c"], ["d"]), helper.make_node("Add", ["x", "one"], ["y"])]
    body = helper.make_graph(nodes, "body", inner, outer, [one])
    true = helper.make_tensor("true", proto.BOOL, [], [True])
    loop = helper.make_node("Loop", ["", "true", "start"], ["end"], body=body)
    start, end = (helper.make_tensor_value_info(name, proto.FLOAT, []) for name in ("start", "end"))
    graph = helper.make_graph([loop], "graph", [start], [end], [true])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    path.write_bytes(model.SerializeToString())


def test_a_graph_that_fails_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    write_loop(tmp_path / "a.onnx")
    session = open_session(tmp_path / "a.onnx", 1)
    with pytest.raises(FileRefused, match=r"a\.onnx: the graph failed: .*; export the model again"):
        session.run(None, {"start": np.zeros((), np.float64)})


def test_a_graph_that_exhausts_memory_asks_for_smaller_batches():
    class Exhausted:
        def get_inputs(self) -> list[object]:
            return []

        get_outputs = get_inputs

        def run(self, *_: object) -> None:
            raise RuntimeError("Failed to allocate memory for requested buffer of size 17179869184")

    with pytest.raises(ResourceError, match=r"a\.onnx: out of memory; use smaller batches"):
        Session(Path("a.onnx"), Exhausted()).run(None, {})
    assert not onnx_session._WATCH._running


def test_a_graph_that_never_ends_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(onnx_session, "MOST_SECONDS", 0.1)
    monkeypatch.setattr(onnx_session, "_LOOK_SECONDS", 0.02)
    write_loop(tmp_path / "a.onnx")
    session = open_session(tmp_path / "a.onnx", 1)
    started = time.monotonic()
    for _ in range(2):
        with pytest.raises(FileRefused, match=r"a\.onnx: the graph ran for 0 s and was stopped"):
            session.run(None, {"start": np.zeros((), np.float32)})
    assert time.monotonic() - started < 60
    assert not onnx_session._WATCH._running


def test_a_graph_whose_constants_take_too_long_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """They are computed while it is loaded."""
    monkeypatch.setattr(onnx_session, "MOST_SECONDS", 0.01)
    helper, proto = onnx.helper, onnx.TensorProto
    nodes = [helper.make_node("ConstantOfShape", ["shape"], ["square"])]
    nodes += [helper.make_node("MatMul", ["square", "square"], ["end"])]
    shape = helper.make_tensor("shape", proto.INT64, [2], [1000, 1000])
    end = helper.make_tensor_value_info("end", proto.FLOAT, [1000, 1000])
    model = helper.make_model(helper.make_graph(nodes, "graph", [], [end], [shape]), ir_version=9)
    (tmp_path / "a.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(FileRefused, match=r"a\.onnx: loading the graph took over 0 s and was given up"):
        open_session(tmp_path / "a.onnx", 1)
    while any(thread.name == "heedful-onnx-load" for thread in threading.enumerate()):
        time.sleep(0.01)
