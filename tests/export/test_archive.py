"""Archives of models, and that JavaScript runs them as Python does: the same searches, over the same graphs."""

import gzip
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful.engines.onnx import OnnxEngine
from heedful.errors import UsageError
from heedful.export.archive import compressed, write_archive
from heedful.export.half import half_weights
from heedful.export.onnx import gives_weights
from heedful.search.beam import search
from heedful.search.config import SearchConfig
from heedful.search.interface import Hypothesis
from tests.export.archives import archive_of, archived
from tests.export.conftest import MOST, Make
from tests.export.engines import draw_sources
from tests.js.node import Run, answers, changed_package, needs_node

TIE = 1e-4
"""Nats by which scores may differ, and weights of attention."""
NAMES = ("rnnsearch-after", "transformer-pre", "luong")
SEARCHES: dict[str, dict[str, Any]] = {
    "greedy": {"beam": 1},
    "beam": {"beam": 5, "nbest": 5},
    "long": {"beam": 3, "nbest": 3, "alpha": 0.0},
    "gnmt": {"beam": 3, "nbest": 2, "length_penalty": "gnmt", "alpha": 0.6, "length_reward": 0.3},
    "full": {"beam": 3, "nbest": 3, "stopping": "full"},
    "certain": {"beam": 3, "nbest": 2, "stopping": "certain", "max_length_ratio": 1.0, "max_length_offset": 3},
    "no repeats": {"beam": 3, "no_repeat_ngram_size": 2, "repetition_penalty": 1.5, "forbid_unknown": True},
    "least length": {"beam": 2, "nbest": 2, "min_length": 4},
    "coverage": {"beam": 3, "nbest": 3, "beta": 0.2},
}
PREFIXES: Sequence[Sequence[int]] = ((), (4, 5), (6,))


def calls(sources: Sequence[Any], kinds: Sequence[str]) -> list[list[Any]]:
    return [
        ["search", source.tolist(), SEARCHES[kind], {"prefix": prefix}]
        for kind in kinds
        for source in sources
        for prefix in PREFIXES
    ]


def in_python(engine: OnnxEngine, sources: Sequence[Any], kinds: Sequence[str], has_weights: bool) -> list[Any]:
    return [
        search(
            engine, [source], SearchConfig(**SEARCHES[kind]), max_length=MOST, need_alignment=has_weights, prefixes=[p]
        )[0]
        for kind in kinds
        for source in sources
        for p in PREFIXES
    ]


def differences(expected: Sequence[Sequence[Hypothesis]], answered: Sequence[Any]) -> list[str]:
    """Complaints about searches whose results differ by more than a tie."""
    complaints: list[str] = []
    for number, (ours, theirs) in enumerate(zip(expected, answered, strict=True)):
        if "error" in theirs:
            complaints.append(f"{number}: {theirs}")
            continue
        scores = [one.score for one in ours], [one["score"] for one in theirs]
        ids = [list(one.token_ids) for one in ours], [one["ids"] for one in theirs]
        reasons = [one.finish_reason for one in ours], [one["reason"] for one in theirs]
        if len(ours) != len(theirs) or np.abs(np.subtract(*scores)).max() > TIE:
            complaints.append(f"{number}: scores {scores}")
        elif ids[0] != ids[1] or reasons[0] != reasons[1]:
            complaints.append(f"{number}: outputs {ids} {reasons}")
        for one, other in zip(ours, theirs, strict=False):
            log_probs = [*one.token_log_probs, one.log_prob], [*other["tokenLogProbs"], other["logProb"]]
            if np.shape(log_probs[0]) != np.shape(log_probs[1]) or np.abs(np.subtract(*log_probs)).max() > TIE:
                complaints.append(f"{number}: log probabilities {log_probs}")
            rows = [list(row.values()) if isinstance(row, dict) else row for row in other["weights"] or ()]
            if one.weights is not None and (
                np.shape(rows) != one.weights.shape or np.abs(one.weights - rows).max(initial=0.0) > TIE
            ):
                complaints.append(f"{number}: weights")
    return complaints


