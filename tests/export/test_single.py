"""One graph of a whole model: its outputs are those of our greedy search, and its metadata say how to use it."""

import gzip
import json
import re
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful.errors import UsageError
from heedful.export.onnx import export_graphs
from heedful.export.single import refuse_unsuited, run_single, write_single
from heedful.models.engine import TorchEngine
from heedful.models.interface import Seq2Seq
from heedful.search.beam import search
from heedful.search.config import SearchConfig
from heedful.text.tokenizer import PieceTokenizer, UnitTokenizer
from heedful.text.vocabulary import EOS, UNK, Vocabulary
from tests.js.node import PACKAGE, needs_node
from tests.models.tiny import NUM_SOURCE_TOKENS, NUM_TARGET_TOKENS, make_model
from tests.thorough import is_thorough

MOST = 14
LETTERS = UnitTokenizer(Vocabulary.build(["äbç中😀fg"]), "characters", "NFC")
SYMBOLS = UnitTokenizer(Vocabulary.build([[f"S{index}" for index in range(NUM_TARGET_TOKENS - 4)]]), "words", "NFC")
CONFIG = SearchConfig(beam=1, max_length_ratio=1.3, max_length_offset=2)
FETCHED = """import {{ ort }} from "{}";
ort.env.wasm.numThreads = 1;
ort.env.wasm.wasmBinary = readFileSync("ort.wasm");"""
"""The runtime that `make runtime` fetches, in the place of the package that users install."""
NAMES = ["hard-monotonic", *map(is_thorough, ("rnnsearch-after", "transformer-pre", "luong"))]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Seq2Seq, Path]]:
    @cache
    def export(name: str) -> tuple[Seq2Seq, Path]:
        model, folder = make_model(name).float(), tmp_path_factory.mktemp(name)
        export_graphs(model, folder, MOST)
        return model, folder

    return export


@pytest.mark.parametrize("name", NAMES)
def test_the_graph_is_our_greedy_search(exported: Callable[[str], tuple[Seq2Seq, Path]], name: str, tmp_path: Path):
    import onnx
    import onnxruntime

    assert (len(LETTERS), len(SYMBOLS)) == (NUM_SOURCE_TOKENS, NUM_TARGET_TOKENS)
    (model, folder), path = exported(name), tmp_path / "one.onnx"
    generator = np.random.default_rng(1)
    words = ["".join(generator.choice([*"äbç中😀fg", "x"], size=size)) for size in (np.arange(600) % (MOST + 2) + 1)]
    sources = [np.array([*LETTERS.encode(word)[: MOST - 1], EOS]) for word in words]
    has_unknown: list[bool] = []
    for forbids in (False, True):
        config = CONFIG.model_copy(update={"forbid_unknown": forbids})
        write_single(folder, (LETTERS, SYMBOLS), config, MOST, {"languages": "a b"}, path)
        found = [one[0] for one in search(TorchEngine(model, False), sources, config, max_length=MOST)]
        ids = [[index for index in one.token_ids if index != EOS] for one in found]
        assert run_single(path, words) == ids
        assert len({*map(tuple, ids)}) > 5
        has_unknown.append(any(UNK in one for one in ids))
    assert not has_unknown[1]
    session = onnxruntime.InferenceSession(path)
    codes = np.array([[*map(ord, "bä"), 0], [0, 0, 0], [*map(ord, "fgf")]])
    got, log_probs = session.run(None, {"code_points": codes})
    assert not got[1].any()
    assert log_probs[1] == 0.0
    for row, word in ((0, "bä"), (2, "fgf")):
        one = search(TorchEngine(model, False), [np.array([*LETTERS.encode(word), EOS])], config, max_length=MOST)[0][0]
        assert [int(index) for index in got[row] if index] == [index for index in one.token_ids if index != EOS]
        assert log_probs[row] == pytest.approx(one.log_prob, rel=1e-4)
    upper, lower = run_single(path, ["BÄFG", "fgÇ", "ｆá"]), run_single(path, ["bäfg", "fgç", "fa"])
    assert upper[:2] == lower[:2]
    file = onnx.load(path)
    facts = {each.key: each.value for each in file.metadata_props}
    assert (file.ir_version, facts["format"], facts["separator"], facts["languages"]) == (8, "1", " ", "a b")
    symbols = [*[""] * 4, *SYMBOLS.vocabulary.tokens[4:]]
    assert (json.loads(facts["symbols"]), facts["symbol_lines"].split("\n")) == (symbols, symbols)


