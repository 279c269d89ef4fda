"""The engine through the search: what is found and how it is scored, against forced decoding."""

import numpy as np
import pytest
import torch

from heedful.models.engine import TorchEngine, torch_backend
from heedful.models.inputs import TokenInputs
from heedful.models.interface import Seq2Seq
from heedful.models.step_scores import TorchStepScores
from heedful.search.beam import search
from heedful.search.config import SearchConfig
from heedful.search.inputs import TokenArrays
from heedful.search.interface import Adjust, Hypothesis
from heedful.text.vocabulary import BOS, EOS, PAD
from tests.models.tiny import CONFIGS, make_model, make_sources
from tests.thorough import sampled, thinned

LENGTHS = (5, 2, 7, 1, 3, 6)


def make_lively(name: str) -> Seq2Seq:
    """A model whose outputs are neither all empty nor all endless."""
    model = make_model(name, seed=2)
    with torch.no_grad():
        model.output.weight *= 3.0
    return model


def ids_of(lengths: tuple[int, ...] = LENGTHS) -> list[np.ndarray]:
    source, _ = make_sources(lengths)
    return [row[:length].numpy() for row, length in zip(source, lengths, strict=True)]


def find(model: Seq2Seq, sources: list[np.ndarray], **settings: object) -> list[list[Hypothesis]]:
    config = SearchConfig(**({"max_length_ratio": 1.0, "max_length_offset": 6} | settings))  # type: ignore[arg-type]
    return search(TorchEngine(model), sources, config, max_length=30)


def forced_log_probs(model: Seq2Seq, source: np.ndarray, outputs: list[int]) -> list[float]:
    """Teacher forcing: the log probability of each token of an output."""
    target_in = torch.tensor([[BOS, *outputs[:-1]]])
    with torch.no_grad():
        features = model(TokenInputs(torch.from_numpy(source)[None], torch.tensor([len(source)])), target_in).features
        log_probs = torch.log_softmax(model.logits(features)[0], dim=-1)
    return [float(row[token]) for row, token in zip(log_probs, outputs, strict=True)]


def whole_output(hypothesis: Hypothesis) -> list[int]:
    return [*hypothesis.token_ids, *([EOS] if hypothesis.finish_reason == "eos" else [])]


@sampled(2)
@pytest.mark.parametrize("name", thinned(CONFIGS, 4))
def test_a_beam_of_one_is_greedy(name: str):
    model = make_lively(name)
    for source, (found,) in zip(ids_of(), find(model, ids_of(), beam=1), strict=True):
        outputs: list[int] = []
        while len(outputs) < len(source) - 1 + 6 and EOS not in outputs:
            target_in = torch.tensor([[BOS, *outputs]])
            with torch.no_grad():
                features = model(
                    TokenInputs(torch.from_numpy(source)[None], torch.tensor([len(source)])), target_in
                ).features
                logits = model.logits(features)[0, -1]
            logits[[PAD, BOS]] = -torch.inf
            outputs.append(int(logits.argmax()))
        assert whole_output(found) == outputs


@sampled(2)
@pytest.mark.parametrize("name", thinned(CONFIGS, 3))
def test_scores_are_those_of_forced_decoding(name: str):
    model = make_lively(name)
    found = find(model, ids_of(), beam=4, nbest=4)
    assert len({len(one.token_ids) for hypotheses in found for one in hypotheses}) > 2
    for source, hypotheses in zip(ids_of(), found, strict=True):
        for one in hypotheses:
            wanted = forced_log_probs(model, source, whole_output(one))
            assert one.token_log_probs == pytest.approx(wanted, abs=1e-11)
            assert one.log_prob == pytest.approx(sum(wanted), abs=1e-10)


@pytest.mark.parametrize("name", thinned(CONFIGS, 4))
def test_batches_and_their_order_change_nothing(name: str):
    model = make_lively(name)
    sources = ids_of()
    together = find(model, sources, beam=3, nbest=3)
    order = [4, 0, 5, 2, 1, 3]
    reordered = find(model, [sources[i] for i in order], beam=3, nbest=3)
    alone = [find(model, [source], beam=3, nbest=3)[0] for source in sources]
    for place, source in enumerate(order):
        for other in (reordered[place], alone[source]):
            assert [one.token_ids for one in other] == [one.token_ids for one in together[source]]
            assert [one.log_prob for one in other] == pytest.approx(
                [one.log_prob for one in together[source]], abs=1e-11
            )


