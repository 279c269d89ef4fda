import unicodedata
from pathlib import Path
from typing import Literal

import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.errors import DataError, FileRefused, UsageError
from heedful.text.tokenizer import (
    SPACE_MARK,
    Normalization,
    PieceTokenizer,
    TextConfig,
    Tokenizer,
    Units,
    UnitTokenizer,
)
from heedful.text.tokenizer_files import load_tokenizer
from heedful.text.tokenizer_training import choose_size, train_tokenizer
from heedful.text.vocabulary import BOS, EOS, PAD, SPECIAL_TOKENS, UNK, Vocabulary

LINES = [
    "Guten Morgen, wie geht es dir heute?",
    "Ein Hund läuft über das grüne Gras.",
    "Zwei Hunde laufen über die Straße.",
    "今天天气很好，我们去公园。",
    "明天天气也很好，我们去学校。",
    "two  spaces and\ta tab",
] * 20
FORMS: tuple[Normalization, ...] = ("NFC", "NFKC", "none")
# What a subword model may stumble over, each for a reason of its own.
ODD = [
    "",
    " ",
    "  ",
    " a",
    "a ",
    " a  b ",
    "\t",
    "\0",
    "a\0b",
    "\n",
    "a\nb\r\n",
    "\u0085",
    "\u2028",
    "\u3000",
    "\u00a0",
]
ODD += ["\ufeffa", "a\ufeff", "\u200b", "\u202eabc", "e\u0301", "\u212b", "\ufb01", "\uff1cpad\uff1e", "\ufffd", "⁇"]
ODD += ["😀", "\U0001f469\u200d\U0001f467", "\U00020000", "\U0010ffff", SPACE_MARK, f"a{SPACE_MARK}b", "a" * 3000]
ODD += [*SPECIAL_TOKENS, "<s>", "</s>", "<0x0A>", "<0xE2><0x96><0x81>"]
texts = st.one_of(
    st.text(),
    st.lists(st.sampled_from([*ODD, "Hund", "天气", "a", "x"])).map("".join),
    st.text(alphabet=f" {SPACE_MARK}a\0\n天e\u0301"),
)


@pytest.fixture(scope="module")
def pieces() -> dict[Normalization, PieceTokenizer]:
    return {
        form: PieceTokenizer.train([unicodedata.normalize("NFC", line) for line in LINES], 330, form) for form in FORMS
    }


@settings(max_examples=200)
@given(text=texts, form=st.sampled_from(FORMS))
def test_any_text_comes_back_from_pieces(pieces: dict[Normalization, PieceTokenizer], text: str, form: Normalization):
    tokenizer = pieces[form]
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == tokenizer.normalize(text)
    assert all(EOS < index < len(tokenizer) for index in ids)  # none special: bytes stand in for what is unknown
    assert len(tokenizer.pieces(ids)) == len(ids)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("text", ODD)
def test_odd_texts_come_back_from_pieces(pieces: dict[Normalization, PieceTokenizer], form: Normalization, text: str):
    tokenizer = pieces[form]
    assert tokenizer.decode(tokenizer.encode(text)) == tokenizer.normalize(text)


@pytest.mark.parametrize("form", FORMS)
def test_texts_in_one_call_are_encoded_as_each_by_itself(
    pieces: dict[Normalization, PieceTokenizer], form: Normalization
):
    many = [*ODD, *LINES, "a \ude00b"]
    for tokenizer in (pieces[form], of("characters", *LINES), of("words", *LINES)):
        assert tokenizer.encode_all(many) == [tokenizer.encode(text) for text in many]
    assert pieces[form].encode_all([]) == []


@pytest.mark.parametrize("form", FORMS)
def test_half_a_character_is_a_replacement_character(pieces: dict[Normalization, PieceTokenizer], form: Normalization):
    """As of an emoji that was cut in two; UTF-8, which SentencePiece takes, has no form of it."""
    tokenizer = pieces[form]
    for text in ("\ud83d", "a \ude00b", "\ud83d\ude00", "c\udcff"):
        halves = sum("\ud800" <= one <= "\udfff" for one in text)
        assert tokenizer.decode(tokenizer.encode(text)).count("\ufffd") == halves
        assert len(tokenizer.ranges(text)) == len(tokenizer.encode(text))


