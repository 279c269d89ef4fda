"""Catalogues of gettext."""

import pytest

from heedful.documents.gettext_catalog import GettextFile
from heedful.errors import DataError
from tests.documents.changed import in_capitals, texts

pytest.importorskip("translate")
HEADER = (
    'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n"Plural-Forms: nplurals=3; plural=n%3;\\n"\n\n'
)
FILE = (
    HEADER + '# note\n#: a.c:3\nmsgid "hi %s"\nmsgstr ""\n\nmsgid "done"\nmsgstr "fertig"\n\n'
    'msgid "dog"\nmsgid_plural "dogs"\nmsgstr[0] ""\nmsgstr[1] ""\nmsgstr[2] ""\n\n#~ msgid "old"\n#~ msgstr "alt"\n'
)


def test_messages_without_a_translation_are_translated():
    assert texts(".po", FILE) == ["hi %s", "dog", "dogs"]
    assert in_capitals(".po", FILE) == FILE.replace('"hi %s"\nmsgstr ""', '"hi %s"\nmsgstr "HI %S"').replace(
        'msgstr[0] ""\nmsgstr[1] ""\nmsgstr[2] ""', 'msgstr[0] "DOG"\nmsgstr[1] "DOGS"\nmsgstr[2] "DOGS"'
    )


def test_a_catalogue_that_cannot_be_read_is_refused():
    with pytest.raises(DataError, match=r"not a readable catalogue|its content exceeds"):
        GettextFile(b'msgid "a\nmsgstr', 3)
