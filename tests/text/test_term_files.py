"""Files of terms: TSV, and term bases in both forms of TBX-Basic."""

import gzip
from pathlib import Path

import pytest

from heedful.errors import DataError
from heedful.text import tbx
from heedful.text.term_files import read_terms
from heedful.text.terms import Term, Terms

OLD = """<?xml version="1.0" encoding="{encoding}"?>
<!DOCTYPE martif SYSTEM "TBXBasiccoreStructV02.dtd">
<martif type="TBX-Basic" xml:lang="en">
<martifHeader><fileDesc><sourceDesc><p>term</p></sourceDesc></fileDesc></martifHeader>
<text><body>
 <termEntry id="c1"><descrip type="definition">a place for trains</descrip>
  <langSet xml:lang="de-DE"><tig><term>Bahnhof</term></tig><tig><term>Bahn
    station</term>
    <termNote type="administrativeStatus">deprecatedTerm-admn-sts</termNote></tig></langSet>
  <langSet xml:lang="en-US">
   <ntig><termGrp><term>train station</term>
    <termNote type="administrativeStatus">supersededTerm-admn-sts</termNote></termGrp></ntig>
   <ntig><termGrp><term>station</term><termNote type="partOfSpeech">noun</termNote></termGrp></ntig>
   <ntig><termGrp><term>railway station</term>
    <termNote type="administrativeStatus">preferredTerm-admn-sts</termNote></termGrp></ntig>
  </langSet></termEntry>
 <termEntry id="c2"><langSet xml:lang="fr"><tig><term>maison</term></tig></langSet></termEntry>
 <termEntry id="c3"><langSet xml:lang="de"><tig><term>Grüße &amp; Küsse</term></tig></langSet>
  <langSet xml:lang="EN"><tig><term>regards</term></tig></langSet></termEntry>
</body></text></martif>
"""
NEW = """<?xml version="1.0" encoding="{encoding}"?>
<tbx xmlns="urn:iso:std:iso:30042:ed-2" xmlns:min="http://www.tbxinfo.net/ns/min"
 style="dct" type="TBX-Basic" xml:lang="en">
<text><body>
 <conceptEntry id="c1"><langSec xml:lang="de_DE"><termSec><term>Bahnhof</term></termSec>
   <termSec><term>Bahn station</term>
   <min:administrativeStatus>deprecatedTerm-admn-sts</min:administrativeStatus></termSec></langSec>
  <langSec xml:lang="en"><termSec><term>station</term></termSec>
   <termSec><min:administrativeStatus>preferredTerm-admn-sts</min:administrativeStatus>
   <term>railway station</term></termSec></langSec>
 </conceptEntry>
 <conceptEntry id="c2"><langSec xml:lang="fr"><termSec><term>maison</term></termSec></langSec></conceptEntry>
 <conceptEntry id="c3"><langSec xml:lang="de"><termSec><term>Grüße &amp; Küsse</term></termSec></langSec>
  <langSec xml:lang="en-GB"><termSec><term>regards</term></termSec></langSec></conceptEntry>
</body></text></tbx>
"""
TERMS = Terms(
    (
        Term("Bahnhof", "railway station"),
        Term("Bahn station", "railway station"),
        Term("Grüße & Küsse", "regards"),
    )
)


def test_a_list_is_read(tmp_path: Path):
    path = tmp_path / "terms.tsv"
    path.write_bytes(b"# comment\n\nHaus\t house \tnote\r\nHaus\thouse\nBahn hof\tstation\n")
    assert read_terms(path) == Terms((Term("Haus", "house", "note"), Term("Bahn hof", "station")))


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("Haus\n", r":1: expected .* got 1 columns"),
        ("a\tb\tc\td\n", r":1: expected .* got 4 columns; a term has no tab"),
        ("a\tb\n\t\tc\n", r":2: a term is blank"),
        ("a\t \n", r":1: a term is blank"),
        ("Haus\tA\nhaus\tB\n", r":2: 'haus' is 'B' here and 'A' in line 1; leave one of the two out"),
        ("# only\n", "no terms"),
        ("", "empty"),
    ],
)
def test_what_is_no_list_of_terms_is_refused(tmp_path: Path, content: str, complaint: str):
    (tmp_path / "terms.tsv").write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=complaint) as refusal:
        read_terms(tmp_path / "terms.tsv")
    assert "\n" not in str(refusal.value)


