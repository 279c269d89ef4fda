"""Bad input of the package in JavaScript: one typed error, or the answer of Python, and nothing hangs."""

import json
import struct
import threading
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from heedful.export.archive import compressed
from heedful.predictors.classifier import Classifier
from heedful.search.config import SearchConfig
from tests.export.archives import archive_of_words
from tests.export.conftest import Make
from tests.export.conftest import exported as exported
from tests.js.node import Run, answers, needs_node
from tests.js.test_labels import DESCRIBED, assert_same_labels
from tests.js.test_labels import exported as task_archive
from tests.serving.task_models import TaskModels
from tests.thorough import is_thorough

pytestmark = needs_node
MILLION = 1_000_000


@contextmanager
def ending_early(content: bytes) -> Generator[str]:
    """Server that promises a file and closes the connection in the middle of it."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: len(content) // 2])

        def log_message(self, format: str, *arguments: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/model.tgz"
    finally:
        server.shutdown()
        server.server_close()


def stranger() -> bytes:
    """A graph that other people made."""
    from onnx import TensorProto, helper

    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", values[:1], values[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8).SerializeToString()


def test_what_is_no_model_is_refused_with_a_code(task_models: TaskModels, tmp_path: Path):
    whole = task_archive(task_models.answerer, tmp_path)[1].read_bytes()
    search = SearchConfig().model_dump(mode="json")
    complete = {"format": 1, "task": "translation", "max_tokens": 20, "search": search}
    description = json.dumps(complete).encode()
    files = {
        "no JSON": {"model.json": b"{"},
        "no settings": {"model.json": json.dumps(complete | {"search": {}}).encode()},
        "no limit": {"model.json": json.dumps(complete | {"max_tokens": "many"}).encode()},
        "no part": {"model.json": json.dumps(complete | {"parts": {"encode.onnx": [["one", 0, 9]]}}).encode()},
        "damaged": {"model.json": description},
        "kind": {"model.json": b'{"format": 1, "task": "constructor"}'},
        "runtime": {"model.json": description, "encode.onnx": b"no graph", "step.onnx": b""},
        "strange": {"model.json": description, "encode.onnx": stranger(), "step.onnx": stranger()},
    }
    runs: list[Run] = []
    for name, content in files.items():
        (tmp_path / f"{name}.tgz").write_bytes(compressed(content))
        runs.append(Run(tmp_path / f"{name}.tgz", [["translate", ["a"]]]))
    with ending_early(whole) as address:
        refused = answers(*runs, Run(address, [["translate", ["a"]]]), Run(f"{address}x", [["translate", ["a"]]]))
    codes = [one["error"] for one in refused]
    assert codes == ["damaged"] * 4 + ["damaged", "kind", "runtime", "kind", "unreachable", "unreachable"], refused
    assert all(one["message"] and "\n" not in one["message"] for one in refused)


def test_a_text_of_a_million_characters_is_cut_as_in_python(task_models: TaskModels, tmp_path: Path):
    texts = ["a" * MILLION, "a clean room. " * (MILLION // 14), "\n" * MILLION, "房" * MILLION]
    classifier, archive = task_archive(task_models.classifier, tmp_path)
    assert isinstance(classifier, Classifier)
    (labels,) = answers(Run(archive, [["classify", texts]]))
    assert_same_labels(classifier.classify(texts), labels)
    _, archive = task_archive(task_models.finder, tmp_path)
    (found,) = answers(Run(archive, [["answer", [{"facts": [text], "question": text} for text in texts]]]))
    assert [one["wasCut"] for one in found] == [True, True, False, True]


# Texts of a million characters by the unit that they repeat, and the number of segments that a model of words reads.
SEGMENTS = {
    "a": 4096,
    "a b ": 32_768,
    "a b. ": 32_768,
    "\n": 0,
    " ": 0,
    "a b\n": 250_000,
    "1. a\n": 200_000,
    "- a\n": 250_000,
    "a, b (c) d e f g a b c d e f g a b c d e f g a b c\n": 39_215,
    "房。": 500_000,
    "http://a.b/c ": 4096,
    "<b>": 4096,
    "{x} ": 16_384,
    "a b {x}. ": 32_768,
    "\U0001f436 ": 32_768,
    "ж ": 32_768,
    "I... ": 200_000,
    "\0": 4096,
}
TRANSLATED = ("a", "\n", "{x} ", "http://a.b/c ")
"""Shapes of text that a test has time to translate, too."""


@pytest.mark.parametrize(("part", "size"), [(5, MILLION // 2), *(is_thorough((part, MILLION)) for part in range(6))])
def test_a_text_of_a_million_characters_is_split_and_translated_in_linear_time(
    part: int, size: int, exported: Make, tmp_path: Path
):
    """Four times the text takes about four times as long, not sixteen times."""
    archive, sizes = archive_of_words(exported("rnnsearch-after")[1], tmp_path), (size // 4, size)
    units = list(SEGMENTS)[part::6]
    methods = [(name, one) for one in units for name in ("split", "translate", "translateText")]
    methods = [one for one in methods if one[0] != "translateText" or one[1] in TRANSLATED]
    given = answers(Run(archive, [["timed", name, unit, sizes] for name, unit in methods]))
    for (name, unit), answer in zip(methods, given, strict=True):
        assert "error" not in answer, f"{name} of {unit!r}: {answer}"
        assert answer["count"] == (1 if name == "translate" else SEGMENTS[unit] * size // MILLION), (
            f"{name} of {unit!r}: {answer}"
        )
        few, many = answer["times"]
        assert many < 9 * few + 1000, f"{name} of {unit!r}: {answer}"


def test_a_picture_is_refused_by_its_head():
    """A picture of a hundred million pixels in a hundred bytes, and files that are none."""
    head = struct.pack(">IIBBBBB", 10_000, 10_000, 8, 2, 0, 0, 0)
    large = (
        b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + b"IHDR" + head + struct.pack(">I", zlib.crc32(b"IHDR" + head))
    )
    jpeg = bytes.fromhex("ffd8ffe000104a46494600010100000100010000ffc00011080bb80fa003012200021101031101")
    cases: list[Any] = [["size", [*content]] for content in (large, jpeg, b"", b"text", large[:18])]
    got = answers(Run(DESCRIBED, cases))
    assert got[:2] == [[10_000, 10_000], [4000, 3000]]
    assert [one["error"] for one in got[2:]] == ["picture"] * 3


def test_what_is_no_address_and_no_bytes_is_refused():
    refused = answers(Run(DESCRIBED, [["load", value] for value in (42, None, {"model": "a"}, ["model.tgz"])]))
    said = {"error": "usage", "message": "load: expected the address of a model, or its bytes"}
    assert refused == [said] * 4


def test_a_path_in_node_is_refused_with_what_to_give():
    addresses = ("model.tgz", "./model.tgz", "file:///model.tgz")
    refused = answers(Run(DESCRIBED, [["load", address] for address in addresses]))
    assert [one["error"] for one in refused] == ["unreachable"] * 3
    assert all("give the bytes of one: load(await readFile(path))" in one["message"] for one in refused), refused
    (other,) = answers(Run(DESCRIBED, [["load", "http://127.0.0.1:9/model.tgz"]]))
    assert "readFile" not in other["message"]


def test_too_little_memory_has_a_code(task_models: TaskModels, tmp_path: Path):
    _, archive = task_archive(task_models.classifier, tmp_path)
    short = ("std::bad_alloc", "Array buffer allocation failed", "Out of memory: Cannot allocate Wasm memory")
    cases = [["failing", str(archive), message, *texts] for message in short for texts in ([], [["a room"]])]
    given = answers(Run(DESCRIBED, [*cases, ["failing", str(archive), "no such operator"]]))
    assert [one["error"] for one in given] == ["memory"] * 6 + ["runtime"], given
    assert all(one["message"].startswith("there is too little memory: ") for one in given[:6])
