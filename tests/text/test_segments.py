"""Segments of a text and the layout between them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.text.segments import Policy, split


def sources(text: str, policy: Policy = "sentence", usual: int = 1) -> list[str]:
    return [segment.reading for segment in split(text, policy=policy, usual=usual).segments]


@given(
    st.text(st.sampled_from(' \n\r.。!?aAß字カ-1)*,;x>\t"“(\u2028\U0001f600'), max_size=80),
    st.sampled_from(["auto", "sentence", "line"]),
    st.integers(1, 20),
)
def test_sources_and_layout_are_the_text(text: str, policy: Policy, most: int):
    apart = split(text, policy=policy, fits=lambda sentence: len(sentence) <= most)
    assert apart.join([segment.source for segment in apart.segments]) == text
    assert apart.starts([segment.source for segment in apart.segments]) == [one.start for one in apart.segments]
    assert all(segment.source == text[segment.start : segment.end] for segment in apart.segments)
    assert all(segment.source.strip() == segment.source != "" for segment in apart.segments)
    assert all("\n" not in segment.reading for segment in apart.segments)
    if policy != "line":
        assert all(len(segment.source) <= max(most, 1) for segment in apart.segments)


def test_policies():
    text = "She Won. It rains.\nAm 3. Mai kam Dr. Fox."
    assert sources(text, "line") == ["She Won. It rains.", "Am 3. Mai kam Dr. Fox."]
    assert sources(text, "sentence") == ["She Won.", "It rains.", "Am 3. Mai kam Dr. Fox."]
    assert sources(text, "auto", usual=1) == sources(text, "sentence")
    assert sources(text, "auto", usual=2) == sources(text, "line")


def test_marks_of_list_items_are_layout():
    text = "- eins\n* zwei\n1. drei\n2. vier. Fünf\n\n3. Mai\n(a) sechs"
    assert sources(text) == ["eins", "zwei", "drei", "vier.", "Fünf", "Mai", "sechs"]
    assert sources("3. Mai") == ["3. Mai"]


def test_hard_wrapped_lines_are_joined():
    wrapped = (
        "Dies ist ein längerer Text, der von Hand umbrochen wurde, damit er in\n"
        "eine Nachricht passt und nicht zu breit ist. Er hat zwei Sätze, und\r\n"
        "der letzte ist kurz.\n"
    )
    assert sources(wrapped) == [
        "Dies ist ein längerer Text, der von Hand umbrochen wurde, damit er in eine Nachricht passt und nicht zu breit "
        "ist.",
        "Er hat zwei Sätze, und der letzte ist kurz.",
    ]
    assert sources("我" * 40 + "\n" + "你" * 10 + "。") == ["我" * 40 + "你" * 10 + "。"]
    poem = "Über allen Gipfeln\nIst Ruh,\nIn allen Wipfeln\nSpürest du\nKaum einen Hauch;"
    assert sources(poem) == [line.rstrip(",;") for line in poem.split("\n")]


@pytest.mark.parametrize(
    "text",
    [
        "Ein Hund\nläuft im Schnee.",
        "Ein Hund läuft im\nSchnee.",
        "Ein Hund läuft im\nSchnee",
        "Der Hund und die\nKatze laufen\nüber die\nStraße.",
        "The dog saw the\nEiffel Tower in Paris",
    ],
)
def test_two_short_lines_are_joined_where_the_first_does_not_end_a_sentence(text: str):
    assert sources(text) == [text.replace("\n", " ")]


@pytest.mark.parametrize(
    "text",
    [
        "Einkaufsliste\nmilch\nbrot",
        "milch\nbrot und eier.",
        "Ein Hund\nEine Katze.",
        "Überschrift\nEin Hund läuft.",
        "Ein Hund.\nläuft im Schnee.",
        "Name\tort\nmilch\tbrot.",
        "Name | ort\nmilch | brot.",
        "Vitamin a\nVitamin b",
    ],
)
def test_lines_of_lists_headings_and_tables_stay_lines(text: str):
    assert len(sources(text)) >= len(text.split("\n"))


@pytest.mark.parametrize(
    "text",
    [
        "Hallo Anna, ich komme heute etwas\nspäter nach Hause, weil der\nZug noch nicht da ist",
        "Ein Mann mit einem Hut läuft\nüber die Straße.",
        "ein Mann mit einem Hut läuft\nüber die Straße und schläft.",
        "Der Mann mit dem Hut und dem\nHund läuft über die Straße\nund schläft dann ein",
    ],
)
def test_short_lines_of_like_width_whose_sentences_go_on_in_lower_case_are_joined(text: str):
    assert sources(text) == [text.replace("\n", " ")]


@pytest.mark.parametrize(
    "text",
    [
        "Einkaufsliste für morgen\nmilch\nbrot",
        "milch und brot für morgen\neier und käse von oma\nsalz und pfeffer",
        "Ein Hund läuft sehr schnell\nüber die breite Straße",
        "Es schienen so golden die Sterne\nAm Fenster ich einsam stand\nUnd hörte aus weiter Ferne",
        "Am 3. Mai 2024 um zehn Uhr dreißig schrieb Anna:\nHallo, ich komme heute etwas später nach Hause\nals sonst",
    ],
)
def test_poems_lists_and_lines_that_end_in_a_colon_stay_apart(text: str):
    first = text.split("\n")[0]
    assert sources(text)[0] == first.rstrip(":")


def test_marks_of_quoted_lines_are_layout():
    text = (
        "Hallo,\n> Dies ist ein längerer Text, der umbrochen wurde, damit er in\n> eine Nachricht passt. Und weiter, "
        "mit noch einem Satz, der auch\n>\tlang ist.\n>> Was?\n> > Das\n>\n>5 Uhr"
    )
    apart = split(text)
    assert [segment.reading for segment in apart.segments] == [
        "Hallo",
        "Dies ist ein längerer Text, der umbrochen wurde, damit er in eine Nachricht passt.",
        "Und weiter, mit noch einem Satz, der auch lang ist.",
        "Was?",
        "Das",
        ">5 Uhr",
    ]
    assert apart.layout == ("", ",\n> ", " ", "\n>> ", "\n> > ", "\n>\n", "")
    ended = "> Ein Satz, der so lang ist, dass er bis zum Ende der Zeile geht.\n> Der nächste."
    assert split(ended).join(["A.", "B."]) == "> A.\n> B."
    items = "> - eins\n> - zwei\n"
    assert split(items).join(["one", "two"]) == "> - one\n> - two\n"


def test_long_segments_are_cut_at_clauses_then_at_spaces():
    def pieces(text: str) -> list[str]:
        return [segment.source for segment in split(text, fits=lambda sentence: len(sentence) <= 20).segments]

    assert pieces("one two three, four five six") == ["one two three", "four five six"]
    assert pieces("one two three four five") == ["one two", "three four five"]
    assert pieces("x" * 30) == ["x" * 15, "x" * 15]


def test_long_sentences_are_cut_behind_clauses_and_those_that_do_not_fit_anywhere():
    def sources(text: str) -> list[str]:
        segments = split(text, fits=lambda one: len(one) <= 40, is_usual=lambda one: len(one) <= 20).segments
        return [segment.source for segment in segments]

    assert sources("A dog runs, a cat sleeps, a man reads.") == ["A dog runs", "a cat sleeps", "a man reads."]
    assert sources("A large dog runs on the green grass.") == ["A large dog runs on the green grass."]
    two = split("A dog runs. A cat, a man sleep.", policy="auto", usual=2, is_usual=lambda one: len(one) <= 20)
    assert [segment.source for segment in two.segments] == ["A dog runs.", "A cat, a man sleep."]
    assert sources("A dog runs over a bridge and a man reads now.") == [
        "A dog runs over a bridge",
        "and a man reads now.",
    ]
    assert [
        one.is_inner for one in split("A dog. A cat, a man sleep.", is_usual=lambda one: len(one) <= 9).segments
    ] == [
        False,
        False,
        True,
    ]


def test_long_sentences_are_cut_before_conjunctions_and_first_of_all_where_clauses_begin():
    def sources(text: str, most: int = 40) -> list[str]:
        def is_usual(one: str) -> bool:
            return len(one) <= most

        begins = {"Ein", "Zwei"}.__contains__
        segments = split(text, is_usual=is_usual, begins=begins, is_short=lambda one: len(one) <= 30).segments
        return [segment.source for segment in segments]

    assert sources("Ein Hund und ein Kater laufen und zwei Hasen hoppeln") == [
        "Ein Hund und ein Kater laufen",
        "und zwei Hasen hoppeln",
    ]
    assert sources("Ein Hund läuft, sehr schnell, zwei Hasen auch") == [
        "Ein Hund läuft, sehr schnell",
        "zwei Hasen auch",
    ]
    assert sources("Ein Hund läuft, ein Kater schläft, ein Hase auch") == [
        "Ein Hund läuft",
        "ein Kater schläft",
        "ein Hase auch",
    ]
    assert sources("EIN HUND LÄUFT, EIN KATER SCHLÄFT UND ZWEI HASEN") == [
        "EIN HUND LÄUFT",
        "EIN KATER SCHLÄFT",
        "UND ZWEI HASEN",
    ]
    assert sources("Ein Hund, ein Kater, ein Hase, zwei Igel", 80) == ["Ein Hund, ein Kater, ein Hase, zwei Igel"]


def test_long_sentences_are_cut_where_another_begins_without_a_mark_before_it():
    begins = {"Ein", "In"}.__contains__

    def sources(text: str) -> list[str]:
        segments = split(text, is_usual=lambda one: len(one) <= 20, begins=begins).segments
        return [segment.source for segment in segments]

    assert sources("Ein Hut, im Haus Ein Hund da") == ["Ein Hut, im Haus", "Ein Hund da"]
    assert sources("Ein Hut, im Haus ein Hund da") == ["Ein Hut", "im Haus ein Hund da"]
    assert sources("Ein Hut in einem Hut und da") == ["Ein Hut in einem Hut und da"]
    assert sources("Hut da") == ["Hut da"]
    for unusual in ("Ein Hut Im Haus Ein Hund Da", "EIN HUT IM HAUS EIN HUND DA"):
        assert sources(unusual) == [unusual]


@pytest.mark.parametrize(
    ("text", "outputs", "expected"),
    [
        ("One. Two!\n\nThree", ["Eins.", "Zwei!", "Drei"], "Eins. Zwei!\n\nDrei"),
        ("Good. Day.", ["好。", "天。"], "好。天。"),
        ("好。天。", ["Good.", "Day."], "Good. Day."),
        ("好!天。", ["好!", "天。"], "好!天。"),
        ("Good. ", ["好。"], "好。 "),
    ],
)
def test_join(text: str, outputs: list[str], expected: str):
    apart = split(text)
    assert apart.join(outputs) == expected
    starts = apart.starts(outputs)
    assert [expected[start : start + len(output)] for start, output in zip(starts, outputs, strict=True)] == outputs


@pytest.mark.parametrize("outputs", [[], ["a", "b"]])
def test_outputs_that_do_not_match_the_segments_are_refused(outputs: list[str]):
    with pytest.raises(ValueError, match="argument"):
        split("One.").join(outputs)


@pytest.mark.parametrize("text", ["x" * 300_000, "x " * 150_000, "a. " * 100_000, "\n" * 300_000, "1. x\n" * 60_000])
def test_long_texts_take_linear_time(text: str):
    apart = split(text, fits=lambda sentence: len(sentence) < 1000)
    assert apart.join([segment.source for segment in apart.segments]) == text


def test_words_that_begin_sentences_tell_of_them_without_a_space_and_behind_a_number():
    def sources(text: str) -> list[str]:
        return [one.source for one in split(text, begins={"Ein", "Am"}.__contains__).segments]

    assert sources("Ein Mann geht.Ein Hund bellt.Hunde auch.") == ["Ein Mann geht.", "Ein Hund bellt.Hunde auch."]
    assert sources("Ein Mann (alt).Ein Hund bellt.") == ["Ein Mann (alt).", "Ein Hund bellt."]
    assert sources("z.B.Ein Hund, datei.Ein") == ["z.B.Ein Hund, datei.", "Ein"]
    assert sources("1. Ein Hund bellt.") == ["Ein Hund bellt."]
    assert sources("3. Mai") == ["3. Mai"]
    assert split("Ein Mann geht.Ein Hund.", begins={"Ein"}.__contains__).join(["A.", "B."]) == "A. B."
