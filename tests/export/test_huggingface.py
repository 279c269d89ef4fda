import json
import os
import shutil
import warnings
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

from heedful.engines.engine import decode_sorted
from heedful.errors import FileRefused, ResourceError, UsageError
from heedful.export.huggingface import Described, export_huggingface
from heedful.export.marian import MarianModel, read_marian
from heedful.export.marian_layout import NORM_EPSILON
from heedful.layers.positions import SinusoidalPositions, sinusoids
from heedful.models.engine import torch_backend
from heedful.models.inputs import TokenInputs
from heedful.models.interface import Seq2Seq
from heedful.models.luong import LuongConfig
from heedful.models.transformer import Transformer, TransformerConfig
from heedful.predictors.table import load
from heedful.runs.marian import import_marian
from heedful.search.config import SearchConfig
from heedful.text.marian import MarianTokenizer
from heedful.text.tokenizer import PieceTokenizer, Tokenizer, UnitTokenizer
from heedful.text.vocabulary import BOS, EOS, PAD, SPECIAL_TOKENS, Vocabulary
from heedful.version import __version__
from tests.cli.command import disk_quota
from tests.export.marian_folder import write_folder
from tests.thorough import sampled, thinned

MOST = 30
FLOAT32, FLOAT64 = 1e-5, 1e-11
"""What rounding may move a logit by."""
LINES = ["the cat sat on a mat", "dogs run fast now", "yes no maybe", "Äpfel und Öl", "don't 3.5%"]
STRANGE = [
    "the cat",
    "  two  spaces ",
    "你好 cat",
    "",
    " ",
    "tab\there",
    "Äpfel",
    "<eos> a",
    "😀",
    "a\u2581b",
    "\u00a0x",
]


@pytest.fixture(scope="module")
def tokenizers() -> tuple[Tokenizer, Tokenizer]:
    """Two vocabularies of other sizes."""
    source = PieceTokenizer.train(LINES * 20, 300, "NFC")
    target = PieceTokenizer.train(["le chat est assis", "les chiens courent vite", "oui non"] * 20, 290, "NFC")
    assert len(source) != len(target)
    return source, target


def build(num_source: int, num_target: int, **changes: Any) -> Transformer:
    """A model whose every number counts, also those that are zero or one when fresh."""
    torch.manual_seed(2)
    sizes = {"model_size": 32, "num_heads": 4, "feedforward_size": 48, "num_encoder_layers": 2}
    config = TransformerConfig(**{"norm": "post", "num_decoder_layers": 3, **sizes, **changes})
    model = config.build(num_source, num_target, num_source == num_target and config.tie == "all").eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape) * 0.15)
    return model


KINDS: dict[str, dict[str, Any]] = {
    "as trained here": {},
    "with a small epsilon": {"norm_epsilon": 1e-6},
    "as Marian has it": {"positions": "sinusoidal_halves", "norm_epsilon": 1e-5, "activation": "swish"},
    "with a bias, a large epsilon": {"output_bias": True, "norm_epsilon": 1e-3},
    "two tables": {"tie": "target"},
    "three tables": {"tie": "none", "output_bias": True},
}
Exported = tuple[Transformer, tuple[Tokenizer, Tokenizer], Path]


@pytest.fixture(params=thinned(KINDS.values(), 2), ids=KINDS.keys())
def exported(request: pytest.FixtureRequest, tokenizers: tuple[Tokenizer, Tokenizer], tmp_path: Path) -> Exported:
    source, target = tokenizers
    changes: dict[str, Any] = request.param
    used = (source, target) if "tie" in changes else (source, source)
    model = build(len(used[0]), len(used[1]), **changes)
    search = SearchConfig(beam=3, forbid_unknown=True)
    export_huggingface(model, Described(used, MOST, search, ("de", "en")), tmp_path / "out")
    return model, used, tmp_path / "out"


