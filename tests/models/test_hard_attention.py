"""Exact hard attention by hand: sums over all alignments, position by position."""

from itertools import product
from math import inf

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from heedful.attention.alignment_sums import sum_alignments
from heedful.data.batching import pad, teacher_forced
from heedful.engines.engine import together
from heedful.models.engine import torch_backend
from heedful.models.hard_attention import HardAttention, HardAttentionConfig
from heedful.models.inputs import TokenInputs
from heedful.search.config import SearchConfig
from heedful.text.vocabulary import BOS, EOS, UNK
from heedful.training.pair_step import PairStep
from tests.models.tiny import NUM_TARGET_TOKENS, make_model, make_sources
from tests.thorough import is_thorough

KINDS = ("hard-monotonic", "hard-any", "hard-monotonic-independent", "hard-any-independent")


def hard(name: str, seed: int = 0) -> HardAttention:
    model = make_model(name, seed)
    assert isinstance(model, HardAttention)
    return model


def by_hand(model: HardAttention, source: Tensor, target: list[int]) -> Tensor:
    """log p(target | source) by the list of all alignments; encoder, decoder and score are the model's own."""
    config = model.config
    memory = model.encode(TokenInputs(source[None], torch.tensor([len(source)])))
    states, _ = model.decoder.run(model.target_embedding(torch.tensor([[BOS, *target[:-1]]])))
    lowered = model.score.lower(states, memory.prepared)
    query, key = lowered.query[0], lowered.key[0]
    if config.attention.score == "additive":
        scores = [[model.score.vector @ torch.tanh(q + k) for k in key] for q in query]
    else:
        scores = [[q @ k for k in key] for q in query]
    num_positions = len(source)
    emissions: dict[tuple[int, int], Tensor] = {}
    transitions: dict[tuple[int, int, int], Tensor] = {}
    for i, token in enumerate(target):
        state = states[0, i]
        for j in range(num_positions):
            inner = torch.tanh(model.state_readout(state) + model.source_readout(memory.annotations[0, j]))
            emissions[i, j] = torch.log_softmax(model.output(inner), dim=-1)[token]
        for before in range(num_positions):
            allowed = [j for j in range(num_positions) if j >= before or not config.is_monotonic]
            total = []
            for j in allowed:
                score = scores[i][j]
                if config.order:
                    most = config.max_shift
                    shift = max(-most, min(most, j - before)) + (0 if config.is_monotonic else most)
                    addend = model.state_shifts(state) + model.source_shifts(memory.annotations[0, before])
                    score = score + addend[shift]
                total.append(score)
            shares = torch.log_softmax(torch.stack(total), dim=0)
            for j, share in zip(allowed, shares, strict=True):
                transitions[i, before, j] = share
    sums = []
    for path in product(range(num_positions), repeat=len(target)):
        steps = list(zip(range(len(target)), (0, *path[:-1]), path, strict=True))
        if all(step in transitions for step in steps):
            sums.append(sum(transitions[step] + emissions[step[0], step[2]] for step in steps))
    return torch.logsumexp(torch.stack(sums), dim=0)


def is_exact(model: HardAttention) -> None:
    """The loss of training, and its gradients, are those of the list of all alignments."""
    source, lengths = make_sources((4, 2, 3))
    targets = [[5, 4, 7, EOS], [6, EOS], [4, 4, EOS]]
    target_out = torch.zeros(3, 4, dtype=torch.int64)
    target_in = torch.zeros_like(target_out)
    for row, target in enumerate(targets):
        target_out[row, : len(target)] = torch.tensor(target)
        target_in[row, : len(target)] = torch.tensor([BOS, *target[:-1]])
    sums = PairStep(model, label_smoothing=0.0)(source, lengths, target_in, target_out)
    wanted = torch.stack(
        [by_hand(model, source[row, : lengths[row]], target) for row, target in enumerate(targets)]
    ).sum()
    assert abs(float((sums.total + wanted).detach())) <= 1e-10
    assert abs(float(sums.log_likelihood - wanted.detach())) <= 1e-10
    parameters = list(model.parameters())
    slopes = torch.autograd.grad(sums.total, parameters, allow_unused=True, materialize_grads=True)
    for one, other in zip(
        slopes, torch.autograd.grad(-wanted, parameters, allow_unused=True, materialize_grads=True), strict=True
    ):
        assert float((one - other).abs().max()) <= 1e-10


@pytest.mark.parametrize("name", KINDS)
def test_likelihood_and_gradients_are_those_of_all_alignments(name: str):
    is_exact(hard(name))


