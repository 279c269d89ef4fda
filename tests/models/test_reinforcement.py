from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from heedful.attention.interface import Attended
from heedful.attention.softmax import SOFTMAX
from heedful.attention.stochastic import Sampled
from heedful.layers.normalizing import set_soft
from heedful.models.interface import Seq2Seq
from heedful.models.reinforcement import Reinforcement
from heedful.training.config import TrainingConfig
from heedful.training.distributed import SingleProcess
from heedful.training.pair_step import PairStep
from heedful.training.train_state import TrainState
from tests.models.tiny import CONFIGS, changed, make_model, make_sources, make_targets

LOG_PROBS = torch.tensor([[-1.0, -2.0, -4.0], [-3.0, -5.0, 9.0]])
REAL = torch.tensor([[True, True, True], [True, True, False]])


def drawn(heads: int = 0) -> Attended:
    """What attention of two items and three steps gives."""
    shape = (2, heads, 3) if heads else (2, 3)
    log_prob = -torch.rand(shape, generator=torch.Generator().manual_seed(0)).requires_grad_()
    return Attended(torch.zeros(2, 3, 1), "plain", log_prob=log_prob, entropy=torch.full(shape, 0.5))


def test_each_draw_is_rewarded_with_its_own_token():
    loss, one = Reinforcement(Sampled(), "token", 0.5, 0.1, 0.9), drawn()
    assert one.log_prob is not None
    wanted = -(0.5 * LOG_PROBS * one.log_prob + 0.1 * 0.5)[REAL].sum()
    assert loss([one], LOG_PROBS, REAL)["reinforce"].item() == pytest.approx(wanted.item())
    assert float(loss.baseline) == pytest.approx(0.1 * -15.0 / 5)  # type: ignore[arg-type]
    # The second batch is measured against what the first one got.
    again = -(0.5 * (LOG_PROBS + 0.3) * one.log_prob + 0.05)[REAL].sum()
    assert loss([one], LOG_PROBS, REAL)["reinforce"].item() == pytest.approx(again.item())


def test_or_with_the_sentence():
    loss, one = Reinforcement(Sampled(), "sentence", 1.0, 0.0, 0.9), drawn()
    assert one.log_prob is not None
    rewards = torch.tensor([[-7.0], [-8.0]])
    wanted = -(rewards * one.log_prob)[REAL].sum()
    assert loss([one], LOG_PROBS, REAL)["reinforce"].item() == pytest.approx(wanted.item())
    assert float(loss.baseline) == pytest.approx(-0.75)  # type: ignore[arg-type]


@pytest.mark.parametrize("reward", ["token", "sentence"])
def test_three_batches_are_those_of_loops(reward: str):
    """Xu et al. 2015, section 4.1, written out in float64: soft steps move the baseline, too."""
    generator = np.random.default_rng(2)
    loss = Reinforcement(Sampled(), reward, 0.3, 0.07, 0.8).double()  # type: ignore[arg-type]
    baseline = 0.0
    for is_soft in (False, True, False):
        set_soft(loss, is_soft)
        log_prob, entropy = -generator.random((2, 4, 3)), generator.random((2, 4, 3))
        rewards, real = -3.0 * generator.random((2, 3)), np.array([[True, True, True], [True, True, False]])
        wanted, received = 0.0, []
        for item in range(2):
            whole = sum(rewards[item][step] for step in range(3) if real[item][step])
            for step in range(3):
                if real[item][step]:
                    got = rewards[item][step] if reward == "token" else whole
                    received += [got] if reward == "token" or step == 0 else []
                    for head in range(4):
                        wanted -= 0.3 * (got - baseline) * log_prob[item][head][step]
                        wanted -= 0.07 * entropy[item][head][step]
        baseline = 0.8 * baseline + 0.2 * sum(received) / len(received)
        statistics = {"log_prob": torch.tensor(log_prob), "entropy": torch.tensor(entropy)}
        one = Attended(torch.zeros(2, 4, 3, 1), "plain", **statistics)
        found = loss([one], torch.tensor(rewards), torch.tensor(real))
        assert ([] if is_soft else [pytest.approx(wanted, rel=1e-10)]) == [*map(float, found.values())]
        assert float(loss.baseline) == pytest.approx(baseline, rel=1e-10)  # type: ignore[arg-type]


def test_heads_and_layers_add_up():
    loss = Reinforcement(Sampled(), "token", 1.0, 0.0, 0.0)
    one, other = drawn(heads=2), drawn()
    assert one.log_prob is not None
    assert other.log_prob is not None
    wanted = -(LOG_PROBS[:, None] * one.log_prob).movedim(1, -1)[REAL].sum() - (LOG_PROBS * other.log_prob)[REAL].sum()
    found = loss([one, replace(other, log_prob=None), other], LOG_PROBS, REAL)["reinforce"]
    assert found.item() == pytest.approx(wanted.item())


def test_no_gradient_flows_through_the_reward():
    log_probs = LOG_PROBS.clone().requires_grad_()
    Reinforcement(Sampled(), "token", 1.0, 0.1, 0.9)([drawn()], log_probs, REAL)["reinforce"].backward()
    assert log_probs.grad is None


def test_what_draws_nothing_has_no_loss_and_no_buffer():
    loss = Reinforcement(SOFTMAX, "token", 1.0, 0.1, 0.9)
    assert loss([drawn()], LOG_PROBS, REAL) == {}
    assert loss.need == ()
    assert dict(loss.named_buffers()) == {}
    sampled = Reinforcement(Sampled(), "token", 1.0, 0.1, 0.9)
    assert sampled.need == ("log_prob", "entropy")
    assert sampled.eval().need == ()
    assert sampled([drawn()], LOG_PROBS, REAL) == {}


def sampled_model() -> Seq2Seq:
    return make_model(changed(CONFIGS["rnnsearch"], attention={"normalizer": "sampled"})).float()


def some_step(model: Seq2Seq, seed: int) -> Tensor:
    torch.manual_seed(seed)
    source, lengths = make_sources()
    target_in = make_targets(len(source))
    target_out = torch.cat((target_in[:, 1:], torch.full((len(source), 1), 3)), dim=1)
    return PairStep(model, 0.0).train()(source, lengths, target_in, target_out).total


@pytest.mark.parametrize("kind", ["rnnsearch", "luong", "transformer-pre"])
def test_the_score_of_drawn_keys_has_a_gradient(kind: str):
    attention = {"normalizer": "sampled", "score": "general"}
    model = make_model(changed(CONFIGS[kind], attention=attention)).float()
    some_step(model, 1).backward()
    scores = {name: part.grad for name, part in model.named_parameters() if ".score." in f".{name}"}
    assert scores
    assert all(grad is not None and bool(grad.any()) for grad in scores.values())


def test_a_training_goes_on_with_the_baseline_of_its_checkpoint():
    def fresh() -> TrainState:
        return TrainState(
            PairStep(sampled_model(), 0.1),
            TrainingConfig(batch_tokens=64, validate_every=1, select_by="loss"),
            SingleProcess(),
        )

    first = fresh()
    some_step(first.model, 1)
    kept = {group: {name: part.clone() for name, part in held.items()} for group, held in first.tensors().items()}
    assert float(kept["model"]["reinforcement.baseline"]) < 0.0
    second = fresh()
    second.restore(kept)
    assert torch.equal(some_step(first.model, 2), some_step(second.model, 2))
    assert not torch.equal(some_step(first.model, 2), some_step(fresh().model, 2))
    assert "reinforcement.baseline" not in first.averaged()
