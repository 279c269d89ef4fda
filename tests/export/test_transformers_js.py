"""Export in the layout of Transformers.js: graphs that give the model's logits step by step, and its tokens."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful.errors import UsageError
from heedful.export.huggingface import Described
from heedful.export.transformers_js import DECODER, ENCODER, FOLDER, export_transformers_js
from heedful.predictors.table import load
from heedful.predictors.translator import Translator
from heedful.runs.marian import import_marian
from heedful.search.config import SearchConfig
from heedful.text.tokenizer import Tokenizer
from heedful.text.vocabulary import EOS, PAD
from tests.export.marian_folder import write_folder
from tests.export.test_huggingface import FLOAT32, KINDS, MOST, STRANGE, batch, bound, build, logits_of, tokenizers

__all__ = ["tokenizers"]
SEARCH = SearchConfig(beam=3, forbid_unknown=True)


def stepwise_logits(folder: Path, ids: Any, target_in: Any, suffix: str = "") -> Any:
    """Logits of the graphs, as Transformers.js runs them: token by token, with the cache of the step before."""
    import onnxruntime

    sessions = [onnxruntime.InferenceSession(folder / FOLDER / f"{name}{suffix}.onnx") for name in (ENCODER, DECODER)]
    seen = (ids != PAD).astype(np.int64)
    hidden = sessions[0].run(None, {"input_ids": ids, "attention_mask": seen})[0]
    cache = {
        each.name: np.zeros((len(ids), each.shape[1], 0, each.shape[3]), dtype=np.float32)
        for each in sessions[1].get_inputs()
        if each.name.startswith("past_key_values.")
    }
    outputs = [each.name for each in sessions[1].get_outputs()]
    logits: list[Any] = []
    for step in range(target_in.shape[1]):
        feeds = {"input_ids": target_in[:, step : step + 1], "encoder_attention_mask": seen, **cache}
        feeds |= {"encoder_hidden_states": hidden, "use_cache_branch": np.array([step > 0])}
        values = dict(zip(outputs, sessions[1].run(outputs, feeds), strict=True))
        logits.append(values.pop("logits"))
        cache = {name.replace("present", "past_key_values"): value for name, value in values.items()}
    return np.concatenate(logits, axis=1)


@pytest.mark.parametrize("name", ["as trained here", "as Marian has it", "with a bias, a large epsilon"])
def test_the_graphs_give_the_logits_of_the_model(
    name: str, tokenizers: tuple[Tokenizer, Tokenizer], tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    source, _ = tokenizers
    model = build(len(source), len(source), **KINDS[name])
    parity = export_transformers_js(model, Described((source, source), MOST, SEARCH, ("de", "en")), tmp_path / "out")
    assert parity.is_exact
    assert caplog.records == []
    assert sorted(path.name for path in (tmp_path / "out").rglob("*") if path.is_file()) == sorted(
        ["config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"]
        + [f"{each}{suffix}.onnx" for each in (ENCODER, DECODER) for suffix in ("", "_quantized")]
    )
    ids, _, target_in = batch(len(source), len(source))
    wanted = logits_of(model, len(source), len(source)).numpy()
    got = stepwise_logits(tmp_path / "out", ids.numpy(), target_in.numpy())
    assert np.abs(got - wanted).max() <= bound(model, FLOAT32)
    small = stepwise_logits(tmp_path / "out", ids.numpy(), target_in.numpy(), "_quantized")
    assert 0 < np.abs(small - wanted).max() < 0.3 * np.abs(wanted).max()
    assert json.loads((tmp_path / "out" / "generation_config.json").read_text("utf-8"))["num_beams"] == 1


def test_the_tokenizer_gives_the_tokens_of_the_model(tokenizers: tuple[Tokenizer, Tokenizer], tmp_path: Path):
    library = pytest.importorskip("tokenizers", reason="needs the package tokenizers")
    source, _ = tokenizers
    model = build(len(source), len(source))
    export_transformers_js(model, Described((source, source), MOST, SEARCH), tmp_path / "out")
    tokenizer = library.Tokenizer.from_file(str(tmp_path / "out" / "tokenizer.json"))
    for text in STRANGE:
        ids = source.encode(text)
        if "<eos>" not in text:
            assert tokenizer.encode(text).ids == [*ids, EOS], text
        assert tokenizer.decode(ids) == source.decode(ids), text


def test_two_vocabularies_are_refused_and_nothing_is_left(tokenizers: tuple[Tokenizer, Tokenizer], tmp_path: Path):
    source, target = tokenizers
    model = build(len(source), len(target), tie="target")
    with pytest.raises(UsageError, match="one tokenizer for both sides"):
        export_transformers_js(model, Described((source, target), MOST, SEARCH), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "file").touch()
    with pytest.raises(UsageError, match="already exists"):
        export_transformers_js(model, Described((source, source), MOST, SEARCH), tmp_path / "out")


def test_an_imported_model_gives_its_logits(tmp_path: Path):
    import_marian(write_folder(tmp_path / "opus"), tmp_path / "opus.model")
    translator = load(tmp_path / "opus.model", engine="torch", kind=Translator)
    parts = (translator.source_tokenizer, translator.target_tokenizer), translator.text.max_tokens, translator.search
    export_transformers_js(translator.model(), Described(*parts), tmp_path / "out")
    size = len(translator.source_tokenizer)
    ids, _, target_in = batch(size, size)
    wanted = logits_of(translator.model(), size, size).detach().numpy()
    got = stepwise_logits(tmp_path / "out", ids.numpy(), target_in.numpy())
    assert np.abs(got - wanted).max() <= 1e-4 * np.abs(wanted).max()