def batch(num_source: int, num_target: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Sources, their lengths, and what the decoder reads."""
    generator = torch.Generator().manual_seed(1)
    lengths = torch.tensor([2, 9, 17, 30])
    source = torch.randint(4, num_source, (4, 30), generator=generator)
    for row, length in zip(source, lengths.tolist(), strict=True):
        row[length - 1] = EOS
        row[length:] = PAD
    target_in = torch.randint(4, num_target, (4, 25), generator=generator)
    target_in[:, 0] = BOS
    return source, lengths, target_in


def logits_of(model: Seq2Seq, num_source: int, num_target: int) -> torch.Tensor:
    source, lengths, target_in = batch(num_source, num_target)
    with torch.no_grad():
        return model.logits(model(TokenInputs(source, lengths), target_in).features)


def bound(model: Transformer, rounding: float) -> float:
    """How far logits may lie apart: the first normalisation of each stack has their epsilon, whatever it was."""
    epsilon = model.config.norm_epsilon
    return rounding if epsilon == NORM_EPSILON else max(1e-5, 100 * epsilon)


@sampled(3)
def test_what_is_imported_again_gives_the_same_logits_and_tokens(exported: Exported):
    model, (source, target), folder = exported
    read = read_marian(folder)
    assert read.source_order == tuple(range(len(source)))
    assert read.target_order == tuple(range(len(target)))
    assert (read.languages, read.max_tokens) == (("de", "en"), MOST)
    import_marian(folder, folder.with_suffix(".model"))
    translator = load(folder.with_suffix(".model"))
    sizes = len(source), len(target)
    difference = (logits_of(translator.model(), *sizes) - logits_of(model, *sizes)).abs().max().item()
    assert difference <= bound(model, FLOAT32)
    for mine, again in ((source, translator.source_tokenizer), (target, translator.target_tokenizer)):
        assert isinstance(again, MarianTokenizer)
        for text in STRANGE:
            assert again.encode(text) == mine.encode(text), text
            assert again.decode(mine.encode(text)) == mine.decode(mine.encode(text)).strip(), text


@sampled(3)
def test_transformers_gives_the_same_logits_tokens_and_greedy_outputs(exported: Exported):
    transformers = pytest.importorskip("transformers", reason="needs the package transformers")
    model, (source, target), folder = exported
    theirs = transformers.MarianMTModel.from_pretrained(folder).eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # recommends a package that nothing needs
        tokenizer = transformers.MarianTokenizer.from_pretrained(folder)
    ids, lengths, target_in = batch(len(source), len(target))
    seen = ids != PAD
    with torch.no_grad():
        wanted = logits_of(model, len(source), len(target))
        got = theirs(input_ids=ids, attention_mask=seen, decoder_input_ids=target_in).logits
        found = theirs.generate(ids, attention_mask=seen, num_beams=1, do_sample=False)
    assert (got - wanted).abs().max().item() <= bound(model, FLOAT32)
    greedy = SearchConfig(beam=1, max_length_ratio=0.0, max_length_offset=MOST, forbid_unknown=True)
    sources = [row[:length].numpy().astype(np.int64) for row, length in zip(ids, lengths.tolist(), strict=True)]
    for (one, *_), row in zip(decode_sorted(torch_backend(model, MOST), sources, greedy), found, strict=True):
        said = [token for token in row.tolist()[1:] if token not in (PAD, EOS)]
        assert said == list(one.token_ids)[: len(said)]
        assert len(said) >= len(one.token_ids) - 1  # the last place of a full one is their end mark
    for text in STRANGE:
        is_ours = "<eos>" in text or "\u2581" in text  # U+2581 in a text is a space to transformers alone
        assert tokenizer(text)["input_ids"] == [*source.encode(text), EOS] or is_ours
        assert tokenizer(text_target=text)["input_ids"] == [*target.encode(text), EOS] or is_ours
        decoded = tokenizer.decode(target.encode(text), skip_special_tokens=True, use_source_tokenizer=False)
        assert decoded == target.decode(target.encode(text)).strip() or is_ours


@sampled(3)
def test_transformers_gives_the_same_logits_in_float64(exported: Exported):
    """Where rounding hides nothing."""
    transformers = pytest.importorskip("transformers", reason="needs the package transformers")
    model, (source, target), folder = exported
    sizes = len(source), len(target)
    theirs, ours = transformers.MarianMTModel.from_pretrained(folder).eval(), deepcopy(model)
    tables = [side.embed_positions.weight for side in (theirs.model.encoder, theirs.model.decoder)]
    wide = sinusoids(torch.arange(MOST + 1), model.config.model_size, is_halved=True)
    for table in tables:
        assert (table.double() - wide).abs().max().item() <= 2**-24  # theirs is rounded to float32
    theirs, ours = theirs.double(), ours.double()
    for table in tables:
        table.data = wide
    for module in ours.modules():
        if isinstance(module, SinusoidalPositions):
            module.table = module.table.new_zeros(0, module.size)
    ids, _, target_in = batch(*sizes)
    with torch.no_grad():
        got = theirs(input_ids=ids, attention_mask=ids != PAD, decoder_input_ids=target_in).logits
    assert got.dtype == torch.float64
    assert (got - logits_of(ours, *sizes)).abs().max().item() <= bound(model, FLOAT64)


def test_an_imported_model_is_exported_again(tmp_path: Path):
    import_marian(write_folder(tmp_path / "opus"), tmp_path / "opus.model")
    translator = load(tmp_path / "opus.model")
    tokenizers = translator.source_tokenizer, translator.target_tokenizer
    export_huggingface(translator.model(), Described(tokenizers, 39, translator.search), tmp_path / "again")
    first, second = read_marian(tmp_path / "opus"), read_marian(tmp_path / "again")
    assert first.weights.keys() == second.weights.keys()
    assert all(torch.equal(first.weights[name], second.weights[name]) for name in first.weights)
    assert second.source_tokenizer.vocabulary.tokens == first.source_tokenizer.vocabulary.tokens
    assert second.source_tokenizer.encode(">>x<< ab d") == first.source_tokenizer.encode(">>x<< ab d")
    assert second.languages == ("", "")


@sampled(3)
def test_the_settings_are_those_that_transformers_reads(exported: Exported):
    model, (source, target), folder = exported
    config, generation, tokenizer = (
        json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        for name in ("config", "generation_config", "tokenizer_config")
    )
    assert (config["vocab_size"], config["decoder_vocab_size"]) == (len(source), len(target))
    assert (config["decoder_start_token_id"], config["forced_eos_token_id"]) == (BOS, EOS)
    assert config["max_position_embeddings"] == generation["max_length"] == tokenizer["model_max_length"] == MOST + 1
    assert config["share_encoder_decoder_embeddings"] is (model.config.tie == "all")
    assert config["tie_word_embeddings"] is (model.config.tie != "none")
    assert tokenizer["separate_vocabs"] is (model.config.tie != "all")
    assert generation["bad_words_ids"] == [[0], [2], [1]]
    assert (generation["num_beams"], generation["length_penalty"]) == (3, 1.0)
    names = {path.name for path in folder.iterdir()}
    assert ("target_vocab.json" in names) is (model.config.tie != "all")
    shapes = {name: tuple(tensor.shape) for name, tensor in load_file(folder / "model.safetensors").items()}
    assert ("model.shared.weight" in shapes) is (model.config.tie == "all")
    assert ("lm_head.weight" in shapes) is (model.config.tie == "none")
    assert shapes["final_logits_bias"] == (1, len(target))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"norm": "pre"}, 'train with --set model.norm="post"'),
        ({"positions": "learned"}, "learned"),
    ],
)
def test_a_model_that_marian_cannot_express_is_refused(
    changes: dict[str, Any], said: str, tokenizers: tuple[Tokenizer, Tokenizer], tmp_path: Path
):
    source = tokenizers[0]
    model = build(len(source), len(source), **changes)
    with pytest.raises(UsageError, match=said) as raised:
        export_huggingface(model, Described((source, source), MOST, SearchConfig()), tmp_path / "out")
    assert "\n" not in str(raised.value)
    assert list(tmp_path.iterdir()) == []


def test_other_models_and_tokenizers_are_refused(tokenizers: tuple[Tokenizer, Tokenizer], tmp_path: Path):
    source = tokenizers[0]
    model = LuongConfig(embedding_size=8, hidden_size=8, num_layers=1).build(len(source), len(source), True)
    with pytest.raises(UsageError, match="are Transformers, and this model is none"):
        export_huggingface(model, Described((source, source), MOST, SearchConfig()), tmp_path / "out")
    words = UnitTokenizer(Vocabulary([*SPECIAL_TOKENS, "a", "b"]), "words", "NFC")
    for pair in ((words, words), (source, words)):
        with pytest.raises(UsageError, match="words or characters"):
            export_huggingface(build(6, 6), Described(pair, MOST, SearchConfig()), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_written_over_and_nothing_is_left_of_what_failed(
    tokenizers: tuple[Tokenizer, Tokenizer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    source = tokenizers[0]
    model = build(len(source), len(source))
    described = Described((source, source), MOST, SearchConfig())
    out = tmp_path / "out"
    out.write_text("mine", encoding="utf-8")
    with pytest.raises(UsageError, match="already exists"):
        export_huggingface(model, described, out)
    assert out.read_text(encoding="utf-8") == "mine"
    out.unlink()

    def damaged(folder: Path) -> MarianModel:
        read = read_marian(folder)
        read.weights["decoder_layers.0.feedforward.inner.weight"].mul_(2.0)
        return read

    monkeypatch.setattr("heedful.export.huggingface.read_marian", damaged)
    with pytest.raises(FileRefused, match="not kept"):
        export_huggingface(model, described, out)
    monkeypatch.undo()

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("heedful.export.huggingface.save_file", full)
    with pytest.raises(ResourceError, match="no space left"):
        export_huggingface(model, described, out)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    if os.name != "nt":
        for num_bytes in (0, 1_000, 10_000):  # safetensors writes by itself, with errors of its own
            with disk_quota(num_bytes), pytest.raises(ResourceError, match=r"not written: .*; choose another folder"):
                export_huggingface(model, described, out)
            assert list(tmp_path.iterdir()) == []
    out.mkdir()
    export_huggingface(model, described, out)  # an empty folder is nobody's
    shutil.rmtree(out)
    assert list(tmp_path.iterdir()) == []


def test_the_weights_say_what_they_are(tokenizers: tuple[Tokenizer, Tokenizer], tmp_path: Path):
    model = build(*map(len, tokenizers))
    for languages, said in ((("de", "en"), "de en"), (("", ""), "")):
        out = tmp_path / f"out{said}"
        export_huggingface(model, Described(tokenizers, MOST, SearchConfig(), languages), out)
        with safe_open(out / "model.safetensors", "numpy") as file:
            expected = {"format": "pt", "heedful": __version__, "task": "translation", "languages": said}
            assert file.metadata() == expected
