"""Multi-head attention: several small attentions side by side, each with its own projections."""

from dataclasses import replace
from typing import final

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn
from torch.nn import functional

from heedful.attention.dispatch import attend, observer
from heedful.attention.interface import Attended, Need, PreparedKey, Score
from heedful.attention.masks import Mask, causal, graph
from heedful.attention.scores import ScaledDot
from heedful.attention.softmax import SOFTMAX, Softmax
from heedful.errors import ShapeError, UsageError
from heedful.layers.nested_tensors import nest_as, pad_operands
from heedful.layers.normalizing import NormalizerLayer
from heedful.layers.torch_masks import read_masks


@final
class MultiheadAttention(nn.Module):
    """concat_i(attention(query Wq_i, key Wk_i, value Wv_i)) Wo; Vaswani et al. 2017, section 3.2.2.

    Drop-in replacement of torch.nn.MultiheadAttention, with the same arguments, parameters, initialisation and results.
    Differences: a query that may attend nothing gets zero weights and a zero context, not NaN; returned weights are
    those before dropout; nested tensors are accepted in training too, with masks, and padded inside. `project` and
    `attend` are the same attention in two steps, so that keys and values can be projected once and cached. With
    `batch_first`, [batch, query, embed_dim] stays so; keys are [batch, key, kdim], values [batch, key, vdim].
    """

    # torch's encoder layers read this attribute; if it is true, they bypass this module with code of their own.
    _qkv_same_embed_dim = False

    in_proj_weight: nn.Parameter | None
    q_proj_weight: nn.Parameter | None
    k_proj_weight: nn.Parameter | None
    v_proj_weight: nn.Parameter | None
    in_proj_bias: nn.Parameter | None
    bias_k: nn.Parameter | None
    bias_v: nn.Parameter | None
    score: Score
    """Score of each head, for depth embed_dim / num_heads; all heads share its parameters."""
    normalizer: NormalizerLayer
    """Normalizer; each head has its own learned parameters of it."""

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: torch.device | str | int | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        """Create the four projections.

        Args:
            embed_dim: features of queries and of the output, divisible by `num_heads`.
            num_heads: number of heads, each of depth embed_dim / num_heads.
            dropout: probability in [0, 1) of leaving out a weight.
            bias: whether the projections have biases.
            add_bias_kv: whether `forward` adds a learned key and value to every sequence.
            add_zero_attn: whether `forward` adds a key and value of zeros to every sequence, after the learned one.
            kdim: features of keys; None = embed_dim.
            vdim: features of values; None = embed_dim.
            batch_first: whether inputs and outputs of `forward` are [batch, position, size] rather than [position,
                batch, size].
            device: device of the parameters.
            dtype: dtype of the parameters.

        Raises:
            ShapeError: a size is not positive, or embed_dim is not divisible by the number of heads.
        """
        super().__init__()
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        if min(embed_dim, num_heads, self.kdim, self.vdim) < 1:
            raise ShapeError(
                f"multi-head attention: sizes must be positive, got embed_dim {embed_dim}, num_heads {num_heads}, "
                f"kdim {self.kdim}, vdim {self.vdim}"
            )
        if embed_dim % num_heads:
            raise ShapeError(f"multi-head attention: embed_dim {embed_dim} is not divisible by {num_heads} heads")
        self.embed_dim = embed_dim
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.add_zero_attn = add_zero_attn

        def parameter(*shape: int) -> nn.Parameter:
            return nn.Parameter(torch.empty(shape, device=device, dtype=dtype))

        is_packed = self.kdim == self.vdim == embed_dim
        self.in_proj_weight = parameter(3 * embed_dim, embed_dim) if is_packed else None
        self.q_proj_weight = None if is_packed else parameter(embed_dim, embed_dim)
        self.k_proj_weight = None if is_packed else parameter(embed_dim, self.kdim)
        self.v_proj_weight = None if is_packed else parameter(embed_dim, self.vdim)
        self.in_proj_bias = parameter(3 * embed_dim) if bias else None
        self.out_proj = nn.Linear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        self.bias_k = parameter(1, 1, embed_dim) if add_bias_kv else None
        self.bias_v = parameter(1, 1, embed_dim) if add_bias_kv else None
        self.score = ScaledDot(self.head_dim, self.head_dim)
        self.normalizer = NormalizerLayer(SOFTMAX, num_heads)
        self._draw()

    def _draw(self) -> None:
        """Draw as torch.nn.MultiheadAttention does: the same numbers from the same seed."""
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                nn.init.xavier_uniform_(weight)
        for bias in (self.in_proj_bias, self.out_proj.bias):
            if bias is not None:
                nn.init.zeros_(bias)
        for added in (self.bias_k, self.bias_v):
            # A meta parameter has no content, and torch would import a compiler for it.
            if added is not None and not added.is_meta:
                nn.init.xavier_normal_(added)

    def draw_each_projection(self) -> None:
        """Redraw each of the four projections, xavier-uniform by its own two sizes.

        The constructor draws as torch does: the three input projections with the bounds of one matrix three times as
        tall, smaller by a factor sqrt(2), and the output projection with nn.Linear's bounds, smaller by sqrt(3).
        """
        blocks = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        for block in blocks if self.in_proj_weight is None else self.in_proj_weight.chunk(3):
            if block is not None:
                nn.init.xavier_uniform_(block)
        nn.init.xavier_uniform_(self.out_proj.weight)

    def forward(
        self,
        query: Float[Tensor, "... embed_dim"],
        key: Float[Tensor, "... key_dim"],
        value: Float[Tensor, "... value_dim"],
        key_padding_mask: Shaped[Tensor, "*#batch key"] | None = None,
        need_weights: bool = True,
        attn_mask: Shaped[Tensor, "... query key"] | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Float[Tensor, "... embed_dim"], Float[Tensor, "... query attended"] | None]:
        """Attend as torch.nn.MultiheadAttention does.

        Masks have torch's meaning, the opposite of `heedful.attention.masks`: True = may *not* attend. A floating-point
        mask is added to the scores.

        Args:
            query: of shape [query, batch, embed_dim], with `batch_first` [batch, query, embed_dim], or without batch;
                or nested, [batch, query, embed_dim], if key and value are.
            key: as the query, of size kdim; the same tensor as `query` or `value` is projected together with it.
            value: as the key, of size vdim.
            key_padding_mask: bool or real, [batch, key] or [key].
            need_weights: whether to return weights; without them the fused kernel runs.
            attn_mask: bool or real, [query, key] or [batch * num_heads, query, key].
            average_attn_weights: whether weights are averaged over the heads.
            is_causal: promise that `attn_mask` is the causal triangle, so that it need not be read; used if there is no
                other mask.

        Returns:
            The output, shaped like the query, and, if requested, weights [batch, query, key], or [batch, num_heads,
            query, key] if not averaged; without a batch axis if the query has none.

        Raises:
            UsageError: a dtype differs from that of the parameters, a mask is neither bool nor floating-point,
                `is_causal` is given without a mask, or only some tensors are nested.
            ShapeError: axes do not agree.

        Cost: one product for the projections where query, key and value are the same tensor.

        Example:
            >>> layer = MultiheadAttention(8, num_heads=2, batch_first=True)
            >>> output, weights = layer(torch.ones(1, 3, 8), torch.ones(1, 5, 8), torch.ones(1, 5, 8))
            >>> list(output.shape), list(weights.shape)
            ([1, 3, 8], [1, 3, 5])
        """
        if query.is_nested or key.is_nested or value.is_nested:
            if key_padding_mask is not None:
                raise UsageError("multi-head attention: nested tensors have no padding, so give no key_padding_mask")
            options = (need_weights, attn_mask, average_attn_weights, is_causal)
            return self._forward_nested((query, key, value), options)
        self._check(query, key, value)
        if is_causal and attn_mask is None:
            raise UsageError("multi-head attention: is_causal is a hint about attn_mask; give that mask too")
        heads = self._project_all(query, key, value)
        num_added = int(self.bias_k is not None) + int(self.add_zero_attn)
        (batch, _, num_queries, _), num_keys = heads[0].shape, heads[1].shape[-2] - num_added
        if is_causal and key_padding_mask is None and not need_weights and num_queries == num_keys and not num_added:
            allowed, bias, mask = None, None, causal()
        else:
            shape = (batch, self.num_heads, num_queries, num_keys)
            allowed, bias = read_masks(key_padding_mask, attn_mask, shape, num_added)
            mask = None if allowed is None else graph(allowed)
        if bias is None:
            attended = self._attend_heads(*heads, mask, ("weights",) if need_weights else ())
        else:
            attended = self._attend_biased(*heads, allowed, bias, need_weights)
        context, weights = attended.context, attended.weights
        if query.dim() == 2:
            context = context[0]
        elif not self.batch_first:
            context = context.transpose(0, 2)
        output = self._join_heads(context)
        if not need_weights or weights is None:
            return output, None
        weights = weights.mean(dim=1) if average_attn_weights else weights
        return output, weights[0] if query.dim() == 2 else weights

    def _forward_nested(
        self, operands: tuple[Tensor, Tensor, Tensor], options: tuple[bool, Tensor | None, bool, bool]
    ) -> tuple[Tensor, Tensor | None]:
        """Attend with nested tensors: as with padded ones whose padding is masked."""
        padded, no_query, no_key = pad_operands(*operands)
        if not self.batch_first:
            # One tensor in several places stays one tensor, because it is projected in one product.
            turned = {id(each): each.transpose(0, 1) for each in padded}
            padded = (turned[id(padded[0])], turned[id(padded[1])], turned[id(padded[2])])
        output, weights = self(*padded, no_key, *options)
        if weights is not None:
            weights = weights.masked_fill(
                no_query[:, None, :, None] if weights.dim() == 4 else no_query[..., None], 0.0
            )
        return nest_as(operands[0], output if self.batch_first else output.transpose(0, 1)), weights

    def project(self, vectors: Float[Tensor, "*batch position size"], first: int, last: int) -> tuple[Tensor, ...]:
        """Compute some of the projections query (0), key (1), value (2) in one product, and split heads.

        Args:
            vectors: [*batch, position, size].
            first: first of the three.
            last: index after the last.

        Returns:
            For each [*batch, head, position, depth].

        Raises:
            ShapeError: the requested projections have inputs of different sizes.
        """
        sizes = {(self.embed_dim, self.kdim, self.vdim)[index] for index in range(first, last)}
        if len(sizes) > 1:
            raise ShapeError(
                f"multi-head attention: query size {self.embed_dim}, key size {self.kdim} and value size {self.vdim} "
                "differ; project them one by one"
            )
        rows = slice(first * self.embed_dim, last * self.embed_dim)
        weight = self.input_weight(first, last)
        bias = None if self.in_proj_bias is None else self.in_proj_bias[rows].to(weight.dtype)
        projected = functional.linear(vectors, weight, bias)
        split = projected.unflatten(-1, (last - first, self.num_heads, self.head_dim))
        return tuple(part.transpose(-3, -2) for part in split.unbind(-3))

    def input_weight(self, first: int, last: int) -> Float[Tensor, "_ _"]:
        """Return the weights of some of the projections query (0), key (1), value (2), stacked vertically.

        Args:
            first: first of the three.
            last: index after the last.

        Returns:
            [(last - first) * embed_dim, input size].
        """
        if self.in_proj_weight is None:
            each = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)[first:last]
            parts: list[Tensor] = [weight for weight in each if weight is not None]
            return parts[0] if len(parts) == 1 else torch.cat(parts)
        # Not a slice of all rows, because autocast caches converted parameters, but not slices.
        is_whole = last - first == 3
        return self.in_proj_weight if is_whole else self.in_proj_weight[first * self.embed_dim : last * self.embed_dim]

    def attend(
        self,
        query: Float[Tensor, "*#batch head query depth"],
        key: Float[Tensor, "*#batch head key depth"] | PreparedKey,
        value: Float[Tensor, "*#batch head key depth"],
        mask: Mask | None = None,
        need: tuple[Need, ...] = (),
    ) -> tuple[Float[Tensor, "*batch query embed_dim"], Attended]:
        """Attend with projected heads, and map their contexts back.

        Args:
            query: [*batch, head, query, depth].
            key: [*batch, head, key, depth], or the result of `score.prepare` on it.
            value: [*batch, head, key, depth].
            mask: who may attend whom; True = may attend.
            need: requested results, each with a head axis before the query axis.

        Returns:
            [*batch, query, embed_dim], and the result of `attend`.
        """
        attended = self._attend_heads(query, key, value, mask, need)
        return self._join_heads(attended.context), attended

    def _project_all(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Heads [batch, head, position, depth] of query, key and value, with the added keys and values."""
        if query is key and key is value:
            heads = self.project(query, 0, 3)
        elif key is value:
            heads = (*self.project(query, 0, 1), *self.project(key, 1, 3))
        else:
            heads = (*self.project(query, 0, 1), *self.project(key, 1, 2), *self.project(value, 2, 3))
        if query.dim() == 2:
            heads = tuple(part[None] for part in heads)
        elif not self.batch_first:
            heads = tuple(part.transpose(0, 2) for part in heads)
        of_query, of_key, of_value = heads
        return of_query, self._add_to(of_key, self.bias_k), self._add_to(of_value, self.bias_v)

    def _add_to(self, heads: Tensor, learned: Tensor | None) -> Tensor:
        """Append the learned key or value, and the zero one, to those of the sequence."""
        shape = (heads.shape[0], self.num_heads, 1, self.head_dim)
        parts = [heads]
        if learned is not None:
            parts.append(learned.to(heads.dtype).view(1, *shape[1:]).expand(shape))
        if self.add_zero_attn:
            parts.append(heads.new_zeros(shape))
        return heads if len(parts) == 1 else torch.cat(parts, dim=-2)

    def _attend_heads(
        self, query: Tensor, key: Tensor | PreparedKey, value: Tensor, mask: Mask | None, need: tuple[Need, ...]
    ) -> Attended:
        dropout = self.dropout if self.training else 0.0
        normalizer = self.normalizer()
        return attend(query, key, value, score=self.score, mask=mask, normalizer=normalizer, dropout=dropout, need=need)

    def _attend_biased(
        self, query: Tensor, key: Tensor, value: Tensor, allowed: Tensor | None, bias: Tensor, need_weights: bool
    ) -> Attended:
        """Attention with finite numbers added to the scores, which `attend` does not support.

        Raises:
            UsageError: the attention is not scaled dot products with softmax.
        """
        # Not compared with SOFTMAX itself, because nn.TransformerEncoder copies its layers.
        normalizer = self.normalizer.normalizer
        is_softmax = isinstance(normalizer, Softmax) and normalizer.temperature == 1.0
        if not isinstance(self.score, ScaledDot) or not is_softmax:
            raise UsageError("multi-head attention: a floating-point mask needs scaled dot products and softmax")
        bias = bias.to(query.dtype)
        empty = None
        if allowed is not None:
            # An empty row is computed over all keys, then zeroed, so that neither it nor its gradient is NaN.
            empty = ~allowed.any(dim=-1, keepdim=True)
            bias = bias.masked_fill(~(allowed | empty), -torch.inf)
        dropout, scale = self.dropout if self.training else 0.0, self.score.scale
        watch = None if torch.compiler.is_compiling() else observer.get()
        weights = None
        if need_weights or watch:
            weights = torch.softmax((query * scale) @ key.mT + bias, dim=-1)
            weights = weights if empty is None else weights.masked_fill(empty, 0.0)
        if need_weights and weights is not None:
            context = functional.dropout(weights, dropout).to(value.dtype) @ value
            attended = Attended(context, "plain", weights)
        else:
            context = functional.scaled_dot_product_attention(query, key, value, bias, dropout, scale=scale)
            attended = Attended(context if empty is None else context.masked_fill(empty, 0.0), "sdpa")
        if watch:
            watch(self.score, replace(attended, weights=weights))
        return attended

    def _join_heads(self, context: Tensor) -> Tensor:
        return self.out_proj(context.transpose(-3, -2).flatten(-2))

    def _check(self, query: Tensor, key: Tensor, value: Tensor) -> None:
        """Refuse inputs that cannot be projected.

        Raises:
            UsageError: a dtype differs from that of the parameters.
            ShapeError: axes do not agree.
        """
        tensors = (query, key, value)
        shapes = f"query {list(query.shape)}, key {list(key.shape)}, value {list(value.shape)}"
        if query.dim() not in {2, 3} or {key.dim(), value.dim()} != {query.dim()}:
            raise ShapeError(
                f"multi-head attention: expected [position, size], all three with a batch axis or none, got {shapes}"
            )
        sizes = (self.embed_dim, self.kdim, self.vdim)
        if tuple(tensor.shape[-1] for tensor in tensors) != sizes:
            raise ShapeError(
                f"multi-head attention: made for query size {sizes[0]}, key size {sizes[1]}, value size {sizes[2]}; "
                f"got {shapes}"
            )
        batch_axis = 0 if self.batch_first else 1
        is_one_batch = query.dim() == 2 or query.shape[batch_axis] == key.shape[batch_axis]
        if key.shape[:-1] != value.shape[:-1] or not is_one_batch:
            raise ShapeError(f"multi-head attention: keys, values or batches differ in number: {shapes}")
        dtype = self.out_proj.weight.dtype
        is_converted = torch.is_autocast_enabled(query.device.type) and all(map(torch.is_floating_point, tensors))
        if any(tensor.dtype != dtype for tensor in tensors) and not is_converted:
            names = ", ".join(str(tensor.dtype).removeprefix("torch.") for tensor in tensors)
            raise UsageError(
                f"multi-head attention: query, key and value are {names}, but its parameters "
                f"{str(dtype).removeprefix('torch.')}; convert one of them with .to(dtype)"
            )
