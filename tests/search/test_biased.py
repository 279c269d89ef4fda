"""Biased decoding against a plain evaluation of its equation, and as one model of the biased probabilities."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from heedful.search import biased
from heedful.search.array_scores import ArrayScores
from heedful.search.beam import search
from heedful.search.biased import (
    FLOOR,
    WEIGHT,
    WIDTH,
    BiasedEngine,
    BiasedScores,
    StoredSteps,
    biased_log_probs,
    source_key,
    states,
    store_steps,
)
from heedful.search.config import SearchConfig
from heedful.search.constraints import Constraints
from heedful.text.vocabulary import BOS, EOS, UNK
from tests.search.engines import Tokens, Toy

SOURCES: list[Tokens] = [(5, 6, EOS), (4, EOS), (6, 4, 5, 5, EOS), (EOS,)]
ARRAYS = [np.array(source) for source in SOURCES]
OUTPUTS: list[Tokens] = [(6, 7, 8, EOS), (5, EOS), (8, 8, EOS)]


Steps = list[tuple[list[float], int, float, int]]
"""State, token and news of each step, and how often its translation has the token."""


def plain_state(log_probs: np.ndarray) -> list[float]:
    """[vocab] state, by loops over floats."""
    values = [max(float(value), -FLOOR) for value in log_probs]
    mean = math.fsum(values) / len(values)
    length = math.sqrt(math.fsum((value - mean) ** 2 for value in values))
    return [(value - mean) / length if length else 0.0 for value in values]


def plain_bias(log_probs: np.ndarray, steps: Steps, output: Tokens) -> np.ndarray:
    """[vocab] log probabilities by the printed equation, by loops over floats."""
    query = plain_state(log_probs)
    votes = [
        (WEIGHT * news * math.exp(-(1 - math.fsum(a * b for a, b in zip(query, key, strict=True))) / WIDTH), token)
        for key, token, news, count in steps
        if output.count(token) < count
    ]
    total = 1 + math.fsum(weight for weight, _ in votes)
    probs = [
        (math.exp(float(value)) + math.fsum(weight for weight, token in votes if token == index)) / total
        for index, value in enumerate(log_probs)
    ]
    return np.array([math.log(prob) if prob else -math.inf for prob in probs])


def plain_steps(toy: Toy, source: Tokens, output: Tokens) -> Steps:
    rows = [(toy.log_probs(source, output[:step]), token) for step, token in enumerate(output)]
    news = 1.0 - math.exp(math.fsum(float(log_probs[token]) for log_probs, token in rows))
    return [(plain_state(log_probs), token, news, output.count(token)) for log_probs, token in rows]


def stored_of(toy: Toy, source: Tokens, output: Tokens) -> StoredSteps:
    return store_steps(toy, [np.array(source)], [output])[0]


class Biased(Toy):
    """One model whose distributions are the biased ones of another, worked out plainly."""

    def __init__(self, toy: Toy, steps: dict[Tokens, Steps]) -> None:
        super().__init__(vocab_size=toy.vocab_size)
        self.toy, self.steps = toy, steps

    def log_probs(self, source: Tokens, prefix: Tokens) -> np.ndarray:
        log_probs = self.toy.log_probs(source, prefix)
        return plain_bias(log_probs, self.steps[source], prefix) if source in self.steps else log_probs

    def weights(self, source: Tokens, prefix: Tokens) -> np.ndarray:
        return self.toy.weights(source, prefix)


def test_stored_steps_are_the_states_and_tokens_of_forced_decoding():
    toy = Toy(vocab_size=9)
    stored = store_steps(toy, ARRAYS[:3], OUTPUTS)
    for source, output, each in zip(SOURCES, OUTPUTS, stored, strict=False):
        expected = plain_steps(toy, source, output)
        assert each.tokens.tolist() == list(output)
        np.testing.assert_allclose(each.keys, [key for key, *_ in expected], atol=1e-6)
        np.testing.assert_allclose(each.news, [news for _, _, news, _ in expected], rtol=1e-12)
        assert each.counts.tolist() == [count for *_, count in expected]


def test_a_step_before_an_unknown_token_is_not_stored():
    toy = Toy(vocab_size=9)
    (stored,) = store_steps(toy, ARRAYS[:1], [(6, UNK, 8, EOS)])
    steps = plain_steps(toy, SOURCES[0], (6, UNK, 8, EOS))
    assert stored.tokens.tolist() == [6, 8, EOS]
    np.testing.assert_allclose(stored.keys, [key for key, token, *_ in steps if token != UNK], atol=1e-6)


Bias = Callable[[np.ndarray, StoredSteps, np.ndarray], np.ndarray]


def agrees(bias: Bias) -> bool:
    """Tell whether a function computes the equation, for near and far states and an impossible token."""
    toy = Toy(vocab_size=9)
    steps = [*plain_steps(toy, SOURCES[0], OUTPUTS[0]), *plain_steps(toy, SOURCES[2], OUTPUTS[2])]
    stored = StoredSteps.joined([stored_of(toy, SOURCES[0], OUTPUTS[0]), stored_of(toy, SOURCES[2], OUTPUTS[2])])
    rows = np.array([toy.log_probs(SOURCES[0], ()), toy.log_probs(SOURCES[1], (4,)), toy.log_probs(SOURCES[2], (8,))])
    rows[1, 2] = -np.inf
    outputs = [(BOS, 4, 8), (BOS, 8, 8), (BOS, 6, 5)]
    expected = np.array([plain_bias(row, steps, output) for row, output in zip(rows, outputs, strict=True)])
    with np.errstate(all="ignore"):
        return np.allclose(bias(rows, stored, np.array(outputs)), expected, atol=1e-5, equal_nan=False)


def test_the_bias_is_the_printed_equation():
    assert agrees(biased_log_probs)


def wrong_bias(fault: str) -> Bias:
    """Bias with one fault."""

    def bias(log_probs: np.ndarray, stored: StoredSteps, outputs: np.ndarray) -> np.ndarray:
        news = 1.0 if fault == "all is news" else stored.news
        weights = WEIGHT * news * np.exp(-(1 - states(log_probs) @ stored.keys.T) / WIDTH)
        if fault != "votes without end":
            weights *= (outputs[:, :, None] == stored.tokens).sum(axis=1) < stored.counts
        has_model = fault != "without the model"
        probs = np.exp(log_probs) * has_model
        if fault == "one vote for each token":
            probs[:, stored.tokens] = np.exp(log_probs)[:, stored.tokens] + weights
        else:
            np.add.at(probs.T, stored.tokens, weights.T)
        return np.log(probs / (has_model + (fault != "not normalised") * weights.sum(axis=1, keepdims=True)))

    return bias


@pytest.mark.parametrize(
    "fault", ["not normalised", "without the model", "one vote for each token", "all is news", "votes without end"]
)
def test_a_wrong_bias_is_noticed(fault: str):
    assert agrees(wrong_bias(""))
    assert not agrees(wrong_bias(fault))


@pytest.mark.parametrize("fault", ["no floor", "not centred"])
def test_wrong_states_are_noticed(fault: str, monkeypatch: pytest.MonkeyPatch):
    def wrong(log_probs: np.ndarray) -> np.ndarray:
        values = np.maximum(log_probs, -100.0 if fault == "no floor" else -FLOOR)
        values = values - (values.mean(axis=-1, keepdims=True) if fault == "no floor" else 0.0)
        return values / np.linalg.norm(values, axis=-1, keepdims=True)

    monkeypatch.setattr(biased, "states", wrong)
    assert not agrees(biased_log_probs)


def test_probabilities_still_sum_to_1():
    toy = Toy(vocab_size=9)
    log_probs = np.array([toy.log_probs(source, ()) for source in SOURCES])
    result = biased_log_probs(log_probs, stored_of(toy, SOURCES[0], OUTPUTS[0]), np.full((len(SOURCES), 1), BOS))
    np.testing.assert_allclose(np.exp(result).sum(axis=1), 1.0, rtol=1e-12)


def test_a_translation_that_the_model_would_give_changes_nothing():
    def certain(logits: np.ndarray, source: Tokens, prefix: Tokens) -> None:
        logits[(6, 7, EOS)[len(prefix)] if len(prefix) < 3 else EOS] += 60.0

    toy = Toy(vocab_size=9, edit=certain)
    stored = stored_of(toy, SOURCES[0], (6, 7, EOS))
    log_probs = np.array([toy.log_probs(SOURCES[1], (4,))])
    np.testing.assert_allclose(biased_log_probs(log_probs, stored, np.array([[BOS, 4]])), log_probs, atol=1e-9)


def test_a_uniform_distribution_has_no_state():
    assert not states(np.full((2, 4), -math.log(4))).any()


@pytest.mark.parametrize(
    "config",
    [
        SearchConfig(beam=4, nbest=4, max_length_offset=4),
        SearchConfig(beam=1, max_length_offset=4),
        SearchConfig(beam=4, num_groups=2, diversity=0.5, repetition_penalty=1.2, max_length_offset=4),
    ],
)
def test_it_searches_as_one_model_of_the_biased_probabilities(config: SearchConfig):
    toy = Toy(seed=1, vocab_size=9)
    steps = {SOURCES[0]: plain_steps(toy, SOURCES[2], OUTPUTS[2]), SOURCES[2]: plain_steps(toy, (5, 5, EOS), (7, EOS))}
    stored = {
        source_key(ARRAYS[0]): stored_of(toy, SOURCES[2], OUTPUTS[2]),
        source_key(ARRAYS[2]): stored_of(toy, (5, 5, EOS), (7, EOS)),
    }
    asked = [Constraints((4,), [(7, 8)], [(5, 5)])] * len(SOURCES)
    found, expected = (
        search(engine, ARRAYS, config, max_length=20, need_alignment=True, constraints=asked)
        for engine in (BiasedEngine(toy, stored), Biased(toy, steps))
    )
    for some, others in zip(found, expected, strict=True):
        assert [one.token_ids for one in some] == [one.token_ids for one in others]
        np.testing.assert_allclose([one.log_prob for one in some], [one.log_prob for one in others], atol=1e-4)
        np.testing.assert_array_equal(some[0].weights, others[0].weights)  # type: ignore[arg-type]


def test_a_source_without_stored_steps_keeps_every_bit():
    toy = Toy(seed=1, vocab_size=9)
    config = SearchConfig(beam=3, nbest=3, max_length_offset=4)
    stored = {source_key(ARRAYS[0]): stored_of(toy, SOURCES[0], OUTPUTS[0])}
    plain = search(toy, ARRAYS, config, max_length=20)
    result = search(BiasedEngine(toy, stored), ARRAYS, config, max_length=20)
    assert result[1:] == plain[1:]
    assert result[0] != plain[0]


def test_a_given_translation_becomes_more_probable():
    toy = Toy(seed=2, vocab_size=9)
    config = SearchConfig(beam=1, max_length_offset=6)
    stored = {source_key(ARRAYS[0]): stored_of(toy, SOURCES[0], OUTPUTS[0])}
    assert search(toy, ARRAYS[:1], config, max_length=20)[0][0].token_ids != OUTPUTS[0][:-1]
    assert search(BiasedEngine(toy, stored), ARRAYS[:1], config, max_length=20)[0][0].token_ids == OUTPUTS[0][:-1]


def test_a_foreign_state_is_refused():
    with pytest.raises(TypeError, match="got a state of type int"):
        BiasedEngine(Toy(), {}).step(3, np.array([[1]]), None, None)


def test_scores_of_a_step_have_the_weights_of_the_model():
    own = ArrayScores(np.zeros((1, 1, 4)), np.ones((1, 1, 2), dtype=np.float32))
    scores = BiasedScores(own, [None], np.array([[[BOS]]]))
    assert scores.weights.tolist() == [[[1.0, 1.0]]]
    assert scores.vocab_size == 4