# Expressions of the package, each with one in its place that makes it wrong.
MUTANTS = (
    ("search.js", "one.slot - other.slot || one.token - other.token", "other.token - one.token"),
    ("search.js", "size > 1 ? size + 1 : 1) + (", "size) + ("),
    ("search.js", "finished.length >= config.beam && nth", "nth"),
    ("search.js", "counted ** config.alpha;", "counted;"),
    ("search.js", "index >= size - 1 && ", "index >= size && "),
    ("search.js", "step < config.min_length", "step <= config.min_length"),
    ("engine.js", "data.subarray(parent * size", "data.subarray(index * size"),
)


@needs_node
def test_searches_in_javascript_find_what_python_finds(exported: Make, tmp_path: Path):
    sources = draw_sources(4, 10, seed=3)
    expected: list[Any] = []
    runs: list[Run] = []
    for name in NAMES:
        model, graphs = exported(name)
        expected += in_python(OnnxEngine(graphs, gives_weights(model)), sources, [*SEARCHES], gives_weights(model))
        runs.append(Run(archive_of(graphs, tmp_path), calls(sources, [*SEARCHES])))
    assert differences(expected, answers(*runs)) == []


@needs_node
def test_wrong_searches_are_told_from_right_ones(exported: Make, tmp_path: Path):
    graphs = exported("rnnsearch-after")[1]
    sources = draw_sources(4, 10, seed=3)
    kinds = ("beam", "long", "no repeats", "least length")
    expected = in_python(OnnxEngine(graphs, True), sources, kinds, has_weights=True)
    archive = archive_of(graphs, tmp_path)
    folders = [changed_package(tmp_path / str(number), *mutant) for number, mutant in enumerate(MUTANTS)]
    answered = iter(answers(*(Run(archive, calls(sources, kinds), folder) for folder in folders)))
    wrong = [bool(differences(expected, [next(answered) for _ in expected])) for _ in folders]
    assert [mutant for mutant, is_wrong in zip(MUTANTS, wrong, strict=True) if not is_wrong] == []


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
            ["translate", ["", " \n"]],
            ["translate", ["abc" * 40], {"nbest": 2, "attention": True}],
        ],
    )
    broken = [
        Run(tmp_path / f"{name}.tgz", [["translate", ["a"]]])
        for name in ("cut", "changed", "newer", "other", "text", "tar")
    ]
    broken += [Run("http://127.0.0.1:9/none.tgz", [["translate", ["a"]]])]
    cancelled, single, number, beam, blank, cut, *faults = answers(right, *broken)
    assert cancelled["message"] == "enough"
    assert [one["error"] for one in (single, number, beam)] == ["usage"] * 3
    assert [one["text"] for one in blank] == ["", ""]
    assert cut[0]["wasCut"]
    assert len(cut[0]["alternatives"]) == 2
    assert np.shape(cut[0]["attention"]) == (len(cut[0]["targetPieces"]), MOST)
    codes = ["damaged", "damaged", "newer", "kind", "damaged", "damaged", "unreachable"]
    assert [one["error"] for one in faults] == codes


def test_the_same_model_gives_the_same_bytes(exported: Make, tmp_path: Path):
    folder = exported("rnnsearch-after")[1].folder
    one, other = (write_archive(archived(tmp_path, "rnnsearch"), folder, is_half=False) for _ in range(2))
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
    written = half_weights(graph.SerializeToString())
    onnx.checker.check_model(onnx.load_model_from_string(written))
    x = generator.normal(size=(3, 32)).astype(np.float32)
    y, z, c = onnxruntime.InferenceSession(written).run(None, {"x": x})
    rounded = weight.astype(np.float16).astype(np.float32)
    np.testing.assert_allclose(y, x @ rounded, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(z, y @ large, rtol=1e-5)
    assert np.array_equal(c, bias)
    assert len(written) < len(graph.SerializeToString()) - weight.nbytes // 2 + 300


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