def test_a_model_that_looks_back_is_refused(monkeypatch: pytest.MonkeyPatch):
    model = hard("hard-monotonic")
    right = HardAttention._log_transitions

    def unnormalised(self: HardAttention, *parts: object) -> Tensor:
        return right(self, *parts) + 1e-9  # type: ignore[arg-type]

    monkeypatch.setattr(HardAttention, "_log_transitions", unnormalised)
    with pytest.raises(AssertionError):
        is_exact(model)


@pytest.mark.parametrize("name", KINDS)
def test_number_of_right_tokens_and_smoothed_loss(name: str):
    model = hard(name)
    source, lengths = make_sources((4, 2))
    target_in, target_out = torch.tensor([[BOS, 5, 4], [BOS, 6, 4]]), torch.tensor([[5, 4, EOS], [6, 4, EOS]])
    log_probs = model.log_probs(model(TokenInputs(source, lengths), target_in))
    plain = PairStep(model, 0.0)(source, lengths, target_in, target_out)
    smoothed = PairStep(model, 0.1)(source, lengths, target_in, target_out)
    gold = log_probs.gather(-1, target_out[..., None]).sum()
    for sums in (plain, smoothed):
        assert float((sums.log_likelihood - gold).detach()) == pytest.approx(0.0, abs=1e-10)
        assert int(sums.num_correct) == int((log_probs.argmax(-1) == target_out).sum())
    aligned = model.align(TokenInputs(source, lengths), target_in)
    emissions = torch.log_softmax(model.output(aligned.features), dim=-1)
    gold_emissions = emissions.gather(-1, target_out[:, :, None, None].expand(*emissions.shape[:3], 1)).squeeze(-1)
    mixed = 0.9 * gold_emissions + 0.1 * emissions.mean(dim=-1)
    wanted = -sum_alignments(mixed, aligned.log_transitions).log_probs.sum()
    assert float((smoothed.total - wanted).detach()) == pytest.approx(0.0, abs=1e-10)


@pytest.mark.parametrize("name", KINDS)
def test_mixed_precision_trains_as_float32_does(name: str):
    model = hard(name).float()
    source, lengths = make_sources((4, 2))
    targets = torch.tensor([[BOS, 5, 4], [BOS, 6, 4]]), torch.tensor([[5, 4, EOS], [6, 4, EOS]])
    parameters = list(model.parameters())
    sums, slopes = [], []
    for is_narrow in (False, True):
        with torch.autocast("cpu", torch.bfloat16, enabled=is_narrow):
            sums.append(PairStep(model, 0.1)(source, lengths, *targets))
        slopes.append(torch.autograd.grad(sums[-1].total, parameters, allow_unused=True, materialize_grads=True))
    assert float(sums[1].total.detach()) == pytest.approx(float(sums[0].total.detach()), rel=0.02)
    assert float(sums[1].log_likelihood) == pytest.approx(float(sums[0].log_likelihood), rel=0.02)
    both = [torch.cat([each.flatten() for each in one]) for one in slopes]
    assert float((both[0] - both[1]).norm()) <= 0.1 * float(both[0].norm())


def taught(name: str) -> HardAttention:
    """Model that writes words of letters 4 .. 8 anew: most letters as one of two tokens each, some letters not."""
    model = hard(name).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    generator = np.random.default_rng(0)
    for _ in range(150):
        letters = [generator.integers(4, 9, size=generator.integers(1, 4)) for _ in range(24)]
        targets = [
            np.array([*(word[generator.random(len(word)) < 0.95] + generator.integers(0, 2)) % 5 + 4, EOS])
            for word in letters
        ]
        source, lengths = (torch.from_numpy(each) for each in pad([np.array([*word, EOS]) for word in letters]))
        target_in, target_out, _ = (torch.from_numpy(each) for each in teacher_forced(targets))
        optimizer.zero_grad()
        PairStep(model, 0.0)(source, lengths, target_in, target_out).total.backward()
        optimizer.step()
    return model.eval()


def exact_output(model: HardAttention, source: Tensor, most: int) -> tuple[float, tuple[int, ...]]:
    """Most probable output of at most some tokens, by the list of all of them, and its log probability."""
    best: tuple[float, tuple[int, ...]] = (-inf, ())
    tokens = [token for token in range(NUM_TARGET_TOKENS) if token not in (0, UNK, BOS, EOS)]
    for length in range(most + 1):
        outputs = [*product(tokens, repeat=length)]
        table = torch.tensor(outputs, dtype=torch.int64).reshape(len(outputs), length)
        end = torch.full((len(outputs), 1), EOS)
        inputs = TokenInputs(source.expand(len(outputs), -1), torch.full((len(outputs),), len(source)))
        log_probs = model.log_probs(model(inputs, torch.cat((torch.full_like(end, BOS), table), dim=1))).detach()
        totals = log_probs.gather(-1, torch.cat((table, end), dim=1)[..., None]).sum(dim=(1, 2))
        best = max(best, (float(totals.max()), outputs[int(totals.argmax())]))
    return best


