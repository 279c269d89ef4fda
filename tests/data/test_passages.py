"""Passages of stories: token ids, places of answers, and weights of facts."""

from math import exp

import numpy as np
import pytest

from heedful.data.passages import Passage, answer_place, encode_passage
from heedful.engines.passages import PassageArrays
from heedful.engines.spans import best_answers, choose_shift
from heedful.synthetic.notices import generate
from heedful.text.stories import Story
from heedful.text.tokenizer import PieceTokenizer, TextConfig, Tokenizer, UnitTokenizer
from heedful.text.vocabulary import EOS, Vocabulary

STORIES = [*generate(200, 3)]
LINES = [text for story in STORIES for text in (*story.facts, story.question)]
CONFIG = TextConfig(max_tokens=400)


@pytest.fixture(scope="module")
def pieces() -> PieceTokenizer:
    return PieceTokenizer.train(LINES, 400, "NFC")


def words() -> UnitTokenizer:
    return UnitTokenizer(Vocabulary.build([line.split() for line in LINES], 0, 1), "words", "NFC")


@pytest.mark.parametrize(
    ("text", "start", "end", "wanted"),
    [
        ("Lady Ada went home.", 5, 10, "Ada went"),  # "Ada w"
        ("It was in 1947.", 12, 14, "1947"),
        ("It has 1,947.5 of them", 7, 8, "1,947.5"),
        ("It has 1,947.5 of them", 11, 12, "1,947.5"),
        ("at 10:30, not 11.", 3, 5, "10:30"),
        ("at 10:30, not 11.", 14, 16, "11"),
        ("from 1914-1918", 5, 9, "1914"),
        ("the Straße, north", 8, 10, "Straße"),
        ("in नमस्ते there", 4, 6, "नमस्ते"),  # vowel signs are marks
        ("Ada's mother-in-law", 0, 3, "Ada"),
        ("his mother-in-law", 4, 9, "mother"),
        ("年我去了北京大学读书", 4, 6, "北京"),  # no spaces between words
        ("在Berlin住", 1, 4, "Berlin"),
        ("see \U0001d400\U0001d401 there", 4, 5, "\U0001d400\U0001d401"),  # two code units each in JavaScript
        ("수도는 서울에서 멀다", 4, 6, "서울"),  # a particle follows
        ("it is 60km away", 6, 8, "60"),
        ("a  b", 1, 3, ""),
    ],
)
def test_spans_have_whole_words(text: str, start: int, end: int, wanted: str):
    one = Passage(np.zeros(1, np.int64), text, ((start, end),), ((0, len(text)),), was_cut=False)
    first, after = one.span(0, 0)
    assert text[first:after] == wanted


def test_the_place_of_an_answer_gives_the_answer_back(pieces: PieceTokenizer):
    for story in STORIES:
        passage = encode_passage(pieces, story, CONFIG)
        span = passage.locate(story, pieces)
        assert span is not None
        start, end = passage.span(*span)
        assert story.answer in passage.text[start:end]
        # A piece may be a word and the full stop behind it.
        assert len(passage.text[start:end]) <= len(story.answer) + 1
        low, high = passage.facts[story.supporting[0]]
        assert low <= start < end <= high
        assert passage.text[low:high] == story.facts[story.supporting[0]]


def test_ids_are_those_of_the_question_and_of_the_facts(pieces: PieceTokenizer):
    story = Story(("Ada went  home.", "Boris\nleft."), "Where?")
    passage = encode_passage(pieces, story, CONFIG)
    assert passage.text == "Ada went home. Boris left."
    question, text = pieces.encode("Where?"), pieces.encode(passage.text)
    assert passage.ids.tolist() == [*question, EOS, *text, EOS]
    assert not passage.was_cut
    assert "".join(passage.text[first:after] for first, after in passage.ranges) == passage.text


def test_long_questions_and_passages_are_cut(pieces: PieceTokenizer):
    story = Story(("word " * 200, "the end"), "why " * 200, "end", (1,))
    passage = encode_passage(pieces, story, TextConfig(max_tokens=20))
    assert passage.was_cut
    assert len(passage.ids) == 20
    assert passage.ids.tolist().index(EOS) == 9
    assert passage.locate(story, pieces) is None
    assert passage.by_fact(np.ones((2, len(passage.ranges)), np.float32))[:, 1].tolist() == [0, 0]


def test_a_story_without_facts_or_question_has_positions(pieces: PieceTokenizer):
    passage = encode_passage(pieces, Story((), ""), CONFIG)
    assert passage.ids.tolist() == [EOS, EOS]
    (answer,) = best_answers(passage, np.zeros((2, 1), np.float32), 3)
    assert (answer.text, answer.probability) == ("", 0.0)
    assert passage.by_fact(np.zeros((2, 0), np.float32)).shape == (2, 0)