def test_what_a_single_graph_cannot_express_is_refused():
    pieces = PieceTokenizer.train(["a b c d e f g"] * 9, 300, "NFC")
    for tokenizers, changes, words in (
        ((SYMBOLS, SYMBOLS), {}, "reads code points"),
        ((LETTERS, pieces), {}, "targets are pieces"),
        ((LETTERS, SYMBOLS), {"min_length": 2}, "without search.min_length; set it to 0"),
        ((LETTERS, SYMBOLS), {"no_repeat_ngram_size": 2}, "search.no_repeat_ngram_size"),
    ):
        with pytest.raises(UsageError, match=words) as caught:
            refuse_unsuited(tokenizers, CONFIG.model_copy(update=changes))
        assert "\n" not in str(caught.value)


@needs_node
def test_the_decoder_in_javascript_gives_the_same(exported: Callable[[str], tuple[Seq2Seq, Path]], tmp_path: Path):
    _, folder = exported(NAMES[0])
    single = tmp_path / "cmu.onnx"
    config = SearchConfig(max_length_offset=0, max_length_ratio=2, forbid_unknown=True)
    write_single(folder, (LETTERS, SYMBOLS), config, MOST, {}, single)
    page = (Path(__file__).parents[2] / "docs" / "engines.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```js\n(.*?)```", page, re.DOTALL)
    assert len(code.split("\n")) <= 26
    runtime = PACKAGE / "runtime"
    (tmp_path / "ort.wasm").write_bytes(gzip.decompress((runtime / "ort.wasm.gz").read_bytes()))
    code = code.replace('import * as ort from "onnxruntime-web";', FETCHED.format((runtime / "ort.js").as_uri()))
    words = ["äb", "fgf", "ç中😀", "b"]
    last = f"console.log(JSON.stringify(await pronounce({json.dumps(words)})));"
    (tmp_path / "run.mjs").write_text(f"{code}\n{last}\n", encoding="utf-8")
    done = subprocess.run(["node", "run.mjs"], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    tokens = ["", "", "", "", *SYMBOLS.vocabulary.tokens[4:]]
    assert json.loads(done.stdout) == [[tokens[index] for index in one] for one in run_single(single, words)]
    facts = json.loads(single.with_name("cmu.onnx.json").read_bytes())
    assert (facts["eos"], facts["letters"], facts["most_letters"]) == (3, [*LETTERS.vocabulary.tokens[4:]], MOST - 1)


def test_the_page_about_graphs_tells_the_truth(exported: Callable[[str], tuple[Seq2Seq, Path]], tmp_path: Path):
    import onnx

    _, folder = exported(NAMES[0])
    single = tmp_path / "cmu.onnx"
    config = SearchConfig(max_length_offset=0, max_length_ratio=2, forbid_unknown=True)
    write_single(folder, (LETTERS, SYMBOLS), config, MOST, {}, single)
    page = (Path(__file__).parents[2] / "docs" / "engines.md").read_text(encoding="utf-8")
    of_single, by_step = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert all(len(code.split("\n")) <= 26 for code in (of_single, by_step))
    names: dict[str, Any] = {}
    exec(of_single.replace("cmu.onnx", str(single)), names)  # the code of our own page
    words = ["äb", "fgf", "ç中😀", "b"]
    ids = run_single(single, words)
    assert names["pronounce"](words) == [[SYMBOLS.vocabulary.tokens[index] for index in one] for one in ids]
    write_single(folder, (LETTERS, SYMBOLS), SearchConfig(max_length_offset=0, max_length_ratio=2), MOST, {}, single)
    exec(by_step.replace("cmu.model/engines/onnx", str(folder)), names)
    outputs = [names["decode"]([*LETTERS.encode(word), EOS], 2 * len(word)) for word in words]
    assert outputs == run_single(single, words)
    for path in (single, *folder.glob("*.onnx")):
        file = onnx.load(path)
        facts = {each.key: each.value for each in file.metadata_props}
        assert (file.ir_version, facts["eos"], facts["graph"]) == (8, "3", "single" if path == single else path.stem)
    for path in (folder / "encode.onnx", folder / "step.onnx"):
        graph = onnx.load(path).graph
        names_of = {each.name for side in (graph.input, graph.output) for each in side}
        assert all(f"`{name}`" in page or re.match(r"(next\.)?(state|memory)\.", name) for name in names_of)
