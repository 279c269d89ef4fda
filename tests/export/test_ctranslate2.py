from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
import pytest
import torch

from heedful.cpu import contention
from heedful.cpu.contention import CpuContention
from heedful.engines.ctranslate2 import CTranslate2, ctranslate2_backend, token_names, why_not
from heedful.engines.engine import Backend, decode_sorted
from heedful.errors import UsageError
from heedful.export.ctranslate2 import export_ctranslate2
from heedful.models.attention_config import is_scaled_dot_softmax
from heedful.models.engine import torch_backend
from heedful.models.interface import Seq2Seq
from heedful.models.transformer import TransformerConfig
from heedful.search.config import SearchConfig
from heedful.text.vocabulary import BOS, EOS, PAD, UNK
from tests.export.engines import draw_sources
from tests.models.tiny import CONFIGS, changed, make_model

MOST = 20
TOLERANCE = 1e-5
MODELS = {
    **{
        name: config
        for name, config in CONFIGS.items()
        if isinstance(config, TransformerConfig)
        and all(map(is_scaled_dot_softmax, (config.attention, config.encoder_attention, config.decoder_attention)))
    },
    "transformer-shared": changed(CONFIGS["transformer-pre"], tie="all"),
    "transformer-untied": changed(
        CONFIGS["transformer-post"], tie="none", positions="learned", max_positions=MOST, output_bias=True
    ),
}
Make = Callable[[str], tuple[Seq2Seq, Backend]]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Make:
    @cache
    def make(name: str) -> tuple[Seq2Seq, Backend]:
        model = make_model(MODELS[name], is_shared=name.endswith("shared")).float()
        folder = tmp_path_factory.mktemp(name)
        export_ctranslate2(model, folder, MOST)
        return model, CTranslate2("ctranslate2", folder, MOST, threads=1)

    return make


@pytest.mark.parametrize("name", MODELS)
def test_given_outputs_get_the_models_probabilities(exported: Make, name: str):
    model, engine = exported(name)
    generator = np.random.default_rng(4)
    sources = draw_sources(9, MOST)
    outputs = [[*generator.integers(4, 9, num).tolist(), EOS] for num in (0, 3, 5, 1, MOST - 1, 7, 2, 9, 4)]
    one, other = (backend.score(sources, outputs) for backend in (torch_backend(model, MOST), engine))
    for wanted, got in zip(one, other, strict=True):
        assert np.abs(wanted.log_probs - got.log_probs).max() <= TOLERANCE
    cut = [ids[:-1] for ids in outputs]
    assert [len(found.log_probs) for found in engine.score(sources, cut)] == [len(ids) for ids in cut]


SEARCHES = {
    "greedy": SearchConfig(beam=1),
    "greedy gnmt": SearchConfig(beam=1, length_penalty="gnmt", alpha=0.7, length_reward=0.3, forbid_unknown=True),
    "short": SearchConfig(beam=1, max_length_ratio=0.5, max_length_offset=1),
}


