"""Attention of heedful in models of Hugging Face's transformers, through their `AttentionInterface`."""

import importlib
import warnings
from collections.abc import Callable
from typing import Any, Final

import torch
from torch import Tensor, nn

from heedful.attention.dispatch import attend
from heedful.attention.interface import Normalizer, Score
from heedful.attention.scores import Dot, Function
from heedful.attention.softmax import SOFTMAX
from heedful.errors import UsageError, needed_for
from heedful.layers.normalizing import NormalizerLayer

NAME: Final = "heedful"
"""Name of the attention in transformers, as `attn_implementation` has it."""

_SCORE, _NORMALIZER = "heedful_score", "heedful_normalizer"
_REFUSED: Final = ("position_bias", "softcap", "s_aux")
"""Arguments of models whose attention adds numbers to scores, bounds them, or attends to nothing in part."""
_UNMASKED: Final = (
    "this version of transformers has no AttentionMaskInterface: it may give the attention no mask, and then padding "
    "is attended to; take transformers 5"
)
ScoreMaker = Callable[[Any, Any], Any]
"""Class of a score, function from the sizes of a query and a key to a score, or from queries and keys to scores."""


def use_in_transformers(model: nn.Module, score: ScoreMaker | None = None, normalizer: Normalizer = SOFTMAX) -> None:
    """Let a model of transformers attend by heedful, so that scores and normalizers can be replaced and recorded.

    Every attention of the model gets a score, as a module of its own, whose parameters are trained and stored with the
    model's; `heedful.capture` records it. The mask is registered with transformers' `AttentionMaskInterface` too:
    without it, transformers gives an attention of one's own no mask, and padding would be attended to without a word;
    a version of transformers that lacks it is warned of.
    `model.set_attn_implementation("sdpa")` undoes it.

    Args:
        model: model of transformers 5 whose attention goes through `AttentionInterface`, such as BERT, BART or Llama.
        score: class of the score, or a function from the sizes of a query and a key of one head to a score; a plain
            function from queries and keys to scores will do (`scores.Function`). None = the model's own scaled dot
            product.
        normalizer: map from scores to weights.

    Raises:
        MissingExtra: transformers is not installed.
        UsageError: the model has no attention that goes through `AttentionInterface`.

    Example:
        >>> from transformers import BertConfig, BertModel
        >>> from heedful import capture
        >>> from heedful.attention import Sparsemax
        >>> sizes = dict(hidden_size=8, num_attention_heads=2, num_hidden_layers=1, intermediate_size=8, vocab_size=9)
        >>> model = BertModel(BertConfig(**sizes)).eval()
        >>> use_in_transformers(model, normalizer=Sparsemax())
        >>> with torch.no_grad(), capture(model) as captured:
        ...     _ = model(torch.tensor([[2, 5, 3]]))
        >>> {name: list(captured.weights(name).shape) for name in captured.calls}
        {'encoder.layer.0.attention.self': [1, 2, 3, 3]}
    """
    attentions, masks = _interfaces()
    layers = [module for module in model.modules() if hasattr(module, "is_causal") and _head_size(module)]
    choose = getattr(model, "set_attn_implementation", None)
    if not layers or not callable(choose):
        raise UsageError(
            f"{type(model).__name__}: no attention that goes through AttentionInterface of transformers; models that "
            "have their own, such as T5, cannot be changed"
        )
    first = next(model.parameters())
    for layer in layers:
        size = _head_size(layer)
        layer.add_module(_SCORE, _built(score, size).to(first))
        layer.add_module(_NORMALIZER, NormalizerLayer(normalizer).to(first))
    attentions.register(NAME, _attention)
    if masks is None:
        warnings.warn(_UNMASKED, stacklevel=2)
    else:
        masks.register(NAME, _mask)
    choose(NAME)


def _interfaces() -> tuple[Any, Any]:
    """Tables of attentions and of their masks in transformers; None in place of the second where there is none.

    Raises:
        MissingExtra: transformers is not installed.
    """
    with needed_for("attention in models of transformers"):
        transformers = importlib.import_module("transformers")
    return transformers.AttentionInterface, getattr(transformers, "AttentionMaskInterface", None)


def _built(score: ScoreMaker | None, size: int) -> Score:
    """Score of queries and keys of a size: made by a class or a function of sizes, or a plain function of both."""
    if score is None or isinstance(score, type):
        return (score or Dot)(size, size)
    try:
        built = score(size, size)
    except (TypeError, AttributeError):  # a function of tensors, which sizes are not
        return Function(score)
    return built if isinstance(built, Score) else Function(score)


def _head_size(module: nn.Module) -> int:
    size = getattr(module, "head_dim", getattr(module, "attention_head_size", 0))
    return size if isinstance(size, int) else 0


def _mask(*sizes: Any, **settings: Any) -> Tensor | None:
    """Table [batch, 1, query, key] of bools, True = may attend; never left out for a causal attention."""
    from transformers.masking_utils import sdpa_mask

    return sdpa_mask(*sizes, **{**settings, "allow_is_causal_skip": False})


def _attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    **settings: Any,
) -> tuple[Tensor, None]:
    """Attend as transformers asks: [batch, head, query, size] to [batch, query, head, size].

    Raises:
        UsageError: the model asks for something that is no score, mask and normalizer, or its attention has no score.
    """
    for name in _REFUSED:
        if settings.get(name) is not None:
            raise UsageError(f"{type(module).__name__}: its attention has {name}, which heedful's has not")
    score, layer = (module.get_submodule(name) if hasattr(module, name) else None for name in (_SCORE, _NORMALIZER))
    if not isinstance(score, Score) or not isinstance(layer, NormalizerLayer):
        raise UsageError(f"{type(module).__name__}: has no score; call use_in_transformers(model)")
    groups = query.shape[1] // key.shape[1]
    if groups > 1:  # several heads share keys and values
        key, value = (each.repeat_interleave(groups, dim=1) for each in (key, value))
    if type(score) is Dot:
        query = query * (query.shape[-1] ** -0.5 if scaling is None else scaling)
    attended = attend(
        query, key, value, score=score, mask=_table(module, attention_mask), normalizer=layer(), dropout=dropout
    )
    return attended.context.transpose(1, 2).contiguous(), None


def _table(module: nn.Module, mask: Tensor | None) -> Tensor | None:
    """Table of bools of a mask of transformers.

    Raises:
        UsageError: the mask has numbers to add to scores.
    """
    if mask is None or mask.dtype == torch.bool:
        return mask
    hidden = mask <= torch.finfo(mask.dtype).min  # as transformers writes it
    if bool(mask.masked_fill(hidden, 0.0).any()):
        raise UsageError(f"{type(module).__name__}: its mask adds numbers to scores, which heedful's has not")
    return ~hidden
