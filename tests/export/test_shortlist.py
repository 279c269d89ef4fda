"""Vocabulary shortlists of exported engines."""

from collections.abc import Callable
from copy import deepcopy
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

from heedful.data.encoded import write_encoded
from heedful.engines.ctranslate2 import SHORTLIST, ctranslate2_backend
from heedful.engines.engine import Stepwise, decode_sorted
from heedful.engines.exact import Exact
from heedful.engines.onnx import onnx_backend
from heedful.engines.shortlist_file import read_shortlist, write_shortlist
from heedful.errors import FileRefused, UsageError
from heedful.export.ctranslate2 import export_ctranslate2
from heedful.export.onnx import export_graphs
from heedful.export.shortlist import learn_shortlist
from heedful.models.engine import torch_backend
from heedful.models.interface import Seq2Seq
from heedful.search.config import SearchConfig
from heedful.search.constraints import Constraints, holds
from heedful.search.inputs import token_draw
from heedful.text.shortlist import Shortlist
from heedful.text.vocabulary import BOS, EOS, PAD, UNK
from tests.export.engines import SEARCHES, assert_same, draw_sources
from tests.models.tiny import CONFIGS, NUM_SOURCE_TOKENS, NUM_TARGET_TOKENS, changed, make_model
from tests.thorough import thinned, thorough

MOST = 12
SPECIAL = {PAD, UNK, BOS, EOS}
SOURCES = [ids for ids in draw_sources(12, 6, seed=3) if len(ids) > 1]


@pytest.mark.parametrize("beam", [1, 3])
def test_outputs_are_those_of_a_model_without_the_other_tokens(beam: int, tmp_path: Path):
    model = make_model("transformer-bias").float()
    with torch.no_grad():
        model.output.bias[EOS] += 3.0  # type: ignore[index]
        model.output.bias[[PAD, BOS]] -= 99.0  # type: ignore[index]
    config = SearchConfig(beam=beam, shortlist=True)
    export_ctranslate2(model, tmp_path, MOST)
    whole = decode_sorted(ctranslate2_backend("ctranslate2", tmp_path, MOST, is_named=True), SOURCES, config)
    num_tokens = len(model.output.weight)  # type: ignore[arg-type]
    shortlist = Shortlist([4], {int(token): [5] for token in np.unique(np.concatenate(SOURCES))})
    write_shortlist(shortlist, tmp_path)
    kept = {4, 5, *SPECIAL}
    backend = ctranslate2_backend("ctranslate2", tmp_path, MOST, is_named=True)
    assert backend.has_shortlist
    short = decode_sorted(backend, SOURCES, config)
    assert whole == decode_sorted(backend, SOURCES, SearchConfig(beam=beam))
    with torch.no_grad():
        model.output.bias[[token for token in range(num_tokens) if token not in kept]] -= 99.0  # type: ignore[index]
    export_ctranslate2(model, tmp_path, MOST)
    expected = decode_sorted(
        ctranslate2_backend("ctranslate2", tmp_path, MOST, is_named=True), SOURCES, SearchConfig(beam=beam)
    )
    assert any(one[0].token_ids != other[0].token_ids for one, other in zip(short, whole, strict=True))
    for one, other in zip(short, expected, strict=True):
        assert one[0].token_ids == other[0].token_ids
        assert one[0].log_prob == pytest.approx(other[0].log_prob, abs=1e-4)
    if beam == 1:
        exact = decode_sorted(torch_backend(model, MOST), SOURCES, config)
        assert [one[0].token_ids for one in short] == [one[0].token_ids for one in exact]


def listed_backend(model: Seq2Seq, shortlist: Shortlist, folder: Path) -> Stepwise:
    write_shortlist(shortlist, folder)
    export_graphs(model, folder, MOST, has_list=True)
    return onnx_backend("onnx", folder, MOST)


def without_others(model: Seq2Seq, tokens: set[int]) -> Seq2Seq:
    """A copy of a model in which every other token is impossible."""
    limited = deepcopy(model)
    others = [token for token in range(NUM_TARGET_TOKENS) if token not in tokens]
    is_other = torch.zeros(NUM_TARGET_TOKENS, dtype=torch.bool).index_fill(0, torch.tensor(others), True)
    limited.output.register_forward_hook(lambda module, given, logits: logits.masked_fill(is_other, -torch.inf))
    return limited


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Seq2Seq, Stepwise]]:
    """Function from the name of a model to it and its engine, exported once, which takes seconds."""

    @cache
    def export(name: str) -> tuple[Seq2Seq, Stepwise]:
        model = make_model(name).float()
        translations = {int(token): [5] for token in np.unique(np.concatenate(SOURCES))}
        return model, listed_backend(model, Shortlist([4], translations), tmp_path_factory.mktemp(name))

    return export


