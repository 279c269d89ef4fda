"""Outputs with unknown words, by engines that say little else."""

import numpy as np
import pytest

from heedful.engines.engine import Stepwise
from heedful.engines.unknown_words import UnknownWords
from heedful.errors import UsageError
from heedful.search.interface import Hypothesis
from heedful.text.dictionary import Dictionary, Entry
from heedful.text.tokenizer import TextConfig, UnitTokenizer
from heedful.text.vocabulary import EOS, UNK, Vocabulary
from tests.search.engines import Toy

SOURCE = UnitTokenizer(Vocabulary.build([["das", "Haus", "ist"]]), "words", "NFC")
TARGET = UnitTokenizer(Vocabulary.build([["the", "house", "is"]]), "words", "NFC")
LETTERS = UnitTokenizer(Vocabulary.build(["das Huitr"]), "characters", "NFC")
DICTIONARY = Dictionary({"rot": Entry("red", 1.0, 3), "Meyer": Entry("Miller", 1.0, 2)})
WORDS = TextConfig(source_units="words", target_units="words")


def backend(has_attention: bool = True) -> Stepwise:
    return Stepwise("toy", lambda with_weights: Toy(vocab_size=8, has_weights=with_weights), 30, has_attention)


def replacer(source: UnitTokenizer = SOURCE) -> UnknownWords:
    return UnknownWords(DICTIONARY, backend(), source, TARGET)


def ids(text: str, tokenizer: UnitTokenizer = SOURCE) -> np.ndarray:
    return np.array([*tokenizer.encode(text), EOS])


def output(text: str, weights: list[list[float]] | None = None) -> Hypothesis:
    tokens = tuple(TARGET.encode(text))
    attention = None if weights is None else np.array(weights, dtype=np.float32)
    return Hypothesis(tokens, -1.0, -1.0, (-0.5,) * (len(tokens) + 1), "eos", attention)


def test_attention_that_is_known_says_which_word():
    text = "das Haus ist rot Schmidt"
    weights = [
        [0.9, 0.1, 0.0, 0.0, 0.0, 0.0],
        [0.0, 0.1, 0.0, 0.0, 0.3, 0.6],  # the end mark takes most, and is no word
        [0.0, 0.0, 1.0, 0.0, 0.0, 0.0],
        [0.0, 0.0, 0.0, 0.7, 0.2, 0.1],
        [0.0, 0.0, 0.0, 0.0, 0.0, 1.0],
    ]
    found = [[output("the Smith is green", weights), output("the house", weights[:3])]]
    assert replacer().replaced([text], [ids(text)], found) == {(0, 0): "the Schmidt is red"}


def test_the_step_that_reads_an_unknown_word_may_align_it():
    text, nowhere = "das Haus ist rot Schmidt", [0.0, 0.0, 0.0, 0.0, 0.0, 1.0]
    schmidt, rot = [0.0, 0.0, 0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0, 0.0, 0.0]
    reading = UnknownWords(DICTIONARY, backend(), SOURCE, TARGET, alignment_shift=1)
    ended = output("Smith is green", [nowhere, schmidt, nowhere, rot])
    assert reading.replaced([text], [ids(text)], [[ended]]) == {(0, 0): "Schmidt is red"}
    cut = output("Smith is green", [nowhere, schmidt, rot])  # no step read the last word
    assert reading.replaced([text], [ids(text)], [[cut]]) == {(0, 0): "Schmidt is red"}


def test_attention_that_is_not_known_is_read():
    texts = ["rot ist Meyer", "das Haus", "Haus Schmidt"]
    found = [
        [output("the house"), output("nobody is red")],
        [output("the house")],
        [output("Smith"), output("is is blue blue")],
    ]
    asked: list[bool] = []

    def make(with_weights: bool) -> Toy:
        asked.append(with_weights)
        return Toy(vocab_size=8, has_weights=with_weights)

    unknown = UnknownWords(DICTIONARY, Stepwise("toy", make, 30), SOURCE, TARGET)
    wanted: dict[tuple[int, int], str] = {}
    for row, hypotheses in enumerate(found):
        for rank, hypothesis in enumerate(hypotheses):
            words = TARGET.pieces(hypothesis.token_ids)
            for place, token in enumerate(hypothesis.token_ids):
                if token == UNK:
                    source = tuple(ids(texts[row]).tolist())
                    attention = Toy(vocab_size=8).weights(source, hypothesis.token_ids[:place])[:-1]
                    words[place] = DICTIONARY.translate(texts[row].split()[int(attention.argmax())])
                    wanted[row, rank] = " ".join(words)
    assert len(wanted) == 3
    for batch_tokens in (1, 4096):
        assert unknown.replaced(texts, [ids(text) for text in texts], found, batch_tokens) == wanted
    assert all(asked)


def test_words_are_copied_as_they_stand_from_sources_of_any_tokens():
    text = "ist  Rudi das"
    # i s t, two spaces with R u d i, a space with d a s: the second word gets most, in many small parts.
    weights = [[0.3, 0.0, 0.0, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.0, 0.0, 0.0, 0.0]]
    found = [[output("Rudy", weights)]]
    assert replacer(LETTERS).replaced([text], [ids(text, LETTERS)], found) == {(0, 0): "Rudi"}


def test_a_source_that_was_cut_has_no_word_to_copy_behind_the_cut():
    found = [[output("Smith", [[0.1, 0.2, 0.7]])]]
    assert replacer().replaced(["das rot Schmidt"], [ids("das rot")], found) == {(0, 0): "red"}


def test_where_nothing_is_unknown_nothing_is_read():
    def make(with_weights: bool) -> Toy:
        raise ValueError("read")

    unknown = UnknownWords(DICTIONARY, Stepwise("toy", make, 30), SOURCE, TARGET)
    assert unknown.replaced(["das Haus"], [ids("das Haus")], [[output("the house")]]) == {}
    assert unknown.replaced([], [], []) == {}


def test_models_that_cannot_are_refused():
    replacer().check(WORDS)
    with pytest.raises(UsageError, match="outputs of this model are pieces, not words"):
        replacer().check(TextConfig())
    blind = UnknownWords(DICTIONARY, backend(has_attention=False), SOURCE, TARGET)
    with pytest.raises(UsageError, match="replace_unknown: this model has no attention"):
        blind.check(WORDS)


def test_known_and_unknown_attention_may_stand_side_by_side():
    weights = [[0.1, 0.8, 0.1]]
    found = [[output("Smith", weights), output("Smith")]]
    written = replacer().replaced(["das Schmidt"], [ids("das Schmidt")], found)
    assert written[0, 0] == "Schmidt"
    assert written[0, 1] in ("das", "Schmidt")


def test_words_of_later_sentences_are_found():
    sentences = ["das Haus.", "rot Schmidt"]
    tokens = [*SOURCE.encode(sentences[0]), EOS, *SOURCE.encode(sentences[1]), EOS]
    found = [[output("is Smith", [[1.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 1.0, 0.0]])]]
    text = "das Haus.<br>rot Schmidt"
    assert replacer().replaced([text], [np.array(tokens)], found) == {(0, 0): "is Schmidt"}
