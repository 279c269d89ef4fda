import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from heedful.engines.engine import decode_sorted
from heedful.errors import FileRefused, UsageError
from heedful.export.marian import read_marian
from heedful.models.engine import torch_backend
from heedful.models.inputs import TokenInputs
from heedful.models.transformer import Transformer
from heedful.predictors.table import load
from heedful.predictors.translator import Translator
from heedful.runs.marian import import_marian
from heedful.search.config import SearchConfig
from heedful.text.vocabulary import BOS, EOS, PAD, UNK
from tests.export.marian_folder import CONFIG, SIZE, TOKENS, tensors, write_folder

# What transformers 5.23 gave for the tiny model: the encoder's states of the first and fourth token, the logits of
# the fourth step, and the outputs of greedy search, in their ids.
SOURCE, TARGET_IN = [2, 3, 8, 10, 0], [11, 4, 7, 2]
FIRST = [0.292941, 1.739641, -0.367173, -1.393924, -0.824636, 1.155165, -0.824543, -1.395895]
FOURTH = [0.798068, 1.538082, -1.047501, -0.725074, -0.964024, 1.025121, -0.469625, -1.551023]
LOGITS = [
    *(1.223937, 2.35353, 0.380694, -2.623994, -1.87772, 3.433427),
    *(-2.004528, 3.340149, 1.179263, -0.022174, 0.681226, 0.131153),
]
OUTPUTS = {(2, 3, 8, 10, 0): [7, *[5] * 9], (4, 0): [5] * 10, (9, 2, 8, 0): [7, *[5] * 9]}
GREEDY = SearchConfig(beam=1, max_length_ratio=0.0, max_length_offset=10)

NEAR = 1e-4
"""Largest difference of states: normalising nearly equal numbers enlarges the rounding of another kernel."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_folder(tmp_path / "marian")


def transformer(translator: Translator) -> Transformer:
    model = translator.model()
    assert isinstance(model, Transformer)
    return model


def imported(folder: Path) -> tuple[Translator, list[int], dict[int, int]]:
    """The model, their id of each of our tokens, and the other way around."""
    import_marian(folder, folder.with_suffix(".model"))
    order = list(read_marian(folder).target_order)
    return load(folder.with_suffix(".model")), order, {theirs: ours for ours, theirs in enumerate(order) if ours != BOS}


def encoder_states(model: Transformer, source: Tensor, lengths: Tensor) -> Tensor:
    """What the encoder's last layer gives; `encode` hands on only keys and values of it."""
    given: list[Tensor] = []
    handle = model.encoder_layers[-1].register_forward_hook(lambda _, __, vectors: given.append(vectors))
    model.encode(TokenInputs(source, lengths))
    handle.remove()
    return given[0]


def test_the_numbers_are_those_that_transformers_gave(folder: Path):
    translator, order, back = imported(folder)
    model = transformer(translator)
    source, lengths = torch.tensor([[back[token] for token in SOURCE]]), torch.tensor([len(SOURCE)])
    target_in = torch.tensor([[BOS, *(back[token] for token in TARGET_IN[1:])]])
    with torch.no_grad():
        states = encoder_states(model, source, lengths)[0]
        logits = model.logits(model(TokenInputs(source, lengths), target_in).features)[0, 3]
    assert states[0].tolist() == pytest.approx(FIRST, abs=1e-5)
    assert states[3].tolist() == pytest.approx(FOURTH, abs=1e-5)
    assert [logits[back[token]].item() for token in range(len(TOKENS))] == pytest.approx(LOGITS, abs=1e-5)
    assert logits.softmax(-1)[BOS] < 1e-30
    sources = [np.array([back[token] for token in ids]) for ids in OUTPUTS]
    found = decode_sorted(torch_backend(model, 30), sources, GREEDY)
    assert [[order[token] for token in one[0].token_ids] for one in found] == [*OUTPUTS.values()]