@pytest.mark.parametrize("kind", SEARCHES)
@pytest.mark.parametrize("name", MODELS)
def test_what_it_supports_it_answers_as_the_model_does(exported: Make, name: str, kind: str):
    model, engine = exported(name)
    config = SEARCHES[kind]
    assert engine.supports(config, need_alignment=False) is None
    sources = draw_sources(40, 12, seed=7)
    one, other = (decode_sorted(backend, sources, config) for backend in (torch_backend(model, MOST), engine))
    assert any(len(ids) == 1 for ids in sources)
    for ids, wanted, got in zip(sources, one, other, strict=True):
        if len(ids) == 1:
            assert (got[0].token_ids, got[0].log_prob) == ((), 0.0)  # nothing to read
            continue
        assert (got[0].token_ids, got[0].finish_reason) == (wanted[0].token_ids, wanted[0].finish_reason)
        assert got[0].log_prob == pytest.approx(wanted[0].log_prob, abs=1e-4)
        assert got[0].score == pytest.approx(wanted[0].score, abs=1e-4)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, "stops a beam"),
        ({"alpha": 0.0, "nbest": 2}, "stops a beam"),
        ({"num_groups": 5, "diversity": 0.5}, "stops a beam"),
        ({"beam": 1, "beta": 0.1}, "search.beta"),
        ({"beam": 1, "no_repeat_ngram_size": 3}, "search.no_repeat_ngram_size"),
        ({"beam": 1, "repetition_penalty": 1.1}, "search.repetition_penalty"),
        ({"beam": 1, "min_length": 2}, "search.min_length"),
        ({"beam": 1, "method": "sampling"}, "samples"),
    ],
)
def test_what_it_would_answer_otherwise_it_refuses(exported: Make, changes: dict[str, object], reason: str):
    _, engine = exported("transformer-pre")
    config = SearchConfig.model_validate(changes)
    assert reason in (engine.supports(config, need_alignment=False) or "")
    with pytest.raises(UsageError, match="ctranslate2: "):
        decode_sorted(engine, draw_sources(2, 4), config)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
def test_where_it_is_named_it_searches_beams_its_own_way(alpha: float, tmp_path: Path):
    model = make_model("transformer-bias").float()
    with torch.no_grad():
        model.output.bias[EOS] += 3.0  # type: ignore[index]
        model.output.bias[[PAD, BOS]] -= 99.0  # type: ignore[index]
    export_ctranslate2(model, tmp_path, MOST)
    engine = ctranslate2_backend("ctranslate2", tmp_path, MOST, is_named=True)
    config = SearchConfig(beam=4, nbest=3, alpha=alpha)
    assert engine.supports(config, need_alignment=False) is None
    sources = [ids for ids in draw_sources(30, 12, seed=7) if len(ids) > 1]
    found = decode_sorted(engine, [*sources, np.array([EOS])], config)
    assert [one.token_ids for one in found.pop()] == [()]
    names = [[token_names(60)[token] for token in ids] for ids in sources]
    theirs = ctranslate2.Translator(str(tmp_path), device="cpu").translate_batch(
        names,
        beam_size=4,
        num_hypotheses=3,
        length_penalty=alpha,
        min_decoding_length=0,
        max_decoding_length=MOST,
        return_scores=True,
    )
    num_ended = 0
    for ids, outputs, wanted in zip(sources, found, theirs, strict=True):
        assert len(outputs) == 3
        assert [one.score for one in outputs] == sorted((one.score for one in outputs), reverse=True)
        assert [one.score for one in outputs] == pytest.approx(wanted.scores, abs=1e-4)
        for one in outputs:
            num_ended += one.finish_reason == "eos"
            read = engine.score([ids], [[*one.token_ids, *[EOS] * (one.finish_reason == "eos")]])[0].log_probs
            assert one.log_prob == pytest.approx(read.sum(), abs=1e-4)
            assert one.score == pytest.approx(read.sum() / len(read) ** alpha, abs=1e-4)
    assert 20 < num_ended < 3 * len(sources)


@pytest.mark.parametrize(
    "changes",
    [
        {"num_groups": 5, "diversity": 0.5},
        {"stopping": "certain"},
        {"stopping": "full"},
        {"length_penalty": "gnmt"},
        {"length_reward": 0.5},
        {"beta": 0.1},
    ],
)
def test_what_it_has_not_is_refused_where_it_is_named_too(changes: dict[str, object]):
    reason = why_not(SearchConfig.model_validate(changes), need_alignment=False, is_named=True) or ""
    assert f"search.{next(iter(changes))}" in reason


def test_alignments_are_refused(exported: Make):
    _, engine = exported("transformer-pre")
    assert "alignments" in (engine.supports(SearchConfig(beam=1), need_alignment=True) or "")


