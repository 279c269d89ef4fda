"""`MultiheadAttention` in the place of torch.nn.MultiheadAttention: same arguments, parameters and results."""

import copy
import warnings
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from heedful.errors import ShapeError, UsageError
from heedful.inspection.capture import capture
from heedful.layers.multihead import MultiheadAttention
from tests.thorough import sampled, thinned

pytestmark = pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")

BATCH, HEADS, QUERIES, KEYS, SIZE = 3, 2, 4, 5, 6
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "no bias": {"bias": False},
    "other sizes": {"kdim": 7, "vdim": 3},
    "one other size": {"kdim": 6, "vdim": 4},
    "same other size": {"kdim": 4, "vdim": 4},
    "bias_kv": {"add_bias_kv": True},
    "zero_attn": {"add_zero_attn": True},
    "everything": {"add_bias_kv": True, "add_zero_attn": True, "kdim": 3, "vdim": 5, "bias": False},
}
LAYOUTS = ("batch first", "sequence first", "unbatched")


def pair(name: str, layout: str = "sequence first", **more: Any) -> tuple[MultiheadAttention, nn.MultiheadAttention]:
    """Ours and torch's with the same random parameters, in float64."""
    options = {"batch_first": layout == "batch first", "dtype": torch.float64} | OPTIONS[name] | more
    torch.manual_seed(0)
    theirs = nn.MultiheadAttention(SIZE, HEADS, **options)
    for parameter in theirs.parameters():
        nn.init.normal_(parameter)
    ours = MultiheadAttention(SIZE, HEADS, **options)
    ours.load_state_dict(theirs.state_dict(), strict=True)
    return ours, theirs


def forbidden(*shape: int) -> Tensor:
    """Bools, True = may not attend; the last key of a row may always be attended, as torch's rows become NaN else."""
    table = torch.rand(shape) < 0.5
    table[..., -1] = False
    return table


def hiding(*shape: int) -> Tensor:
    """Numbers that only forbid."""
    return torch.zeros(shape, dtype=torch.float64).masked_fill(forbidden(*shape), -torch.inf)


def adding(*shape: int) -> Tensor:
    """Numbers that forbid or add."""
    return torch.randn(shape, dtype=torch.float64).masked_fill(forbidden(*shape), -torch.inf)


KINDS: dict[str, Callable[..., Tensor]] = {"bool": forbidden, "hiding": hiding, "adding": adding}
MASKS = ["none", *(f"{which} {kind}" for which in ("padding", "2-D", "3-D", "padding and 2-D") for kind in KINDS)]


def make_masks(name: str, layout: str) -> dict[str, Tensor]:
    """Keyword arguments of `forward`."""
    batch = 1 if layout == "unbatched" else BATCH
    which, _, kind = name.rpartition(" ")
    masks: dict[str, Tensor] = {}
    if "padding" in which:
        masks["key_padding_mask"] = KINDS[kind](*(() if layout == "unbatched" else (batch,)), KEYS)
    if "2-D" in which:
        masks["attn_mask"] = KINDS[kind](QUERIES, KEYS)
    if "3-D" in which:
        masks["attn_mask"] = KINDS[kind](batch * HEADS, QUERIES, KEYS)
    return masks


def make_vectors(layout: str, num_vectors: int, size: int) -> Tensor:
    shape = {"batch first": (BATCH, num_vectors), "sequence first": (num_vectors, BATCH), "unbatched": (num_vectors,)}
    return torch.randn(*shape[layout], size, dtype=torch.float64).requires_grad_()


def distance(one: Tensor | None, two: Tensor | None) -> float:
    if one is None or two is None:
        assert one is two
        return 0.0
    assert one.shape == two.shape
    return float((one - two).detach().abs().max())


def compare(ours: MultiheadAttention, theirs: nn.MultiheadAttention, vectors: list[Tensor], **given: Any) -> None:
    """Outputs, weights and all gradients are equal."""
    distinct = list({id(tensor): tensor for tensor in vectors}.values())
    results: list[tuple[Tensor, ...]] = []
    generator = torch.Generator().manual_seed(1)
    factors: list[Tensor] = []
    for layer in (theirs, ours):
        output, weights = layer(*vectors, **given)
        assert (weights is not None) == given.get("need_weights", True)
        parts = [output] if weights is None else [output, weights]
        factors = factors or [torch.randn(part.shape, generator=generator, dtype=torch.float64) for part in parts]
        loss = sum((part * factor).sum() for part, factor in zip(parts, factors, strict=True))
        parameters = list(dict(layer.named_parameters()).values())
        assert isinstance(loss, Tensor)
        results.append((*parts, *torch.autograd.grad(loss, [*distinct, *parameters])))
    assert list(dict(ours.named_parameters())) == list(dict(theirs.named_parameters()))
    for wanted, found in zip(*results, strict=True):
        assert distance(found, wanted) <= 1e-12


