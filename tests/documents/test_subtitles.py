"""Subtitles as passages, and written again."""

from heedful.documents.subtitles import SubtitleFile
from heedful.text.tagged_text import TaggedText

SUBRIP = (
    "1\r\n00:00:01,000 --> 00:00:02,500\r\nGood\r\nday.\r\n\r\n"
    "2\r\n00:00:03,000 --> 00:00:04,000\r\n\r\n"
    "3\r\n00:00:05,000 --> 00:00:06,000 X1:40\r\n{\\an8}<i>Bye</i>, all.\r\n- Two\r\n- Three\r\n\r\n"
    "4\r\n00:00:07,000 --> 00:00:08,000\r\nI saw the\r\n\r\n"
    "5\r\n00:00:08,000 --> 00:00:09,000\r\nman <b>in the shop</b>.\r\n"
)
WEBVTT = """WEBVTT - Title

STYLE
::cue { color: red }

NOTE a --> b

intro
00:01.000 --> 00:02.500 line:10% align:start
<v Anna>Fish <i>&amp;</i> chips
in the evening

00:00:03.000 --> 00:00:04.000
1 &lt; 2
"""


def written(source: str, change: dict[str, str] | None = None) -> str:
    file = SubtitleFile(source.encode(), 0)
    outputs = [TaggedText((change or {}).get(each.text, each.text.upper()), each.tags) for each in file.passages]
    return file.write(outputs).decode()


def test_a_sentence_over_lines_and_subtitles_is_one_passage():
    assert [each.text for each in SubtitleFile(SUBRIP.encode(), 0).passages] == [
        "Good day.",
        "Bye, all.",
        "- Two",
        "- Three",
        "I saw the man in the shop.",
    ]
    assert written(SUBRIP) == SUBRIP.replace("Good", "GOOD").replace("day", "DAY").replace("Bye", "BYE").replace(
        ", all", ", ALL"
    ).replace("Two", "TWO").replace("Three", "THREE").replace("I saw the", "I SAW THE").replace("man", "MAN").replace(
        "in the shop", "IN THE SHOP"
    )


def test_a_shorter_sentence_needs_fewer_lines():
    source = "1\n00:00:01,000 --> 00:00:02,000\nWhat a\nday.\n\n2\n00:00:03,000 --> 00:00:04,000\nx\n"
    assert written(source, {"What a day.": "Wow."}) == source.replace("What a\nday.", "Wow.").replace("x", "X")


def test_settings_styles_and_notes_of_webvtt_stay():
    file = SubtitleFile(WEBVTT.encode(), 0)
    assert [each.text for each in file.passages] == ["Fish & chips in the evening", "1 < 2"]
    assert file.write(file.passages).decode() == WEBVTT
    assert written(WEBVTT) == WEBVTT.replace("Fish", "FISH").replace("chips\nin", "CHIPS IN\n").replace(
        "\n the evening", "\nTHE EVENING"
    )


def test_a_file_without_subtitles():
    assert written("") == ""
    assert written("no subtitles\nat all") == "no subtitles\nat all"


def test_no_tag_of_a_translation_is_one():
    """SubRip has no escapes."""
    source = "1\n00:00:01,000 --> 00:00:02,000\n<i>Dog</i> x\n"
    translated = written(source, {"Dog x": "1 < 2 <img src=x></i>"})
    assert translated == source.replace("<i>Dog</i> x", "<i>1 <</i> 2 <\u2060img src=x><\u2060/i>")
    assert written(WEBVTT, {"1 < 2": "<img>"}).endswith("\n&lt;img&gt;\n")