@pytest.mark.parametrize("config", [*SEARCHES.values()], ids=[*SEARCHES])
@pytest.mark.parametrize("name", thinned(["transformer-bias", "rnnsearch", "luong", "transformer-pre"], 4))
def test_onnx_runtime_finds_what_a_model_without_the_other_tokens_finds(
    name: str, config: SearchConfig, exported: Callable[[str], tuple[Seq2Seq, Stepwise]]
):
    model, backend = exported(name)
    assert backend.has_shortlist
    listed = decode_sorted(backend, SOURCES, config.model_copy(update={"shortlist": True}))
    expected = decode_sorted(torch_backend(without_others(model, {4, 5, UNK, EOS}), MOST), SOURCES, config)
    whole = decode_sorted(backend, SOURCES, config)
    assert_same(listed, expected)
    assert_same(whole, decode_sorted(torch_backend(model, MOST), SOURCES, config))
    assert any(one[0].log_prob != other[0].log_prob for one, other in zip(listed, whole, strict=True))


@pytest.mark.parametrize("config", [*SEARCHES.values()], ids=[*SEARCHES])
@pytest.mark.parametrize("name", thinned(["rnnsearch", "transformer-bias", "transformer-pre", "luong"], 4))
def test_pytorch_finds_what_a_model_without_the_other_tokens_finds(name: str, config: SearchConfig):
    model = make_model(name).float()
    shortlist = Shortlist([4], {int(token): [5] for token in np.unique(np.concatenate(SOURCES))})
    backend = torch_backend(model, MOST, lambda: shortlist)
    assert backend.has_shortlist
    listed = decode_sorted(backend, SOURCES, config.model_copy(update={"shortlist": True}))
    assert_same(listed, decode_sorted(torch_backend(without_others(model, {4, 5, UNK, EOS}), MOST), SOURCES, config))
    whole = decode_sorted(backend, SOURCES, config)
    assert_same(whole, decode_sorted(torch_backend(model, MOST), SOURCES, config))
    assert any(one[0].log_prob != other[0].log_prob for one, other in zip(listed, whole, strict=True))


def test_constraints_use_the_whole_vocabulary(exported: Callable[[str], tuple[Seq2Seq, Stepwise]]):
    _, backend = exported("transformer-bias")
    config = SearchConfig(beam=3, shortlist=True)
    constraints = [Constraints(required=((7, 8),))] * len(SOURCES)
    for outputs in backend.decode(SOURCES, config, constraints=constraints):
        assert holds(outputs[0].token_ids, (7, 8))


@thorough
def test_exact_results_use_the_whole_vocabulary(exported: Callable[[str], tuple[Seq2Seq, Stepwise]]):
    _, backend = exported("rnnsearch")
    exact = Exact(backend, token_draw(NUM_SOURCE_TOKENS))
    config = SearchConfig(beam=2)
    assert not exact.has_shortlist
    assert exact.decode(SOURCES, config.model_copy(update={"shortlist": True})) == exact.decode(SOURCES, config)


@thorough
def test_eight_bits_have_a_list_too(tmp_path: Path):
    model = make_model("transformer-bias").float()
    write_shortlist(Shortlist([4, 5], {}), tmp_path)
    export_graphs(model, tmp_path, MOST, is_int8=True, has_list=True)
    outputs = decode_sorted(onnx_backend("onnx-int8", tmp_path, MOST), SOURCES, SearchConfig(beam=2, shortlist=True))
    assert {token for one in outputs for token in one[0].token_ids} <= {4, 5, UNK, EOS}


def test_a_model_that_copies_has_no_list(tmp_path: Path):
    model = make_model(changed(CONFIGS["rnnsearch"], has_copy=True), is_shared=True).float()
    with pytest.raises(UsageError, match="onnx: a model that copies needs the whole vocabulary"):
        export_graphs(model, tmp_path, MOST, has_list=True)
    assert not torch_backend(model, MOST, lambda: Shortlist([4], {})).has_shortlist


def test_it_is_read_as_it_was_written(tmp_path: Path):
    shortlist = Shortlist([7, UNK], {6: [9], 5: [8, EOS]})
    write_shortlist(shortlist, tmp_path)
    read = read_shortlist(tmp_path)
    assert (read.common, read.translations) == (shortlist.common, shortlist.translations)


@pytest.mark.parametrize("damaged", [b"\t7 x4\n", b"\xff\t4\n", None])
def test_a_damaged_file_is_refused(damaged: bytes | None, tmp_path: Path):
    if damaged is not None:
        (tmp_path / SHORTLIST).write_bytes(damaged)
    with pytest.raises(FileRefused, match="export the model again"):
        read_shortlist(tmp_path)


def test_it_is_written_in_the_order_of_the_source_tokens(tmp_path: Path):
    write_shortlist(Shortlist([7, 4], {6: [9], 5: [8, UNK], 3: []}), tmp_path)
    assert (tmp_path / SHORTLIST).read_text() == "\t7 4\n5\t8 <unk>\n6\t9\n"


def test_it_is_learned_from_the_training_pairs(tmp_path: Path):
    data = tmp_path / "run" / "data"
    data.mkdir(parents=True)
    with pytest.raises(UsageError, match="no training pairs in run/data"):
        learn_shortlist(tmp_path)
    write_encoded(data, iter([([4, 5], [14, 15]), ([4, 6], [14, 16])]), 20)
    assert learn_shortlist(tmp_path).candidates([5]).tolist() == [14, 15, 16]