def test_only_the_mark_of_a_space_is_read_as_one(pieces: dict[Normalization, PieceTokenizer]):
    text = f"a{SPACE_MARK}b c {SPACE_MARK} d"
    assert pieces["none"].normalize(text) == "a\u2582b c \u2582 d"
    words = pieces["none"].word_indices(pieces["none"].encode(text))
    assert max(words) == len(text.split(" ")) - 1, "links would be of words that the text does not have"
    assert len(pieces["none"].ranges(text)) == len(words)
    text = "".join(ODD).replace(SPACE_MARK, "")
    assert pieces["none"].normalize(text) == text


def test_normal_forms_are_applied_before_anything_else(pieces: dict[Normalization, PieceTokenizer]):
    assert pieces["NFC"].encode("u\u0308ber") == pieces["NFC"].encode("über")
    assert pieces["NFKC"].encode("ﬁ") == pieces["NFKC"].encode("fi")
    assert pieces["none"].encode("u\u0308ber") != pieces["none"].encode("über")
    assert pieces["none"].decode(pieces["none"].encode("u\u0308ber")) == "u\u0308ber"


def test_marks_are_left_out_of_the_text(pieces: dict[Normalization, PieceTokenizer]):
    tokenizer = pieces["NFC"]
    ids = tokenizer.encode("Ein Hund")
    assert tokenizer.decode([BOS, *ids, EOS, PAD, PAD]) == "Ein Hund"
    assert tokenizer.pieces([PAD, UNK, BOS, EOS]) == list(SPECIAL_TOKENS)


def test_chinese_needs_no_segmenter(pieces: dict[Normalization, PieceTokenizer]):
    tokenizer = pieces["NFC"]
    text = "今天天气很好"
    cut = tokenizer.pieces(tokenizer.encode(text))
    assert "".join(cut) == SPACE_MARK + text
    assert any(len(piece.strip(SPACE_MARK)) > 1 for piece in cut)  # frequent runs are pieces of their own
    unseen = "鹦鹉学舌"
    assert tokenizer.decode(tokenizer.encode(unseen)) == unseen


words = st.lists(st.text(alphabet="Hundlaufe天气ßx😀", min_size=1, max_size=6), max_size=6)


@given(
    words=words,
    gaps=st.lists(st.integers(1, 3), min_size=8, max_size=8),
    ends=st.tuples(st.integers(0, 2), st.integers(0, 2)),
)
def test_pieces_know_their_words(
    pieces: dict[Normalization, PieceTokenizer], words: list[str], gaps: list[int], ends: tuple[int, int]
):
    text = "".join(word + " " * gap for word, gap in zip(words, gaps, strict=False)).rstrip(" ")
    text = " " * ends[0] + text + " " * ends[1]
    tokenizer = pieces["none"]
    ids = tokenizer.encode(text)
    indices = tokenizer.word_indices(ids)
    assert indices == sorted(indices)
    groups = [
        [i for i, index in zip(ids, indices, strict=True) if index == word]
        for word in range(max(indices, default=-1) + 1)
    ]
    assert [tokenizer.decode(group).strip(" ") for group in groups] == (text.split() or [""] * bool(ids))


def test_training_again_gives_the_same_tokenizer(tmp_path: Path):
    one, other = (PieceTokenizer.train(LINES, 330, "NFC") for _ in range(2))
    names = one.save(tmp_path, "one"), other.save(tmp_path, "other")
    assert names == ("one.model", "other.model")
    assert (tmp_path / names[0]).read_bytes() == (tmp_path / names[1]).read_bytes()


def test_a_saved_tokenizer_cuts_the_same(tmp_path: Path, pieces: dict[Normalization, PieceTokenizer]):
    tokenizer = pieces["NFKC"]
    loaded = load_tokenizer(tmp_path / tokenizer.save(tmp_path, "t"), "pieces", "NFKC")
    assert len(loaded) == len(tokenizer) <= 330
    assert [loaded.encode(line) for line in LINES[:6]] == [tokenizer.encode(line) for line in LINES[:6]]


def test_small_corpora_give_fewer_pieces_rather_than_an_error():
    assert len(PieceTokenizer.train(["a b", "b a"] * 5, 8000, "NFC")) < 300


@pytest.mark.parametrize("lines", [[], ["", ""]])
def test_nothing_to_learn_pieces_from(lines: list[str]):
    with pytest.raises(DataError, match="could not learn"):
        PieceTokenizer.train(lines, 300, "NFC")


