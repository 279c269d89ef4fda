"""Archives of models, and that JavaScript runs them as Python does: the same searches, over the same graphs."""

import gzip
import shutil
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful.engines.onnx import OnnxEngine
from heedful.engines.onnx_layers import LAYERS, OnnxLayers
from heedful.errors import UsageError
from heedful.export.archive import compressed, write_archive
from heedful.export.layers import export_layers
from heedful.export.onnx import gives_weights
from heedful.export.stored_weights import shared, stored
from heedful.search.beam import search
from heedful.search.inputs import as_inputs, token_draw
from tests.export.archives import archive_of, archived
from tests.export.conftest import MOST, Make
from tests.export.engines import draw_sources
from tests.js.hypotheses import SEARCHES, config_of, differences
from tests.js.node import MODULES, Run, answers, changed_package, needs_node
from tests.models.tiny import NUM_SOURCE_TOKENS
from tests.thorough import thorough

NATIVE = MODULES / "onnxruntime-node"
NAMES = ("rnnsearch-after", "transformer-pre", "luong")
KINDS = ("greedy", "beam", "coverage")
PREFIXES: Sequence[Sequence[int]] = ((), (4, 5))


@needs_node
def test_engines_in_javascript_give_what_those_of_python_give(exported: Make, tmp_path: Path):
    sources = draw_sources(3, 10, seed=3)
    expected: list[Any] = []
    runs: list[Run] = []
    cases = [(kind, source, prefix) for kind in KINDS for source in sources for prefix in PREFIXES]
    for name in NAMES:
        model, graphs = exported(name)
        needs = gives_weights(model)
        engine = OnnxEngine(graphs, needs)
        expected += [
            search(engine, [source], config_of(kind), max_length=MOST, need_alignment=needs, prefixes=[prefix])[0]
            for kind, source, prefix in cases
        ]
        calls = [["search", source.tolist(), SEARCHES[kind], {"prefix": prefix}] for kind, source, prefix in cases]
        runs.append(Run(archive_of(graphs, tmp_path), calls))
    wrong = changed_package(tmp_path / "wrong", "engine.js", "parents?.[slot] ?? slot", "slot")
    answered = answers(*runs, runs[0]._replace(folder=wrong))
    assert differences(expected, answered[: len(expected)]) == []
    assert differences(expected[: len(cases)], answered[len(expected) :]) != []


TOGETHER = ("greedy", "coverage", "certain")
"""Searches of which the last end at different steps."""
WRONG_BATCHES = {
    "the order of sources": ("batch.js", "found[source] =", "found[lane] ="),
    "rows of searches that went on": ("batch.js", "row: this.rows.get(lane) ?? 0", "row: lane"),
    "attention to padding": ("engine.js", "if (length >= positions)", "if (true)"),
    "lengths of sources": (
        "engine.js",
        "this.integers(ids.map(({ length }) => length)",
        "this.integers(ids.map(() => longest)",
    ),
    "memory of searches that ended": (
        "engine.js",
        "lanes.map(({ row }) => row), number",
        "lanes.map((_, row) => row), number",
    ),
}


@thorough
@needs_node
def test_sources_that_are_searched_together_have_the_outputs_of_each_alone(exported: Make, tmp_path: Path):
    sources = draw_sources(23, 12, seed=4)
    expected: list[Any] = []
    runs: list[Run] = []
    for name in NAMES:
        model, graphs = exported(name)
        needs = gives_weights(model)
        engine = OnnxEngine(graphs, needs)
        calls: list[list[Any]] = []
        for kind in TOGETHER:
            expected += search(engine, sources, config_of(kind), max_length=MOST, need_alignment=needs)
            calls.append(["searchAll", [source.tolist() for source in sources], SEARCHES[kind]])
        runs.append(Run(archive_of(graphs, tmp_path), calls))
    folders = [
        changed_package(tmp_path / f"wrong-{number}", *change) for number, change in enumerate(WRONG_BATCHES.values())
    ]
    answered = answers(*runs, *[run._replace(folder=folder) for folder in folders for run in runs])
    num_calls = len(NAMES) * len(TOGETHER)
    batches = [answered[start : start + num_calls] for start in range(0, len(answered), num_calls)]
    assert differences(expected, [one for call in batches[0] for one in call]) == []
    for kind, batch in zip(WRONG_BATCHES, batches[1:], strict=True):
        failed = any("error" in call or None in call for call in batch)
        assert failed or differences(expected, [one for call in batch for one in call]), kind


