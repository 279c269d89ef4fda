"""Tables of words in a model's folder."""

from types import SimpleNamespace
from typing import Any

from heedful.predictors.word_tables import WordTables


def test_a_name_takes_fewer_tokens_with_its_capital():
    pieces: Any = SimpleNamespace(encode=lambda word: [1] if word in ("Hunde", "Eine", "eine") else [*range(len(word))])
    tables = WordTables(SimpleNamespace(facts={}), pieces, pieces)  # type: ignore[arg-type]
    assert [tables.is_name(word) for word in ("Hunde", "Eine", "Xy")] == [True, False, False]
