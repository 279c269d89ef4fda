"""Recurrent units over sequences of different lengths, one after another in memory, without padding."""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.layers.recurrent import BidirectionalEncoder, RecurrentUnit


@final
@dataclass(frozen=True)
class _TimeOrder:
    """Order in which units read all sequences at once: the first items of all, then the second ones, and so on.

    Longer sequences come first, so that those that go on at a step are the first rows of the step before.
    """

    onward: Int[Tensor, " item"]
    """[item] places of the items in memory, from the first item of each sequence to the last."""
    back: Int[Tensor, " item"]
    """[item] the same from the last item to the first."""
    num_rows: list[int]
    """Number of sequences that have an item at each step."""

    @classmethod
    def of(cls, lengths: Int[Tensor, " sequence"]) -> "_TimeOrder":
        """Find the order.

        Args:
            lengths: [sequence] number of items of each, at least 1; the sequences lie one after another.

        Returns:
            The order.

        Example:
            >>> order = _TimeOrder.of(torch.tensor([1, 3, 2]))
            >>> order.onward.tolist(), order.back.tolist(), order.num_rows
            ([1, 4, 0, 2, 5, 3], [3, 5, 0, 2, 4, 1], [3, 2, 1])
        """
        longest_first = torch.argsort(lengths, descending=True, stable=True)
        own = lengths[longest_first]
        starts = (lengths.cumsum(0) - lengths)[longest_first]
        positions = torch.arange(int(own.sum()), device=own.device) - (own.cumsum(0) - own).repeat_interleave(own)
        by_step = torch.argsort(positions, stable=True)
        onward = (starts.repeat_interleave(own) + positions)[by_step]
        back = ((starts + own - 1).repeat_interleave(own) - positions)[by_step]
        return cls(onward, back, positions.bincount().tolist())


def run_ragged(
    encoder: BidirectionalEncoder, items: Float[Tensor, "item input_size"], lengths: Int[Tensor, " sequence"]
) -> Float[Tensor, "item _"]:
    """Read sequences in both directions.

    Args:
        items: [item, input_size] items of all sequences, one sequence after another.
        lengths: [sequence] number of items of each, at least 1.

    Returns:
        [item, 2 * hidden] forward state, then backward state, as `encoder` gives them where nothing is padding.

    Cost: as many steps in each direction as the longest sequence has items; a step computes the sequences that have an
        item there, and no padding.
    """
    order = _TimeOrder.of(lengths)
    units = ((encoder.forward_unit, order.onward), (encoder.backward_unit, order.back))
    return torch.cat([_run(unit, items, places, order.num_rows) for unit, places in units], dim=-1)


def _run(unit: RecurrentUnit, items: Tensor, places: Tensor, num_rows: list[int]) -> Tensor:
    state = unit.begin(items[places[: num_rows[0]]])
    outputs: list[Tensor] = []
    for mapped in unit.input_map(items)[places].split(num_rows):
        if len(mapped) < len(state[0]):
            state = tuple(part[: len(mapped)] for part in state)
        state = unit.step(mapped, state)
        outputs.append(state[0])
    inverse = torch.empty_like(places)
    inverse[places] = torch.arange(len(places), device=places.device)
    return torch.cat(outputs)[inverse]