@pytest.mark.parametrize("name", ["transformer-pre", "transformer-bias", "rnnsearch"])
def test_alignment_rows_are_distributions_over_the_source(name: str):
    model = make_lively(name)
    sources = ids_of()
    config = SearchConfig(beam=3, max_length_ratio=1.0, max_length_offset=6)
    found = search(TorchEngine(model, with_weights=True), sources, config, max_length=30, need_alignment=True)
    for source, (best,) in zip(sources, found, strict=True):
        assert best.weights is not None
        assert best.weights.shape == (len(best.token_log_probs), len(source))
        assert best.weights.sum(axis=1).tolist() == pytest.approx([1.0] * len(best.weights), abs=1e-6)
        with torch.no_grad():
            target_in = torch.tensor([[BOS, *whole_output(best)[:-1]]])
            decoded = model(
                TokenInputs(torch.from_numpy(source)[None], torch.tensor([len(source)])), target_in, need=("weights",)
            )
        weights = decoded.attended[model.alignment].weights
        assert weights is not None
        wanted = weights[0].mean(dim=0) if weights.dim() == 4 else weights[0]
        assert np.abs(best.weights - wanted.numpy()).max() <= 1e-6


def test_weights_that_were_not_asked_for_are_missed_loudly():
    engine = TorchEngine(make_model("rnnsearch"))
    state = engine.start(TokenArrays([np.array([EOS])]), 1)
    scores, _ = engine.step(state, np.array([[BOS]]), None, None)
    with pytest.raises(ValueError, match="with_weights=True"):
        _ = scores.weights
    with pytest.raises(TypeError, match="got a state of type"):
        engine.step(object(), np.array([[BOS]]), None, None)


def test_top_is_sorted_and_stops_at_the_vocabulary():
    log_probs = torch.log_softmax(torch.randn(2, 3, 7, dtype=torch.float64), dim=-1)
    scores = TorchStepScores(log_probs, None)
    for k in (1, 3, 7, 100):
        values, ids = scores.top(k)
        assert values.dtype == np.float64
        assert ids.dtype == np.int64
        wanted = -np.sort(-log_probs.numpy(), axis=-1)[..., : min(k, 7)]
        assert np.array_equal(values, wanted)
        assert np.array_equal(np.take_along_axis(log_probs.numpy(), ids, axis=-1), wanted)


@pytest.mark.parametrize("k", [1, 2, 3, 9])
@pytest.mark.parametrize("banned", [[], [0], [0, 5], [5, 5, 0, 1], [0, 1, 2, 3, 4, 5]])
@pytest.mark.parametrize("has_change", [False, True])
def test_best_that_are_found_already_are_those_that_would_be(k: int, banned: list[int], has_change: bool):
    log_probs = torch.log_softmax(torch.randn(2, 3, 7, dtype=torch.float64), dim=-1)
    values, ids = log_probs.topk(4, dim=-1)
    place = np.array([1] if has_change else [], dtype=np.int64)
    adjust = Adjust(np.array(banned, dtype=np.int64), place, place, place, 9.0 * place)
    plain, ready = TorchStepScores(log_probs, None), TorchStepScores(log_probs, None, (values, ids))
    for one, other in zip(plain.top(k, adjust), ready.top(k, adjust), strict=True):
        if k + len(set(banned)) <= 7:
            assert np.array_equal(one, other)
        else:
            # Of those that are banned any may come, each with no probability.
            assert one.shape == other.shape
    assert np.array_equal(plain.top(k)[1], ready.top(k)[1])


@pytest.mark.parametrize("k", [1, 4])
def test_a_change_is_made_for_one_question_only(k: int):
    log_probs = torch.log_softmax(torch.randn(2, 3, 7, dtype=torch.float64), dim=-1)
    before = log_probs.numpy().copy()
    # One token banned outright is changed as well; one place is named twice and gets both.
    adjust = Adjust(
        banned=np.array([0, 5]),
        sources=np.array([0, 1, 1, 0]),
        hypotheses=np.array([1, 2, 2, 0]),
        ids=np.array([5, 3, 3, 2]),
        values=np.array([9.0, 1.0, 2.0, -np.inf]),
    )
    scores = TorchStepScores(log_probs, None)
    values, ids = scores.top(k, adjust)
    changed = before.copy()
    changed[0, 1, 5] += 9.0
    changed[1, 2, 3] += 3.0
    changed[0, 0, 2] = -np.inf
    changed[..., [0, 5]] = -np.inf
    assert np.abs(values - -np.sort(-changed, axis=-1)[..., :k]).max() <= 1e-15
    assert np.array_equal(np.take_along_axis(changed, ids, axis=-1), values)
    assert np.array_equal(scores.full(), before)


def test_scores_are_in_float32_at_least():
    model = make_model("rnnsearch").bfloat16()
    engine = TorchEngine(model)
    scores, _ = engine.step(engine.start(TokenArrays([np.array([4, EOS])]), 1), np.array([[BOS]]), None, None)
    assert float(np.exp(scores.full()).sum()) == pytest.approx(1.0, abs=1e-6)


def test_a_backend_bounds_the_output():
    model = make_model("rnnsearch")
    with torch.no_grad():
        model.output.bias[EOS] = -1e9  # type: ignore[index]
    config = SearchConfig(beam=1, max_length_offset=50)
    ((found,),) = torch_backend(model, max_length=7).decode([np.array([4, EOS])], config)
    assert (len(found.token_ids), found.finish_reason) == (7, "length")