@sampled(2)
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("masks", thinned(MASKS, 2))
def test_outputs_weights_and_gradients(options: str, masks: str):
    for layout, (need, average) in product(LAYOUTS, [(False, True), (True, True), (True, False)]):
        ours, theirs = pair(options, layout)
        query = make_vectors(layout, QUERIES, SIZE)
        key, value = make_vectors(layout, KEYS, theirs.kdim), make_vectors(layout, KEYS, theirs.vdim)
        given = make_masks(masks, layout) | {"need_weights": need, "average_attn_weights": average}
        compare(ours, theirs, [query, key, value], **given)


@pytest.mark.parametrize("options", ["plain", "no bias", "same other size", "bias_kv"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_one_tensor_in_several_places(options: str, layout: str):
    ours, theirs = pair(options, layout)
    query, key = make_vectors(layout, QUERIES, SIZE), make_vectors(layout, KEYS, theirs.kdim)
    compare(ours, theirs, [query, key, key])
    if theirs.kdim == SIZE:
        same = make_vectors(layout, KEYS, SIZE)
        compare(ours, theirs, [same, same, same])
        compare(ours, theirs, [same, same, same.detach().clone().requires_grad_()])


@pytest.mark.parametrize("need_weights", [False, True])
def test_training_mode_and_evaluation_without_gradients(need_weights: bool):
    vectors = make_vectors("batch first", KEYS, SIZE)
    masks = {"key_padding_mask": forbidden(BATCH, KEYS), "need_weights": need_weights}
    ours, theirs = pair("plain", "batch first")
    compare(ours.train(), theirs.train(), [vectors] * 3, **masks)
    with torch.no_grad():  # where torch takes its fused path
        for found, wanted in zip(
            ours.eval()(*[vectors] * 3, **masks), theirs.eval()(*[vectors] * 3, **masks), strict=True
        ):
            assert distance(found, wanted) <= 1e-12


@pytest.mark.parametrize("options", ["plain", "other sizes", "everything"])
@pytest.mark.parametrize("need_weights", [False, True])
def test_learned_numbers_added_to_scores_get_their_gradient(options: str, need_weights: bool):
    ours, theirs = pair(options)
    vectors = [make_vectors("sequence first", *s) for s in ((QUERIES, SIZE), (KEYS, theirs.kdim), (KEYS, theirs.vdim))]
    table = torch.randn(QUERIES, KEYS, dtype=torch.float64)
    gradients: list[Tensor] = []
    for layer in (theirs, ours):
        learned = table.clone().requires_grad_()
        output = layer(*vectors, attn_mask=learned, need_weights=need_weights)[0]
        gradients += torch.autograd.grad(output.square().sum(), learned)
    assert distance(*gradients) <= 1e-12
    assert float(gradients[0].abs().min()) > 0.0


def triangle(num_queries: int, num_keys: int) -> Tensor:
    return torch.ones(num_queries, num_keys, dtype=torch.bool).triu(1)


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("has_padding", [False, True])
@pytest.mark.parametrize("num_queries", [KEYS, KEYS - 2, KEYS + 2])
def test_the_causal_hint(need_weights: bool, has_padding: bool, num_queries: int):
    ours, theirs = pair("plain", "batch first")
    vectors = [make_vectors("batch first", count, SIZE) for count in (num_queries, KEYS, KEYS)]
    masks = {"attn_mask": triangle(num_queries, KEYS)}
    if has_padding:
        masks["key_padding_mask"] = forbidden(BATCH, KEYS)
        masks["key_padding_mask"][:, 0] = False
    compare(ours, theirs, vectors, is_causal=True, need_weights=need_weights, **masks)
    added = {name: torch.zeros(mask.shape).double().masked_fill(mask, -torch.inf) for name, mask in masks.items()}
    compare(ours, theirs, vectors, is_causal=True, need_weights=need_weights, **added)


def test_with_the_hint_the_mask_is_not_read():
    ours, theirs = pair("plain")
    vectors = [make_vectors("sequence first", KEYS, SIZE)] * 3
    wrong = torch.zeros(KEYS, KEYS, dtype=torch.bool)
    compare(ours, theirs, vectors, attn_mask=wrong, is_causal=True, need_weights=False)
    compare(ours, theirs, vectors, attn_mask=wrong, is_causal=True, need_weights=True)
    hinted = ours(*vectors, attn_mask=wrong, is_causal=True, need_weights=False)[0]
    assert distance(hinted, ours(*vectors, attn_mask=wrong, need_weights=False)[0]) > 1e-3


def test_the_causal_hint_leaves_added_keys_to_be_attended():
    # torch with the hint and without weights hides the added keys, though its mask and its other path do not.
    ours, theirs = pair("bias_kv")
    vectors = [make_vectors("sequence first", KEYS, SIZE)] * 3
    mask = triangle(KEYS, KEYS)
    wanted = theirs(*vectors, attn_mask=mask)[0]
    assert distance(ours(*vectors, attn_mask=mask, is_causal=True, need_weights=False)[0], wanted) <= 1e-12


def test_the_hint_without_a_mask_is_refused():
    ours, theirs = pair("plain")
    vectors = [make_vectors("sequence first", KEYS, SIZE)] * 3
    with pytest.raises(RuntimeError, match="Need attn_mask"):
        theirs(*vectors, is_causal=True)
    with pytest.raises(UsageError, match="is_causal is a hint about attn_mask"):
        ours(*vectors, is_causal=True)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_query_that_may_attend_nothing_is_zero_where_torch_is_not_a_number(
    kind: str, need_weights: bool, layout: str
):
    ours, theirs = pair("plain", layout)
    vectors = [make_vectors(layout, count, SIZE) for count in (QUERIES, KEYS, KEYS)]
    mask = KINDS[kind](QUERIES, KEYS)
    mask[1] = True if kind == "bool" else -torch.inf
    output, weights = ours(*vectors, attn_mask=mask, need_weights=need_weights)
    wanted = theirs(*vectors, attn_mask=mask)[0]
    axis = 1 if layout == "batch first" else 0
    empty = output.select(axis, 1)
    assert bool(wanted.select(axis, 1).isnan().all())
    assert torch.equal(empty, ours.out_proj.bias.expand_as(empty))
    others = torch.tensor([0, 2, 3])
    assert distance(output.index_select(axis, others), wanted.index_select(axis, others)) <= 1e-12
    loss = output.square().sum()
    if weights is not None:
        assert weights[..., 1, :].count_nonzero() == 0
        loss = loss + weights.square().sum()
    for gradient in torch.autograd.grad(loss, [*vectors, *ours.parameters()]):
        assert bool(gradient.isfinite().all())
    alone = torch.autograd.grad(
        ours(*vectors, attn_mask=mask, need_weights=need_weights)[0].select(axis, 1).sum(), vectors
    )
    assert all(gradient.count_nonzero() == 0 for gradient in alone)


def test_an_item_that_is_all_padding():
    ours, _ = pair("plain", "batch first")
    vectors = [make_vectors("batch first", count, SIZE) for count in (QUERIES, KEYS, KEYS)]
    padding = torch.zeros(BATCH, KEYS, dtype=torch.bool)
    padding[1] = True
    for need_weights in (False, True):
        output = ours(*vectors, key_padding_mask=padding, need_weights=need_weights)[0]
        assert torch.equal(output[1], ours.out_proj.bias.expand(QUERIES, SIZE))
        gradients = torch.autograd.grad(output.square().sum(), vectors)
        assert all(bool(gradient.isfinite().all()) for gradient in gradients)
        assert all(gradient[1].count_nonzero() == 0 for gradient in gradients)


@pytest.mark.parametrize("options", OPTIONS)
def test_state_dicts_load_both_ways(options: str):
    torch.manual_seed(1)
    ours, theirs = (make(SIZE, HEADS, **OPTIONS[options]) for make in (MultiheadAttention, nn.MultiheadAttention))
    one, two = ([(name, part.shape) for name, part in layer.state_dict().items()] for layer in (ours, theirs))
    assert one == two
    for source, target in ((ours, theirs), (theirs, ours)):
        for parameter in source.parameters():
            nn.init.normal_(parameter)
        target.load_state_dict(source.state_dict(), strict=True)
        assert all(torch.equal(target.state_dict()[name], tensor) for name, tensor in source.state_dict().items())


@pytest.mark.parametrize("options", OPTIONS)
def test_a_seed_gives_torchs_first_parameters(options: str):
    layers: list[nn.Module] = []
    for make in (MultiheadAttention, nn.MultiheadAttention):
        torch.manual_seed(2)
        layers.append(make(SIZE, HEADS, **OPTIONS[options]))
    ours, theirs = (layer.state_dict() for layer in layers)
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


@pytest.mark.parametrize("name", ["embed_dim", "num_heads", "head_dim", "kdim", "vdim", "dropout", "batch_first"])
def test_attributes(name: str):
    ours, theirs = pair("other sizes", "batch first", dropout=0.25)
    assert getattr(ours, name) == getattr(theirs, name)


def test_absent_parameters_are_none():
    ours, theirs = pair("other sizes", bias=False)
    for name in ("in_proj_weight", "in_proj_bias", "bias_k", "bias_v"):
        assert getattr(ours, name) is None
        assert getattr(theirs, name) is None
    assert ours.out_proj.bias is None
    assert pair("plain")[0].q_proj_weight is None


def swap(module: nn.Module) -> nn.Module:
    """A copy with ours in the place of every multi-head attention."""
    swapped = copy.deepcopy(module)
    for name, layer in list(swapped.named_modules()):
        if isinstance(layer, nn.MultiheadAttention):
            ours = MultiheadAttention(
                layer.embed_dim, layer.num_heads, layer.dropout, batch_first=layer.batch_first, dtype=torch.float64
            )
            ours.load_state_dict(layer.state_dict(), strict=True)
            owner, _, attribute = name.rpartition(".")
            setattr(swapped.get_submodule(owner), attribute, ours.train(layer.training))
    assert not any(isinstance(layer, nn.MultiheadAttention) for layer in swapped.modules())
    return swapped


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("is_training", [False, True])
def test_inside_torchs_encoder(norm_first: bool, is_training: bool, monkeypatch: pytest.MonkeyPatch):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(
        SIZE, HEADS, 8, dropout=0.0, batch_first=True, norm_first=norm_first, dtype=torch.float64
    )
    theirs = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).train(is_training)
    ours = swap(theirs)
    vectors = make_vectors("batch first", KEYS, SIZE)
    lengths = torch.tensor([5, 2, 4])
    padding = torch.arange(KEYS) >= lengths[:, None]
    causal = nn.Transformer.generate_square_subsequent_mask(KEYS, dtype=torch.float64)
    cases: list[dict[str, Any]] = [
        {},
        {"src_key_padding_mask": padding},
        {"mask": causal, "is_causal": True},
        {"mask": causal},
        {"mask": causal, "src_key_padding_mask": hiding(BATCH, KEYS).masked_fill(padding, -torch.inf)},
    ]
    cases[-1]["src_key_padding_mask"][:, 0] = 0.0
    for given in cases:
        with torch.set_grad_enabled(is_training):
            wanted = theirs(vectors, **given)
            with monkeypatch.context() as patch:  # its own code for the whole layer would go around ours
                patch.delattr(torch, "_transformer_encoder_layer_fwd")
                found = ours(vectors, **given)
        assert distance(found[~padding], wanted[~padding]) <= 1e-12
    assert len(capture_names(ours, vectors)) == 2


def capture_names(model: nn.Module, vectors: Tensor) -> list[str]:
    with capture(model) as captured:
        model(vectors)
    return list(captured.calls)


def test_inside_torchs_transformer():
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "enable_nested_tensor is True")
        theirs = nn.Transformer(SIZE, HEADS, 1, 2, 8, dropout=0.0, dtype=torch.float64)
    ours = swap(theirs)
    source, target = make_vectors("sequence first", KEYS, SIZE), make_vectors("sequence first", QUERIES, SIZE)
    padding = torch.arange(KEYS) >= torch.tensor([5, 2, 4])[:, None]
    given = {
        "tgt_mask": triangle(QUERIES, QUERIES),
        "tgt_is_causal": True,
        "src_key_padding_mask": padding,
        "memory_key_padding_mask": padding,
    }
    results: list[tuple[Tensor, ...]] = []
    for model in (theirs, ours):
        output = model(source, target, **given)
        results.append((output, *torch.autograd.grad(output.sin().sum(), [source, target, *model.parameters()])))
    for wanted, found in zip(*results, strict=True):
        assert distance(found, wanted) <= 1e-11


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("enable_nested_tensor", [False, True])
@pytest.mark.parametrize("is_recording", [False, True])
@pytest.mark.wrong_shapes  # jaxtyping cannot read the shape of a nested tensor
def test_inside_torchs_encoder_at_inference_with_padding(
    norm_first: bool, enable_nested_tensor: bool, is_recording: bool
):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(
        SIZE, HEADS, 8, batch_first=True, norm_first=norm_first, dtype=torch.float64
    ).eval()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "enable_nested_tensor is True")
        theirs = nn.TransformerEncoder(layer, 2, nn.LayerNorm(SIZE).double(), enable_nested_tensor).eval()
    ours = swap(theirs)
    assert ours.use_nested_tensor == (enable_nested_tensor and not norm_first)
    vectors = make_vectors("batch first", KEYS, SIZE)
    for lengths in ([5, 2, 4], [4, 1, 3], [5, 5, 5]):
        padding = torch.arange(KEYS) >= torch.tensor(lengths)[:, None]
        for mask in (padding, torch.zeros(BATCH, KEYS, dtype=torch.float64).masked_fill(padding, -torch.inf)):
            with torch.set_grad_enabled(is_recording):
                wanted = theirs(vectors, src_key_padding_mask=mask)
                found = ours(vectors, src_key_padding_mask=mask)
            assert found.requires_grad == is_recording
            assert distance(found[~padding], wanted[~padding]) <= 1e-12


