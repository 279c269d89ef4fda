"""PyTorch's own attention is recorded in unchanged models, fused paths included, and their outputs stay the same."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from heedful.inspection.capture import Captured, capture
from heedful.inspection.torch_attention import torch_attended

SIZE, HEADS = 8, 2
SOURCE = torch.Generator().manual_seed(5)
VECTORS = torch.randn(2, 5, SIZE, dtype=torch.float64, generator=SOURCE)
TARGETS = torch.randn(2, 3, SIZE, dtype=torch.float64, generator=SOURCE)
PADDING = torch.tensor([[False] * 5, [False, False, True, True, True]])


def make_encoder(norm_first: bool = False) -> nn.TransformerEncoder:
    torch.manual_seed(1)
    layer = nn.TransformerEncoderLayer(
        SIZE, HEADS, 16, 0.3, batch_first=True, norm_first=norm_first, dtype=torch.float64
    )
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=not norm_first)


def make_whole() -> nn.Transformer:
    torch.manual_seed(2)
    return nn.Transformer(SIZE, HEADS, 2, 2, 16, 0.3, batch_first=True, dtype=torch.float64)


def run_encoder(model: nn.Module) -> Tensor:
    return model(VECTORS, src_key_padding_mask=PADDING)


def run_causal(model: nn.Module) -> Tensor:
    mask = nn.Transformer.generate_square_subsequent_mask(5, dtype=torch.float64)
    return model(VECTORS, mask=mask, is_causal=True)


def run_whole(model: nn.Module) -> Tensor:
    mask = nn.Transformer.generate_square_subsequent_mask(3, dtype=torch.float64)
    return model(VECTORS, TARGETS, tgt_mask=mask, src_key_padding_mask=PADDING, memory_key_padding_mask=PADDING)


RUNS: list[tuple[Callable[[], nn.Module], Callable[[nn.Module], Tensor], int]] = [
    (make_encoder, run_encoder, 2),
    (lambda: make_encoder(norm_first=True), run_encoder, 2),
    (make_encoder, run_causal, 2),
    (make_whole, run_whole, 6),
]


@pytest.mark.parametrize("is_training", [True, False])
@pytest.mark.parametrize("has_grad", [True, False])
@pytest.mark.parametrize(("make", "call", "num_attentions"), RUNS)
@pytest.mark.filterwarnings("ignore:.*nested tensors.*")
def test_outputs_are_the_same_to_the_bit_and_every_attention_is_recorded(
    make: Callable[[], nn.Module],
    call: Callable[[nn.Module], Tensor],
    num_attentions: int,
    has_grad: bool,
    is_training: bool,
):
    model = make().train(is_training)
    with torch.set_grad_enabled(has_grad):
        torch.manual_seed(7)
        alone = call(model)
        random_after = torch.get_rng_state()
        torch.manual_seed(7)
        with capture(model) as captured:
            watched = call(model)
    assert torch.equal(watched, alone)
    assert torch.equal(torch.get_rng_state(), random_after)
    assert len(captured.calls) == num_attentions
    for name in captured.calls:
        weights = captured.weights(name)
        assert weights.shape[:2] == (2, HEADS)
        sums = weights.sum(dim=-1)
        is_real = sums != 0  # queries that are padding of a nested tensor
        torch.testing.assert_close(sums[is_real], torch.ones_like(sums[is_real]))
        assert is_real[0].all()


def attention_output(module: nn.MultiheadAttention, vectors: Tensor, weights: Tensor) -> Tensor:
    """Output of self-attention from its weights, head by head."""
    assert module.in_proj_weight is not None
    value = nn.functional.linear(vectors, module.in_proj_weight[-SIZE:], module.in_proj_bias[-SIZE:])
    depth = SIZE // HEADS
    heads = [weights[:, head] @ value[..., head * depth : (head + 1) * depth] for head in range(HEADS)]
    return module.out_proj(torch.cat(heads, dim=-1))


def without_scale(weights: Tensor) -> Tensor:
    return torch.softmax(weights.clamp_min(1e-30).log() * (SIZE // HEADS) ** 0.5, dim=-1)


def test_recorded_weights_make_the_output_and_wrong_ones_do_not():
    torch.manual_seed(3)
    module = nn.MultiheadAttention(SIZE, HEADS, batch_first=True, dtype=torch.float64).eval()
    with torch.no_grad(), capture(module) as captured:
        output, returned = module(VECTORS, VECTORS, VECTORS, need_weights=False)
        weights = captured.weights("")
        contexts = captured.calls[""][0].context
        torch.testing.assert_close(module.out_proj(contexts.transpose(1, 2).flatten(2)), output)
    assert returned is None
    with torch.no_grad():
        torch.testing.assert_close(attention_output(module, VECTORS, weights), output)
        for wrong in (weights.mT, weights.mean(dim=1, keepdim=True).expand_as(weights), without_scale(weights)):
            with pytest.raises(AssertionError):
                torch.testing.assert_close(attention_output(module, VECTORS, wrong), output)


@pytest.mark.filterwarnings("ignore:.*nested tensors.*")
def test_the_fused_layer_attends_as_the_plain_one():
    model = make_encoder().eval()
    with torch.no_grad(), capture(model) as fused:
        run_encoder(model)
    with capture(model) as plain:  # gradients switch the fused layer off
        run_encoder(model)
    assert list(fused.calls) == list(plain.calls) == ["layers.0.self_attn", "layers.1.self_attn"]
    for name in plain.calls:
        real = ~PADDING[:, None, :, None]
        torch.testing.assert_close(fused.weights(name), plain.weights(name).detach() * real)


@pytest.mark.parametrize("options", [{"add_bias_kv": True}, {"add_zero_attn": True}, {"kdim": 6, "vdim": 4}, {}])
def test_weights_are_those_that_the_module_returns(options: dict[str, int]):
    torch.manual_seed(4)
    module = nn.MultiheadAttention(SIZE, HEADS, dtype=torch.float64, **options).eval()  # type: ignore[arg-type]
    query = torch.randn(3, 2, SIZE, dtype=torch.float64)
    key, value = (torch.randn(5, 2, size, dtype=torch.float64) for size in (module.kdim, module.vdim))
    with capture(module) as captured:
        _, returned = module(query, key, value, average_attn_weights=False)
    torch.testing.assert_close(captured.weights(""), returned, rtol=0, atol=0)
    single = torch_attended(module, query[:, 0], key[:, 0], value[:, 0], None, None)
    torch.testing.assert_close(single.weights, returned[0])
    torch.testing.assert_close(single.context, captured.calls[""][0].context[0])


def test_nothing_stays_patched():
    class Failure(Exception):
        """Exception of a model."""

    model = make_whole().train()
    before = {name: dict(vars(module)) for name, module in model.named_modules()}
    with capture(model), capture(model):
        run_whole(model)
    with pytest.raises(Failure), capture(model, check=True):
        raise Failure
    assert {name: dict(vars(module)) for name, module in model.named_modules()} == before
    with pytest.warns(UserWarning, match="no attention was recorded"), capture(model) as captured:
        pass
    run_whole(model)
    assert captured == Captured()


def test_nested_contexts_both_record():
    model = make_encoder()
    with capture(model) as outer, capture(model) as inner:
        run_encoder(model)
    assert [len(calls) for calls in outer.calls.values()] == [len(calls) for calls in inner.calls.values()] == [1, 1]


def test_modules_with_a_forward_of_their_own_are_left_alone():
    class OwnAttention(nn.MultiheadAttention):
        def forward(self, *inputs: Tensor, **options: bool):  # type: ignore[override]
            return inputs[0], None

    model = OwnAttention(SIZE, HEADS)
    with pytest.warns(UserWarning, match="no attention was recorded"), capture(model) as captured:
        model(VECTORS, VECTORS, VECTORS)
    assert not captured.calls