@needs_node
def test_a_search_ends_when_it_is_cancelled_and_wrong_calls_are_refused(exported: Make, tmp_path: Path):
    archive = archive_of(exported("rnnsearch-after")[1], tmp_path)
    content = archive.read_bytes()
    (tmp_path / "cut.tgz").write_bytes(content[: len(content) // 2])
    (tmp_path / "changed.tgz").write_bytes(content[:900] + bytes([content[900] ^ 1]) + content[901:])
    (tmp_path / "newer.tgz").write_bytes(compressed({"model.json": b'{"format": 99}'}))
    (tmp_path / "other.tgz").write_bytes(compressed({"model.json": b'{"format": 1, "task": "dancing"}'}))
    (tmp_path / "text.tgz").write_bytes(b"no archive")
    (tmp_path / "tar.tgz").write_bytes(gzip.compress(b"no archive" * 100))
    right = Run(
        archive,
        [
            ["cancel", ["abc"]],
            ["translate", "abc"],
            ["translate", [7]],
            ["translate", ["abc"], {"beam": -1}],
            ["translate", ["abc"], {"search": {"max_length_offset": "many"}}],
            ["translate", ["", " \n"]],
            ["translate", ["abc" * 40], {"nbest": 2, "attention": True}],
        ],
    )
    broken = [
        Run(tmp_path / f"{name}.tgz", [["translate", ["a"]]])
        for name in ("cut", "changed", "newer", "other", "text", "tar")
    ]
    broken += [Run("http://127.0.0.1:9/none.tgz", [["translate", ["a"]]])]
    cancelled, single, number, beam, limit, blank, cut, *faults = answers(right, *broken)
    assert cancelled["message"] == "enough"
    assert [one["error"] for one in (single, number, beam, limit)] == ["usage"] * 4
    assert [one["text"] for one in blank] == ["", ""]
    assert cut[0]["wasCut"]
    assert len(cut[0]["alternatives"]) == 2
    assert np.shape(cut[0]["attention"]) == (len(cut[0]["targetPieces"]), MOST)
    codes = ["damaged", "damaged", "newer", "kind", "damaged", "damaged", "unreachable"]
    assert [one["error"] for one in faults] == codes


@thorough
@needs_node
def test_layers_and_heads_in_javascript_are_those_of_python(exported: Make, tmp_path: Path):
    model, graphs = exported("transformer-pre")
    folder = shutil.copytree(graphs.folder, tmp_path / "layered")
    export_layers(model, folder, MOST, token_draw(NUM_SOURCE_TOKENS))
    layered = replace(archived(tmp_path, "transformer"), has_layers=True)
    (tmp_path / "m.tgz").write_bytes(write_archive(layered, folder, "float32"))
    cases = [([5, 6, 7, 3], [5, 8, 4, 3]), ([4, 3], [3]), ([7] * 12 + [3], [5, 6] * 8 + [3])]
    answered = answers(Run(tmp_path / "m.tgz", [["attention", *case] for case in cases]))
    for (source, output), layers in zip(cases, answered, strict=True):
        expected = OnnxLayers(folder / LAYERS).weights(as_inputs([np.array(source)]), output)
        assert [(one["role"], one["layer"]) for one in layers] == list(expected)
        for one, weights in zip(layers, expected.values(), strict=True):
            assert one["shape"] == list(weights.shape)
            np.testing.assert_allclose(one["values"], weights.ravel(), atol=1e-5)


def test_the_same_model_gives_the_same_bytes(exported: Make, tmp_path: Path):
    folder = exported("rnnsearch-after")[1].folder
    one, other = (write_archive(archived(tmp_path, "rnnsearch"), folder, "float32") for _ in range(2))
    assert one == other


def test_weights_of_16_bits_are_rounded_and_nothing_else_changes(tmp_path: Path):
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    generator = np.random.default_rng(0)
    weight, bias = generator.normal(size=(32, 16)).astype(np.float32), np.array([1e-9, 1.0], dtype=np.float32)
    large = np.full((16, 16), 1e6, dtype=np.float32)
    tensors = [numpy_helper.from_array(each, name) for name, each in (("w", weight), ("b", bias), ("l", large))]
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["y"]),
        helper.make_node("MatMul", ["y", "l"], ["z"]),
        helper.make_node("Identity", ["b"], ["c"]),
    ]
    shapes = {"x": [3, 32], "y": [3, 16], "z": [3, 16], "c": [2]}
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    graph = helper.make_model(
        helper.make_graph(nodes, "g", values[:1], values[1:], tensors),
        opset_imports=[helper.make_opsetid("", 18)],
        ir_version=8,
    )
    written = stored(graph.SerializeToString(), "float16")
    onnx.checker.check_model(onnx.load_model_from_string(written))
    x = generator.normal(size=(3, 32)).astype(np.float32)
    y, z, c = onnxruntime.InferenceSession(written).run(None, {"x": x})
    rounded = weight.astype(np.float16).astype(np.float32)
    np.testing.assert_allclose(y, x @ rounded, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(z, y @ large, rtol=1e-5)
    assert np.array_equal(c, bias)
    assert len(written) < len(graph.SerializeToString()) - weight.nbytes // 2 + 300
    eighth = stored(graph.SerializeToString(), "int8")
    y, _, c = onnxruntime.InferenceSession(eighth).run(None, {"x": x})
    scale = np.abs(weight).max(axis=0) / 127
    assert np.abs(y - x @ weight).max() <= (0.5 * np.abs(x) @ np.ones_like(weight) * scale).max()
    assert np.abs(y - x @ weight).max() > 1e-3
    assert np.array_equal(c, bias)
    assert len(eighth) < len(written) - weight.nbytes // 4 + 300


@pytest.mark.parametrize(
    ("search_settings", "reason"),
    [({"method": "sampling", "beam": 1}, "draws samples"), ({"beam": 4, "num_groups": 2, "diversity": 0.5}, "groups")],
)
def test_what_javascript_would_do_otherwise_is_refused(search_settings: dict[str, Any], reason: str, tmp_path: Path):
    with pytest.raises(UsageError, match=reason):
        archived(tmp_path, "rnnsearch", **search_settings).check()


def test_the_description_has_the_settings_and_no_text_of_the_user(tmp_path: Path):
    description = archived(tmp_path / "m.model", "rnnsearch", beam=3).description()
    assert (description["name"], description["search"]["beam"], description["max_tokens"]) == ("m.model", 3, MOST)
    texts = chain.from_iterable(description[each]["tokens"] for each in ("source_tokenizer", "target_tokenizer"))
    assert max(map(len, texts)) == len("<bos>")


def test_what_two_graphs_have_in_common_is_stored_once():
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    table = np.random.default_rng(0).normal(size=(64, 96)).astype(np.float32)

    def graph(name: str, is_turned: bool) -> bytes:
        x, y = (helper.make_tensor_value_info(each, TensorProto.FLOAT, None) for each in "xy")
        weights = [numpy_helper.from_array(table, f"{name}.table")]
        weights += [numpy_helper.from_array(np.ascontiguousarray(table.T), f"{name}.output")] if is_turned else []
        nodes = [helper.make_node("MatMul", ["x", f"{name}.table"], ["h" if is_turned else "y"])]
        nodes += [helper.make_node("MatMul", ["h", f"{name}.output"], ["y"])] if is_turned else []
        made = helper.make_graph(nodes, name, [x], [y], weights)
        return helper.make_model(made, opset_imports=[helper.make_opsetid("", 18)], ir_version=8).SerializeToString()

    x = np.random.default_rng(1).normal(size=(2, 64)).astype(np.float32)
    graphs = {"a": stored(graph("a", False), "float16"), "b": stored(graph("b", True), "float16")}
    contents, parts = shared(graphs)
    size = table.size * 2
    assert (len(contents["a"]) > size, len(contents["b"]) < size // 2, list(parts)) == (True, True, ["b"])
    joined = b"".join(contents[name][start : start + number] for name, start, number in parts["b"])
    assert joined == graphs["b"]
    (y,) = onnxruntime.InferenceSession(joined).run(None, {"x": x})
    rounded = table.astype(np.float16).astype(np.float32)
    np.testing.assert_allclose(y, x @ rounded @ rounded.T, rtol=1e-4, atol=1e-4)


@needs_node
@pytest.mark.skipif(not NATIVE.is_dir(), reason=f"needs onnxruntime-node: npm install --prefix {MODULES.parent}")
def test_the_runtime_of_node_gives_what_that_of_browsers_gives(exported: Make, tmp_path: Path):
    archive = archive_of(exported("rnnsearch-after")[1], tmp_path)
    texts, options = ["abc", "fade cab", "d"], {"beam": 3, "nbest": 2}
    calls = [["translate", texts, options], ["translateBy", NATIVE / "dist/index.js", archive, texts, options]]
    usual, native = answers(Run(archive, calls))
    outputs = [[[one["text"] for one in each["alternatives"]] for each in found] for found in (usual, native)]
    assert outputs[0] == outputs[1]
    assert np.allclose(*([each["score"] for each in found] for found in (usual, native)), atol=1e-5)