def test_a_copied_layer_takes_numbers_added_to_scores():
    ours, theirs = pair("plain", "batch first")
    vectors, table = make_vectors("batch first", KEYS, SIZE), adding(KEYS, KEYS)
    found = copy.deepcopy(ours)(*[vectors] * 3, attn_mask=table)[0]
    assert distance(found, theirs(*[vectors] * 3, attn_mask=table)[0]) <= 1e-12


@pytest.mark.compiled
def test_a_compiled_encoder_with_padding():
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(SIZE, HEADS, 8, batch_first=True, dtype=torch.float64).eval()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "enable_nested_tensor is True")
        ours = nn.TransformerEncoder(swap(layer), 2).eval()
    theirs = nn.TransformerEncoder(layer, 2).eval()
    vectors = make_vectors("batch first", KEYS, SIZE)
    padding = torch.arange(KEYS) >= torch.tensor([5, 2, 4])[:, None]
    compiled = torch.compile(ours, fullgraph=True, backend="eager")
    found, wanted = (model(vectors, src_key_padding_mask=padding) for model in (compiled, theirs))
    assert distance(found[~padding], wanted[~padding]) <= 1e-12


LAYOUT_OF_NESTED = {"strided": torch.strided, "jagged": torch.jagged}


def nest(lengths: list[int], size: int, layout: str) -> Tensor:
    parts = [torch.randn(length, size, dtype=torch.float64) for length in lengths]
    return torch.nested.nested_tensor(parts, layout=LAYOUT_OF_NESTED[layout], requires_grad=True)


