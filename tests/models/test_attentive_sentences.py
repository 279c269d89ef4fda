"""Hierarchical attention of recurrent decoders: words weighted together with their sentences."""

from pathlib import Path

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from heedful.models.attention_config import AttentionConfig, require_suitable
from heedful.models.inputs import TokenInputs
from heedful.models.rnnsearch import RNNsearchMemory
from heedful.models.transformer import TransformerConfig
from heedful.predictors.table import load
from heedful.predictors.translator import Translator
from heedful.runs.finish import export_engines
from tests.models.by_hand import Parameters, Vector, gru, softmax
from tests.models.tiny import make_model, make_targets, run_steps
from tests.tasks.test_classification import Run
from tests.thorough import thorough

EOS = 3
SOURCES = torch.tensor([[5, 6, 7, EOS, 9, EOS, 4, 4, EOS], [8, EOS, 5, EOS, 0, 0, 0, 0, 0]])
LENGTHS = torch.tensor([9, 4])


def sentences_of(ids: list[int]) -> list[list[int]]:
    """Positions of the words of each sentence."""
    parts: list[list[int]] = [[]]
    for position, token in enumerate(ids):
        parts[-1].append(position)
        if token == EOS:
            parts.append([])
    return [part for part in parts if part]


def weights_by_hand(p: Parameters, query: Vector, h: list[Vector], ids: list[int], is_product: bool = True) -> Vector:
    """Nallapati et al. 2016, section 2.4: P(j) = P_w(j) P_s(s(j)) / sum_k P_w(k) P_s(s(k))."""
    parts = sentences_of(ids)
    means = [np.mean([h[position] for position in part], axis=0) for part in parts]
    size = p["sentences.encoder.forward_unit.candidate_map"].shape[0]
    onward: list[Vector] = []
    back: list[Vector] = []
    state = np.zeros(size)
    for mean in means:
        state = gru(p, "sentences.encoder.forward_unit", mean, state)
        onward.append(state)
    state = np.zeros(size)
    for mean in reversed(means):
        state = gru(p, "sentences.encoder.backward_unit", mean, state)
        back.insert(0, state)
    z = [np.concatenate([onward[i], back[i], p["sentences.positions"][i]]) for i in range(len(parts))]

    def energies(name: str, keys: list[Vector]) -> list[float]:
        of_query = p[f"score.{name}.query_projection.weight"] @ query
        return [
            float(p[f"score.{name}.vector"] @ np.tanh(of_query + p[f"score.{name}.key_projection.weight"] @ key))
            for key in keys
        ]

    of_words, of_sentences = softmax(energies("first", h)), softmax(energies("second", z))
    owner = {position: index for index, part in enumerate(parts) for position in part}
    products = np.array([of_words[j] * (of_sentences[owner[j]] if is_product else 1.0) for j in range(len(h))])
    return products / products.sum()


def check(is_product: bool = True) -> None:
    model = make_model("rnnsearch-sentences")
    memory = model.encode(TokenInputs(SOURCES, LENGTHS))
    assert isinstance(memory, RNNsearchMemory)
    state = model.start(memory)
    decoded, _ = model.step(torch.tensor([[2], [2]]), state, memory, ("weights",))
    weights = decoded.attended["cross"].weights
    assert weights is not None
    p = {name: parameter.detach().numpy() for name, parameter in model.named_parameters()}
    for row, length in enumerate(LENGTHS.tolist()):
        query = state.hidden[row, 0].detach().numpy()
        h = [*memory.annotations[row, :length].detach().numpy()]
        wanted = weights_by_hand(p, query, h, SOURCES[row, :length].tolist(), is_product)
        np.testing.assert_allclose(weights[row, 0, :length].detach().numpy(), wanted, rtol=0, atol=1e-10)


def test_weights_are_the_rescaled_products_of_the_paper():
    check()


def test_weights_of_words_alone_fail_the_test_above():
    with pytest.raises(AssertionError):
        check(is_product=False)


@pytest.mark.parametrize("name", ["luong-sentences", "rnnsearch-sentences"])
def test_steps_equal_the_whole_and_every_parameter_learns(name: str):
    model = make_model(name)
    targets = make_targets(2)
    whole = model(TokenInputs(SOURCES, LENGTHS), targets).features
    torch.testing.assert_close(run_steps(model, SOURCES, LENGTHS, targets), whole, rtol=0, atol=1e-10)
    alone = model(TokenInputs(SOURCES[1:, :4], LENGTHS[1:]), targets[1:]).features
    torch.testing.assert_close(whole[1:], alone, rtol=0, atol=1e-10)
    whole.square().sum().backward()
    for part, parameter in model.named_parameters():
        if part.startswith(("sentences", "score")):
            assert parameter.grad is not None, part
            assert parameter.grad.any(), part


@thorough
def test_a_summary_model_trains_resumes_and_runs_without_pytorch_alike(tmp_path: Path):
    words = "red blue green pink black".split()
    rows = [f"{a} {b} one. Two {c} {d}.\t{a} {c}" for a in words for b in words for c in words[:3] for d in words[:2]]
    (tmp_path / "data.tsv").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    settings = (
        "model.kind=rnnsearch", "model.attention.has_sentences=true", "model.attention.hidden_size=8",
        "model.embedding_size=8", "model.hidden_size=8", "model.maxout_size=4", "text.source_units=words",
        "text.target_units=words", "training.precision=float32", "training.validate_every=10",
        "training.batch_tokens=256", "training.optimizer.schedule.warmup_steps=20", "search.beam=1",
    )  # fmt: skip

    def make(out: str, number: int) -> Run:
        more = (f"training.max_steps={number}", "training.export=true")
        return Run(tmp_path / "data.tsv", tmp_path / out, *more, task="translation", common=settings)

    whole, parts = make("whole", 20), make("parts", 10)
    whole.train()
    assert whole.started[0].experiment.text.split_sentences
    parts.train()
    longer = make("parts", 20)
    longer.train()
    assert longer.started[0].step == 10
    assert longer.weights == whole.weights
    lines: list[str] = []
    export_engines(whole.started[0], lines.append)
    sources = ["red blue one. Two green red.", "red", "", "Red one. Two. Three. Four pink."]
    onnx, model = (load(tmp_path / "whole", engine=engine, kind=Translator) for engine in ("onnx", "torch"))
    for one, other in zip(onnx.translate(sources), model.translate(sources), strict=True):
        assert one.text == other.text
        assert one.log_prob == pytest.approx(other.log_prob, abs=1e-4)


def test_attentions_that_cannot_have_sentences_are_refused():
    with pytest.raises(ValidationError, match="attended to by recurrent decoders"):
        TransformerConfig.model_validate({"attention": {"has_sentences": True}})
    with pytest.raises(ValueError, match="are added in general, additive, concat"):
        require_suitable(AttentionConfig(score="dot", has_sentences=True), 4, 4)
