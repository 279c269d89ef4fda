"""Texts of calls, and what is refused before any work."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful.errors import UsageError
from heedful.predictors.call_texts import checked_texts
from heedful.predictors.table import load
from heedful.predictors.translator import Translator
from tests.cli.conftest import Trained


def test_texts_of_any_iterable_are_listed():
    for texts in (["a", "b"], iter("ab"), np.array(["a", "b"])):
        listed = checked_texts(texts, "translate")
        assert listed == ["a", "b"]
        assert all(type(text) is str for text in listed)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("abc", "got a string; put it into a list"),
        (None, "expected a list of texts, got None"),
        (["a", None], "item 1 is None, of type NoneType; give texts"),
        ([float("nan")], "item 0 is nan, of type float; give texts"),
    ],
)
def test_what_is_no_text_is_refused_with_its_index(trained: Trained, texts: Any, message: str):
    with pytest.raises(UsageError, match=f"^predict: .*{message}"):
        checked_texts(texts, "predict")
    with pytest.raises(UsageError, match=f"^translate: .*{message}"):
        load(Path(trained.model), kind=Translator).translate(texts)


def test_a_sequence_without_an_iterator_is_a_sequence():
    class Rows:
        def __len__(self) -> int:
            return 2

        def __getitem__(self, index: int) -> str:
            return ["one", "two"][index]

    assert checked_texts(Rows(), "classify") == ["one", "two"]  # type: ignore[arg-type]