@pytest.mark.parametrize("layout", LAYOUT_OF_NESTED)
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.wrong_shapes  # jaxtyping cannot read the shape of a nested tensor
def test_nested_tensors_are_attended_item_by_item(layout: str, options: str, batch_first: bool):
    ours, theirs = pair(options, batch_first=batch_first)
    query = nest([3, 4, 1], SIZE, layout)
    key, value = (nest([5, 2, 4], size, layout) for size in (theirs.kdim, theirs.vdim))
    table = adding(4, 5)
    table[:, 0] = 0.0
    for attn_mask in (None, table):
        output, weights = ours(query, key, value, attn_mask=attn_mask, average_attn_weights=False)
        assert output.is_nested
        assert output.layout == query.layout
        (output + query).unbind()  # lengths are those of the query, so that a residual connection works
        assert weights is not None
        alone: list[Tensor] = []
        for index, items in enumerate(zip(query.unbind(), key.unbind(), value.unbind(), strict=True)):
            num_queries, num_keys = items[0].shape[0], items[1].shape[0]
            part = None if attn_mask is None else attn_mask[:num_queries, :num_keys]
            wanted, wanted_weights = theirs(*items, attn_mask=part, average_attn_weights=False)
            alone.append(wanted)
            assert distance(output.unbind()[index], wanted) <= 1e-12
            added = weights[index, :, :num_queries, 5:]
            assert distance(torch.cat((weights[index, :, :num_queries, :num_keys], added), -1), wanted_weights) <= 1e-12
            assert weights[index, :, num_queries:].count_nonzero() == 0
        pairs = zip(output.unbind(), alone, strict=True)
        losses = [torch.stack([part.sin().sum() for part in parts]).sum() for parts in zip(*pairs, strict=True)]
        found = torch.autograd.grad(losses[0], [query, key, value, *ours.parameters()], retain_graph=True)
        expected = torch.autograd.grad(losses[1], [query, key, value, *theirs.parameters()], retain_graph=True)
        for one, two in zip(found, expected, strict=True):
            for each, other in zip(one.unbind(), two.unbind(), strict=True):
                assert distance(each, other) <= 1e-12