@pytest.mark.parametrize("mark", [PAD, BOS, UNK])
def test_what_may_not_be_said_is_not(mark: int, tmp_path: Path):
    model = make_model("transformer-bias").float()
    with torch.no_grad():
        model.output.bias[mark] += 3.0  # type: ignore[index]
    export_ctranslate2(model, tmp_path, MOST)
    config = SearchConfig(beam=1, forbid_unknown=mark == UNK)
    sources = [ids for ids in draw_sources(30, 12, seed=7) if len(ids) > 1]
    backends = torch_backend(model, MOST), CTranslate2("ctranslate2", tmp_path, MOST)
    one, other = (decode_sorted(backend, sources, config) for backend in backends)
    for (wanted,), (got,) in zip(one, other, strict=True):
        assert mark not in got.token_ids
        assert got.token_ids == wanted.token_ids
        assert got.log_prob == pytest.approx(wanted.log_prob, abs=1e-4)


def test_nothing_to_decode(exported: Make):
    assert exported("transformer-pre")[1].decode([], SearchConfig(beam=1)) == []


def test_eight_bits_are_nearly_the_same_and_smaller(tmp_path: Path):
    config = changed(CONFIGS["transformer-pre"], model_size=64, feedforward_size=256)
    model = make_model(config).float()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter *= 0.2
    sizes: list[int] = []
    found: list[np.ndarray] = []
    sources, outputs = draw_sources(5, 9), [[4, 5, 6, 7, EOS]] * 5
    for is_int8 in (False, True):
        folder = tmp_path / str(is_int8)
        folder.mkdir()
        export_ctranslate2(model, folder, MOST, is_int8)
        sizes.append((folder / "model.bin").stat().st_size)
        found.append(
            np.concatenate([each.log_probs for each in CTranslate2("c", folder, MOST).score(sources, outputs)])
        )
    assert sizes[1] < 0.4 * sizes[0]
    assert 1e-6 < np.abs(found[0] - found[1]).max() < 0.2


def test_other_attention_is_refused(tmp_path: Path):
    for name in ("transformer-additive", "transformer-local"):
        with pytest.raises(UsageError, match=r"scaled dot products and softmax only, .* export --to onnx"):
            export_ctranslate2(make_model(name), tmp_path, MOST)


def test_other_models_are_refused(tmp_path: Path):
    with pytest.raises(UsageError, match="not RNNsearch; export --to onnx"):
        export_ctranslate2(make_model("rnnsearch"), tmp_path, MOST)


def test_in_company_it_takes_one_thread_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    used: list[int] = []

    class Counted:
        def __init__(self, *arguments: Any, intra_threads: int, **options: Any) -> None:
            self._threads = intra_threads
            self._translator = translator(*arguments, intra_threads=intra_threads, **options)

        def translate_batch(self, *arguments: Any, **options: Any) -> Any:
            used.append(self._threads)
            return self._translator.translate_batch(*arguments, **options)

        def score_batch(self, *arguments: Any, **options: Any) -> Any:
            return self._translator.score_batch(*arguments, **options)

    translator = ctranslate2.Translator
    export_ctranslate2(make_model("transformer-bias").float(), tmp_path, MOST)
    monkeypatch.setattr(ctranslate2, "Translator", Counted)
    watch, chosen = CpuContention(2, may_use_fewer=True), CpuContention(2, may_use_fewer=False)
    engine = CTranslate2("ctranslate2", tmp_path, MOST, threads=2)
    threads: list[set[int]] = []
    outputs: list[list[tuple[int, ...]]] = []
    for current, is_met in (
        (watch, False),
        (watch, True),
        (watch, True),
        (watch, False),
        (chosen, True),
        (None, False),
    ):
        watch.is_met = chosen.is_met = is_met
        monkeypatch.setattr(contention, "_current", current)
        found = engine.decode(draw_sources(4, 6), SearchConfig(beam=1))
        outputs.append([hypotheses[0].token_ids for hypotheses in found])
        threads.append({*used})
        used.clear()
    assert threads == [{2}, {1}, {1}, {2}, {2}, {2}]
    assert all(each == outputs[0] for each in outputs)
