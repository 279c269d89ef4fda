from typing import TypeVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from heedful.layers.recurrent import BidirectionalEncoder, Cell
from heedful.layers.recurrent_stack import BidirectionalStack, RecurrentStack

Module = TypeVar("Module", bound=nn.Module)
LENGTHS = torch.tensor([5, 2, 1, 7])


def make(cell: Cell, num_layers: int = 3, dropout: float = 0.0) -> RecurrentStack:
    torch.manual_seed(0)
    return perturbed(RecurrentStack(cell, 3, 4, num_layers, dropout))


def perturbed(module: Module) -> Module:
    """The same module in float64 with no parameter at a special value."""
    for parameter in module.double().parameters():
        nn.init.normal_(parameter, std=0.7)
    return module


def draw(seed: int = 1) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(len(LENGTHS), int(LENGTHS.max()), 3, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_steps_and_whole_sequences_are_the_same(cell: Cell):
    stack, inputs = make(cell), draw()
    whole, ends = stack.run(inputs)
    mapped, mapped_ends = stack.run_mapped(stack.units[0].input_map(inputs), zeros(stack))
    states = zeros(stack)
    for place in range(inputs.shape[1]):
        states = stack.step(stack.units[0].input_map(inputs[:, place]), states)
        assert float((states[-1][0] - whole[:, place]).detach().abs().max()) <= 1e-14
    assert float((mapped - whole).detach().abs().max()) <= 1e-14
    for layer in zip(states, ends, mapped_ends, strict=True):
        for one, other, third in zip(*layer, strict=True):
            assert float((one - other).detach().abs().max()) <= 1e-14
            assert float((one - third).detach().abs().max()) <= 1e-14


def zeros(stack: RecurrentStack) -> tuple[tuple[Tensor, ...], ...]:
    return tuple(unit.begin(draw()) for unit in stack.units)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_each_layer_reads_the_one_below(cell: Cell):
    stack, inputs = make(cell), draw()
    vectors = inputs
    for unit in stack.units:
        vectors, _ = unit.run(vectors)
    assert float((stack.run(inputs)[0] - vectors).detach().abs().max()) <= 1e-14


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_a_sequence_may_go_on_from_any_states(cell: Cell):
    stack, inputs = make(cell), draw()
    whole, whole_ends = stack.run(inputs)
    _, middle = stack.run(inputs[:, :3])
    rest, ends = stack.run(inputs[:, 3:], start=middle)
    assert float((rest - whole[:, 3:]).detach().abs().max()) <= 1e-14
    assert float((ends[1][0] - whole_ends[1][0]).detach().abs().max()) <= 1e-14
    mapped, _ = stack.run_mapped(stack.units[0].input_map(inputs[:, 3:]), middle)
    assert float((mapped - rest).detach().abs().max()) <= 1e-14


@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize("kind", [RecurrentStack, BidirectionalStack])
def test_padded_sequences_are_read_as_if_alone(cell: Cell, kind: type[RecurrentStack] | type[BidirectionalStack]):
    torch.manual_seed(0)
    stack, inputs = perturbed(kind(cell, 3, 4, 3)), draw()
    outputs, ends = stack.run(inputs, LENGTHS)
    for row, length in enumerate(LENGTHS.tolist()):
        alone, alone_ends = stack.run(inputs[row : row + 1, :length], torch.tensor([length]))
        assert float((outputs[row, :length] - alone[0]).detach().abs().max()) <= 1e-14
        for layer, alone_layer in zip(ends, alone_ends, strict=True):
            for one, other in zip(layer, alone_layer, strict=True):
                assert float((one[row] - other[0]).detach().abs().max()) <= 1e-14


def test_a_stack_is_pytorchs_lstm():
    stack, inputs = make("lstm", num_layers=2), draw()
    theirs = nn.LSTM(3, 4, num_layers=2, batch_first=True).double()
    with torch.no_grad():
        for layer, unit in enumerate(stack.units):
            getattr(theirs, f"weight_ih_l{layer}").copy_(unit.input_map.weight)
            getattr(theirs, f"weight_hh_l{layer}").copy_(unit.gates_map)
            getattr(theirs, f"bias_ih_l{layer}").copy_(unit.input_map.bias)
            getattr(theirs, f"bias_hh_l{layer}").zero_()
    packed = nn.utils.rnn.pack_padded_sequence(inputs, LENGTHS, batch_first=True, enforce_sorted=False)
    wanted, (hidden, cell) = theirs(packed)
    wanted, _ = nn.utils.rnn.pad_packed_sequence(wanted, batch_first=True)
    outputs, ends = stack.run(inputs, LENGTHS)
    real = torch.arange(7) < LENGTHS[:, None]
    assert float((outputs - wanted)[real].detach().abs().max()) <= 1e-14
    for layer, (mine_hidden, mine_cell) in enumerate(ends):
        assert float((mine_hidden - hidden[layer]).detach().abs().max()) <= 1e-14
        assert float((mine_cell - cell[layer]).detach().abs().max()) <= 1e-14


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_layers_above_read_both_directions(cell: Cell):
    torch.manual_seed(0)
    stack, inputs = perturbed(BidirectionalStack(cell, 3, 4, 2)), draw()
    first, second = (layer for layer in stack.layers if isinstance(layer, BidirectionalEncoder))
    outputs, ends = stack.run(inputs, LENGTHS)
    below, below_end = first.run(inputs, LENGTHS)
    above, above_end = second.run(below, LENGTHS)
    real = torch.arange(7) < LENGTHS[:, None]
    assert torch.equal(outputs[real], above[real])
    assert all(torch.equal(a, b) for a, b in zip(ends[0] + ends[1], below_end + above_end, strict=True))
    # Each direction ends where it has read everything.
    onward, back = above_end[0].chunk(2, dim=-1)
    assert torch.equal(onward, above[torch.arange(4), LENGTHS - 1, :4])
    assert torch.equal(back, above[:, 0, 4:])


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_dropout_is_between_layers_and_never_from_step_to_step(cell: Cell):
    # Were states dropped, a feature left out once would stay out of what the same layer makes of the next inputs.
    stack = make(cell, num_layers=1, dropout=0.5)
    inputs = torch.zeros(200, 4, 3, dtype=torch.float64)
    torch.manual_seed(0)
    outputs, _ = stack.train().run(inputs)
    assert bool((outputs == outputs[:1]).all())
    deep = make(cell, num_layers=2, dropout=0.5).train()
    outputs, _ = deep.run(inputs)
    # 2^4 ways to leave out features of four: the first outputs take as many values.
    assert len(torch.unique(outputs[:, 0].detach(), dim=0)) == 16
    stepped = deep.step(deep.units[0].input_map(inputs[:, 0]), tuple(unit.begin(inputs) for unit in deep.units))
    assert len(torch.unique(stepped[-1][0].detach(), dim=0)) == 16
    fewer, _ = perturbed(BidirectionalStack(cell, 3, 2, 2, 0.5)).train().run(inputs, torch.full((200,), 4))
    assert len(torch.unique(fewer[:, 0].detach(), dim=0)) > 16
    assert np.array_equal(*(deep.eval().run(inputs)[0].detach().numpy() for _ in range(2)))
