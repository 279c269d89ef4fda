"""Experiments with attention: a model that translates with some of its attention weights replaced."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Annotated, Literal, final

import torch
from pydantic import Field
from torch import Tensor, nn

from heedful.attention.dispatch import observer
from heedful.attention.editing import editor
from heedful.attention.interface import Attended, Score
from heedful.config.base import Config
from heedful.engines.engine import Stepwise
from heedful.inspection.layers import Role, natural_order, role_of
from heedful.models.engine import TorchEngine
from heedful.models.interface import Seq2Seq
from heedful.search.inputs import InputArrays
from heedful.search.interface import Engine, IntArray, StepScores

Position = Annotated[int, Field(ge=0, le=1_000_000)]


@final
class AttentionChange(Config):
    """Replacement of the attention weights of one head, or of all heads of a layer."""

    role: Role
    layer: int = Field(ge=0, le=1000)
    head: int = Field(default=-1, ge=-1, le=1000)
    """Index of the head; -1 = all."""
    kind: Literal["off", "uniform", "set"]
    """off: weights of zero, so that the head contributes nothing. uniform: the same weight for every position. set: all
    weight on some positions."""
    steps: tuple[Position, ...] = ()
    """Steps of the output at which the weights are set; for "set" alone."""
    positions: tuple[Position, ...] = ()
    """Positions that share the weight; for "set" alone."""


@final
class _ChangedEngine(Engine):
    """PyTorch engine of one source that counts steps, for changes of single ones."""

    def __init__(self, model: Seq2Seq, changes: Sequence[AttentionChange], with_weights: bool) -> None:
        self._engine = TorchEngine(model, with_weights)
        self._model = model
        self._changes = changes
        self._step = 0

    def start(self, inputs: InputArrays, num_hypotheses: int) -> object:
        with changed_attention(self._model, self._changes):
            return self._engine.start(inputs, num_hypotheses)

    def step(
        self, state: object, tokens: IntArray, parents: IntArray | None, keep: IntArray | None
    ) -> tuple[StepScores, object]:
        with changed_attention(self._model, self._changes, self._step):
            self._step += 1
            return self._engine.step(state, tokens, parents, keep)


def changed_backend(model: Seq2Seq, changes: Sequence[AttentionChange], max_length: int) -> Stepwise:
    """Make a backend of a model with changed attention.

    Args:
        model: in evaluation mode; it is not changed.
        changes: replacements; later ones win.
        max_length: largest number of tokens of an output.

    Returns:
        A backend for searches of one source each.
    """

    def make_engine(with_weights: bool) -> Engine:
        return _ChangedEngine(model, changes, with_weights)

    return Stepwise("torch", make_engine, max_length, bool(model.alignment))


@contextmanager
def changed_attention(model: nn.Module, changes: Sequence[AttentionChange], step: int | None = None) -> Generator[None]:
    """Replace attention weights of a model within the context.

    Args:
        model: model whose attention is changed.
        step: index of the token that is generated; None = queries are the steps, as with a whole target at once.

    Yields:
        Nothing.
    """
    if not changes:
        yield
        return
    owners = _owners(model)
    num_seen: dict[tuple[Role, int], int] = {}
    outer = observer.get()

    def edit(score: Score, weights: Tensor) -> Tensor:
        owner = owners.get(score)
        if owner is None:
            return weights
        first = num_seen.get(owner, 0) if step is None else step
        # An RNN attends once for each step, a Transformer once for all of them.
        num_seen[owner] = first + weights.shape[-2]
        for change in changes:
            if owner == (change.role, change.layer):
                weights = _replaced(weights, change, first, is_one_step=step is not None)
        return weights

    def watch(score: Score, attended: Attended) -> None:
        if outer is not None:
            outer(score, attended)

    tokens = editor.set(edit), observer.set(watch)
    try:
        yield
    finally:
        editor.reset(tokens[0])
        observer.reset(tokens[1])


def _owners(model: nn.Module) -> dict[nn.Module, tuple[Role, int]]:
    """Role and layer of every score of a model."""
    counts: dict[Role, int] = {}
    owners: dict[nn.Module, tuple[Role, int]] = {}
    named = {name.rpartition(".")[0] or name: each for name, each in model.named_modules() if isinstance(each, Score)}
    for name in sorted(named, key=natural_order):
        role = role_of(name)
        owners[named[name]] = role, counts.get(role, 0)
        counts[role] = counts.get(role, 0) + 1
    return owners


def _replaced(weights: Tensor, change: AttentionChange, first: int, is_one_step: bool) -> Tensor:
    """Weights [source, (head,) query, key] after one change; queries are steps from `first`, or all of step `first`."""
    has_heads = weights.dim() == 4
    heads = slice(None) if change.head < 0 or not has_heads else slice(change.head, change.head + 1)
    queries: slice | Tensor = slice(None)
    if change.kind == "set":
        if is_one_step and first not in change.steps:
            return weights
        if not is_one_step:
            steps = [each - first for each in change.steps if 0 <= each - first < weights.shape[-2]]
            queries = torch.tensor(steps, dtype=torch.int64, device=weights.device)
    index = (slice(None), heads, queries) if has_heads else (slice(None), queries)
    changed = weights.clone()
    changed[index] = _new_weights(weights[index], change)
    return changed


def _new_weights(weights: Tensor, change: AttentionChange) -> Tensor:
    if change.kind == "uniform":
        # Weights of zero stay zero where a mask hides the key, as in the decoder's attention over later tokens.
        seen = (weights > 0).to(weights.dtype)
        return seen / seen.sum(dim=-1, keepdim=True).clamp_min(1)
    changed = torch.zeros_like(weights)
    positions = [each for each in change.positions if each < weights.shape[-1]]
    if change.kind == "set" and positions:
        changed[..., positions] = 1.0 / len(positions)
    return changed
