"""Kinds of spans that training pairs keep."""

import pytest

from heedful.data.encoded import EncodedCorpus, EncodedSide
from heedful.data.kept_kinds import kept_kinds
from heedful.text.kept import kept_rules
from heedful.text.tokenizer import UnitTokenizer
from heedful.text.vocabulary import EOS, Vocabulary


@pytest.mark.parametrize(
    ("pairs", "lost"),
    [
        ([(f"{number} dogs", f"{number} Hunde") for number in range(10, 30)], set()),
        ([(f"{number} dogs of {{name}}", "zehn Hunde von {name}") for number in range(10, 30)], {"number"}),
        ([(f"{number} dogs", "zehn Hunde") for number in range(1, 9)], set()),
        ([(f"am {number}.5.2024", f"on 2024-05-{number}") for number in range(10, 30)], {"date"}),
    ],
)
def test_kinds_that_targets_change_are_not_kept(pairs: list[tuple[str, str]], lost: set[str]):
    letters = sorted({letter for pair in pairs for text in pair for letter in text})
    tokenizer = UnitTokenizer(Vocabulary.build([letters], 0, 1), "characters", "NFC")
    sides = (EncodedSide.of([[*tokenizer.encode(pair[side]), EOS] for pair in pairs]) for side in (0, 1))
    assert set(kept_rules()) - set(kept_kinds(EncodedCorpus(*sides), (tokenizer, tokenizer))) == lost
