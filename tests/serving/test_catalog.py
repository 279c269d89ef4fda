"""Models of a server: the first of a language pair answers, and none is named twice."""

import pytest

from heedful.errors import UsageError
from heedful.serving.catalog import Catalog
from tests.serving.reversing import Reverser


def test_the_first_model_of_a_pair_answers_and_the_page_has_both():
    first, second, back = Reverser(), Reverser(name="other"), Reverser(languages=("en", "de"))
    catalog = Catalog([first, second, back])  # type: ignore[list-item]
    assert catalog.path("de", "en") == (first,)
    assert list(catalog.models) == [("de", "en"), ("en", "de")]
    assert catalog.role_of(first) == "de -> en: reverse-de-en.model"  # type: ignore[arg-type]
    assert catalog.role_of(second).endswith("(on the page only: reverse-de-en.model answers requests)")  # type: ignore[arg-type]
    assert list(catalog.named.values()) == [first, second, back]


def test_a_folder_named_twice_is_refused():
    with pytest.raises(UsageError, match=r"reverse-de-en\.model is named twice; leave one out"):
        Catalog([Reverser(), Reverser()])  # type: ignore[list-item]


def test_a_server_needs_a_model():
    with pytest.raises(UsageError, match="no model"):
        Catalog([])
