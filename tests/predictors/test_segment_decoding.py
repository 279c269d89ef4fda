"""Decoding of segments: readings, kept spans and the links between both sides."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from html import unescape
from types import SimpleNamespace
from typing import Any

import pytest

from heedful.engines.text_constraints import SourceConstraints
from heedful.predictors.reading import Reading
from heedful.predictors.segment_decoding import SegmentDecoding
from heedful.predictors.translation import Alternative, Translation
from heedful.search.config import SearchConfig
from heedful.search.constraints import Constraints
from heedful.text.kept import Kept, find_kept
from heedful.text.lexicon import Lexicon
from heedful.text.segments import Segment
from heedful.text.word_forms import WordForms

WORDS = {"&": "&amp;", "Hund": "dog", "roter": "red", "ein": "a", "Straße": "street", "auf": "on"}


class Characters:
    def encode(self, text: str) -> list[int]:
        return [*range(len(text))]


TABLES: Any = SimpleNamespace(
    forms=WordForms(WORDS, Characters()),  # type: ignore[arg-type]
    lexicon=Lexicon({word.lower(): {target: 1.0} for word, target in WORDS.items()}),
    final_marks=("", ""),
    is_name="Street".__eq__,
)
FREE = SourceConstraints(Constraints(), Constraints(), None, {})


@dataclass(frozen=True)
class Words:
    """Stand-in for a decoding that translates word by word, in the opposite order, and only words that it knows."""

    attention: bool = True
    can_align: bool = True
    search: SearchConfig = field(default_factory=SearchConfig)
    model: Any = field(default_factory=lambda: SimpleNamespace(tables=TABLES, alignment_shift=0))

    def translate(self, texts: Sequence[str], constraints: object, indices: Sequence[int]) -> list[Translation]:
        return [self._output(text) for text in texts]

    def _output(self, text: str) -> Translation:
        words = text.split()
        output = " ".join(WORDS.get(word, WORDS.get(word[:1].lower() + word[1:], word)) for word in reversed(words))
        links = tuple((len(words) - 1 - index, index) for index in range(len(words)))
        return Translation(text, output, -1.0, -1.0, (Alternative(output, -1.0, -1.0),), alignment=links)


def segment(text: str) -> Segment:
    return Segment(text, 0, len(text), find_kept(text))


def translate(text: str, **settings: Any) -> Translation:
    decoding: Any = Words(**settings)
    (output,) = SegmentDecoding(decoding).translate([segment(text)], FREE, [0])
    return output


@pytest.mark.parametrize(
    ("text", "output", "read"),
    [
        ("ein roter hund", "dog red a", "Ein roter Hund"),
        ("Ein Roter Hund", "dog red a", "Ein roter Hund"),
        ("EIN ROTER HUND", "DOG RED A", "Ein roter Hund"),
        ("EIN ROTER {name} HUND", "DOG RED {name} A", "Ein roter Hund"),
        ("AUF STRASSE", "STREET ON", "auf Straße"),
        ("Ein roter Hund", "dog red a", ""),
        ("Ein & Hund", "dog & a", "Ein & Hund"),
        ("EIN & {name} HUND", "DOG & {name} A", "ein & Hund"),
        ("Ein & &amp; Hund", "dog &amp; &amp; a", ""),
    ],
)
def test_texts_are_read_in_their_usual_forms(text: str, output: str, read: str):
    one = translate(text)
    assert (one.source, one.text) == (text, output)
    assert (one.decoded[0] if one.decoded else "") == read
    for link in one.links:
        written = text[link.source_start : link.source_end]
        if link.weight > 0.5:
            word = TABLES.forms.usual(written) or ""
            assert unescape(WORDS.get(word, written)) == one.text[link.target_start : link.target_end].lower()
    assert not read or len({link.target_start for link in one.links if link.weight > 0.5}) == len(output.split())


@dataclass(frozen=True)
class Sentences(Words):
    """Stand-in that translates in order, and begins with a capital; words that it knows are those of sentences."""

    def _output(self, text: str) -> Translation:
        words = [re.sub(r"\w+", lambda word: WORDS.get(word[0], WORDS.get(word[0].lower(), word[0])), text)]
        output = words[0][:1].upper() + words[0][1:]
        links = tuple((index, index) for index in range(len(text.split())))
        return Translation(text, output, -1.0, -1.0, (Alternative(output, -1.0, -1.0),), alignment=links)


def test_words_are_aligned_behind_a_conjunction_that_is_not_read(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(TABLES, "lexicon", Lexicon({"und": {"and": 0.5}}))
    decoding: Any = Sentences()
    (one,) = SegmentDecoding(decoding).translate([segment("und ein roter Hund {x}")], FREE, [0])
    words = [(one.source.split()[left], one.text.split()[right]) for left, right in one.alignment or ()]
    assert words == [("und", "and"), ("ein", "a"), ("roter", "red"), ("Hund", "dog"), ("{x}", "{x}")]
    links = {one.source[link.source_start : link.source_end]: link for link in one.links}
    assert [one.text[links[word].target_start : links[word].target_end] for word in ("und", "{x}")] == ["and", "{x}"]


def test_an_inner_part_of_a_sentence_stays_in_lower_case():
    decoding: Any = Sentences()
    parts = [replace(segment("ein roter hund."), is_inner=is_inner) for is_inner in (True, False)]
    outputs = SegmentDecoding(decoding).translate(parts, FREE, [0, 0])
    assert [one.text for one in outputs] == ["a red dog.", "A red dog."]


def test_a_conjunction_that_stays_is_read_with_the_text(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(TABLES, "lexicon", Lexicon({"und": {"and": 0.5}}))
    decoding: Any = Sentences()
    kept = replace(segment("UND ein roter Hund"), kept=(Kept(0, 3, "acronym"),))
    (one,) = SegmentDecoding(decoding).translate([kept], FREE, [0])
    assert one.text == "UND a red dog"


@pytest.mark.parametrize(
    ("text", "read", "output"),
    [
        ("ein roter Hund", "Ein roter Hund.", "a red dog"),
        ("Ein roter Hund", "Ein roter Hund.", "A red dog"),
        ("Ein roter Hund!", "", "A red dog!"),
        ("ein roter Hund {x}", "Ein roter Hund.", "a red dog {x}"),
        ("und ein roter Hund {x}.", "Ein roter Hund.", "and a red dog {x}."),
        ("und EIN ROTER HUND", "Ein roter Hund.", "and A RED DOG"),
        ("UND EIN ROTER HUND", "Ein roter Hund.", "AND A RED DOG"),
        ("Und ein roter Hund", "Und ein roter Hund.", "And a red dog"),
        ("Anna und ein Hund", "Anna und ein Hund.", "Anna and a dog"),
        ("roter {x} Anna", "Roter Anna.", "red {x} Anna"),
        ("straße", "Straße.", "Street"),
        ("ich auf Straße", "Ich auf Straße.", "I on street"),
        ("ein roter hund.", "Ein roter Hund.", "A red dog."),
        ("ein roter hund", "Ein roter Hund.", "a red dog"),
    ],
)
def test_parts_of_sentences_are_read_as_sentences(text: str, read: str, output: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(TABLES, "final_marks", (".", "."))
    monkeypatch.setitem(WORDS, "und", "and")
    monkeypatch.setitem(WORDS, "ich", "I")
    monkeypatch.setattr(TABLES, "lexicon", Lexicon({"und": {"with": 0.1, "and": 0.5}}))
    decoding: Any = Sentences()
    (one,) = SegmentDecoding(decoding).translate([segment(text)], FREE, [0])
    assert (one.source, one.text) == (text, output)
    assert (one.decoded[0] if one.decoded else "") == read
    for link in one.links:
        word = text[link.source_start : link.source_end]
        if link.weight > 0.5:
            translation = WORDS.get(word.lower(), WORDS.get(TABLES.forms.usual(word), word))
            assert translation.lower() == one.text[link.target_start : link.target_end].lower()


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("{x} Hund läuft.", "{x} dog läuft."),
        ("{x} %s roter Hund.", "{x} %s red dog."),
        ("{x} Ein Hund.", "{x} A dog."),
        ("{x} Straße.", "{x} Street."),
        ("{x} Anna.", "{x} Anna."),
        ("({x}) Hund.", "({x}) Dog."),
        ("<b> Hund.", "<b>Dog."),
        ("🐶 Hund.", "🐶 Dog."),
        ("{x}: Hund.", "{x}: dog."),
    ],
)
def test_a_word_behind_a_span_at_the_beginning_has_no_capital_of_a_sentence(text: str, output: str):
    decoding: Any = Sentences()
    (one,) = SegmentDecoding(decoding).translate([segment(text)], FREE, [0])
    assert one.text == output


@pytest.mark.parametrize("given", [{"prefix": (5,)}, {"required": [(5,)]}])
def test_a_bound_output_keeps_its_capital_behind_a_span(given: dict[str, Any]):
    bound = SourceConstraints(Constraints(**given), Constraints(**given), None, {})
    decoding: Any = Sentences()
    (one,) = SegmentDecoding(decoding).translate([segment("{x} Hund läuft.")], bound, [0])
    assert one.text == "{x} Dog läuft."


def test_outputs_that_have_to_begin_with_a_text_keep_their_ends(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(TABLES, "final_marks", (".", "."))
    decoding: Any = Sentences()
    bound = SourceConstraints(Constraints(prefix=(5,)), Constraints(prefix=(5,)), None, {})
    (one,) = SegmentDecoding(decoding).translate([segment("ein roter Hund")], bound, [0])
    assert one.text == "A red dog"


@pytest.mark.parametrize("attention", [False, True])
def test_words_and_their_links_move_with_kept_spans(attention: bool):
    one = translate("Ein {a} {b} roter Hund %s", attention=attention)
    assert one.text == "dog red a {a} {b} %s"
    assert one.attention is None
    if attention:
        assert one.alignment is not None
        words = {(one.source.split()[left], one.text.split()[right]) for left, right in one.alignment}
        assert words == {
            ("Ein", "a"),
            ("roter", "red"),
            ("Hund", "dog"),
            *((span, span) for span in ("{a}", "{b}", "%s")),
        }
        spans = {one.source[link[0] : link[1]]: one.text[link[2] : link[3]] for link in one.links if link.weight == 1.0}
        assert {source for source, target in spans.items() if source == target} == {"{a}", "{b}", "%s"}
    else:
        assert (one.alignment, one.links) == (None, ())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("4711 {a}", [("4711", "4711"), ("{a}", "{a}")]),  # nothing to translate
        ("Ein {a} Hund {a}", [("Ein", "a"), ("{a}", "{a}"), ("Hund", "dog")]),
        ("Hund (https://a.de/x) auf", [("(https://a.de/x)", "(https://a.de/x)")]),
    ],
)
def test_kept_spans_are_linked_to_themselves(text: str, words: list[tuple[str, str]]):
    one = translate(text)
    linked = [(one.source.split()[left], one.text.split()[right]) for left, right in one.alignment or ()]
    assert {*words} <= {*linked}


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("10", "dog 10 a"),  # as the model wrote it
        ("101", "dog a 10"),  # another number, which contains this one
        ("10.5", "dog a 10"),
        ("10 1", "dog a 10"),  # a number that no one wrote
        ("10th", "dog 10th a"),
        ("10.", "dog 10. a"),
    ],
)
def test_numbers_are_those_of_the_source(written: str, text: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(WORDS, "10", written)
    assert translate("Ein 10 Hund").text == text


def test_numbers_do_not_become_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(WORDS, "10", "105")
    monkeypatch.setitem(WORDS, "5", "")
    assert sorted(re.findall(r"\d+", translate("Ein 10 Hund 5").text)) == ["10", "5"]


@pytest.mark.parametrize("text", ["<b>roter</b> Hund <i>auf</i> Straße", "<b>roter <i>Hund</i></b> auf<br/> Straße"])
def test_tags_stand_in_the_order_of_the_source(text: str):
    """The words between them change places, which would put the end of one before its beginning."""
    tags = re.compile("<[^>]+>")
    assert tags.findall(translate(text).text) == tags.findall(text)


def test_without_attention_a_lexicon_places_spans():
    assert translate("roter {x} Hund auf", can_align=False).text == "on dog red {x}"


def test_a_segment_with_the_stand_in_for_spans_is_read_as_it_is():
    one = segment("EIN \N{OBJECT REPLACEMENT CHARACTER} {x} HUND")
    assert Reading.of(one, TABLES).segment is one


@dataclass(frozen=True)
class Looping(Words):
    """Stand-in whose every output is far too long; `searches` are those that were made."""

    searches: list[SearchConfig] = field(default_factory=list)

    def _output(self, text: str) -> Translation:
        self.searches.append(self.search)
        return super()._output("Hund ein " * 20)


@pytest.mark.parametrize("phrases", [[], [(5, 6)]])
def test_what_is_too_long_is_searched_again_without_repeats_unless_phrases_are_required(phrases: list[tuple[int, ...]]):
    decoding: Any = Looping()
    constraints = SourceConstraints(Constraints(required=phrases), Constraints(required=phrases), None, {})
    (output,) = SegmentDecoding(decoding).translate([segment("ein Hund")], constraints, [0])
    assert (output.text, output.fault) == ("ein Hund", "length")
    first, again = decoding.searches
    assert first.no_repeat_ngram_size == 0
    assert again.no_repeat_ngram_size == (0 if phrases else 3)


def test_nothing_is_searched_where_no_span_was_lifted():
    decoding: Any = Looping()
    calls: list[int] = []
    original = Looping.translate

    def counting(self: Looping, texts: Sequence[str], *others: Any, **named: Any) -> list[Translation]:
        calls.append(len(texts))
        return original(self, texts, *others, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Looping, "translate", counting)
        _ = SegmentDecoding(decoding)._outputs([segment("ein Hund")], FREE, [0])  # pyright: ignore[reportPrivateUsage]
    assert calls == [1]
