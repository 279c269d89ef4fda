"""Texts of `heedful inspect`: what counted most for an answer, a caption and a label."""

import numpy as np

from heedful.cli.inspected_texts import answer_text, caption_text, effects_text
from heedful.predictors.answerer import Answer, AnswerSpan
from heedful.predictors.captioner import Caption
from heedful.predictors.classifier import Classification
from heedful.predictors.word_effects import WordEffect, WordEffects
from heedful.text.stories import Story


def test_each_fact_has_its_weight_of_each_step():
    story = Story(("Ada went home.", "Bo\x1b[2J left."), "Where is Ada?")
    weights = np.array([[0.9, 0.1], [0.25, 0.75]], dtype=np.float32)
    lines = answer_text(Answer(story, "home", 0.5, {"home": 0.5}, weights)).split("\n")
    assert lines == [
        "home\t0.5000",
        "",
        "   step 1   step 2  fact",
        "    0.900    0.250  Ada went home.",
        "    0.100    0.750  Bo\\x1b[2J left.",
    ]
    many = Story(tuple(f"fact {number}" for number in range(100)), "?")
    shares = np.arange(100, dtype=np.float32)[None] / 100
    shown = answer_text(Answer(many, "a", 0.5, {}, shares)).split("\n")
    assert (len(shown), shown[3], shown[-1]) == (33, "    0.700  fact 70", "    0.990  fact 99")
    assert answer_text(Answer(story, "home", 0.5, {})) == "home\t0.5000"


def test_an_answer_stands_in_its_passage_before_the_words_of_most_weight():
    passage = "Ada lives in Rome."
    tokens = ((0, 3), (3, 9), (9, 12), (12, 15), (15, 17), (17, 18))  # Ada| lives| in| Ro|me|.
    weights = np.array([[0.5, 0, 0, 0.1, 0.1, 0], [0, 0, 0, 0.9, 0.1, 0], [0, 0, 0, 0, 1.0, 0]], dtype=np.float32)
    span = AnswerSpan(passage, 13, 17, tokens, ((0, 18),), weights)
    story = Story((passage,), "Where?")
    lines = answer_text(Answer(story, "Rome", 0.75, {"Rome": 0.75}, span=span)).split("\n")
    assert lines[:4] == ["Rome\t0.7500", "", "Ada lives in [Rome].", ""]
    assert lines[4:7] == [
        "attention    start      end  word",
        "    0.200    1.000    1.000  Rome",
        "    0.500    0.000    0.000  Ada",
    ]
    assert answer_text(Answer(story, "", 0.75, {}, span=span)).startswith("(no answer)\t0.7500\n\nattention")
    long = AnswerSpan("x" * 100 + "Rome" + "y" * 100, 100, 104, (), (), np.zeros((3, 0), dtype=np.float32))
    assert f"\n...{'x' * 60}[Rome]{'y' * 60}...\n" in answer_text(Answer(story, "Rome", 0.5, {}, span=long))


def test_each_word_of_a_caption_has_its_region():
    weights = np.array([[0.1, 0.2, 0.7, 0.0, 0, 0]] * 2 + [[0, 0, 0, 0, 0.4, 0.6]] + [[1, 0, 0, 0, 0, 0]])
    pieces = ("▁dog", "s", "▁run", "</s>")
    caption = Caption("a.png", "dogs run", np.log(0.5), -1.0, (), pieces, weights.astype(np.float32), (2, 3))
    assert caption_text(caption).split("\n") == [
        "dogs run\t0.5000",
        "",
        "The region with most weight, of 2 x 3 regions:",
        "   weight   row  column  word",
        "    0.700     1       3  dogs",
        "    0.600     2       3  run",
    ]
    unplaced = Caption("a.npy", "dogs run", np.log(0.5), -1.0, (), pieces, weights.astype(np.float32))
    assert caption_text(unplaced).split("\n")[2:5] == [
        "The region with most weight, of 6 regions:",
        "   weight  region  word",
        "    0.700       3  dogs",
    ]
    read = Caption("a.png", "no 7", np.log(0.5), -1.0, (), (*"no 7", "</s>"), np.eye(5, dtype=np.float32), (1, 5))
    assert caption_text(read).split("\n")[3:] == [
        "   weight   row  column  character",
        "    1.000     1       1  n",
        "    1.000     1       2  o",
        "    1.000     1       3  ␣",
        "    1.000     1       4  7",
    ]
    assert caption_text(Caption("a.png", "dogs", np.log(0.5), -1.0, ())) == "dogs\t0.5000"


def test_sentences_stand_with_their_weights_above_the_words():
    sentences = (
        (WordEffect("Rude", 0.5, 0.25), WordEffect(" staff.", 0.125, 0.5), WordEffect("", 0.125, None)),
        (WordEffect("Nice", 0.25, 0.0),),
    )
    weights = np.array([0.5, 0.125, 0.125, 0.25], dtype=np.float32)
    result = Classification("Rude staff. Nice", "bad", 0.75, {"bad": 0.75}, attention=weights)
    lines = effects_text(WordEffects(result, sentences, None), "a note").split("\n")
    assert lines[2:6] == ["attention  sentence", "    0.750  Rude staff.", "    0.250  Nice", ""]
    assert lines[6:8] == ["attention      without it  word", "    0.125          +0.500  staff."]
    assert lines[-2:] == ["", "a note"]
    assert "sentence" not in effects_text(WordEffects(result, sentences[:1], None), "")
