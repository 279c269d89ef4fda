"""Export of a whole model as one ONNX graph: code points of words in, ids of symbols out.

code_points [word, letter] -> ids [word, symbol], log_probs [word]

The graph looks code points up, encodes, and searches greedily in a loop, whose body is one decoding step. Programs that
have ONNX Runtime alone need nothing else: what they must know is in the metadata of the file.
"""

import json
import random
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final

import numpy as np

from heedful.engines.onnx_session import open_session
from heedful.errors import FileRefused, UsageError
from heedful.export.onnx import export_graphs
from heedful.export.onnx_small import IR_VERSION, OPSET, graph_properties
from heedful.files.atomic_write import private_folder, temporary_path
from heedful.models.interface import Seq2Seq
from heedful.search.config import SearchConfig
from heedful.search.inputs import token_draw
from heedful.text.known_letters import KnownLetters
from heedful.text.tokenizer import Tokenizer, UnitTokenizer
from heedful.text.vocabulary import BOS, EOS, PAD, SPECIAL_TOKENS, UNK
from heedful.version import __version__

_NUM_COMPARED: Final = 200
_LEAST_SAME: Final = 0.95
"""Least share of equal outputs: for random words several tokens may be equally probable but for rounding."""
FORMAT: Final = "1"
"""Version of the inputs, outputs and metadata of these files."""
_OF_JSON: Final = frozenset(("format", "symbols", "letters", "most_letters", "pad", "unk", "bos", "eos"))
"""Metadata that are numbers or lists; metadata of a graph are texts."""


def refuse_unsuited(
    tokenizers: tuple[Tokenizer, Tokenizer], search: SearchConfig
) -> tuple[UnitTokenizer, UnitTokenizer]:
    """Refuse a model whose texts or search a single graph cannot express.

    Returns:
        The tokenizers.

    Raises:
        UsageError: sources are not characters, targets are pieces, or the search has rules of its own.
    """
    source, target = tokenizers
    if not isinstance(source, UnitTokenizer) or source.units != "characters":
        raise UsageError(
            "export: --single reads code points; it is for models whose sources are one text of characters"
        )
    if not isinstance(target, UnitTokenizer):
        raise UsageError("export: --single writes characters or symbols; it is not for models whose targets are pieces")
    rules = {"repetition_penalty": 1.0, "no_repeat_ngram_size": 0, "min_length": 0, "method": "beam"}
    for name, usual in rules.items():
        if getattr(search, name) != usual:
            raise UsageError(f"export: --single searches greedily, without search.{name}; set it to {usual}")
    return source, target


def export_single(
    model: Seq2Seq,
    tokenizers: tuple[UnitTokenizer, UnitTokenizer],
    search: SearchConfig,
    max_length: int,
    facts: Mapping[str, str],
    path: Path,
) -> None:
    """Write a model as one graph.

    Args:
        model: a model of pairs; it is not changed.
        tokenizers: of source and target, from `refuse_unsuited`.
        search: length limits of outputs, and whether the unknown token may be generated.
        max_length: maximum number of tokens of a source or an output, EOS included.
        facts: further metadata, such as languages.
        path: the file; its metadata go into a second one, `facts_path`, as well.

    Raises:
        UsageError: the model cannot be written as a graph.
        MissingExtra: the packages that write graphs are not installed.
    """
    with private_folder() as folder:
        export_graphs(model, folder, max_length, draw=token_draw(len(tokenizers[0])))
        write_single(folder, tokenizers, search, max_length, facts, path)


def write_single(
    folder: Path,
    tokenizers: tuple[UnitTokenizer, UnitTokenizer],
    search: SearchConfig,
    max_length: int,
    facts: Mapping[str, str],
    path: Path,
) -> None:
    """Join the graphs of an engine to one.

    Args:
        folder: folder of `encode.onnx` and `step.onnx`.
        tokenizers: as for `export_single`.
        search: as for `export_single`.
        max_length: the one that the graphs were written for.
        facts: as for `export_single`.
        path: the file.

    Raises:
        UsageError: the graphs have functions.
    """
    import onnx
    from onnx import helper

    graph = _joined(folder, tokenizers, search, max_length)
    tokens = tokenizers[1].vocabulary.tokens
    symbols = ["" if index < len(SPECIAL_TOKENS) else token for index, token in enumerate(tokens)]
    opset = helper.make_opsetid("", OPSET)
    whole = helper.make_model(graph, opset_imports=[opset], ir_version=IR_VERSION, producer_name="heedful")
    whole.producer_version = __version__
    properties = {
        **graph_properties("single"),
        "format": FORMAT,
        "symbols": json.dumps(symbols, ensure_ascii=False),
        # For programs without a reader of JSON; a symbol that is a line feed would shift those behind it.
        "symbol_lines": "\n".join(symbol.replace("\n", " ") for symbol in symbols),
        "letters": json.dumps(tokenizers[0].vocabulary.tokens[len(SPECIAL_TOKENS) :], ensure_ascii=False),
        "separator": " " if tokenizers[1].units == "words" else "",
        "normalization": tokenizers[0].normalization,
        "most_letters": str(max_length - 1),
        **facts,
    }
    helper.set_model_props(whole, properties)
    onnx.checker.check_model(whole)
    values = {key: json.loads(value) if key in _OF_JSON else value for key, value in properties.items()}
    about = json.dumps(values, ensure_ascii=False, indent=1).encode("utf-8")
    for file, content in ((path, whole.SerializeToString()), (facts_path(path), about)):
        with temporary_path(file) as temporary:
            temporary.write_bytes(content)
            temporary.replace(file)


