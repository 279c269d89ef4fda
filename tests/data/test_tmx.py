"""Translation memories give the same pairs as JSONL, and what is no safe TMX is refused."""

import gzip
from pathlib import Path

import pytest

from heedful.data.check import check_corpus
from heedful.data.corpus import find_pairs
from heedful.data.tmx import is_tmx, tmx_rows, write_tmx
from heedful.errors import DataError
from heedful.text.lines import MAX_LINE_BYTES

HEAD = '<?xml version="1.0" encoding="{encoding}"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n'
BODY = """<tmx version="1.4">
 <header srclang="{srclang}" segtype="sentence" datatype="plaintext" adminlang="en" o-tmf="x"/>
 <body>
  <tu tuid="1"><note>not a text</note>
   <tuv xml:lang="EN-US">
    <seg>Press <bpt i="1">&lt;b&gt;</bpt><hi>OK</hi><ept i="1">&lt;/b&gt;</ept> &amp; wait.</seg>
   </tuv>
   <tuv xml:lang="de"><seg>
     OK drücken
     und warten.
   </seg></tuv>
   <tuv lang="fr"><seg>Appuyez.</seg></tuv>
  </tu>
  <tu><tuv xml:lang="en-us"><seg>Only English</seg></tuv></tu>
  <tu><tuv xml:lang="de"><seg>Grüße<ph>{{1}}</ph></seg></tuv><tuv xml:lang="en-US"><seg>Regards 😀</seg></tuv></tu>
 </body>
</tmx>
"""
PAIRS = [("Press OK & wait.", "OK drücken und warten."), ("Only English", ""), ("Regards 😀", "Grüße")]


def memory(path: Path, encoding: str = "UTF-8", srclang: str = "en-US") -> Path:
    content = (HEAD + BODY).format(encoding=encoding, srclang=srclang).encode(encoding.lower())
    path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)
    return path


@pytest.mark.parametrize("name", ["a.tmx", "a.TMX", "a.tmx.gz"])
@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16"])
def test_a_memory_is_pairs(name: str, encoding: str, tmp_path: Path):
    pairs = find_pairs([memory(tmp_path / name, encoding)])
    assert [pair[:2] for pair in pairs] == PAIRS
    assert [pair.line for pair in pairs] == [1, 2, 3]
    assert "keys 'en-us' and 'de'; also there: 'fr'; first pair: 'Press OK & wait.'" in pairs.describe()
    assert pairs.name == "a"


def declared(path: Path, encoding: str, text: str, content: bytes | None = None) -> Path:
    """A memory of one unit that declares an encoding; its content may be in another one."""
    segments = "".join(f'<tuv xml:lang="{code}"><seg>{text}</seg></tuv>' for code in ("zh", "en"))
    whole = f'<?xml version="1.0" encoding="{encoding}"?><tmx><header/><body><tu>{segments}</tu></body></tmx>'
    path.write_bytes(content or whole.encode(encoding))
    return path


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        *[(encoding, "你好") for encoding in ("GBK", "gb2312", "GB18030", "Big5", "Big5-HKSCS")],
        *[(encoding, "こんにちは") for encoding in ("Shift_JIS", "EUC-JP", "ISO-2022-JP", "cp932")],
        *[("EUC-KR", "안녕"), ("KOI8-R", "привет"), ("windows-1252", "für"), ("ISO-8859-2", "český")],
    ],
)
def test_encodings_that_memories_declare_are_read(encoding: str, text: str, tmp_path: Path):
    # Longer than a chunk of the file, so that characters are cut between two.
    assert next(tmx_rows(declared(tmp_path / "a.tmx", encoding, text * 50_000))) == dict.fromkeys(
        ("zh", "en"), text * 50_000
    )


@pytest.mark.parametrize(
    "encoding", ["utf-7", "idna", "punycode", "rot13", "zlib", "base64", "hex", "undefined", "none-such"]
)
def test_what_is_no_encoding_of_files_is_refused_by_name(encoding: str, tmp_path: Path):
    path = declared(tmp_path / "a.tmx", encoding, "x", f'<?xml version="1.0" encoding="{encoding}"?><tmx/>'.encode())
    with pytest.raises(DataError, match=rf"a\.tmx: declares the encoding '{encoding}', which no file is read in"):
        next(tmx_rows(path))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ('<?xml version="1.0" encoding="utf-16-le"?><tmx/>'.encode("utf-16-le"), "save it in UTF-8 and declare that"),
        (f'<?xml version="1.0" encoding="{"x" * 60}"?><tmx/>'.encode(), "which no file is read in"),
        (b'<?xml version="1.0" encoding="a\0b"?><tmx/>', "which no file is read in"),
        (b'<?xml version="1.0" encoding="\xff"?><tmx/>', "which no file is read in"),
    ],
)
def test_declarations_that_no_parser_knows_are_refused_in_one_line(content: bytes, reason: str, tmp_path: Path):
    path = declared(tmp_path / "a.tmx", "", "", content)
    with pytest.raises(DataError, match=rf"a\.tmx.*{reason}"):
        next(tmx_rows(path))


