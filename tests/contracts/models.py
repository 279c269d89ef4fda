"""Contracts of every sequence-to-sequence model; each function raises AssertionError where a model breaks it."""

from collections.abc import Callable

import torch
from torch import Tensor

from heedful.models.inputs import TokenInputs
from heedful.models.interface import Seq2Seq
from heedful.models.luong import LuongConfig
from heedful.models.rnnsearch import RNNsearchConfig
from heedful.models.transformer import TransformerConfig
from tests.models.tiny import make_sources, make_targets, run_steps

Contract = Callable[[Seq2Seq], None]
TOLERANCE = 1e-12
Attentive = LuongConfig | RNNsearchConfig | TransformerConfig


def steps_equal_forward(model: Seq2Seq) -> None:
    """Token by token gives the features of the whole target at once."""
    source, lengths = make_sources()
    target_in = make_targets(len(source))
    assert (
        distance(run_steps(model, source, lengths, target_in), model(TokenInputs(source, lengths), target_in).features)
        <= TOLERANCE
    )


def prepared_steps_equal_forward(model: Seq2Seq) -> None:
    """What steps may share, computed once, changes nothing."""
    source, lengths = make_sources()
    target_in = make_targets(len(source))
    steps = run_steps(model, source, lengths, target_in, is_prepared=True)
    assert distance(steps, model(TokenInputs(source, lengths), target_in).features) <= TOLERANCE


def neighbours_are_invisible(model: Seq2Seq) -> None:
    """A pair gets the same features alone, among others, and among others in another order."""
    source, lengths = make_sources()
    target_in = make_targets(len(source))
    together = model(TokenInputs(source, lengths), target_in).features
    order = torch.tensor([2, 0, 3, 1])
    assert (
        distance(model(TokenInputs(source[order], lengths[order]), target_in[order]).features, together[order])
        <= TOLERANCE
    )
    for row, length in enumerate(lengths.tolist()):
        alone = model(
            TokenInputs(source[row : row + 1, :length], lengths[row : row + 1]), target_in[row : row + 1]
        ).features
        assert distance(alone, together[row : row + 1]) <= TOLERANCE


def padding_is_invisible(model: Seq2Seq) -> None:
    """What stands behind the real source tokens changes no bit; how many places there are, nothing beyond rounding."""
    source, lengths = make_sources()
    target_in = make_targets(len(source))
    features = model(TokenInputs(source, lengths), target_in).features
    filled = source.clone()
    for row, length in enumerate(lengths.tolist()):
        filled[row, length:] = 5
    assert torch.equal(model(TokenInputs(filled, lengths), target_in).features, features)
    wider = torch.cat((source, torch.full((len(source), 3), 6)), dim=1)
    assert distance(model(TokenInputs(wider, lengths), target_in).features, features) <= TOLERANCE