def facts_path(path: Path) -> Path:
    """File beside a graph with its metadata, for runtimes that do not give them, such as those in JavaScript."""
    return path.with_name(f"{path.name}.json")


def run_single(path: Path, words: Sequence[str], batch_size: int = 64) -> list[list[int]]:
    """Run a single graph.

    Args:
        words: texts in the normal form that the metadata state.

    Returns:
        The ids of each output.

    Raises:
        FileRefused: the file cannot be read.
    """
    session = open_session(path, 1)
    outputs: list[list[int]] = []
    for start in range(0, len(words), batch_size):
        batch = words[start : start + batch_size]
        codes = np.zeros((len(batch), max(map(len, batch))), dtype=np.int64)
        for row, word in zip(codes, batch, strict=True):
            row[: len(word)] = [ord(letter) for letter in word]
        (ids,) = session.run(["ids"], {"code_points": codes})
        outputs += [[int(index) for index in row if index != PAD] for row in ids]
    return outputs


def compare_single(
    path: Path, tokenizers: tuple[UnitTokenizer, UnitTokenizer], translate: Callable[[list[str]], list[str]]
) -> str:
    """Compare the outputs of a single graph with those of its model, for random words.

    Args:
        translate: function that translates by greedy search.

    Returns:
        A line about the file.

    Raises:
        FileRefused: outputs differ more than rounding explains.
    """
    letters = tokenizers[0].vocabulary.tokens[len(SPECIAL_TOKENS) :]
    draw = random.Random(0)
    words = ["".join(draw.choices(letters, k=1 + index % 15)) for index in range(_NUM_COMPARED)]
    words = [word for word in words if word.strip()]
    texts = [tokenizers[1].decode(ids) for ids in run_single(path, words)]
    num_same = sum(one == other for one, other in zip(texts, translate(words), strict=True))
    if num_same < _LEAST_SAME * len(words):
        raise FileRefused(f"{path}: {num_same} of {len(words)} outputs are the model's; not usable, use --to onnx")
    return f"{path}: {path.stat().st_size / 1e6:.1f} MB; {num_same} of {len(words)} outputs of random words the same"


def _joined(
    folder: Path, tokenizers: tuple[UnitTokenizer, UnitTokenizer], search: SearchConfig, max_length: int
) -> Any:
    """Graph of reading, encoding and the loop around the decoding step."""
    from onnx import TensorProto, helper

    encode, step = (_load(folder / f"{name}.onnx", f"{name}/") for name in ("encode", "step"))
    states = [each.name.removeprefix("step/") for each in step.input if each.name.startswith("step/state.")]
    memory = [each.name.removeprefix("step/") for each in step.input if each.name.startswith("step/memory.")]
    constants = [*_constants(tokenizers, search, max_length), *encode.initializer, *step.initializer]
    nodes = [*_reading(), *_start(), *encode.node]
    nodes += [
        helper.make_node("Identity", ["lengths" if name == "memory.lengths" else f"encode/{name}"], [f"step/{name}"])
        for name in memory
    ]
    body = _body(step, states)
    carried = ["first", "empty", "zeros", *(f"encode/{name}" for name in states)]
    last = [f"last/{name}" for name in ("tokens", "ended", "log_probs", *states)]
    nodes.append(helper.make_node("Loop", ["most", "any", *carried], [*last, "by_step"], body=body))
    nodes.append(helper.make_node("Transpose", ["by_step"], ["ids"], perm=[1, 0]))
    nodes.append(helper.make_node("Identity", ["last/log_probs"], ["log_probs"]))
    return helper.make_graph(
        nodes,
        "heedful",
        [helper.make_tensor_value_info("code_points", TensorProto.INT64, ["word", "letter"])],
        [
            helper.make_tensor_value_info("ids", TensorProto.INT64, ["word", "symbol"]),
            helper.make_tensor_value_info("log_probs", TensorProto.FLOAT, ["word"]),
        ],
        initializer=constants,
    )


