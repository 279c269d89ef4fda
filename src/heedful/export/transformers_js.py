"""Export of a Marian model in the layout of Transformers.js: graphs of its encoder and its decoder, and one tokenizer.

The graphs are written from the weights of a folder in Hugging Face's layout (`heedful.export.huggingface`), as Optimum
names them: `encoder_model.onnx`, and `decoder_model_merged.onnx`, which computes the keys and values of cross-attention
in its first step and takes them back in later ones. Vaswani et al. 2017, arXiv:1706.03762, with layer norms after each
sub-layer, and positions as MarianMTModel has them.
"""

import json
import math
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from heedful.engines.exported import Parity
from heedful.engines.onnx_session import import_runtime
from heedful.errors import MissingExtra, ResourceError, UsageError
from heedful.export.huggingface import Described, export_huggingface, expressible
from heedful.export.marian_layout import (
    BIAS,
    CONFIG,
    GENERATION_CONFIG,
    NORM_EPSILON,
    OUTPUT_TABLE,
    SHARED_TABLE,
    TOKENIZER_CONFIG,
    WEIGHTS,
)
from heedful.export.onnx import quiet
from heedful.export.onnx_small import IR_VERSION, graph_properties
from heedful.files.atomic_write import sync, temporary_path
from heedful.models.interface import Seq2Seq
from heedful.text.marian import MarianTokenizer
from heedful.text.tokenizer import SPACE_MARK, PieceTokenizer, Tokenizer

FOLDER: Final = "onnx"
ENCODER: Final = "encoder_model"
DECODER: Final = "decoder_model_merged"
OPSET: Final = 17
"""Operator set whose every part ONNX Runtime for browsers has had since 2023."""
_ACTIVATIONS: Final = {"relu": "Relu", "swish": "Swish", "silu": "Swish", "gelu": "Gelu"}

Array = NDArray[Any]


