"""Pronunciation lexicons are read as they are published."""

from pathlib import Path

import pytest

from heedful.data.corpus import find_pairs
from heedful.data.lexicon import LexiconRows

LEXICON = """;;; # CMUdict  --  A comment
HELLO  HH AH0 L OW1
HELLO(2)  HH EH0 L OW1
'TIS  T IH1 Z
CO-OP  K OW1 AA2 P # abbreviation
"""


@pytest.mark.parametrize("columns", [(1, 2), (2, 1)])
def test_a_pronunciation_lexicon_is_read_as_it_is(columns: tuple[int, int], tmp_path: Path):
    (tmp_path / "cmudict.dict").write_text(LEXICON, encoding="utf-8")
    read = [(pair.source, pair.target) for pair in find_pairs([tmp_path / "cmudict.dict"], columns)]
    assert [pair[:: 1 if columns == (1, 2) else -1] for pair in read if any(pair)] == [
        ("HELLO", "HH AH0 L OW1"),
        ("HELLO", "HH EH0 L OW1"),
        ("'TIS", "T IH1 Z"),
        ("CO-OP", "K OW1 AA2 P"),
    ]


def test_one_space_is_enough_before_phones_of_arpabet(tmp_path: Path):
    """As CMUdict is published since 2015."""
    (tmp_path / "cmudict.dict").write_text(LEXICON.replace("  ", " "), encoding="utf-8")
    read = [tuple(pair) for pair in find_pairs([tmp_path / "cmudict.dict"])]
    (tmp_path / "old.dict").write_text(LEXICON, encoding="utf-8")
    assert read == [tuple(pair) for pair in find_pairs([tmp_path / "old.dict"])]
    for lines in (["I AM K"], ["HELLO HH AH0 L OW1", "HELLO THERE"], ["hello hh ah0 l ow1"], ["HELLO 0 HH"]):
        assert not LexiconRows.suits(lines)


def test_phones_of_arpabet_need_no_stress():
    """As in the lexicons of Kaldi and Phonetisaurus."""
    words = ["hello HH AH L OW", "boy B OY", "cat K AE T", "bee B IY", "now N AW", "day D EY"]
    assert LexiconRows.suits(words)
    assert LexiconRows.suits(["!SIL SIL", "<unk> SPN", *words])
    assert not LexiconRows.suits(words[:3])
    assert not LexiconRows.suits(["HH AH L OW", "B OY", "K AE T", "B IY", "N AW", "D EY"])
    assert not LexiconRows.suits([*words, "now and then"])


@pytest.mark.parametrize("line", ["a  b\tc", "one word", "a b c"])
def test_other_lines_are_no_lexicon(line: str):
    assert not LexiconRows.suits(["HELLO  HH AH0", line])
    assert not LexiconRows.suits([";;; nothing but comments"])