@pytest.mark.wrong_shapes
def test_nested_tensors_that_do_not_fit_are_refused():
    layer = MultiheadAttention(SIZE, HEADS, batch_first=True, dtype=torch.float64)
    nested, other = nest([2, 3], SIZE, "jagged"), nest([3, 2], SIZE, "jagged")
    with pytest.raises(UsageError, match="nested tensors all three, or none"):
        layer(nested, nested, torch.zeros(2, 3, SIZE).double())
    with pytest.raises(UsageError, match="nested tensors have no padding"):
        layer(nested, nested, nested, key_padding_mask=torch.zeros(2, 3, dtype=torch.bool))
    with pytest.raises(ShapeError, match="nested keys and values differ in number"):
        layer(nested, nested, other)
    with pytest.raises(ShapeError, match=r"nested tensors are \[batch, position, size\], got 1, 1, 1 axes"):
        layer(*[torch.nested.nested_tensor([])] * 3)
    with pytest.raises(ShapeError, match="made for query size 6"):
        layer(*[nest([2, 3], SIZE + 1, "jagged")] * 3)


@pytest.mark.parametrize("narrow", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("need_weights", [False, True])
def test_numbers_in_narrower_types_are_converted(narrow: torch.dtype, need_weights: bool):
    ours, theirs = pair("plain", "batch first")
    vectors = make_vectors("batch first", KEYS, SIZE)
    for name, shape in (("attn_mask", (KEYS, KEYS)), ("key_padding_mask", (BATCH, KEYS))):
        table = adding(*shape).to(narrow)
        found = ours(*[vectors] * 3, need_weights=need_weights, **{name: table})[0]
        wanted = theirs(*[vectors] * 3, need_weights=need_weights, **{name: table.double()})[0]
        assert found.dtype == torch.float64
        assert distance(found, wanted) <= 1e-12
    # A bias of the projections in a narrower type than their weights, which PyTorch allows here alone.
    for layer in (ours, theirs):
        layer.in_proj_bias = nn.Parameter(layer.in_proj_bias.detach().to(narrow))
    for layer in (ours, theirs):
        layer.eval()
    for is_recording in (False, True):
        with torch.set_grad_enabled(is_recording):
            results = [layer(*[vectors] * 3, need_weights=need_weights)[0] for layer in (ours, theirs)]
        assert distance(*results) <= 1e-12


def test_dropout_is_of_weights_in_training_and_not_of_those_returned():
    layer = MultiheadAttention(2, 1, dropout=0.5, batch_first=True)
    with torch.no_grad():
        layer.in_proj_weight.copy_(torch.eye(2).repeat(3, 1))
        layer.out_proj.weight.copy_(torch.eye(2))
    ones = torch.ones(400, 1, 2)
    for mask in (None, torch.tensor([[0.5]]), torch.tensor([[False]])):
        for need_weights in (False, True):
            output, weights = layer.train()(ones, ones, ones, attn_mask=mask, need_weights=need_weights)
            assert set(output.flatten().tolist()) == {0.0, 2.0}
            assert float(output.detach().mean()) == pytest.approx(1.0, abs=0.25)
            assert torch.equal(layer.eval()(ones, ones, ones, attn_mask=mask, need_weights=need_weights)[0], ones)
            assert weights is None or torch.equal(weights, torch.ones(400, 1, 1))


@pytest.mark.parametrize("mask", ["none", "2-D bool", "2-D adding"])
def test_mixed_precision(mask: str):
    ours, theirs = (layer.float() for layer in pair("bias_kv", "batch first"))
    vectors = [make_vectors("batch first", count, SIZE).detach().float() for count in (QUERIES, KEYS, KEYS)]
    given = {name: m if m.dtype == torch.bool else m.float() for name, m in make_masks(mask, "batch first").items()}
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for need_weights in (False, True):
            found = ours(*vectors, need_weights=need_weights, **given)[0]
            assert found.dtype == torch.bfloat16
            narrow = ours(*(part.bfloat16() for part in vectors), need_weights=need_weights, **given)[0]
            assert float((found - narrow).detach().abs().max()) <= 0.05 * float(found.detach().abs().max())
            wanted = theirs(*vectors, need_weights=True, **given)[0]
            assert float((found - wanted).detach().abs().max()) <= 0.1 * float(wanted.detach().abs().max())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_half_precision_keeps_its_type(dtype: torch.dtype):
    layer = MultiheadAttention(SIZE, HEADS, add_bias_kv=True, add_zero_attn=True, dtype=dtype)
    vectors = torch.randn(KEYS, BATCH, SIZE).to(dtype)
    for mask in (None, adding(KEYS, KEYS), adding(KEYS, KEYS).to(dtype), forbidden(KEYS, KEYS)):
        for need_weights in (False, True):
            output, weights = layer(vectors, vectors, vectors, attn_mask=mask, need_weights=need_weights)
            assert output.dtype == dtype
            assert weights is None or weights.dtype == dtype


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize(("batch", "num_queries", "num_keys"), [(0, 2, 3), (2, 0, 3), (2, 3, 0), (0, 0, 0)])
def test_nothing_to_attend_to_or_nobody_who_attends(need_weights: bool, batch: int, num_queries: int, num_keys: int):
    layer = MultiheadAttention(SIZE, HEADS, batch_first=True)
    query, key = torch.ones(batch, num_queries, SIZE), torch.ones(batch, num_keys, SIZE)
    for mask in (None, forbidden(num_queries, num_keys) if num_keys else None, torch.ones(num_queries, num_keys)):
        output, weights = layer(query, key, key, attn_mask=mask, need_weights=need_weights)
        assert output.shape == query.shape
        assert bool(output.isfinite().all())
        assert weights is None or weights.shape == (batch, num_queries, num_keys)


def test_weights_of_a_call_with_added_numbers_are_captured():
    ours, _ = pair("plain")
    vectors = [make_vectors("sequence first", KEYS, SIZE)] * 3
    table = adding(KEYS, KEYS)
    with capture(nn.ModuleDict({"one": ours})) as captured:
        output, weights = ours(*vectors, attn_mask=table, need_weights=False)
    assert weights is None
    wanted_output, wanted = ours(*vectors, attn_mask=table, average_attn_weights=False)
    assert distance(captured.weights("one"), wanted) <= 1e-15
    assert distance(output, wanted_output) <= 1e-12


ZEROS = torch.zeros
UNFIT: dict[str, tuple[list[Tensor], str]] = {
    "four axes": ([ZEROS(1, 1, 2, 6)] * 3, r"all three with a batch axis or none, got query \[1, 1, 2, 6\]"),
    "mixed axes": ([ZEROS(2, 6), ZEROS(2, 1, 6), ZEROS(2, 1, 6)], "all three with a batch axis or none"),
    "value without batch": ([ZEROS(2, 1, 6), ZEROS(2, 1, 6), ZEROS(2, 6)], "all three with a batch axis or none"),
    "query size": ([ZEROS(2, 1, 5), ZEROS(2, 1, 6), ZEROS(2, 1, 6)], r"made for query size 6.*got query \[2, 1, 5\]"),
    "value size": ([ZEROS(2, 1, 6), ZEROS(2, 1, 6), ZEROS(2, 1, 7)], r"value size 6; got .*value \[2, 1, 7\]"),
    "values": ([ZEROS(2, 1, 6), ZEROS(3, 1, 6), ZEROS(2, 1, 6)], "differ in number"),
    "batches": ([ZEROS(2, 3, 6), ZEROS(2, 1, 6), ZEROS(2, 1, 6)], "differ in number"),
}


@pytest.mark.parametrize("case", UNFIT)
def test_vectors_that_do_not_fit_are_refused(case: str):
    vectors, message = UNFIT[case]
    with pytest.raises(ShapeError, match=message):
        MultiheadAttention(6, 2)(*vectors)


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.float64, torch.bfloat16])
@pytest.mark.wrong_shapes
def test_another_dtype_is_refused(dtype: torch.dtype):
    other, right = torch.zeros(2, 1, 6, dtype=dtype), torch.zeros(2, 1, 6)
    for vectors in ((other, other, other), (right, other, right), (right, right, other)):
        with pytest.raises(UsageError, match=f"{str(dtype)[6:]}.*parameters float32; convert"):
            MultiheadAttention(6, 2)(*vectors)


