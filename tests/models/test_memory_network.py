"""The memory network."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from heedful.engines.stories import StoryArrays
from heedful.layers.embedding import Embedding
from heedful.models.inputs import StoryInputs, TokenInputs, inputs_on
from heedful.models.memory_network import PRESETS, MemoryNetwork, MemoryNetworkConfig, with_empty_facts
from heedful.text.vocabulary import PAD
from heedful.training.label_step import LabelStep
from tests.models.by_hand import Vector, softmax
from tests.models.by_hand_classifiers import chained_memory_network, memory_network
from tests.models.tiny import perturbed

EOS = 3
HARD = {"score": "dot", "normalizer": "straight_through"}
Weigh = Callable[[list[float]], Vector]
STORIES = (
    ([5, 6], [[4, 7], [8], [4, 5, 6, 7], [8, 8]]),
    ([7], [[5, 4, 6]]),
    ([4, 8, 5], [[6, 5]] * 5),
)
"""Question, and facts of each story, the newest first."""


def make(**settings: Any) -> MemoryNetwork:
    torch.manual_seed(4)
    config = MemoryNetworkConfig.model_validate({"hidden_size": 5, "num_ages": 3, "num_steps": 2, **settings})
    model = perturbed(config.build(9, 3).double().eval())
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, Embedding):
                module.weight[PAD] = 0.0  # stays so in training: sums of words rely on it
    return model


def inputs_of(stories: Any = STORIES) -> StoryInputs:
    flat = [np.array([*question, EOS, *(id for fact in facts for id in (*fact, EOS))]) for question, facts in stories]
    inputs = inputs_on(torch.device("cpu"), StoryArrays(flat))
    assert isinstance(inputs, StoryInputs)
    return inputs


def check(model: MemoryNetwork, by_hand: Callable[..., tuple[Vector, list[Vector]]], **settings: Any) -> None:
    scores, encoded = model(inputs_of(), ("weights",))
    assert encoded.weights is not None
    p = {name: parameter.detach().numpy() for name, parameter in model.named_parameters()}
    for index, (question, facts) in enumerate(STORIES):
        log_probs, weights = by_hand(p, question, facts, model.config.num_steps, **settings)
        np.testing.assert_allclose(torch.log_softmax(scores[index], -1).detach().numpy(), log_probs, rtol=0, atol=1e-10)
        own = encoded.weights[index].detach().numpy()
        np.testing.assert_allclose(own[:, : len(facts)], np.array(weights), rtol=0, atol=1e-10)
        assert not own[:, len(facts) :].any()


@pytest.mark.parametrize("num_steps", [1, 3])
@pytest.mark.parametrize("tying", ["adjacent", "layer-wise"])
@pytest.mark.parametrize("encoding", ["position", "bag"])
def test_it_is_the_equations_of_the_paper(num_steps: int, tying: str, encoding: str):
    model = make(num_steps=num_steps, tying=tying, encoding=encoding)
    check(model, memory_network, tying=tying, has_positions=encoding == "position")


def test_another_encoding_fails_the_test_above():
    with pytest.raises(AssertionError):
        check(make(), memory_network, has_positions=False)


@pytest.mark.parametrize("chain", ["unary", "binary"])
@pytest.mark.parametrize("num_steps", [1, 3])
def test_a_chain_sums_over_all_sequences_of_facts(chain: str, num_steps: int):
    check(make(chain=chain, num_steps=num_steps), chained_memory_network, is_binary=chain == "binary")


def test_a_chain_of_other_potentials_fails_the_test_above():
    with pytest.raises(AssertionError):
        check(make(chain="unary"), chained_memory_network, is_binary=True)


def mean(scores: list[float]) -> Vector:
    return np.full(len(scores), 1 / len(scores))


def best(scores: list[float]) -> Vector:
    return np.eye(len(scores))[int(np.argmax(scores))]


def exact_chain(scores: list[float]) -> Vector:
    """Without transitions each fact is chosen by itself."""
    return 1 / (1 + np.exp(-np.array(scores)))


@pytest.mark.parametrize(
    ("attention", "weigh"),
    [
        ({"score": "uniform"}, mean),
        (HARD, best),
        ({"score": "dot", "normalizer": "sampled"}, best),
        ({"score": "dot", "normalizer": "linear_chain"}, exact_chain),
        ({"score": "scaled_dot"}, lambda scores: softmax([score / 5**0.5 for score in scores])),
    ],
)
def test_score_and_normalizer_are_settings(attention: dict[str, Any], weigh: Weigh):
    model = make(attention=attention)
    with torch.no_grad():
        for parameter in model.normalizer.parameters():
            parameter.zero_()  # transitions of a chain
    check(model, memory_network, weigh=weigh)


@pytest.mark.parametrize("settings", [{}, {"tying": "layer-wise"}, {"attention": HARD}, {"chain": "binary"}])
@pytest.mark.parametrize(("start", "weigh"), [("linear", np.array), ("soft", softmax)])
def test_the_first_batches_weigh_facts_otherwise(start: str, weigh: Weigh, settings: dict[str, Any]):
    model = make(start=start, start_batches=2, **settings)
    usual = make(**settings)
    tying = settings.get("tying", "adjacent")
    for _ in range(2):
        check(model.train(), memory_network, tying=tying, weigh=weigh)
        torch.testing.assert_close(model.eval()(inputs_of())[0], usual(inputs_of())[0], rtol=0, atol=0)
    resumed = make(start=start, start_batches=2, **settings).train()
    resumed.load_state_dict(model.state_dict())
    for trained in (model.train(), resumed):
        torch.testing.assert_close(trained(inputs_of())[0], usual.train()(inputs_of())[0], rtol=0, atol=0)


def test_another_start_fails_the_test_above():
    with pytest.raises(AssertionError):
        check(make(start="linear").train(), memory_network)
    with pytest.raises(AssertionError):
        check(make(start="soft").train(), memory_network, weigh=best)


@pytest.mark.parametrize("start", ["linear", "soft"])
def test_a_start_learns_and_survives_a_story_without_facts(start: str):
    model = make(start=start).train()
    inputs = inputs_of((*STORIES, ([5], [])))
    LabelStep(model, 0.1, StoryInputs)(
        inputs.question, inputs.facts, inputs.num_facts, torch.tensor([0, 2, 1, 0])
    ).total.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name


def test_empty_facts_are_added_at_every_place_and_in_the_right_number():
    inputs = inputs_of((*STORIES, ([5], [])))
    torch.manual_seed(6)
    draws = [with_empty_facts(inputs, 0.25) for _ in range(400)]
    numbers = torch.stack([drawn.num_facts for drawn in draws]) - inputs.num_facts
    assert numbers.min(dim=0).values.tolist() == [1, 0, 1, 0]
    assert numbers.max(dim=0).values.tolist() == [1, 1, 2, 0]
    torch.testing.assert_close(numbers.double().mean(dim=0), 0.25 * inputs.num_facts.double(), rtol=0, atol=0.1)
    places: set[int] = set()
    for drawn in draws:
        assert drawn.question is inputs.question
        for index, facts in enumerate(drawn.facts):
            is_real = facts.any(dim=-1)
            wanted = inputs.facts[index, : int(inputs.num_facts[index])]
            torch.testing.assert_close(facts[is_real], wanted, rtol=0, atol=0)
            assert not is_real[drawn.num_facts[index] :].any()
        places.add(int((~drawn.facts[0].any(dim=-1)).nonzero()[0]))
    assert places == {0, 1, 2, 3, 4}


@pytest.mark.parametrize("settings", [{}, {"start": "linear"}, {"chain": "binary"}, {"attention": HARD}])
def test_only_training_adds_empty_facts(settings: dict[str, Any]):
    noisy, usual = make(empty_share=1.0, **settings), make(**settings)
    torch.testing.assert_close(noisy(inputs_of())[0], usual(inputs_of())[0], rtol=0, atol=0)
    torch.manual_seed(7)
    drawn = with_empty_facts(inputs_of(), 1.0)
    torch.manual_seed(7)
    scores = noisy.train()(inputs_of())[0]
    torch.testing.assert_close(scores, usual.train()(drawn)[0], rtol=0, atol=0)
    scores.sum().backward()
    assert all(p.grad is None or torch.isfinite(p.grad).all() for p in noisy.parameters())
    assert noisy.state_dict().keys() == usual.state_dict().keys()


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("tying", ["adjacent", "layer-wise"])
def test_every_parameter_learns_and_a_story_without_facts_has_an_answer(preset: str, tying: str):
    settings = PRESETS[preset].model_dump() | {"hidden_size": 5, "num_steps": 2, "tying": tying, "num_ages": 3}
    torch.manual_seed(5)
    model = MemoryNetworkConfig.model_validate(settings).build(9, 3).double()
    inputs = inputs_of((*STORIES, ([5], [])))
    scores, encoded = model(inputs, ("weights",))
    assert encoded.weights is not None
    assert torch.isfinite(scores).all()
    assert not encoded.weights[3].any()
    labels = torch.tensor([0, 2, 1, 0])
    LabelStep(model, 0.1, StoryInputs)(inputs.question, inputs.facts, inputs.num_facts, labels).total.backward()
    for name, parameter in model.named_parameters():
        if parameter.grad is None:  # uniform weights need no keys
            assert preset == "memory_network-average"
            assert name.startswith("memories.0.")
        else:
            assert torch.isfinite(parameter.grad).all(), name


def test_drawn_facts_are_learned_by_reinforce():
    model = make(attention={"score": "dot", "normalizer": "sampled"}).train()
    inputs = inputs_of()
    scores, encoded = model(inputs)
    log_probs = torch.log_softmax(scores, -1)[:, 0]
    losses = model.extra_losses(encoded, log_probs)
    assert losses.keys() == {"reinforce"}
    losses["reinforce"].backward()
    memory = model.memories[0]
    assert any(parameter.grad is not None and parameter.grad.any() for parameter in memory.parameters())
    assert not make().train().extra_losses(encoded, log_probs)


def test_other_stories_of_a_batch_change_nothing():
    model = make(num_steps=3)
    together = model(inputs_of(), ("weights",))[0]
    for index, story in enumerate(STORIES):
        torch.testing.assert_close(model(inputs_of([story]))[0][0], together[index], rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"attention": {"score": "dot", "normalizer": "hard"}}, "no gradient reaches the score"),
        ({"attention": {"score": "dot", "window": "local-m"}}, "a question has no position among the facts"),
        ({"attention": {"has_coverage": True}}, "has_coverage: only decoders use it"),
        ({"attention": {"coverage_weight": 1.0}}, "coverage_weight: only decoders use it"),
        ({"attention": {"score": "general", "has_sentences": True}}, "has_sentences: only decoders use it"),
        ({"chain": "unary", "attention": {"score": "dot", "normalizer": "sparsemax"}}, "its marginals are the weights"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings: dict[str, Any], complaint: str):
    with pytest.raises(ValidationError, match=complaint):
        MemoryNetworkConfig.model_validate(settings)


def test_other_inputs_are_refused():
    with pytest.raises(TypeError, match="reads stories, got TokenInputs"):
        make()(TokenInputs(torch.tensor([[5, 3]]), torch.tensor([2])))
