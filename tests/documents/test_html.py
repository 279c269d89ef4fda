"""HTML as passages, and written again."""

import pytest

from heedful.documents.html import HtmlMarkup
from heedful.text.tagged_text import TaggedText

CASES = (
    ('<p>Ein <b>roter</b> Hund <a href="x">im Schnee</a>.</p>', ["Ein roter Hund im Schnee."]),
    ("eins\n  zwei  <i> drei </i> vier", ["eins zwei drei vier"]),
    ("<td>a</td><td>b</td><li>c<li>d", ["a", "b", "c", "d"]),
    ("<p>Gasse 3<br>Wien<br>Haus<br>mit Garten", ["Gasse 3", "Wien", "Haus mit Garten"]),
    ("<p title='3 < 4'>Fisch &amp; Brot &copy;&nbsp;x</p>", ["3 < 4", "Fisch & Brot ©\N{NO-BREAK SPACE}x"]),
    ('<img alt="Hund"> <input type=submit value=Los placeholder="Name">', ["Hund", "Name", "Los"]),
    ('<title>T &lt; U</title><meta name="Description" content="D"><meta name=x content=y>', ["T < U", "D"]),
    ("<script>a<b</script><style>p{}</style><pre>x</pre><textarea>y</textarea><svg><title>z</title></svg>", []),
    ('nimm <code>ls -l</code>, <span translate="no">Acme <b>X</b></span> auch', ["nimm ls -l, Acme X auch"]),
    ("<li class='a notranslate'>x<ul><li>y</ul><li>z", ["z"]),
    ("<p translate=no>x<div>y</div>", ["y"]),
    ("<code>x</code> <kbd>y</kbd>", []),
    ("<b>a<i>b</b>c</i>d</u> <!-- e --> <x-y>f", ["abcd f"]),
    ("a < b && c <3 &#99999999999999999999; &#xD800; &unknown; &", None),
    ("<p>a<b", ["a"]),
    ("<svg><style><b>x</style></svg>y<math><mi><style>p{}</style></math>z", ["yz"]),
    ("<label>a</label><input><label>b</label> <button>c</button> <button>d</button>", ["a", "b", "c", "d"]),
    ("", []),
)


def translated(source: str) -> str:
    markup = HtmlMarkup(source)
    return markup.write([TaggedText(each.text.upper(), each.tags) for each in markup.passages])


@pytest.mark.parametrize(("source", "texts"), CASES)
def test_texts_are_found_and_all_else_stays(source: str, texts: list[str] | None):
    markup = HtmlMarkup(source)
    assert markup.write(markup.passages) == source
    if texts is not None:
        assert [each.text for each in markup.passages] == texts


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("<p>ein <b>roter</b> hund</p>\n", "<p>EIN <b>ROTER</b> HUND</p>\n"),
        ("<a title='x \"y\"' href=z>w</a>", '<a title="X &quot;Y&quot;" href=z>W</a>'),
        ('<a title="<img src=x onerror=alert(1)>">a</a>', '<a title="&lt;IMG SRC=X ONERROR=ALERT(1)&gt;">A</a>'),
        ("<p title='3 < 4'>a", "<p title='3 < 4'>A"),
        ("<b>a<i>b</b>c</i>d</u>", "<b>A<i>B</b>C</i>D</u>"),
        ("a <code>x</code> b", "A <code>x</code> B"),
        ("<img alt=a>b<p alt=c>", '<img alt="A">B<p alt="C">'),
        ("&lt;b&gt; &amp;amp;", "&lt;B&gt; &amp;AMP;"),
        ("zwei <img src=x> hunde <svg/> im <b>schnee </b> da", "ZWEI <img src=x> HUNDE <svg/> IM <b>SCHNEE </b>DA"),
        ("haus<br>mit garten", "HAUS<br> MIT GARTEN"),
        ("<p><i class=x></i> weiter\n<img src=x></p>", "<p><i class=x></i> WEITER <img src=x></p>"),
        ("<a href=x><svg/> <b>los</b></a> <u></u>", "<a href=x><svg/> <b>LOS</b></a> <u></u>"),
        ("<p> <b> los </b> </p>", "<p> <b>LOS</b> </p>"),
    ],
)
def test_translations_are_escaped_and_tags_keep_their_places(source: str, expected: str):
    assert translated(source) == expected