@final
class _Graph:
    """Graph of one side of a Marian model, which grows by one operation at a time."""

    def __init__(self, weights: Mapping[str, Array], config: Mapping[str, Any], side: str) -> None:
        self.weights: Final = weights
        self.side: Final = side
        self.size: Final = int(config["d_model"])
        self.num_layers: Final = int(config[f"{side}_layers"])
        self.num_heads: Final = int(config[f"{side}_attention_heads"])
        self.activation: Final = _ACTIVATIONS[config["activation_function"]]
        self.scale: Final = math.sqrt(self.size) if config.get("scale_embedding") else 1.0
        self.most: Final = int(config["max_position_embeddings"])
        self.nodes: list[Any] = []
        self.constants: Final[dict[str, Array]] = {}
        self._number = 0

    @property
    def depth(self) -> int:
        """Size of a head."""
        return self.size // self.num_heads

    def constant(self, name: str, values: Any, kind: Any = np.float32) -> str:
        self.constants.setdefault(name, np.asarray(values, dtype=kind))
        return name

    def integers(self, *values: int) -> str:
        return self.constant("integers_" + "_".join(map(str, values)), values, np.int64)

    def whole(self, value: int) -> str:
        return self.constant(f"whole_{value}", value, np.int64)

    def add(self, operation: str, inputs: Sequence[str], output: str = "", **attributes: Any) -> str:
        from onnx import helper

        self._number += 1
        name = output or f"{operation}_{self._number}"
        self.nodes.append(helper.make_node(operation, list(inputs), [name], name=f"node_{name}", **attributes))
        return name

    def branch(self, result: str, compute: Callable[[], str]) -> Any:
        """Graph within this one, whose only result has this name."""
        from onnx import TensorProto, helper

        outer, self.nodes = self.nodes, []
        self.add("Identity", [compute()], result)
        inner, self.nodes = self.nodes, outer
        return helper.make_graph(inner, result, [], [helper.make_tensor_value_info(result, TensorProto.FLOAT, None)])

    def weight(self, name: str, is_turned: bool = False) -> str:
        """Weight of the folder; a projection is turned for a product from the left."""
        values = self.weights[name]
        return self.constant(name, values.T if is_turned else values)

    def project(self, hidden: str, name: str) -> str:
        product = self.add("MatMul", [hidden, self.weight(f"{name}.weight", is_turned=True)])
        return self.add("Add", [product, self.weight(f"{name}.bias")])

    def norm(self, hidden: str, residual: str, name: str) -> str:
        total = self.add("Add", [hidden, residual])
        inputs = [total, self.weight(f"{name}.weight"), self.weight(f"{name}.bias")]
        return self.add("LayerNormalization", inputs, axis=-1, epsilon=NORM_EPSILON)

    def embed(self, ids: str, first: str) -> str:
        """Scaled embeddings with positions that begin at a number."""
        table = SHARED_TABLE if SHARED_TABLE in self.weights else f"model.{self.side}.embed_tokens.weight"
        rows = self.add("Mul", [self.add("Gather", [self.weight(table), ids]), self.constant("scale", self.scale)])
        length = self.add("Gather", [self.add("Shape", [ids]), self.whole(1)])
        steps = self.add("Range", [first, self.add("Add", [first, length]), self.whole(1)], "steps")
        table = self.constant("positions", sinusoids(self.most, self.size))
        return self.add("Add", [rows, self.add("Gather", [table, steps])])

    def heads(self, hidden: str) -> str:
        """[source, head, position, depth] of [source, position, size]."""
        split = self.add("Reshape", [hidden, self.integers(0, -1, self.num_heads, self.depth)])
        return self.add("Transpose", [split], perm=[0, 2, 1, 3])

    def attend(self, query: str, key: str, value: str, mask: str, name: str) -> str:
        scaled = self.add("Mul", [self.heads(query), self.constant("depth", self.depth**-0.5)])
        scores = self.add("MatMul", [scaled, self.add("Transpose", [key], perm=[0, 1, 3, 2])])
        allowed = self.add("Where", [mask, scores, self.constant("hidden", -np.inf)])
        weights = self.add("Softmax", [allowed], axis=-1)
        context = self.add("Transpose", [self.add("MatMul", [weights, value])], perm=[0, 2, 1, 3])
        return self.project(self.add("Reshape", [context, self.integers(0, -1, self.size)]), f"{name}.out_proj")

    def feed_forward(self, hidden: str, layer: str) -> str:
        inner = self.project(hidden, f"{layer}.fc1")
        match self.activation:
            case "Relu":
                active = self.add("Relu", [inner])
            case "Swish":
                active = self.add("Mul", [inner, self.add("Sigmoid", [inner])])
            case _:
                turned = self.add("Erf", [self.add("Mul", [inner, self.constant("root", 0.5**0.5)])])
                half = self.add("Mul", [inner, self.constant("half", 0.5)])
                active = self.add("Mul", [half, self.add("Add", [turned, self.constant("one", 1.0)])])
        return self.norm(self.project(active, f"{layer}.fc2"), hidden, f"{layer}.final_layer_norm")

    def mask_of(self, attended: str) -> str:
        """[source, 1, 1, position] mask, true where a position may be attended to."""
        return self.add("Cast", [self.add("Unsqueeze", [attended, self.integers(1, 2)])], to=9)


def refuse_unsuited(model: Seq2Seq, tokenizers: tuple[Tokenizer, Tokenizer]) -> None:
    """Refuse a model that this layout cannot express.

    Args:
        tokenizers: of source and target.

    Raises:
        UsageError: no Marian model can express it, or source and target have vocabularies of their own.
    """
    transformer, _ = expressible(model, tokenizers, "transformers.js")
    if transformer.target_embedding is not transformer.source_embedding:
        raise UsageError(
            "transformers.js has one tokenizer for both sides, and this model one for each; train with one vocabulary"
        )