def _load(path: Path, prefix: str) -> Any:
    """Graph of a file, whose names begin with a prefix and whose shapes are not stated.

    Raises:
        UsageError: it has functions.
    """
    import onnx
    from onnx import compose

    model = compose.add_prefix(onnx.load(path), prefix)
    if model.functions:
        raise UsageError(f"{path.name}: has functions, which a single graph cannot have")
    del model.graph.value_info[:]
    return model.graph


def _reading() -> list[Any]:
    """Nodes from code points to token ids that end in EOS, and the number of letters of each word."""
    from onnx import TensorProto, helper

    make, int64 = helper.make_node, TensorProto.INT64
    return [
        make("Slice", ["code_points", "zero", "most_letters", "one"], ["letters"]),
        make("Equal", ["letters", "zero"], ["is_blank"]),
        make("Not", ["is_blank"], ["is_letter"]),
        make("Cast", ["is_letter"], ["counted"], to=int64),
        make("ReduceSum", ["counted", "one"], ["num_letters"], keepdims=0),
        # The id of a letter is that of the one code point in the table that equals it.
        make("Unsqueeze", ["letters", "two"], ["each"]),
        make("Equal", ["each", "known"], ["is_same"]),
        make("Cast", ["is_same"], ["same"], to=TensorProto.INT32),
        make("ArgMax", ["same"], ["index"], axis=2, keepdims=0),
        make("ReduceMax", ["same", "two"], ["found"], keepdims=0),
        make("Cast", ["found"], ["is_known"], to=TensorProto.BOOL),
        make("Gather", ["ids_of_known", "index"], ["known_ids"], axis=0),
        make("Where", ["is_known", "known_ids", "unknown"], ["letter_ids"]),
        # A column more, for EOS.
        make("Shape", ["letters"], ["num_words"], start=0, end=1),
        make("Concat", ["num_words", "one"], ["column"], axis=0),
        make("ConstantOfShape", ["column"], ["blank_column"], value=helper.make_tensor("pad", int64, [1], [PAD])),
        make("Concat", ["letter_ids", "blank_column"], ["with_room"], axis=1),
        make("Shape", ["with_room"], ["width"], start=1, end=2),
        make("Squeeze", ["width", "zero"], ["num_places"]),
        make("Range", ["none", "num_places", "single"], ["places"]),
        make("Unsqueeze", ["num_letters", "one"], ["ends"]),
        make("Less", ["places", "ends"], ["is_before"]),
        make("Equal", ["places", "ends"], ["is_end"]),
        make("Where", ["is_end", "end_of_text", "padding"], ["behind"]),
        make("Where", ["is_before", "with_room", "behind"], ["encode/source"]),
        make("Add", ["num_letters", "single"], ["lengths"]),
        make("Identity", ["lengths"], ["encode/source_lengths"]),
    ]


def _start() -> list[Any]:
    """Nodes of the limits of outputs, and of what the loop begins with; a word without letters has ended."""
    from onnx import TensorProto, helper

    make, int64 = helper.make_node, TensorProto.INT64
    return [
        make("Cast", ["num_letters"], ["real_letters"], to=TensorProto.DOUBLE),
        make("Mul", ["real_letters", "ratio"], ["product"]),
        make("Add", ["product", "offset"], ["wanted"]),
        make("Min", ["wanted", "longest"], ["bounded"]),
        make("Cast", ["bounded"], ["rounded"], to=int64),
        make("Max", ["rounded", "single"], ["limits"]),
        make("ReduceMax", ["limits"], ["most"], keepdims=0),
        make("Equal", ["num_letters", "none"], ["empty"]),
        make("ReduceMax", ["num_letters"], ["longest_word"], keepdims=0),
        make("Greater", ["longest_word", "none"], ["any"]),
        make("ConstantOfShape", ["column"], ["first"], value=helper.make_tensor("bos", int64, [1], [BOS])),
        make(
            "ConstantOfShape", ["num_words"], ["zeros"], value=helper.make_tensor("nil", TensorProto.FLOAT, [1], [0.0])
        ),
    ]


