"""Vocabulary shortlists of CTranslate2 engines."""

from pathlib import Path

import numpy as np
import pytest
import torch

from heedful.data.encoded import write_encoded
from heedful.errors import UsageError
from heedful.export.ctranslate2 import export_ctranslate2
from heedful.export.shortlist import learn_shortlist
from heedful.models.engine import torch_backend
from heedful.runtime.ctranslate2 import SHORTLIST, ctranslate2_backend
from heedful.runtime.engine import decode_sorted
from heedful.runtime.shortlist_file import write_shortlist
from heedful.search.config import SearchConfig
from heedful.text.shortlist import Shortlist
from heedful.text.vocabulary import BOS, EOS, PAD, UNK
from tests.export.engines import draw_sources
from tests.models.tiny import make_model

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
