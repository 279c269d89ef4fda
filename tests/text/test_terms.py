"""Terms: lists, matches in sources, and their use in outputs."""

import pytest

from heedful.text import terms as module
from heedful.text.terms import Term, TermCounts, Terms, split_units


def listed(*pairs: tuple[str, str]) -> Terms:
    return Terms(tuple(Term(*pair) for pair in pairs))


def matched(terms: Terms, source: str) -> list[str]:
    return [term.target for term in terms.match(source)]


GERMAN = listed(("Haus", "building"), ("weißes Haus", "palace"), ("Bahn", "rail"), ("IT", "computing"), ("C++", "Cpp"))
CASES = [
    ("Das Haus.", ["building"]),
    ("HAUS und haus", ["building", "building"]),
    ("zwei Häuser", ["building"]),
    ("des weißen Hauses", ["palace"]),
    ("Haus, weißes Haus", ["building", "palace"]),
    ("Der Bahnhof", []),
    ("mit it", ["computing"]),
    ("C# und C", []),
    ("C++!", ["Cpp"]),
    ("", []),
]
RELATED = [
    ("weißes", "weißen"),
    ("company", "companies"),
    ("cheval", "chevaux"),
    ("house", "houses"),
    ("Jacke", "Jacken"),
    ("leaf", "leaves"),
    ("city", "cities"),
    ("किताब", "किताबें"),
]
UNRELATED = [("bride", "bridge"), ("group", "ground"), ("house", "horses"), ("hand", "handicap"), ("C1", "C2")]


@pytest.mark.parametrize("is_turned", [False, True])
def test_forms_of_a_source_share_a_stem_that_suits_their_endings(is_turned: bool):
    for pairs, is_related in ((RELATED, True), (UNRELATED, False)):
        for pair in pairs:
            word, other = reversed(pair) if is_turned else pair
            assert bool(listed((word, "X")).match(f"a {other}!")) == is_related, pair
    # An output is read more generously, but not words of three letters.
    assert Term("x", "sitzen").used("er sitzt") == "stem"
    assert Term("x", "rot").used("ein roter Ball") == "stem"
    assert not any(Term("x", word).used(text) for word, text in (("car", "carry"), ("tea", "team"), ("rot", "Rotor")))


@pytest.mark.parametrize(("source", "targets"), CASES)
def test_words_match_regardless_of_case_and_inflection(source: str, targets: list[str]):
    assert matched(GERMAN, source) == targets


def test_a_match_of_equal_words_only_would_be_noticed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "_is_form", str.__eq__)
    assert [source for source, targets in CASES if matched(GERMAN, source) != targets] == [
        "zwei Häuser",
        "des weißen Hauses",
    ]


def test_of_overlapping_terms_the_longest_counts_and_then_the_uninflected():
    terms = listed(("neues Haus", "A"), ("Haus am Meer", "B"), ("Katzen", "cats"), ("Katze", "cat"))
    assert matched(terms, "ein neues Haus am Meer") == ["B"]
    assert matched(terms, "neues Haus, Haus am Meer") == ["A", "B"]
    assert matched(terms, "die Katze und die Katzen") == ["cat", "cats"]


def test_scripts_without_spaces_match_by_character():
    terms = listed(("机器翻译", "machine translation"), ("翻译", "translation"), ("機", "X"))
    assert matched(terms, "神经机器翻译和翻译") == ["machine translation", "translation"]
    assert split_units("が三a1 b") == ["が", "三", "a1", "b"]


@pytest.mark.parametrize(
    ("output", "use"),
    [
        ("The Railway Station.", ""),
        ("A railway station!", "exact"),
        ("RAILWAY STATIONS", "stem"),
        ("railways and stations", ""),
        ("", ""),
    ],
)
def test_a_use_is_exact_or_by_the_stem(output: str, use: str):
    assert Term("Bahnhof", "railway station").used(output) == (use if output != "The Railway Station." else "stem")


@pytest.mark.parametrize(
    ("form", "output", "use"),
    [
        ("rot", "die roten Häuser", "stem"),
        ("rot", "das rot Haus", "exact"),
        ("rot", "die Rotunde", ""),
        ("tür", "die Türen", "stem"),
        ("ja", "jagen", ""),
        ("C64", "C640", ""),
    ],
)
def test_words_of_three_letters_have_short_endings_in_outputs_only(form: str, output: str, use: str):
    assert Term("x", form).used(output) == use
    assert (form in matched(listed((form, form)), output)) == (use == "exact")


def test_places_are_characters_of_the_source():
    source = "Das weiße Haus, 翻译, Häuser"
    places = listed(("Haus", "A"), ("weißes Haus", "B"), ("翻译", "C")).find(source)
    assert [(one.term.target, source[one.start : one.stop]) for one in places] == [
        ("B", "weiße Haus"),
        ("C", "翻译"),
        ("A", "Häuser"),
    ]


def test_counts_are_of_terms_by_sentence():
    terms = listed(("Haus", "house"), ("Katze", "cat"))
    counts = TermCounts.of(terms, ["Haus Haus", "Häuser", "Katze", "x"], ["house", "houses", "dog", "house"])
    assert (counts.num_terms, counts.num_exact, counts.num_stem) == (3, 1, 1)
    assert str(counts) == "terms: 3 in the sources, 33.3 % used in their form, 33.3 % in another"
    assert str(TermCounts()) == "terms: none in the sources"