def test_too_few_pieces_for_the_characters_is_an_error_with_the_number():
    with pytest.raises(DataError, match="could not learn 10 pieces"):
        PieceTokenizer.train(LINES, 10, "NFC")


@pytest.mark.parametrize("content", [b"", b"rubbish", b"\0" * 100])
def test_a_file_that_is_no_tokenizer_is_refused(content: bytes, tmp_path: Path):
    (tmp_path / "t.model").write_bytes(content)
    with pytest.raises(FileRefused):
        load_tokenizer(tmp_path / "t.model", "pieces", "NFC")


def test_a_missing_file_is_named(tmp_path: Path):
    with pytest.raises(FileRefused, match=r"none\.model: No such file"):
        load_tokenizer(tmp_path / "none.model", "pieces", "NFC")


def test_special_ids_that_are_not_ours_are_refused(tmp_path: Path):
    path = tmp_path / "foreign"
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter(LINES), model_prefix=str(path), vocab_size=300, hard_vocab_limit=False, minloglevel=2
    )
    with pytest.raises(FileRefused, match="not ids 0, 1, 2, 3"):
        load_tokenizer(tmp_path / "foreign.model", "pieces", "NFC")


# ------------------------------------------------------------------------------------- characters and words


def of(units: str, *lines: str, **settings: object) -> UnitTokenizer:
    config = TextConfig.model_validate({"normalization": "none"} | settings)
    tokenizer = train_tokenizer(lines, units, config.vocabulary_size, config)  # type: ignore[arg-type]
    assert isinstance(tokenizer, UnitTokenizer)
    return tokenizer


@given(text=texts)
def test_characters_come_back_where_all_are_known(text: str):
    tokenizer = of("characters", text)
    ids = tokenizer.encode(text)
    assert tokenizer.decode([BOS, *ids, EOS, PAD]) == text
    assert all(EOS < index < len(tokenizer) for index in ids)


@given(words=st.lists(st.text(min_size=1).filter(lambda word: " " not in word and word not in SPECIAL_TOKENS)))
def test_words_come_back_where_all_are_known(words: list[str]):
    text = " ".join(words)
    tokenizer = of("words", text)
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert tokenizer.word_indices(tokenizer.encode(text)) == list(range(len(words)))


def test_several_spaces_make_no_empty_words():
    tokenizer = of("words", "a b")
    assert tokenizer.decode(tokenizer.encode("  a   b ")) == "a b"


def test_what_was_not_seen_is_unknown():
    tokenizer = of("characters", "ab")
    assert tokenizer.encode("axb")[1] == UNK
    assert tokenizer.decode(tokenizer.encode("axb")) == "a<unk>b"


@pytest.mark.parametrize("word", SPECIAL_TOKENS)
def test_the_name_of_a_mark_in_a_text_is_no_mark(word: str):
    tokenizer = of("words", f"a {word} b", f"{word} {word}")
    assert tokenizer.encode(f"a {word} b")[1] == UNK
    assert len(tokenizer) == 6


def test_words_and_characters_are_counted_after_normalising():
    assert len(of("characters", "e\u0301é", normalization="NFC")) == 5
    assert len(of("characters", "e\u0301é", normalization="none")) == 7


def test_characters_know_their_words():
    tokenizer = of("characters", "ab  c ")
    assert tokenizer.word_indices(tokenizer.encode("ab  c ")) == [0, 0, 1, 1, 1, 1]
    assert tokenizer.pieces(tokenizer.encode("b c")) == ["b", " ", "c"]


@pytest.mark.parametrize("units", ["characters", "words"])
def test_a_saved_vocabulary_is_the_same(units: str, tmp_path: Path):
    tokenizer = of(units, "a\nb \t\u2028 c d\0")
    name = tokenizer.save(tmp_path, "v")
    loaded = load_tokenizer(tmp_path / name, units, "none")  # type: ignore[arg-type]
    assert isinstance(loaded, UnitTokenizer)
    assert (name, loaded.vocabulary.tokens) == ("v.json", tokenizer.vocabulary.tokens)


def test_sizes_and_least_counts():
    lines = ["a a a b b c"]
    assert of("words", *lines, vocabulary_size=6).vocabulary.tokens[4:] == ("a", "b")
    assert of("words", *lines, min_count=3).vocabulary.tokens[4:] == ("a",)
    assert of("words", *lines).vocabulary.tokens[4:] == ("a", "b", "c")


