"""Translations of texts, joined from those of their segments."""

import random
import time
from dataclasses import replace
from itertools import pairwise

import pytest

from heedful.engines.translation_memory import MemoryMatch
from heedful.predictors.segmented import _nums_words, joined, whole, with_lost_spans
from heedful.predictors.translation import Alternative, Translation
from heedful.text.kept import find_kept
from heedful.text.segments import split


def output(source: str, *texts: str, confidence: float | None = None) -> Translation:
    others = tuple(Alternative(text, -1.0 - rank, -0.5 - rank) for rank, text in enumerate(texts))
    links = tuple((index, index) for index in range(len(source.split())))
    return Translation(source, texts[0], -1.0, -0.5, others, alignment=links, confidence=confidence)


def test_texts_are_joined():
    source = "Eins zwei.\n- Drei vier! Fünf"
    text = split(source)
    outputs = [
        output("Eins zwei.", "One two.", "Two one.", confidence=0.5),
        output("Drei vier!", "Three four!", confidence=0.5),
        output("Fünf", "Five", "5", confidence=0.8),
    ]
    one = joined(source, text, outputs)
    assert one.text == "One two.\n- Three four! Five"
    assert [each.text for each in one.alternatives] == [one.text, "Two one.\n- Three four! 5"]
    assert [each.log_prob for each in one.alternatives] == [-3.0, -5.0]
    assert (one.log_prob, one.score) == (-3.0, -1.5)
    assert one.confidence == pytest.approx(0.2)
    assert one.alignment == ((0, 0), (1, 1), (3, 3), (4, 4), (5, 5))
    assert [one.text[each.start : each.end] for each in one.segments] == [each.text for each in outputs]
    assert [source[each.segment.start : each.segment.end] for each in one.segments] == [each.source for each in outputs]


def test_words_before_places_are_counted_in_one_pass():
    generator = random.Random(1)
    for _ in range(200):
        text = "".join(generator.choices("ab \n\u3000", k=30))
        stops = sorted(generator.choices(range(len(text) + 1), k=8))
        written = [sum(not a.isspace() and b.isspace() for a, b in pairwise(text[:stop])) for stop in stops]
        assert _nums_words(text, stops) == written
    source = "Ja. " * 20_000
    started = time.process_time()
    one = joined(source, split(source), [output("Ja.", "Yes.")] * 20_000)  # 20 s once
    assert time.process_time() - started < 5.0
    assert one.alignment == tuple((number, number) for number in range(20_000))


def test_one_segment_is_the_text():
    one = output("Eins", "One")
    assert joined("Eins", split("Eins"), [one]) is one
    assert joined(" ", whole(" "), [output(" ", "")]).text == ""
    assert joined(" Eins\n", split(" Eins\n"), [one]).text == " One\n"
    assert joined(" \n", split(" \n"), []).text == " \n"


def test_lost_spans_are_named_but_not_those_that_a_correction_left_out():
    one = replace(split("Bei {a} und {a}").segments[0], kept=find_kept("Bei {a} und {a}"))
    assert with_lost_spans(one, output(one.source, "At {a} and {a}")).lost == ()
    assert with_lost_spans(one, output(one.source, "At {a} and")).lost == ("{a}",)
    match = MemoryMatch(one.source, "At both", 1.0, is_exact=True)
    assert with_lost_spans(one, replace(output(one.source, "At both"), memory=match)).lost == ()


def test_no_output_is_dropped_in_silence():
    with pytest.raises(ValueError, match="argument"):
        joined("Eins. Zwei.", split("Eins. Zwei."), [output("Eins.", "One.")])