def test_states_logits_and_greedy_outputs_are_those_of_transformers(folder: Path):
    transformers = pytest.importorskip("transformers", reason="needs the package transformers")
    torch.manual_seed(1)
    sizes = {"encoder_layers": 3, "decoder_layers": 3, "d_model": 32, "forced_eos_token_id": None}
    config = transformers.MarianConfig(**CONFIG | sizes)
    theirs = transformers.MarianMTModel(config).eval()
    with torch.no_grad():
        for name, parameter in theirs.named_parameters():
            # So that outputs differ with their sources: attention over the source is sharp, and biases are small.
            std = 1.0 if "encoder_attn." in name else 0.02 if name.endswith("bias") else 0.2
            parameter.copy_(torch.randn(parameter.shape) * std + ("norm.weight" in name))
        theirs.final_logits_bias.copy_(0.3 * torch.randn(1, len(TOKENS)))
        theirs.final_logits_bias[0, 0] += 1.5
    theirs.save_pretrained(folder)
    theirs = transformers.MarianMTModel.from_pretrained(folder).eval()  # with the position codes that are not saved
    translator, order, back = imported(folder)
    model = transformer(translator)
    generator = np.random.default_rng(0)
    sources = [[*generator.integers(1, len(TOKENS) - 1, length % 9).tolist(), 0] for length in range(100)]
    lengths = torch.tensor([len(ids) for ids in sources])
    padded = torch.full((100, 9), TOKENS.index("<pad>"))
    for row, ids in zip(padded, sources, strict=True):
        row[: len(ids)] = torch.tensor(ids)
    mine = torch.tensor([[back[token] for token in row] for row in padded.tolist()])
    seen = padded != TOKENS.index("<pad>")
    target_in = torch.randint(4, len(order), (100, 7))
    target_in[:, 0] = BOS
    with torch.no_grad():
        states = theirs.model.encoder(input_ids=padded, attention_mask=seen).last_hidden_state
        assert (encoder_states(model, mine, lengths) - states)[seen].abs().max() <= NEAR
        wanted = theirs(input_ids=padded, attention_mask=seen, decoder_input_ids=torch.tensor(order)[target_in]).logits
        logits = model.logits(model(TokenInputs(mine, lengths), target_in).features)
        kept = [token for token in range(len(order)) if token != BOS]
        assert (logits[..., kept] - wanted[..., [order[token] for token in kept]]).abs().max() <= NEAR
        ids = theirs.generate(
            padded, attention_mask=seen, num_beams=1, do_sample=False, max_new_tokens=10, bad_words_ids=[[11]]
        )
    found = decode_sorted(torch_backend(model, 30), [np.array([back[t] for t in ids]) for ids in sources], GREEDY)
    outputs: set[tuple[int, ...]] = set()
    for (one, *_), row in zip(found, ids[:, 1:].tolist(), strict=True):
        has_end = 0 in row
        said = [order[token] for token in one.token_ids]
        assert said == (row[: row.index(0)] if has_end else row[: len(said)])
        assert has_end or len(said) == 10
        outputs.add(tuple(said))
    assert len(outputs) > 10
    assert 5 < sum(0 in row for row in ids[:, 1:].tolist()) < 100


def test_special_tokens_come_first_and_the_start_is_their_padding(folder: Path):
    read = read_marian(folder)
    assert read.target_order == (11, 1, 11, 0, 2, 3, 4, 5, 6, 7, 8, 9, 10)
    tokens = read.source_tokenizer.vocabulary.tokens
    assert (tokens[PAD], tokens[UNK], tokens[EOS]) == ("<pad>", "<unk>", "<eos>")
    assert list(tokens[4:]) == TOKENS[2:11]
    table, theirs = read.weights["source_embedding.weight"], tensors()
    assert torch.equal(table, theirs["model.shared.weight"][list(read.target_order)])
    assert (read.languages, read.num_beams, read.max_tokens) == (("de", "en"), 4, 39)


def test_half_precision_is_widened(folder: Path):
    halves = {name: tensor.half() for name, tensor in tensors().items()}
    save_file(halves, folder / "model.safetensors")
    weights = read_marian(folder).weights
    assert {tensor.dtype for tensor in weights.values()} == {torch.float32}
    assert torch.equal(weights["output.bias"][EOS], halves["final_logits_bias"][0, 0].float())


def test_a_folder_with_copies_and_position_codes_is_read(folder: Path):
    held = tensors()
    for name in ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight"):
        held[name] = held["model.shared.weight"].clone()
    angles = np.arange(40)[:, None] / 10000 ** (np.arange(0, SIZE, 2) / SIZE)
    codes = torch.from_numpy(np.concatenate((np.sin(angles), np.cos(angles)), 1)).float()
    held["model.encoder.embed_positions.weight"] = codes
    save_file(held, folder / "model.safetensors")
    wanted = read_marian(write_folder(folder.with_name("other"))).weights
    assert all(torch.equal(tensor, wanted[name]) for name, tensor in read_marian(folder).weights.items())
    for name in ("lm_head.weight", "model.encoder.embed_positions.weight"):
        changed = held[name].clone()
        changed[1, 2] += 0.5
        save_file(held | {name: changed}, folder / "model.safetensors")
        with pytest.raises(FileRefused, match=name):
            read_marian(folder)