def test_pieces_grow_with_the_corpus():
    sizes = [choose_size(num) for num in (0, 10, 1_000, 30_000, 100_000, 10**9)]
    assert sizes == sorted(sizes)
    assert (sizes[0], sizes[3], sizes[-1]) == (704, 4000, 32000)
    assert choose_size(30_000, 3_500) == 7256  # more than characters alone
    assert choose_size(30_000, 100) == 4000
    assert choose_size(3_000, 3_500, 1.1) == 4104
    assert choose_size(30_000, 10**6) == 32000
    assert all(size % 8 == 0 for size in sizes)


def test_sides_of_different_units_share_nothing():
    assert TextConfig().is_shared
    assert not TextConfig(target_units="characters").is_shared
    assert not TextConfig(shared=False).is_shared


def test_a_vocabulary_is_not_a_piece_model(tmp_path: Path):
    Vocabulary([*SPECIAL_TOKENS, "a"]).save(tmp_path / "v.json")
    with pytest.raises(FileRefused, match="not a SentencePiece model"):
        load_tokenizer(tmp_path / "v.json", "pieces", "NFC")


@pytest.mark.parametrize(
    ("units", "token"), [("words", "New York"), ("words", ""), ("words", " "), ("characters", "ab"), ("characters", "")]
)
def test_a_vocabulary_of_what_no_text_is_cut_into_is_refused(units: Units, token: str, tmp_path: Path):
    Vocabulary([*SPECIAL_TOKENS, "a", token]).save(tmp_path / "v.json")
    with pytest.raises(FileRefused, match=rf"v\.json: token '{token}' is not one of {units}"):
        load_tokenizer(tmp_path / "v.json", units, "NFC")


@pytest.mark.parametrize(("units", "tokens"), [("words", ["New\u00a0York", "a\tb"]), ("characters", [" ", "\n"])])
def test_spaces_that_texts_may_hold_are_taken(units: Units, tokens: list[str], tmp_path: Path):
    Vocabulary([*SPECIAL_TOKENS, *tokens]).save(tmp_path / "v.json")
    assert load_tokenizer(tmp_path / "v.json", units, "NFC").encode(tokens[0]) == [4]


def test_a_piece_that_is_not_utf_8_is_refused(pieces: dict[Normalization, PieceTokenizer]):
    model = pieces["NFC"].model
    text = max((piece for piece in pieces["NFC"].pieces(range(len(pieces["NFC"]))) if piece.isascii()), key=len)
    assert model.count(text.encode()) >= 1
    with pytest.raises(FileRefused, match="a piece is not UTF-8"):
        PieceTokenizer(model.replace(text.encode(), b"\xff" + text.encode()[1:]), "NFC")


@pytest.mark.parametrize("text", ["Ada went to the attic.", "Zoë 北京 ran😀 there", " lead", "x" * 5, ""])
def test_ranges_of_pieces_cover_the_text(pieces: dict[Normalization, PieceTokenizer], text: str):
    tokenizer = pieces["NFC"]
    ranges = tokenizer.ranges(text)
    ids = tokenizer.encode(text)
    assert len(ranges) == len(ids)
    assert "".join(text[start:end] for start, end in ranges) == text
    for index, (piece, (start, end)) in enumerate(zip(tokenizer.pieces(ids), ranges, strict=True)):
        if not piece.startswith("<0x"):
            assert text[start:end] == piece.replace("\u2581", " ").removeprefix("" if index else " ")


def test_a_tokenizer_that_changes_texts_locates_nothing():
    with pytest.raises(UsageError, match="cannot locate tokens"):
        Tokenizer.ranges(UnitTokenizer(Vocabulary.build([["a"]], 0, 1), "words", "NFC"), "a")


@pytest.mark.parametrize(
    ("units", "expected"), [("words", [0, 1, 1, 2, 3]), ("characters", [0, 0, 1, 1, 1, 1, 2, 2, 3, 3])]
)
def test_the_end_of_a_sentence_belongs_to_the_word_before_it(
    units: Literal["words", "characters"], expected: list[int]
):
    tokenizer = of(units, "ab c. de f")
    ids = [*tokenizer.encode("ab c."), EOS, *tokenizer.encode("de f")]
    assert tokenizer.word_indices(ids) == expected