def base(path: Path, content: str, encoding: str = "UTF-8") -> Path:
    written = content.replace("{encoding}", encoding).encode(encoding.lower())
    path.write_bytes(gzip.compress(written, mtime=0) if path.suffix == ".gz" else written)
    return path


@pytest.mark.parametrize(
    ("encoding", "term"), [("GBK", "房子"), ("Big5", "房子"), ("Shift_JIS", "こんにちは"), ("EUC-KR", "안녕")]
)
def test_encodings_that_term_bases_declare_are_read(encoding: str, term: str, tmp_path: Path):
    entry = ENTRY.format("house", term)
    (tmp_path / "a.tbx").write_bytes(f'<?xml version="1.0" encoding="{encoding}"?><tbx>{entry}</tbx>'.encode(encoding))
    assert term in str(read_terms(tmp_path / "a.tbx", ("de", "en")))


@pytest.mark.parametrize("content", [OLD, NEW])
@pytest.mark.parametrize("name", ["a.tbx", "a.TBX.gz"])
@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16"])
def test_a_term_base_is_read(tmp_path: Path, content: str, name: str, encoding: str):
    assert read_terms(base(tmp_path / name, content, encoding), ("de", "en")) == TERMS


def test_a_reader_that_ignores_the_state_of_terms_would_be_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tbx, "_STATUS", "no such category")
    targets = [term.target for term in read_terms(base(tmp_path / "a.tbx", OLD), ("de", "en")).terms]
    assert targets == ["train station", "train station", "regards"]


def test_a_term_base_is_read_in_either_direction(tmp_path: Path):
    terms = read_terms(base(tmp_path / "a.tbx", OLD), ("en-us", "de")).terms
    assert [(term.source, term.target) for term in terms] == [
        ("train station", "Bahnhof"),
        ("station", "Bahnhof"),
        ("railway station", "Bahnhof"),
    ]


ENTRY = """<conceptEntry><langSec xml:lang="de"><termSec><term>{}</term></termSec></langSec>
<langSec xml:lang="en"><termSec><term>{}</term></termSec></langSec></conceptEntry>"""


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (
            OLD.replace("de-DE", "nl").replace('"de"', '"nl"'),
            r"a\.tbx: no terms in the language 'de'; languages of its terms: nl, en-us, fr, en",
        ),
        ("<tbx/>", r"a\.tbx: no terms in the language 'de'; languages of its terms: none; is it a TBX file\?"),
        ("Haus\thouse\n", r"a\.tbx:1:1: not XML: "),
        ("<tbx><text>", r"a\.tbx:1:\d+: not XML: "),
        ('<!DOCTYPE t [<!ENTITY a SYSTEM "file:///etc/passwd">]><tbx>&a;</tbx>', "declares the entity 'a'"),
        (
            f"<tbx>{ENTRY.format('Bank', 'bank')}{ENTRY.format('bank', 'bench')}</tbx>",
            r"a\.tbx: concept 2: 'bank' is 'bench' here and 'bank' in concept 1; leave one of the two out",
        ),
        (
            '<tbx><conceptEntry><langSec xml:lang="de"><termSec><term>Haus</term></termSec></langSec></conceptEntry>'
            '<conceptEntry><langSec xml:lang="en"><termSec><term>house</term></termSec></langSec></conceptEntry></tbx>',
            r"a\.tbx: no terms; it needs a concept with both languages",
        ),
        ("", "empty"),
    ],
)
def test_what_is_no_term_base_is_refused(tmp_path: Path, content: str, complaint: str):
    with pytest.raises(DataError, match=complaint) as refusal:
        read_terms(base(tmp_path / "a.tbx", content), ("de", "en"))
    assert "\n" not in str(refusal.value)


def test_a_term_base_needs_languages(tmp_path: Path):
    with pytest.raises(DataError, match="languages of source and target are not known; add --term-languages"):
        read_terms(base(tmp_path / "a.tbx", OLD))
