"""Models of transformers attend by heedful: the same outputs, padding that is not attended to, and recorded weights."""

from typing import Any

import pytest
import torch

import heedful
from heedful.attention.scores import Additive, Dot
from heedful.attention.simplex import Sparsemax
from heedful.errors import ShapeError, UsageError
from heedful.layers import hugging_face
from heedful.layers.hugging_face import use_in_transformers
from tests.architecture.package import ROOT

transformers = pytest.importorskip("transformers")

SIZES = {
    "hidden_size": 16,
    "num_attention_heads": 4,
    "num_hidden_layers": 1,
    "intermediate_size": 16,
    "vocab_size": 99,
    "pad_token_id": 0,
}
BART = {f"{side}_{name}": 2 for side in ("encoder", "decoder") for name in ("attention_heads", "ffn_dim")}
IDS = torch.tensor([[5, 6, 7, 8, 9], [10, 11, 12, 0, 0]])
REAL = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])


def models() -> dict[str, Any]:
    torch.manual_seed(1)
    bart = transformers.BartConfig(
        d_model=16, encoder_layers=1, decoder_layers=1, vocab_size=99, bos_token_id=1, eos_token_id=2, **BART
    )
    return {
        "encoder.layer.0.attention.self": transformers.BertModel(transformers.BertConfig(**SIZES)),
        "layers.0.self_attn": transformers.LlamaModel(
            transformers.LlamaConfig(**SIZES, num_key_value_heads=2, bos_token_id=1, eos_token_id=2)
        ),
        "decoder.layers.0.encoder_attn": transformers.BartModel(bart),
    }


def test_outputs_stay_and_attention_is_recorded():
    for name, model in models().items():
        model.eval()
        with torch.no_grad():
            before = model(input_ids=IDS, attention_mask=REAL).last_hidden_state
            use_in_transformers(model)
            with heedful.capture(model, check=True) as captured:
                after = model(input_ids=IDS, attention_mask=REAL).last_hidden_state
            other = model(input_ids=IDS.masked_fill(REAL == 0, 42), attention_mask=REAL).last_hidden_state
        assert name in captured.calls
        real = REAL.bool()
        torch.testing.assert_close(after[real], before[real], rtol=1e-5, atol=1e-6)
        if "encoder_attn" not in name:  # a decoder of BART reads the same ids, padding included
            torch.testing.assert_close(other[real], after[real], rtol=0, atol=0)
        hidden = captured.weights(name)[1, :, :3, 3:]
        assert torch.equal(hidden, torch.zeros_like(hidden))


def test_scores_are_trained_and_stored_with_the_model():
    model = transformers.BertModel(transformers.BertConfig(**SIZES))
    use_in_transformers(model, lambda query, key: Additive(query, key, 8), Sparsemax())
    name = "encoder.layer.0.attention.self.heedful_score"
    assert any(key.startswith(name) for key in model.state_dict())
    model(input_ids=IDS, attention_mask=REAL).last_hidden_state.square().sum().backward()
    assert all(part.grad is not None for key, part in model.named_parameters() if key.startswith(name))


def test_models_with_an_attention_of_their_own_are_refused_and_capture_says_so():
    sizes = {"d_model": 8, "d_kv": 4, "num_layers": 1, "num_heads": 2, "d_ff": 8, "vocab_size": 99}
    with pytest.raises(UsageError, match="no attention that goes through AttentionInterface"):
        use_in_transformers(transformers.T5EncoderModel(transformers.T5Config(**sizes)))
    model = transformers.BertModel(transformers.BertConfig(**SIZES)).eval()
    with pytest.warns(UserWarning, match="no attention was recorded"), heedful.capture(model):
        model(input_ids=IDS)


def test_the_recipe_of_the_page_runs(capsys: pytest.CaptureFixture[str]):
    page = (ROOT / "docs/extending.md").read_text(encoding="utf-8")
    recipe = page.split("### A model of Hugging Face's transformers")[1].split("```python\n")[1].split("```")[0]
    names: dict[str, Any] = {}
    exec(compile(recipe, "page", "exec"), names)
    weights = names["captured"].weights("encoder.layer.0.attention.self")[0, 0, 0]
    assert weights[4] == 0
    assert float(weights.sum()) == pytest.approx(1.0)
    assert "tensor(" in capsys.readouterr().out


SCORES = {
    "distance": lambda query, key: -torch.cdist(query, key),
    "product": lambda query, key: query @ key.mT,
    "sum": lambda query, key: torch.einsum("bhqd,bhkd->bhqk", query, key),
    "shape": lambda query, key: query.new_zeros(*query.shape[:-1], key.shape[-2]),
}


@pytest.mark.parametrize("name", SCORES)
def test_a_plain_function_of_queries_and_keys_is_a_score(name: str):
    model = transformers.BertModel(transformers.BertConfig(**SIZES)).eval()
    use_in_transformers(model, SCORES[name])
    with torch.no_grad(), heedful.capture(model) as captured:
        model(input_ids=IDS, attention_mask=REAL)
    weights = captured.weights("encoder.layer.0.attention.self")
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(2, 4, 5))
    assert torch.equal(weights[1, :, :, 3:], torch.zeros(4, 5, 2))


def test_an_error_of_a_maker_of_scores_is_shown():
    model = transformers.BertModel(transformers.BertConfig(**SIZES))
    with pytest.raises(ShapeError):
        use_in_transformers(model, lambda query, key: Dot(query, key + 1))


def test_a_version_without_an_interface_of_masks_is_warned_of(monkeypatch: pytest.MonkeyPatch):
    model = transformers.BertModel(transformers.BertConfig(**SIZES)).eval()
    monkeypatch.setattr(hugging_face, "_interfaces", lambda: (transformers.AttentionInterface, None))
    with pytest.warns(UserWarning, match="no AttentionMaskInterface.*padding is attended to") as warned:
        use_in_transformers(model)
    assert [each.filename for each in warned] == [__file__]