def the_future_is_invisible(model: Seq2Seq) -> None:
    """Features have a gradient of exactly zero with respect to all later target tokens, and none of zero to earlier."""
    source, lengths = make_sources()
    target_in = make_targets(len(source))
    embedded: list[Tensor] = []

    def keep(module: torch.nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
        if inputs[0].shape == target_in.shape and torch.equal(inputs[0], target_in):
            embedded.append(output.detach().requires_grad_())
            return embedded[-1]
        return output

    handle = model.get_submodule("target_embedding").register_forward_hook(keep)
    try:
        with torch.enable_grad():
            features = model(TokenInputs(source, lengths), target_in).features
            for place in range(target_in.shape[1]):
                weight = torch.randn(features[:, place].shape, generator=torch.Generator().manual_seed(place)).double()
                (gradient,) = torch.autograd.grad((features[:, place] * weight).sum(), embedded[-1], retain_graph=True)
                assert bool((gradient[:, place + 1 :] == 0.0).all()), f"place {place} sees the future"
                if place:
                    assert bool((gradient[:, :place] != 0.0).any(dim=-1).all()), f"place {place} forgot the past"
    finally:
        handle.remove()


def the_source_is_read(model: Seq2Seq) -> None:
    """Every real source token reaches the features."""
    source, lengths = make_sources((5,))
    target_in = make_targets(1)
    features = model(TokenInputs(source, lengths), target_in).features
    for place in range(4):
        changed = source.clone()
        changed[0, place] = 4 + (changed[0, place] - 3) % 7
        assert distance(model(TokenInputs(changed, lengths), target_in).features, features) > 1e-6


def alignments_are_distributions(model: Seq2Seq) -> None:
    """The weights of the alignment sum to 1 over real source positions and are 0 elsewhere, in steps as in forward.

    Where a window leaves some of them out they sum to at most 1; a model without attention has none and says so.
    """
    source, lengths = make_sources()
    target_in = make_targets(len(source))
    real = torch.arange(source.shape[1]) < lengths[:, None]
    attended = model(TokenInputs(source, lengths), target_in, need=("weights",)).attended
    assert bool(attended) == bool(model.alignment)
    if not model.alignment:
        return
    whole = attended[model.alignment].weights
    assert whole is not None
    memory = model.encode(TokenInputs(source, lengths))
    state = model.start(memory)
    for place in range(target_in.shape[1]):
        decoded, state = model.step(target_in[:, place : place + 1], state, memory, need=("weights",))
        weights = decoded.attended[model.alignment].weights
        assert weights is not None
        assert distance(weights, whole[..., place : place + 1, :]) <= TOLERANCE
        heads = weights if weights.dim() == 4 else weights[:, None]
        total = heads.sum(dim=-1)
        if sums_to_one(model):
            assert distance(total, torch.ones_like(total)) <= TOLERANCE
        assert bool((heads >= 0.0).all())
        assert bool((total <= 1.0 + TOLERANCE).all())
        assert bool((heads.movedim(0, -2)[..., ~real] == 0.0).all())


def hypotheses_go_their_own_ways(model: Seq2Seq) -> None:
    """Side by side, reordered and with sources dropped, a hypothesis gets what it gets alone."""
    source, lengths = make_sources()
    tokens = make_targets(2 * len(source), length=4).reshape(len(source), 2, 4)
    memory = model.encode(TokenInputs(source, lengths))
    state = model.start(memory, num_hypotheses=2)
    for place in range(3):
        _, state = model.step(tokens[:, :, place], state, memory)
    parents = torch.tensor([[1, 0], [0, 0], [1, 1], [0, 1]])
    keep = torch.tensor([0, 2, 3])
    last = tokens[:, :, 3][keep]
    decoded, _ = model.step(last, state.select(keep).reorder(parents[keep]), memory.select(keep))
    for row, kept in enumerate(keep.tolist()):
        for place in range(2):
            said = torch.cat((tokens[kept, parents[kept, place], :3], last[row, place : place + 1]))
            length = int(lengths[kept])
            alone = run_steps(model, source[kept : kept + 1, :length], lengths[kept : kept + 1], said[None])[:, -1]
            assert distance(decoded.features[row, place], alone[0]) <= TOLERANCE


CONTRACTS: tuple[Contract, ...] = (
    steps_equal_forward,
    prepared_steps_equal_forward,
    neighbours_are_invisible,
    padding_is_invisible,
    the_future_is_invisible,
    the_source_is_read,
    alignments_are_distributions,
    hypotheses_go_their_own_ways,
)


def sums_to_one(model: Seq2Seq) -> bool:
    """Whether every target token attends, with all its weight."""
    config = getattr(model, "config", None)
    if isinstance(config, LuongConfig) and not config.is_end_attended:
        return False
    if not isinstance(config, Attentive):
        return True
    return config.attention.window == "global" and not config.attention.is_monotonic


def distance(one: Tensor, other: Tensor) -> float:
    """The largest difference; infinite where anything is NaN."""
    difference = (one - other).abs()
    return float("inf") if bool(difference.isnan().any()) else float(difference.max()) if difference.numel() else 0.0