def rewrite(path: Path, **changes: Any) -> None:
    held = json.loads(path.read_text(encoding="utf-8"))
    held |= changes
    path.write_text(json.dumps({key: value for key, value in held.items() if value is not ...}), encoding="utf-8")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"d_model": 16}, "is .* but config.json asks for"),
        ({"d_model": 10**30}, "d_model"),
        ({"d_model": "8"}, "d_model"),
        ({"encoder_layers": 3}, "has no model.encoder.layers.2"),
        ({"encoder_layers": 1}, "unknown tensors model.encoder.layers.1"),
        ({"encoder_layers": 10**9}, "encoder_layers"),
        ({"encoder_attention_heads": 3, "decoder_attention_heads": 3}, "not divisible"),
        ({"encoder_attention_heads": 4}, "decoder_attention_heads 2 differ"),
        ({"encoder_ffn_dim": 8}, "ffn_dim"),
        ({"model_type": "t5"}, "model_type"),
        ({"activation_function": "gelu"}, "activation_function"),
        ({"scale_embedding": False}, "scale_embedding"),
        ({"share_encoder_decoder_embeddings": False}, "has no model.encoder.embed_tokens.weight"),
        ({"tie_word_embeddings": False}, "without tie_word_embeddings"),
        ({"decoder_vocab_size": 11}, "decoder_vocab_size is not vocab_size"),
        ({"normalize_before": True}, "normalize_before"),
        ({"pad_token_id": 12}, "pad 12"),
        ({"decoder_start_token_id": 12}, "start 12"),
        ({"eos_token_id": 1}, "eos 1"),
        ({"vocab_size": 13}, "12 tokens, but config.json says vocab_size 13"),
        ({"vocab_size": 11}, "outside the vocabulary of 11"),
    ],
)
def test_a_configuration_that_does_not_fit_is_refused(folder: Path, changes: dict[str, Any], said: str):
    rewrite(folder / "config.json", **changes)
    with pytest.raises(FileRefused, match=said) as raised:
        read_marian(folder)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"b": 99}, "outside the vocabulary"),
        ({"b": -1}, "outside the vocabulary"),
        ({"b": 4}, "occurs twice"),
        ({"b": True}, "outside the vocabulary"),
        ({"b": "3"}, "outside the vocabulary"),
        ({"b": ...}, "11 tokens"),
        ({"<unk>": ..., "<UNK>": 1}, "no <unk>"),
        ({"b": ..., "<bos>": 3}, "<bos>"),
    ],
)
def test_a_vocabulary_that_does_not_fit_is_refused(folder: Path, changes: dict[str, Any], said: str):
    rewrite(folder / "vocab.json", **changes)
    with pytest.raises(FileRefused, match=said):
        read_marian(folder)


@pytest.mark.parametrize("name", ["config.json", "vocab.json", "source.spm", "target.spm", "model.safetensors"])
@pytest.mark.parametrize("content", [b"", b"\xff\x00nonsense", b"[" * 100_000, b"[1, 2]"])
def test_a_damaged_file_is_named(folder: Path, name: str, content: bytes):
    (folder / name).write_bytes(content)
    with pytest.raises(FileRefused, match=name):
        read_marian(folder)


@pytest.mark.parametrize("name", ["vocab.json", "source.spm", "target.spm", "model.safetensors"])
def test_a_missing_file_is_named(folder: Path, name: str):
    (folder / name).unlink()
    with pytest.raises(FileRefused, match=name):
        read_marian(folder)


def test_cut_weights_and_odd_numbers_are_refused(folder: Path):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(FileRefused, match="not readable"):
        read_marian(folder)
    for value in (float("nan"), float("inf")):
        held = tensors()
        held["model.decoder.layers.0.fc1.bias"][3] = value
        save_file(held, path)
        with pytest.raises(FileRefused, match=r"fc1.bias holds numbers that are not finite"):
            read_marian(folder)
    save_file(tensors() | {"model.extra": torch.zeros(1)}, path)
    with pytest.raises(FileRefused, match=r"model\.extra"):
        read_marian(folder)
    save_file(tensors() | {"final_logits_bias": torch.zeros(1, 12, dtype=torch.int64)}, path)
    with pytest.raises(FileRefused, match="final_logits_bias"):
        read_marian(folder)


def test_a_pickle_is_refused(folder: Path):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(FileRefused, match=r"pytorch_model.bin is a pickle"):
        read_marian(folder)


def test_what_is_no_model_is_bad_usage(tmp_path: Path):
    (tmp_path / "file").write_text("x", encoding="utf-8")
    for path in (tmp_path, tmp_path / "none", tmp_path / "file"):
        with pytest.raises(UsageError, match="import takes"):
            read_marian(path)


def test_the_folder_read_is_left_alone(folder: Path):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    translator, _, _ = imported(folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    weights = load_file(translator.folder.file("weights"))
    assert {name for name, _ in translator.model().named_parameters()} == weights.keys()
