"""XLIFF 1.1, 1.2 and 2.0."""

import pytest

from heedful.documents.xliff import XliffFile
from heedful.errors import DataError
from heedful.text.tag_placement import AlignedSegment, place_tags
from tests.documents.changed import in_capitals, texts

pytest.importorskip("lxml")
OLDER = (
    '<xliff xmlns="urn:oasis:names:tc:xliff:document:1.2" version="1.2"><file source-language="de" datatype="x" '
    'original="y"><body><trans-unit id="1"><source>a <g id="1">red</g> dog<x id="2"/>.</source></trans-unit>'
    '<trans-unit id="2"><source>b</source><target>done</target></trans-unit><trans-unit id="3" translate="no"><source>c'
    "</source></trans-unit></body></file></xliff>"
)
NEWER = (
    '<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="de"><file id="f"><unit id="u">'
    '<segment><source>a <pc id="1">red</pc> dog<ph id="2"/>.</source></segment></unit></file></xliff>'
)


def test_units_without_a_translation_get_one():
    assert texts(".xlf", OLDER) == ["a red dog."]
    assert '</source><target>A <g id="1">RED</g> DOG<x id="2"/>.</target></trans-unit>' in in_capitals(".xlf", OLDER)
    assert '</source><target>A <pc id="1">RED</pc> DOG<ph id="2"/>.</target></segment>' in in_capitals(".xlf", NEWER)


def test_the_version_that_libraries_write_is_read():
    oldest = OLDER.replace("1.2", "1.1")
    assert in_capitals(".xlf", oldest) == in_capitals(".xlf", OLDER).replace("1.2", "1.1")
    store = pytest.importorskip("translate.storage.xliff").xlifffile(sourcelanguage="de")
    store.addsourceunit("dog")
    assert texts(".xlf", bytes(store).decode()) == ["dog"]


@pytest.mark.parametrize("content", [b"", b"<a/>", b"<xliff", OLDER.encode()[:-9]])
def test_other_files_are_refused(content: bytes):
    with pytest.raises(DataError, match="not "):
        XliffFile(content, 1000)


def test_encodings_that_files_declare_are_read_and_written_as_utf_8():
    for encoding, text in (
        ("GBK", "你好"),
        ("Big5", "你好"),
        ("Shift_JIS", "日本"),
        ("EUC-KR", "안녕"),
        ("cp1252", "für"),
    ):
        declared = f'<?xml version="1.0" encoding="{encoding}"?>{NEWER}'.replace("dog", text)
        opened = XliffFile(declared.encode(encoding), 10_000)
        assert [each.text for each in opened.passages] == [f"a red {text}."]
        written = opened.write(opened.passages).decode("utf-8")
        assert written.count(text) == 2
        assert written.startswith('<?xml version="1.0" encoding="UTF-8"?><xliff ')


def test_what_is_no_encoding_of_files_is_refused_by_name():
    for encoding in ("utf-7", "idna", "rot13", "zlib", "none-such"):
        declared = f'<?xml version="1.0" encoding="{encoding}"?>{NEWER}'
        with pytest.raises(DataError, match=f"declares the encoding '{encoding}', which no file is read in"):
            XliffFile(declared.encode(), 10_000)
    long = f'<?xml version="1.0"{" " * 1100}encoding="utf-7"?>{NEWER}'.encode()
    with pytest.raises(DataError, match="its XML declaration has more than 1,024 bytes"):
        XliffFile(long, 10_000)
    with pytest.raises(DataError, match="not readable XML: 'gbk' codec"):
        XliffFile(f'<?xml version="1.0" encoding="GBK"?>{NEWER}'.encode() + b"\xff\xff", 10_000)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "iso-8859-1"])
def test_declaration_attributes_and_ends_of_lines_stay(encoding: str):
    root = '<xliff version="1.2"  xmlns="urn:oasis:names:tc:xliff:document:1.2">'
    head = f'<?xml version="1.0" encoding="{encoding.removesuffix("-sig")}" ?>\r\n<!-- x -->\r\n'
    unit = '<trans-unit id="1"><source>ä</source></trans-unit>'
    document = f'{head}{root}\r\n<file datatype="x" original="y"><body>{unit}</body></file></xliff>\r\n'
    opened = XliffFile(document.encode(encoding), 10_000)
    written = opened.write(opened.passages).decode("utf-8-sig" if encoding == "utf-8-sig" else "utf-8")
    expected = document.replace("</source>", "</source><target>ä</target>")
    assert written == expected.replace(encoding.removesuffix("-sig"), "UTF-8")


def test_a_file_without_a_declaration_gets_none():
    opened = XliffFile(OLDER.encode(), 10_000)
    assert opened.write(opened.passages).startswith(OLDER.partition("<file")[0].encode())


def test_spaces_around_a_code_stay():
    source = NEWER.replace('dog<ph id="2"/>', 'dogs <ph id="2"/> wait')
    opened = XliffFile(source.encode(), 10_000)
    (passage,) = opened.passages
    target = "zwei rote Hunde warten."
    placed = place_tags(passage, target, [AlignedSegment(0, len(passage.text), 0, len(target))])
    assert 'Hunde <ph id="2"/> warten.</target>' in opened.write([placed]).decode()