def test_a_declaration_may_be_wide(tmp_path: Path):
    start = f'<?xml version="1.0"{" " * 300}encoding{" " * 12}={chr(10) * 12}"GBK"?>'
    content = declared(tmp_path / "a.tmx", "GBK", "你好").read_bytes().partition(b"?>")[2]
    path = declared(tmp_path / "b.tmx", "", "", start.encode() + content)
    assert next(tmx_rows(path)) == {"zh": "你好", "en": "你好"}


def test_bytes_that_are_not_in_the_declared_encoding_are_refused(tmp_path: Path):
    path = declared(tmp_path / "a.tmx", "GBK", "你好")
    for content in (path.read_bytes().replace(b"</tmx>", b"\xff\xff</tmx>"), path.read_bytes() + b"\xc4"):
        path.write_bytes(content)
        with pytest.raises(
            DataError, match=r"a\.tmx: behind line 1 not in the encoding that it declares, GBK \(.*save it in UTF-8"
        ):
            list(tmx_rows(path))


def test_the_source_language_comes_first_and_others_are_chosen_by_name(tmp_path: Path):
    path = memory(tmp_path / "a.tmx", srclang="de")
    assert [pair[:2] for pair in find_pairs([path])] == [(target, source) for source, target in PAIRS]
    assert next(iter(find_pairs([path], ("fr", "de"))))[:2] == ("Appuyez.", "OK drücken und warten.")
    with pytest.raises(DataError, match="no key 'it'"):
        find_pairs([path], ("de", "it"))


def test_check_counts_units(tmp_path: Path):
    facts = check_corpus([memory(tmp_path / "a.tmx")]).files[0]
    assert (facts.num_rows, facts.num_usable) == (3, 2)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('<!DOCTYPE t [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><tmx>&b;</tmx>', "declares the entity 'a'"),
        ('<!DOCTYPE t [<!ENTITY a SYSTEM "file:///etc/passwd">]><tmx>&a;</tmx>', "declares the entity 'a'"),
        ('<!DOCTYPE t [<!ENTITY % a SYSTEM "http://x/y.dtd"> %a;]><tmx/>', "declares the entity 'a'"),
        ("<tmx><body><tu>", r"a\.tmx:1:\d+: not XML: "),
        ("plain text", r"a\.tmx:1:1: not XML: "),
        ("<tmx><body/></tmx>", "no translation units in two languages"),
        ('<tmx><tu><tuv xml:lang="de"><seg>ja</seg></tuv></tu></tmx>', "no translation units in two languages"),
    ],
)
def test_what_is_no_safe_memory_is_refused(content: str, message: str, tmp_path: Path):
    path = tmp_path / "a.tmx"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        find_pairs([path])


def test_a_unit_within_another_is_read_once(tmp_path: Path):
    segments = "".join(f'<tuv xml:lang="{code}"><seg>{{}}</seg></tuv>' for code in ("de", "en"))
    inner, outer = segments.format("ja", "yes"), segments.format("nein", "no")
    path = tmp_path / "a.tmx"
    path.write_text(f"<tmx><body><tu>{outer}<tu>{inner}</tu></tu></body></tmx>", encoding="utf-8")
    assert [tuple(row.values()) for row in tmx_rows(path)].count(("ja", "yes")) == 1


def test_a_segment_without_end_is_refused(tmp_path: Path):
    path = tmp_path / "a.tmx"
    with path.open("wb") as file:
        file.write(b'<tmx><tu><tuv xml:lang="de"><seg>')
        for _ in range((MAX_LINE_BYTES >> 20) + 1):
            file.write(b"x" * (1 << 20))
    with pytest.raises(DataError, match="a segment longer than 64 MiB"):
        next(tmx_rows(path))


def test_only_the_name_makes_a_memory(tmp_path: Path):
    (tmp_path / "a.xml").write_text("<tmx/>")
    assert not is_tmx(tmp_path / "a.xml")
    assert not is_tmx(tmp_path / "none.tmx")


@pytest.mark.parametrize("languages", [("de", "en"), ("en", "de"), ('a"<', "zh-Hans")])
def test_a_written_memory_is_read_again(tmp_path: Path, languages: tuple[str, str]):
    pairs = [("a < b & c", 'say "x"'), ("\U0001f600 ]]>", "\u4f60\u597d\u2028x"), ("bell\a", "\ufffe")]
    with (tmp_path / "out.tmx").open("w", encoding="utf-8", newline="\n") as stream:
        write_tmx(stream, languages, pairs)
    rows = [tuple(row.values()) for row in tmx_rows(tmp_path / "out.tmx")]
    assert rows == [*pairs[:2], ("bell\ufffd", "\ufffd")]
    assert next(tmx_rows(tmp_path / "out.tmx")).keys() == {language.lower() for language in languages}