def export_transformers_js(model: Seq2Seq, described: Described, out: Path) -> Parity:
    """Write a folder in the layout of Transformers.js.

    Args:
        described: tokenizers, limits and search settings of the model.
        out: the folder, which is empty or does not exist.

    Returns:
        Agreement of the Marian model, whose weights the graphs have, with the original one.

    Raises:
        UsageError: `out` exists and is not an empty folder, or the layout cannot express this model.
        FileRefused: the Marian model gives other log probabilities; its files are deleted.
        ResourceError: the disk is full or refuses.
        MissingExtra: a package that writes graphs is not installed.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out}: already exists; name another folder")
    refuse_unsuited(model, described.tokenizers)
    tokenizer = described.tokenizers[0]
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with temporary_path(out, is_folder=True) as temporary:
            marian = temporary / "marian"
            parity = export_huggingface(model, described, marian)
            (temporary / FOLDER).mkdir()
            _write_tokenizer(marian, tokenizer, temporary)
            _write_graphs(marian, temporary / FOLDER)
            for name in (CONFIG, TOKENIZER_CONFIG):
                (temporary / name).write_bytes((marian / name).read_bytes())
            settings = json.loads((marian / GENERATION_CONFIG).read_text("utf-8"))
            # Transformers.js has no beam search.
            text = json.dumps(settings | {"num_beams": 1}, indent=1)
            (temporary / GENERATION_CONFIG).write_text(text, encoding="utf-8", newline="\n")
            shutil.rmtree(marian)
            for path in temporary.rglob("*"):
                sync(path)
            temporary.replace(out)
        sync(out.parent)
    except OSError as error:
        raise ResourceError(f"{out}: not written: {(error.strerror or str(error)).lower()}") from None
    return parity


def _write_graphs(folder: Path, out: Path) -> None:
    """Write the graphs of a Marian model, in 32 bits and in 8.

    Raises:
        UsageError: the model has an activation that is not known here.
        MissingExtra: the package that writes or changes graphs is not installed.
    """
    from safetensors.numpy import load_file

    config = json.loads((folder / CONFIG).read_text("utf-8"))
    if config["activation_function"] not in _ACTIVATIONS:
        raise UsageError(f"{folder}: activation {config['activation_function']}; known: {', '.join(_ACTIVATIONS)}")
    weights: dict[str, Array] = load_file(folder / WEIGHTS)
    import_runtime()
    try:
        from onnxruntime.quantization import QuantType, quantize_dynamic

        for name, graph in ((ENCODER, _encoder(weights, config)), (DECODER, _decoder(weights, config))):
            (out / f"{name}.onnx").write_bytes(graph.SerializeToString())
            with quiet():
                quantize_dynamic(out / f"{name}.onnx", out / f"{name}_quantized.onnx", weight_type=QuantType.QInt8)
    except ModuleNotFoundError as error:
        raise MissingExtra(str(error.name), "train", "writing ONNX") from None


def _encoder(weights: dict[str, Array], config: dict[str, Any]) -> Any:
    graph = _Graph(weights, config, "encoder")
    hidden = graph.embed("input_ids", graph.whole(0))
    mask = graph.mask_of("attention_mask")
    for index in range(graph.num_layers):
        layer = f"model.encoder.layers.{index}"
        query, key, value = (graph.project(hidden, f"{layer}.self_attn.{name}_proj") for name in "qkv")
        attended = graph.attend(query, graph.heads(key), graph.heads(value), mask, f"{layer}.self_attn")
        hidden = graph.norm(attended, hidden, f"{layer}.self_attn_layer_norm")
        hidden = graph.feed_forward(hidden, layer)
    graph.add("Identity", [hidden], "last_hidden_state")
    inputs = {"input_ids": ("batch_size", "length"), "attention_mask": ("batch_size", "length")}
    return _model(graph, ENCODER, inputs, {"last_hidden_state": ("batch_size", "length", graph.size)})


def _decoder(weights: dict[str, Array], config: dict[str, Any]) -> Any:
    graph = _Graph(weights, config, "decoder")
    before = graph.add("Gather", [graph.add("Shape", ["past_key_values.0.decoder.key"]), graph.whole(2)])
    hidden = graph.embed("input_ids", before)
    mask = graph.mask_of("encoder_attention_mask")
    # A step may attend to itself and to what is before it.
    last = graph.add("Gather", [graph.add("Shape", ["input_ids"]), graph.whole(1)])
    keys = graph.add("Range", [graph.whole(0), graph.add("Add", [before, last]), graph.whole(1)])
    causal = graph.add("LessOrEqual", [keys, graph.add("Unsqueeze", ["steps", graph.integers(1)])])
    cache: dict[str, tuple[Any, ...]] = {}
    for index in range(graph.num_layers):
        layer = f"model.decoder.layers.{index}"
        query, *new = (graph.project(hidden, f"{layer}.self_attn.{name}_proj") for name in "qkv")
        own: list[str] = []
        for kind, each in zip(("key", "value"), new, strict=True):
            name = f"{index}.decoder.{kind}"
            parts = [f"past_key_values.{name}", graph.heads(each)]
            own.append(graph.add("Concat", parts, f"present.{name}", axis=2))
            cache[name] = ("batch_size", graph.num_heads, "past_length", graph.depth)
        attended = graph.attend(query, own[0], own[1], causal, f"{layer}.self_attn")
        hidden = graph.norm(attended, hidden, f"{layer}.self_attn_layer_norm")
        cross: list[str] = []
        for kind in ("key", "value"):
            name = f"{index}.encoder.{kind}"
            cross.append(_kept(graph, name, f"{layer}.encoder_attn.{kind[0]}_proj"))
            cache[name] = ("batch_size", graph.num_heads, "source_length", graph.depth)
        query = graph.project(hidden, f"{layer}.encoder_attn.q_proj")
        attended = graph.attend(query, cross[0], cross[1], mask, f"{layer}.encoder_attn")
        hidden = graph.norm(attended, hidden, f"{layer}.encoder_attn_layer_norm")
        hidden = graph.feed_forward(hidden, layer)
    table = next(name for name in (OUTPUT_TABLE, SHARED_TABLE, "model.decoder.embed_tokens.weight") if name in weights)
    output = graph.constant("output", weights[table].T)
    graph.add("Add", [graph.add("MatMul", [hidden, output]), graph.weight(BIAS)], "logits")
    inputs = {
        "input_ids": ("batch_size", "step"),
        "encoder_attention_mask": ("batch_size", "length"),
        "encoder_hidden_states": ("batch_size", "length", graph.size),
        **{f"past_key_values.{name}": shape for name, shape in cache.items()},
        "use_cache_branch": (1,),
    }
    outputs = {"logits": ("batch_size", "step", len(weights[table]))}
    outputs |= {f"present.{name}": (*shape[:2], f"now.{name}", graph.depth) for name, shape in cache.items()}
    return _model(graph, DECODER, inputs, outputs)


def _kept(graph: _Graph, name: str, projection: str) -> str:
    """Keys or values of the source: computed in the first step, and taken back in later ones."""
    first = graph.branch(f"first.{name}", lambda: graph.heads(graph.project("encoder_hidden_states", projection)))
    later = graph.branch(f"later.{name}", lambda: f"past_key_values.{name}")
    condition = graph.add("Reshape", ["use_cache_branch", graph.integers(1)])
    return graph.add("If", [condition], f"present.{name}", then_branch=later, else_branch=first)


def _model(graph: _Graph, name: str, inputs: dict[str, tuple[Any, ...]], outputs: dict[str, tuple[Any, ...]]) -> Any:
    from onnx import TensorProto, helper, numpy_helper

    def kind(each: str) -> int:
        if each == "use_cache_branch":
            return TensorProto.BOOL
        return TensorProto.INT64 if each.endswith(("input_ids", "attention_mask")) else TensorProto.FLOAT

    values = [
        [helper.make_tensor_value_info(each, kind(each), shape) for each, shape in part.items()]
        for part in (inputs, outputs)
    ]
    constants = [numpy_helper.from_array(np.array(each, order="C"), own) for own, each in graph.constants.items()]
    whole = helper.make_graph(graph.nodes, name, values[0], values[1], constants)
    opset = [helper.make_opsetid("", OPSET)]
    model = helper.make_model(whole, opset_imports=opset, ir_version=IR_VERSION, producer_name="heedful")
    helper.set_model_props(model, graph_properties(name))
    return model


def sinusoids(number: int, size: int) -> NDArray[np.float32]:
    """Compute the positions of a Marian model: sines in the first half of the dimensions, cosines in the second.

    Returns:
        [position, size]
    """
    angles = np.arange(number)[:, None] / 10_000.0 ** (2 * (np.arange(size) // 2) / size)
    half = size // 2 + size % 2
    table = np.empty((number, size), dtype=np.float32)
    table[:, :half], table[:, half:] = np.sin(angles[:, 0::2]), np.cos(angles[:, 1::2])
    return table


def _write_tokenizer(folder: Path, tokenizer: Tokenizer, out: Path) -> None:
    """Write the tokenizer of both sides as one file.

    Raises:
        TypeError: the tokenizer has no pieces.
    """
    config = json.loads((folder / TOKENIZER_CONFIG).read_text("utf-8"))
    tokens = tokenizer.pieces(range(len(tokenizer)))
    if not isinstance(tokenizer, PieceTokenizer | MarianTokenizer):
        raise TypeError(f"{type(tokenizer).__name__} has no pieces")
    scores = tokenizer.scores()
    has_bytes = "<0x41>" in tokens
    start = tokens[json.loads((folder / CONFIG).read_text("utf-8"))["decoder_start_token_id"]]
    special = [start, *(str(config[f"{name}_token"]) for name in ("pad", "unk", "eos") if f"{name}_token" in config)]
    ids = {token: index for index, token in enumerate(tokens)}
    eos = str(config.get("eos_token", "</s>"))
    marker = {"SpecialToken": {"id": eos, "type_id": 0}}
    content = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": ids[token], "content": token, "special": True,
                "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
            }
            for token in dict.fromkeys(special) if token in ids
        ],
        "normalizer": {"type": "Sequence", "normalizers": _normalizers(tokenizer)},
        "pre_tokenizer": None,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"Sequence": {"id": "A", "type_id": 0}}, marker],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}, marker],
            "special_tokens": {eos: {"id": eos, "ids": [ids[eos]], "tokens": [eos]}},
        },
        "decoder": {"type": "Sequence", "decoders": _decoders(has_bytes)},
        "model": {
            "type": "Unigram",
            "unk_id": ids.get(str(config.get("unk_token", "<unk>")), 1),
            "byte_fallback": has_bytes,
            "vocab": [[token, score] for token, score in zip(tokens, scores, strict=True)],
        },
    }  # fmt: skip
    (out / "tokenizer.json").write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8", newline="\n")


def _normalizers(tokenizer: PieceTokenizer | MarianTokenizer) -> list[dict[str, Any]]:
    """Steps from a text to what pieces are cut from, with a mark in place of each space and at the beginning."""
    normalizers: list[dict[str, Any]] = []
    if tokenizer.normalization in ("NFC", "NFKC"):
        normalizers.append({"type": tokenizer.normalization})
    if isinstance(tokenizer, MarianTokenizer):  # what the pieces of OPUS-MT were trained with
        normalizers += [{"type": "NFKC"}, {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}]
    normalizers += [
        {"type": "Replace", "pattern": {"String": SPACE_MARK}, "content": "\u2582"},
        {"type": "Prepend", "prepend": SPACE_MARK},
        {"type": "Replace", "pattern": {"String": " "}, "content": SPACE_MARK},
    ]
    return normalizers


def _decoders(has_bytes: bool) -> list[dict[str, Any]]:
    """Steps from pieces to a text."""
    return [
        {"type": "Replace", "pattern": {"String": SPACE_MARK}, "content": " "},
        *([{"type": "ByteFallback"}] if has_bytes else []),
        {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0},
    ]