@pytest.mark.wrong_shapes
def test_mixed_precision_converts_no_integers():
    integers = torch.zeros(2, 1, 6, dtype=torch.int64)
    with torch.autocast("cpu", dtype=torch.bfloat16), pytest.raises(UsageError, match=r"int64.*parameters float32"):
        MultiheadAttention(6, 2)(integers, integers, integers)


@pytest.mark.parametrize("sizes", [(0, 1), (6, 0), (6, -2), (-6, 2)])
def test_sizes_that_are_not_positive_are_refused(sizes: tuple[int, int]):
    with pytest.raises(ShapeError, match="sizes must be positive"):
        MultiheadAttention(*sizes)
    with pytest.raises(ShapeError, match=r"sizes must be positive, .* vdim 0"):
        MultiheadAttention(6, 2, vdim=0)


def test_no_parameter_is_made_on_the_meta_device():
    layer = MultiheadAttention(SIZE, HEADS, kdim=3, device="meta", dtype=torch.bfloat16)
    assert all(parameter.is_meta and parameter.dtype == torch.bfloat16 for parameter in layer.parameters())


@pytest.mark.parametrize("kind", KINDS)
def test_it_can_be_recorded_with_a_mask(kind: str):
    # Whatever stands in the mask: nothing is decided by the numbers of the call that was recorded.
    ours, _ = pair("plain", "batch first")
    vectors = make_vectors("batch first", KEYS, SIZE).detach()
    given = {"attn_mask": torch.zeros(KEYS, KEYS, dtype=torch.bool if kind == "bool" else torch.float64)}
    recorded = torch.export.export(ours, (vectors,) * 3, {"need_weights": False, **given}).module()
    given["attn_mask"] = KINDS[kind](KEYS, KEYS)
    wanted = ours(*(vectors,) * 3, need_weights=False, **given)[0]
    assert distance(recorded(*(vectors,) * 3, need_weights=False, **given)[0], wanted) <= 1e-14


