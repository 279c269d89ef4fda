"""Translation memory: matches, and corrections that are given while it is open."""

from pathlib import Path

import pytest

from heedful.data.corrections import NAME, CorrectionJournal
from heedful.engines.translation_memory import NEAR_SHARE, TranslationMemory


@pytest.fixture
def memory(tmp_path: Path) -> TranslationMemory:
    return TranslationMemory(tmp_path / NAME, str)


def test_without_a_journal_nothing_matches(memory: TranslationMemory):
    assert memory.state().match("Guten Tag") is None
    assert memory.state() is memory.state()


def test_the_same_source_is_exact_and_a_similar_one_is_near(memory: TranslationMemory):
    memory.journal.add([("Guten Tag, Frau Weber.", "Good day, Ms Weber."), ("Ja", "Yes")])
    exact = memory.state().match(" Guten Tag, Frau Weber. ")
    assert exact is not None
    assert (exact.correction, exact.share, exact.is_exact) == ("Good day, Ms Weber.", 1.0, True)
    near = memory.state().match("Guten Tag, Frau Meyer.")
    assert near is not None
    assert (near.source, near.is_exact) == ("Guten Tag, Frau Weber.", False)
    assert NEAR_SHARE <= near.share < 1
    assert str(near) == f"near match {near.share:.0%}: Guten Tag, Frau Weber. -> Good day, Ms Weber."
    assert memory.state().match("Wo ist der Bahnhof?") is None
    assert memory.state().match("") is None
    case = memory.state().match("ja")
    assert case is not None
    assert (case.share, case.is_exact) == (1.0, False), "another case is near at most"


def test_corrections_of_another_process_are_in_force_at_the_next_look(memory: TranslationMemory, tmp_path: Path):
    before = memory.state()
    other = CorrectionJournal(tmp_path / NAME, str)
    other.add([("a", "1")])
    after = memory.state()
    assert (before.match("a"), after.match("a").correction) == (None, "1")  # type: ignore[union-attr]
    assert memory.state() is after, "an unchanged journal is not read again"
    other.undo()
    assert memory.state().match("a") is None
    other.path.unlink()
    assert memory.state().content.corrections == ()


def test_near_matches_follow_what_is_added_and_withdrawn(memory: TranslationMemory):
    def near(text: str) -> str:
        match = memory.state().match(text)
        return match.correction if match else ""

    memory.journal.add([("Guten Tag, Frau Weber.", "1"), ("Wo ist der Bahnhof?", "2")])
    before = memory.state()
    assert near("Guten Tag, Frau Meyer.") == "1"
    memory.journal.add([("Guten Tag, Frau Meier.", "3"), ("Guten Tag, Frau Weber.", "4")])
    assert near("Guten Tag, Frau Meyer.") == "3"
    assert near("Guten Tag, Frau Weger.") == "4"
    memory.journal.undo("Guten Tag, Frau Meier.")
    assert near("Guten Tag, Frau Meyer.") == "4"
    memory.journal.undo("Guten Tag, Frau Weber.")
    assert near("Guten Tag, Frau Meyer.") == "1"
    old = before.match("Guten Tag, Frau Weger.")
    assert old is not None
    assert old.correction == "1", "a state does not change any more"
