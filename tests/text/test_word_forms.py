"""Usual forms of words."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.errors import DataError, NewerFormat
from heedful.text.tokenizer import UnitTokenizer
from heedful.text.vocabulary import Vocabulary
from heedful.text.word_forms import WordForms, case_of, origins_of

TEXTS = [
    "Ein Hund läuft im Schnee.",
    "Ein Mann schüttelt große Hände.",
    "Im Haus sieht ein Mann die Straße.",
    "Läuft die NATO?",
    "Skateboards überall.",
]


class Capitals:
    """Tokenizer that has a token for "Skateboards" alone."""

    def encode(self, text: str) -> list[int]:
        return [0] if text == "Skateboards" else [*range(len(text))]


@pytest.fixture(scope="module")
def forms() -> WordForms:
    return WordForms.learn(TEXTS, Capitals())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "case"),
    [
        ("EIN HUND", "upper"),
        ("USA", ""),
        ("HAUS", "upper"),
        ("Ein Hund", ""),
        ("Ein Hund Bellt", "title"),
        ("hund", "lower"),
        ("Ein hund", ""),
        ("", ""),
        ("4711 …", ""),
        ("房间很好", ""),
        ("iPhone 5", ""),
        ("ПРИВЕТ МИР", "upper"),
    ],
)
def test_cases(text: str, case: str):
    assert case_of(text) == case


@pytest.mark.parametrize(
    ("text", "restored"),
    [
        ("ein hund läuft im schnee.", "Ein Hund läuft im Schnee."),
        ("Ein Hund Läuft Im Schnee.", "Ein Hund läuft im Schnee."),
        ("EIN HUND LÄUFT IM SCHNEE.", "Ein Hund läuft im Schnee."),
        ("EIN HUND LAEUFT", "Ein Hund läuft"),
        ("Grosse Haende", "Große Hände"),
        ("auf der strasse", "Auf der Straße"),
        ("hund", "Hund"),
        ("SKATEBOARDS LAUFEN", "Skateboards laufen"),
        ("Ein Peter Läuft Zum Haus", "Ein Peter läuft Zum Haus"),
        ("Ein Hund sieht Haende nie ünd", "Ein Hund sieht Haende nie ünd"),
        ("die NATO sieht Mueller", "die NATO sieht Mueller"),
        ("", ""),
    ],
)
def test_texts_are_restored(forms: WordForms, text: str, restored: str):
    assert forms.restored(text) == restored


@given(st.text(alphabet="aÄßİǅ'’ hundHUND.1", max_size=30))
def test_restored_texts_have_the_same_words(text: str):
    forms = WordForms(["Hund", "Straße", "İdun"], Capitals())  # type: ignore[arg-type]
    restored = forms.restored(text)
    origins = origins_of(restored, text)
    assert len(origins) == len(restored)
    assert origins == sorted(origins)
    assert all(0 <= origin < len(text) for origin in origins)
    assert len(restored.split()) == len(text.split())
    assert case_of(restored) != "upper" or case_of(text) == "upper"


def test_origins_of_longer_and_shorter_words():
    assert origins_of("die Hände!", "DIE HAENDE!") == [0, 1, 2, 3, 4, 5, 6, 7, 9, 10]
    assert origins_of("straße", "strasse")[-1] == 6


def test_words_that_no_source_has():
    forms = WordForms(["Hund", "Straße", "USA"], Capitals())  # type: ignore[arg-type]
    words = ("HUND", "USA", "STRASSE", "Strasse", "NATO")
    assert [forms.lacks(word) for word in words] == [False, False, False, False, True]
    assert not WordForms([], Capitals()).lacks("NATO")  # type: ignore[arg-type]


def test_sources_without_capitals_begin_with_none():
    plain = WordForms.learn([text.lower() for text in TEXTS], Capitals())  # type: ignore[arg-type]
    assert plain.restored("EIN HUND LÄUFT") == "ein hund läuft"


def test_tables_are_stored(forms: WordForms, tmp_path: Path):
    path = tmp_path / "forms.txt"
    tokenizer = UnitTokenizer(Vocabulary.build([[*"abc"]], 0, 1), "characters", "NFC")
    forms.save(path)
    read = WordForms.load(path, tokenizer)
    assert (len(read), read.usual("STRASSE"), read.has_capitals) == (len(forms), "Straße", True)
    WordForms([], tokenizer, has_capitals=False).save(path)
    assert not WordForms.load(path, tokenizer).has_capitals
    path.write_text("ein\n", "utf-8")
    with pytest.raises(DataError, match="no table"):
        WordForms.load(path, tokenizer)
    path.write_text("#heedful word forms 9\nein\n", "utf-8")
    with pytest.raises(NewerFormat):
        WordForms.load(path, tokenizer)


@pytest.mark.parametrize(
    ("text", "restored"),
    [
        ("EIN MANN IM SCHNEE sieht die NATO.", "Ein Mann im Schnee sieht die NATO."),
        ("Ein HUND läuft.", "Ein Hund läuft."),
        ("Läuft die NATO IM Haus?", "Läuft die NATO im Haus?"),
        ("Ein Mann sieht IM und XYZQ.", "Ein Mann sieht IM und XYZQ."),
    ],
)
def test_words_in_capitals_within_a_text_have_their_usual_forms(text: str, restored: str, forms: WordForms):
    assert forms.restored(text) == restored