CALLS_THAT_TORCH_REFUSES: dict[str, tuple[list[tuple[int, ...]], dict[str, Tensor]]] = {
    "key without batch": ([(4, 4, 4), (4, 4), (4, 4, 4)], {}),
    "value without batch": ([(4, 4, 4), (4, 4, 4), (4, 4)], {}),
    "padding mask without batch": ([(4, 4, 4)] * 3, {"key_padding_mask": ZEROS(4, dtype=torch.bool)}),
    "mask of one axis": ([(4, 4, 4)] * 3, {"attn_mask": ZEROS(4, dtype=torch.bool)}),
    "key with batch": ([(4, 4), (4, 4, 4), (4, 4)], {}),
    "value with batch": ([(4, 4), (4, 4), (4, 4, 4)], {}),
    "padding mask with batch": ([(4, 4)] * 3, {"key_padding_mask": ZEROS(1, 8, dtype=torch.bool)}),
    "mask of one axis, no batch": ([(4, 4)] * 3, {"attn_mask": ZEROS(4, dtype=torch.bool)}),
    "mask of five heads": ([(4, 4)] * 3, {"attn_mask": ZEROS(5, 4, 4, dtype=torch.bool)}),
}


@pytest.mark.parametrize("case", CALLS_THAT_TORCH_REFUSES)
@pytest.mark.parametrize("is_training", [False, True])
@pytest.mark.wrong_shapes
def test_calls_that_torch_refuses_are_refused(case: str, is_training: bool):
    shapes, masks = CALLS_THAT_TORCH_REFUSES[case]
    vectors = [torch.zeros(shape) for shape in shapes]
    with torch.set_grad_enabled(is_training):
        with pytest.raises(AssertionError):
            nn.MultiheadAttention(4, 4, batch_first=True).train(is_training)(*vectors, **masks)
        with pytest.raises(ShapeError):
            MultiheadAttention(4, 4, batch_first=True).train(is_training)(*vectors, **masks)