def _constants(tokenizers: tuple[UnitTokenizer, UnitTokenizer], search: SearchConfig, max_length: int) -> list[Any]:
    from onnx import numpy_helper

    ids = _ids_of_letters(tokenizers[0].vocabulary.tokens[len(SPECIAL_TOKENS) :])
    whole = {
        **{"zero": [0], "one": [1], "two": [2], "most_letters": [max_length - 1]},
        **{"known": [*ids], "ids_of_known": [*ids.values()]},
        **{"none": 0, "single": 1, "unknown": UNK, "end_of_text": EOS},
        **{"padding": PAD, "end_of_output": EOS},
    }
    real = {"ratio": search.max_length_ratio, "offset": search.max_length_offset, "longest": max_length}
    bans = np.zeros(len(tokenizers[1]), dtype=np.float32)
    bans[[PAD, BOS, *([UNK] if search.forbid_unknown else [])]] = -np.inf
    values = {name: np.array(value, dtype=np.int64) for name, value in whole.items()}
    values |= {name: np.array(value, dtype=np.float64) for name, value in real.items()} | {"bans": bans}
    return [numpy_helper.from_array(value, name) for name, value in values.items()]


def _ids_of_letters(letters: Sequence[str]) -> dict[int, int]:
    """Ids of the letters of a vocabulary, and of others that are read as one of them, by code point.

    Other letters are those of alphabets and full width whose other case, plain form or base letter is known. Each is
    read by itself, where `heedful translate` reads a word in one form.
    """
    ids = {ord(letter): index for index, letter in enumerate(letters, start=len(SPECIAL_TOKENS))}
    known = KnownLetters(letters)
    for code in chain(range(0x21, 0x3000), range(0xFF01, 0xFFEF)):
        form = known.fold(chr(code))
        if code not in ids and len(form) == 1 and ord(form) in ids:
            ids[code] = ids[ord(form)]
    return ids


def _body(step: Any, states: Sequence[str]) -> Any:
    """Body of the loop: a decoding step, and the most probable token of each word."""
    from onnx import TensorProto, helper

    make = helper.make_node
    nodes = [
        *step.node,
        make("Squeeze", ["step/log_probs", "one"], ["scores"]),
        make("Add", ["scores", "bans"], ["choices"]),
        make("ArgMax", ["choices"], ["best"], axis=1, keepdims=1),
        make("ReduceMax", ["choices", "one"], ["best_log_probs"], keepdims=0),
        make("Squeeze", ["best", "one"], ["chosen"]),
        make("Equal", ["chosen", "end_of_output"], ["is_end_of_output"]),
        make("Or", ["ended", "is_end_of_output"], ["said"]),
        make("Where", ["said", "padding", "chosen"], ["written"]),
        make("Where", ["ended", "zeros", "best_log_probs"], ["added"]),
        make("Add", ["log_probs_so_far", "added"], ["log_probs_now"]),
        make("Add", ["iteration", "single"], ["num_steps"]),
        make("GreaterOrEqual", ["num_steps", "limits"], ["is_over"]),
        make("Or", ["said", "is_over"], ["ended_now"]),
        make("Cast", ["ended_now"], ["counted_ended"], to=TensorProto.INT32),
        make("ReduceMin", ["counted_ended"], ["all_ended"], keepdims=0),
        make("Cast", ["all_ended"], ["is_done"], to=TensorProto.BOOL),
        make("Not", ["is_done"], ["goes_on"]),
    ]
    types = {each.name: each.type.tensor_type for each in step.input}
    value = helper.make_tensor_value_info
    inputs = [value("iteration", TensorProto.INT64, []), value("went_on", TensorProto.BOOL, [])]
    inputs += [value("step/tokens", TensorProto.INT64, ["word", 1]), value("ended", TensorProto.BOOL, ["word"])]
    inputs.append(value("log_probs_so_far", TensorProto.FLOAT, ["word"]))
    outputs = [value("goes_on", TensorProto.BOOL, []), value("best", TensorProto.INT64, ["word", 1])]
    outputs += [value("ended_now", TensorProto.BOOL, ["word"]), value("log_probs_now", TensorProto.FLOAT, ["word"])]
    for name in states:
        kind = types[f"step/{name}"]
        # The sizes of a state may grow from step to step, so that only their number is stated.
        sizes = len(kind.shape.dim)
        inputs.append(value(f"step/{name}", kind.elem_type, [f"{name}.{axis}" for axis in range(sizes)]))
        outputs.append(value(f"step/next.{name}", kind.elem_type, [f"next.{name}.{axis}" for axis in range(sizes)]))
    outputs.append(value("written", TensorProto.INT64, ["word"]))
    return helper.make_graph(nodes, "step", inputs, outputs)
