"""Tokenizers in JavaScript: the same ids and texts as in Python, for whatever people type."""

import io
import random
from pathlib import Path
from typing import Any

import sentencepiece

from heedful.export.archive import described
from heedful.synthetic.corpus import generate
from heedful.text.encoding import encode_source
from heedful.text.marian import MarianTokenizer
from heedful.text.tokenizer import PieceTokenizer, TextConfig, Tokenizer, UnitTokenizer
from heedful.text.vocabulary import EOS, SPECIAL_TOKENS, Vocabulary
from tests.js.node import Run, answers, changed_package, needs_node

pytestmark = needs_node

MOST = 30
ODD = (
    "", " ", "\t\n", "\x1c", "\x85", "a", " a", "a ", "  a  b ", "\u3000a", "a\u0301", "\u1112\u1161\u11ab", "\ufb01",
    "a\0b", "\u2581a\u2581", "a\u2582b", "\ufeffa", "\U0001f600\U0001f600 a", "\U0001f468\u200d\U0001f469",
    "\u4f60\uff0c", "a\u00a0b", "a\r\nb", "x" * 400, "<pad><unk><bos><eos>", "</s> <0x41>", "\U0001f600" * 700,
    "of " * 90, "\ufffd", ">>x<< of", ">>y<<", ">>x<<", "\uff21\u3000\uff22 \u200b\u00ad\u2168",
    "\U0001f600\U0001f601\U0001f600", "  <<of>> ", "OF MARCH", "\xd6F don\u2019t", "STRASSE \ufb01sh",
    "\u039f\u0394\u039f\u03a3", "\u0130 \xdf \u1e9e", "\u0ba8\u0bbf \u093f x\u20dd", "1\u0301A",
)  # fmt: skip


def tokenizers() -> list[Tokenizer]:
    lines = [text for pair in generate(600, 1, "train") for text in pair]
    characters = sorted({character for line in lines for character in line})
    words = sorted({word for line in lines for word in line.split(" ") if word})
    return [
        PieceTokenizer.train(lines, 704, "NFC"),
        PieceTokenizer.train([line.replace(" ", "") for line in lines], 720, "NFKC"),
        UnitTokenizer(Vocabulary([*SPECIAL_TOKENS, *characters]), "characters", "NFC"),
        UnitTokenizer(Vocabulary([*SPECIAL_TOKENS, *words]), "words", "none"),
        UnitTokenizer(
            Vocabulary([*SPECIAL_TOKENS, *"abcdefhimnorst 'Iο\u03c2δz"]), "characters", "NFC", reads_forms=True
        ),
        marian(lines),
        marian(lines, normalization_rule_name="identity", remove_extra_whitespaces=False),
        marian(lines, byte_fallback=True, add_dummy_prefix=False),
    ]


def marian(lines: list[str], **settings: Any) -> MarianTokenizer:
    """A tokenizer as OPUS-MT has them: pieces of one side, and a vocabulary that has most of them, and others."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter(lines),
        model_writer=model,
        vocab_size=640,
        hard_vocab_limit=False,
        num_threads=1,
        minloglevel=2,
        **settings,
    )
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    pieces = [processor.id_to_piece(index) for index in range(processor.get_piece_size()) if index % 50]
    known = [piece for piece in pieces if not processor.is_control(processor.piece_to_id(piece))]
    tokens = dict.fromkeys([*SPECIAL_TOKENS, *known, "\U0001f600", ">>x<<", "\u2581\u2581"])
    return MarianTokenizer(model.getvalue(), Vocabulary([*tokens]))


def texts() -> list[str]:
    generator = random.Random(0)
    alphabet = "aábc  ▁20-年月日\u0301😀of"
    drawn = ["".join(generator.choices(alphabet, k=generator.randint(1, 25))) for _ in range(150)]
    return [*ODD, *drawn, *(source for source, _ in generate(150, 2, "test"))]


def sequences(tokenizer: Tokenizer) -> list[list[int]]:
    generator = random.Random(1)
    return [generator.choices(range(len(tokenizer)), k=generator.randint(1, 12)) for _ in range(150)]


def run(tokenizer: Tokenizer, **others: Any) -> Run:
    ids = sequences(tokenizer)
    inner = [[one for one in each if one != EOS] for each in ids]
    return Run(
        {**described(tokenizer), "most": MOST}, [["encode", texts()], ["decode", ids], ["words", inner]], **others
    )


def in_python(tokenizer: Tokenizer) -> list[Any]:
    config, ids = TextConfig(max_tokens=MOST), sequences(tokenizer)
    encoded = [encode_source(tokenizer, text, config) for text in texts()]
    return [
        [{"ids": each.tolist(), "wasCut": bool(was_cut)} for each, was_cut in encoded],
        [tokenizer.decode(each) for each in ids],
        [tokenizer.word_indices([one for one in each if one != EOS]) for each in ids],
    ]


# Expressions of the package, each with one in its place that makes it wrong; and the tokenizer that shows it.
MUTANTS = (
    (0, "pieces.js", "(byte) => bytes[byte]", "(byte) => bytes[byte ^ 1]"),
    (0, "pieces.js", "!(sum > best[end])", "sum > best[end]"),
    (0, "tokenizers.js", "[...(SPACE_MARK + normal", "[...(normal"),
    (0, "tokenizers.js", "start += 1;", "start += size;"),
    (1, "tokenizers.js", "text.normalize(form)", "text.normalize('NFC')"),
    (2, "tokenizers.js", "'characters' ? [...normal]", "'characters' ? normal.split('')"),
    (2, "tokenizers.js", "ids.length >= most", "ids.length > most"),
    (4, "letters.js", "number < fewest", "number <= fewest"),
    (4, "letters.js", 'replace(QUOTES, "\'")', "replace(QUOTES, '')"),
    (5, "marian.js", "this.units[node] & 0x7fffffff, end", "(this.units[node] & 0x7fffffff) + 1, end"),
    (5, "marian.js", "isUnknown && wasUnknown", "false"),
    (5, "marian.js", "kept.endsWith(' ')", "false"),
    (7, "marian.js", "if (!hasBegun && hasPrefix)", "if (!hasBegun)"),
    (3, "tokenizers.js", "normal.split(' ').filter(Boolean)", "normal.split(/\\s/).filter(Boolean)"),
)


def test_ids_texts_and_words_are_those_of_python():
    every = tokenizers()
    found, expected = answers(*map(run, every)), [one for each in every for one in in_python(each)]
    for ours, theirs in zip(expected, found, strict=True):
        assert "error" not in theirs, theirs
        assert [pair for pair in zip(ours, theirs, strict=True) if pair[0] != pair[1]] == []


def test_wrong_tokenizers_are_told_from_right_ones(tmp_path: Path):
    every = tokenizers()
    runs = [
        run(every[number], folder=changed_package(tmp_path / str(index), *mutant))
        for index, (number, *mutant) in enumerate(MUTANTS)
    ]
    found = answers(*runs)
    for index, (number, *mutant) in enumerate(MUTANTS):
        assert found[3 * index : 3 * index + 3] != in_python(every[number]), mutant
