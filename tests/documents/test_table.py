"""Formats of documents."""

import pytest

from heedful.documents.table import FORMATS, format_of
from heedful.errors import DataError


def test_a_format_is_found_by_the_name():
    assert format_of("Report.DOCX") == ".docx"


@pytest.mark.parametrize("name", ["a.pdf", "a", ".docx.exe", ""])
def test_other_formats_are_refused_with_those_that_are_read(name: str):
    with pytest.raises(DataError, match=r"are not read; read are \.txt, \.html, ") as refusal:
        format_of(name)
    assert all(ending in str(refusal.value) for ending in FORMATS)
