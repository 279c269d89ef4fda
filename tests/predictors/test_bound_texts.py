"""Texts of several segments whose outputs have to begin with or contain something."""

from collections.abc import Sequence
from typing import Any

from heedful.engines.text_constraints import TextConstraints
from heedful.predictors.bound_texts import BoundTexts
from heedful.predictors.translation import Alternative, Translation
from heedful.text.segments import Segment, Text, split

FITTING = {"red": "Hund", "cat": "Katze"}


def decode(segments: Sequence[Segment], given: Any, indices: Sequence[int]) -> list[Translation]:
    """Outputs that begin with the prefix and end in the required phrases, which cost less where they fit."""
    outputs: list[Translation] = []
    for one in segments:
        text = " ".join([*given.prefix.split(), one.source[::-1], *given.required])
        loss = sum(1.0 if FITTING.get(phrase, "") in one.source else 5.0 for phrase in given.required)
        text = one.source if one.source == "4711." else text
        outputs.append(Translation(one.source, text, -loss, -loss, (Alternative(text, -loss, -loss),)))
    return outputs


def translated(texts: Sequence[Text], **given: Any) -> list[list[str]]:
    bound: Any = BoundTexts(decode, lambda given: given, TextConstraints(**given))  # type: ignore[arg-type, return-value]
    outputs = bound.translate(texts, range(len(texts)))
    return [[next(outputs).text for _ in text.segments] for text in texts]


def test_the_first_segment_has_the_prefix_and_phrases_stand_where_they_fit():
    texts = [split("Ein Hund. Katze da. 4711."), split("Ein Hund.")]
    outputs = translated(texts, prefix="So", required=["cat", "red"])
    assert outputs == [["So .dnuH niE red", ".ad eztaK cat", "4711."], ["So .dnuH niE cat red"]]


def test_a_phrase_that_stands_there_is_not_asked_for_again():
    assert translated([split("Da rot. Da red.")], required=["der"]) == [[".tor aD", ".der aD"]]
    assert translated([split("Da rot. Da redt.")], required=["der"])[0].count(".tdr aD") == 0


def test_layout_before_the_first_segment_is_no_part_of_its_prefix():
    assert translated([split("- Ja da. Nein da.")], prefix="- So")[0] == ["So .ad aJ", ".ad nieN"]