@pytest.mark.parametrize(
    ("facts", "answer", "supporting", "place"),
    [
        (("the theatre", "he came"), "he", (), (12, 14)),  # whole words before parts of words
        (("Ada left", "Ada came"), "Ada", (1,), (9, 12)),  # supporting facts before others
        (("theatre",), "heat", (), (1, 5)),
        (("北京在北方",), "北方", (), (3, 5)),
        (("a  b",), "a b", (), (0, 3)),
        (("a b",), "c", (), None),
        ((), "c", (), None),
    ],
)
def test_answers_are_found(facts: tuple[str, ...], answer: str, supporting: tuple[int, ...], place: object):
    assert answer_place(Story(facts, "?", answer, supporting)) == place


def test_unknown_words_come_back_as_they_are():
    passage = encode_passage(words(), Story(("Zoë runs the annual fair.",), "Who?"), CONFIG)
    log_probs = np.log(np.array([[0.9, 0.1, 0, 0, 0, 0], [0.9, 0.1, 0, 0, 0, 0]], dtype=np.float32) + 1e-9)
    assert best_answers(passage, log_probs, 1)[0].text == "Zoë"


def test_no_answer_is_at_eos_and_is_given_where_the_training_data_had_such_questions():
    story = Story(("Ada runs the fair.",), "Who sleeps?", is_impossible=True)
    passage = encode_passage(words(), story, CONFIG)
    ids = PassageArrays([passage.ids]).named_arrays()["passage"][0]
    assert passage.locate(story, words()) == (4, 4)
    assert ids.tolist().index(EOS) == 4
    log_probs = np.log(np.array([[0.3, 0.1, 0.05, 0.05, 0.5], [0.3, 0.05, 0.05, 0.1, 0.5]], dtype=np.float32))
    none, best, *_ = best_answers(passage, log_probs, 3, no_answer_shift=0.0)
    assert (none.text, best.text) == ("", "Ada")
    assert none.probability == pytest.approx(0.25, rel=1e-6)
    assert best.probability == pytest.approx(0.09, rel=1e-6)
    assert "" not in {one.text for one in best_answers(passage, log_probs, 5)}
    assert len(best_answers(passage, log_probs, 3, no_answer_shift=0.0)) == 3


def test_a_shift_moves_the_odds_of_no_answer_and_keeps_probabilities():
    passage = encode_passage(words(), Story(("Ada runs the fair.",), "Who sleeps?"), CONFIG)
    log_probs = np.log(np.array([[0.3, 0.1, 0.05, 0.05, 0.5], [0.3, 0.05, 0.05, 0.1, 0.5]], dtype=np.float32))
    best, second, *_ = best_answers(passage, log_probs, 3, no_answer_shift=-1.5)
    assert (best.text, second.text) == ("Ada", "")
    odds = second.probability / (1.0 - second.probability)
    assert odds == pytest.approx(0.25 / 0.75 * exp(-1.5), rel=1e-6)
    assert best.probability / (1.0 - second.probability) == pytest.approx(0.09 / 0.75, rel=1e-6)


def test_the_shift_is_the_threshold_that_scores_best_on_enough_questions():
    odds = [*np.linspace(-4.0, -2.5, 30), *np.linspace(-2.0, 1.0, 30)]
    answered, unanswered = [1.0] * 30 + [0.0] * 30, [0.0] * 30 + [1.0] * 30
    assert choose_shift(odds, answered, unanswered) == pytest.approx(2.25)
    assert choose_shift(odds[20:39], answered[20:39], unanswered[20:39]) == 0.0  # few without an answer
    shifted = [own + 2.25 for own in odds]
    assert choose_shift(shifted, answered, unanswered) == pytest.approx(0.0)
    all_answered = choose_shift([5.0] * 40, [1.0] * 28 + [0.0] * 12, [0.0] * 28 + [1.0] * 12)
    assert all_answered < -5.0


@pytest.mark.parametrize("tokenizer", [words(), UnitTokenizer(Vocabulary.build([LINES[0]], 0, 1), "characters", "NFC")])
def test_ranges_of_words_and_characters(tokenizer: Tokenizer):
    text = "Ada  went home"
    ranges = tokenizer.ranges(text)
    assert len(ranges) == len(tokenizer.encode(text))
    assert [text[start:end] for start, end in ranges] == (["Ada", "went", "home"] if len(ranges) == 3 else list(text))


def test_weights_of_facts_are_those_of_their_tokens(pieces: PieceTokenizer):
    passage: Passage = encode_passage(pieces, STORIES[0], CONFIG)
    weights = np.random.default_rng(0).random((2, len(passage.ranges))).astype(np.float32)
    totals = passage.by_fact(weights)
    assert totals.shape == (2, len(STORIES[0].facts))
    np.testing.assert_allclose(totals.sum(axis=1), weights.sum(axis=1), rtol=1e-5)
    low, high = passage.facts[1]
    inside = [index for index, (first, _) in enumerate(passage.ranges) if low - 1 <= first < high]
    np.testing.assert_allclose(totals[:, 1], weights[:, inside].sum(axis=1), rtol=1e-5)