@pytest.mark.parametrize(
    ("name", "num_words"), [*((name, 12) for name in KINDS), *(is_thorough((name, 125)) for name in KINDS)]
)
def test_beam_search_finds_the_best_output(name: str, num_words: int):
    model = taught(name)
    with torch.no_grad():
        model.output_bias()[UNK] = -100.0
    generator = np.random.default_rng(1)
    words = [np.array([*generator.integers(4, 9, size=1 + row % 3), EOS]) for row in range(num_words)]
    found = torch_backend(model, 12).decode(words, SearchConfig(beam=20, alpha=0.0, nbest=1))
    num_compared = 0
    for word, (hypothesis,) in zip(words, found, strict=True):
        log_prob, tokens = exact_output(model, torch.from_numpy(word), 3)
        if len(hypothesis.token_ids) > 3:  # beyond the list
            assert hypothesis.log_prob > log_prob
            continue
        assert hypothesis.log_prob == pytest.approx(log_prob, abs=1e-9)
        assert hypothesis.token_ids == tokens
        num_compared += 1
    assert num_compared >= 0.9 * num_words
    assert {len(hypothesis.token_ids) for (hypothesis,) in found} >= {1, 2}


def test_alignments_of_outputs_are_posteriors_of_whole_outputs():
    model = hard("hard-monotonic")
    source, lengths = make_sources((5, 3, 4))
    rows = [source[row, :length].numpy() for row, length in enumerate(lengths.tolist())]
    backend = torch_backend(model, 6)
    config = SearchConfig(beam=3, nbest=2)
    outputs = [(row, one) for row, hypotheses in enumerate(backend.decode(rows, config, True)) for one in hypotheses]
    assert len(outputs) == 6
    pair = together([backend, torch_backend(hard("hard-monotonic", 3), 6)])
    forced = [[*one.token_ids, *([EOS] if one.finish_reason == "eos" else [])] for _, one in outputs]
    scored = backend.score([rows[row] for row, _ in outputs], forced, True)
    mixed = pair.score([rows[row] for row, _ in outputs], forced, True)
    for (row, one), target, again, mean in zip(outputs, forced, scored, mixed, strict=True):
        tokens = torch.tensor([target])
        before = torch.tensor([[BOS, *target[:-1]]])
        inputs = TokenInputs(source[row : row + 1, : lengths[row]], lengths[row : row + 1])
        wanted = model.posteriors(inputs, before, tokens)[0].numpy()
        assert one.weights is not None
        np.testing.assert_allclose(one.weights, wanted, atol=1e-6)
        np.testing.assert_allclose(again.weights, wanted, atol=1e-6)
        other = hard("hard-monotonic", 3).posteriors(inputs, before, tokens)[0].numpy()
        np.testing.assert_allclose(mean.weights, (wanted + other) / 2, atol=1e-6)


def test_posteriors_sum_to_one_and_never_go_back():
    model = hard("hard-monotonic")
    source, lengths = make_sources((5, 3))
    target_in, target_out = torch.tensor([[BOS, 5, 4], [BOS, 6, 0]]), torch.tensor([[5, 4, EOS], [6, EOS, 0]])
    posteriors = model.posteriors(TokenInputs(source, lengths), target_in, target_out)
    np.testing.assert_allclose(posteriors.sum(-1).numpy(), [[1, 1, 1], [1, 1, 0]], atol=1e-12)
    assert float(posteriors[1, :, 3:].max()) == 0.0
    ahead = posteriors.cumsum(-1)
    assert bool((ahead[0, 1:] <= ahead[0, :-1] + 1e-12).all())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"attention": {"normalizer": "sampled"}}, "distribution"),
        ({"attention": {"normalizer": "sigmoid"}}, "distribution"),
        ({"attention": {"window": "local-p"}}, "local-p"),
        ({"attention": {"has_coverage": True, "score": "additive"}}, "coverage"),
        ({"order": 2}, "order"),
    ],
)
def test_settings_that_make_no_distribution_are_refused(changes: dict[str, object], words: str):
    with pytest.raises(ValidationError, match=words):
        HardAttentionConfig(**changes)  # type: ignore[arg-type]
