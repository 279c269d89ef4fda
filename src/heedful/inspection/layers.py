"""Attention weights of every layer and head of a sequence-to-sequence model, for one source and one output."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Literal, Protocol, final, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heedful.inspection.capture import capture
from heedful.models.inputs import inputs_on
from heedful.models.interface import Seq2Seq
from heedful.search.inputs import InputArrays
from heedful.text.vocabulary import BOS

Role = Literal["cross", "encoder", "decoder"]
"""Part of a model that attends: decoder over source, encoder over source, decoder over the output so far."""
ROLES: Final[tuple[Role, ...]] = ("cross", "encoder", "decoder")


@runtime_checkable
class Rooted(Protocol):
    """Module that owns an attention of words to their heads, among which a root stands before the words."""

    has_root: ClassVar[bool]

    def tree(self, weights: Tensor) -> Tensor | None:
        """Find the tree whose arcs have the largest sum of weights.

        Args:
            weights: [*batch, word, root and words].

        Returns:
            [*batch, word] index of the head of each word, 0 = the root; None if weights are of no trees.
        """
        ...


@final
@dataclass(frozen=True, eq=False)
class LayerWeights:
    """Attention weights of one layer."""

    role: Role
    layer: int
    """Index among the layers of its role, from 0, the lowest first."""
    weights: NDArray[np.float32]
    """[head, query, key]"""
    has_root: bool = False
    """Whether the first key is a root that stands before the tokens."""
    tree: NDArray[np.int64] | None = None
    """[head, query] key that is the head of a token in the tree with the largest sum of weights; None without trees."""


def layer_weights(model: Seq2Seq, source: InputArrays, output: Sequence[int]) -> list[LayerWeights]:
    """Compute the attention weights of every layer and head while a model generates a given output.

    Args:
        output: token ids of the output, with EOS if the model ended it; row i of the decoder's weights belongs to token
            i.

    Returns:
        The weights, by role and layer; layers whose calls cannot be joined into one matrix are left out.
    """
    device = next(model.parameters()).device
    target_in = torch.tensor([[BOS, *output[:-1]]], device=device)
    with torch.inference_mode(), capture(model) as captured:
        model(inputs_on(device, source), target_in)
    layers: list[LayerWeights] = []
    counts = dict.fromkeys(ROLES, 0)
    for name in sorted(captured.calls, key=natural_order):
        parts = [call.weights for call in captured.calls[name] if call.weights is not None]
        role = role_of(name)
        if not parts or len({(*part.shape[:-2], part.shape[-1]) for part in parts}) != 1:
            continue
        # An RNN attends once a step; a Transformer attends once, with a head axis before the queries.
        weights = torch.cat(parts, dim=-2)[0].float().cpu()
        weights = weights.reshape(-1, *weights.shape[-2:])
        owner = model.get_submodule(name)
        has_root = isinstance(owner, Rooted) and owner.has_root
        tree = owner.tree(weights) if isinstance(owner, Rooted) else None
        heads = None if tree is None else tree.numpy()
        layers.append(LayerWeights(role, counts[role], weights.numpy(), has_root, heads))
        counts[role] += 1
    return sorted(layers, key=lambda one: (ROLES.index(one.role), one.layer))


def role_of(name: str) -> Role:
    """Find the role of an attention by the name of its module.

    Args:
        name: dotted name, a key of `Captured.calls`.

    Example:
        >>> role_of("encoder_layers.0.self_attention"), role_of("decoder_layers.1.self_attention"), role_of("attention")
        ('encoder', 'decoder', 'cross')
    """
    if "encoder" in name:
        return "encoder"
    return "decoder" if "self" in name else "cross"


def natural_order(name: str) -> list[str | int]:
    """Make a sort key of a module's name that puts layer 10 after layer 9.

    Returns:
        Parts that compare as numbers do.
    """
    return [f"{int(part):09d}" if part.isdigit() else part for part in re.split(r"(\d+)", name)]
