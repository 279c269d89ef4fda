"""Sentence splitting by rules, for the punctuation and the commonest abbreviations of nine languages."""

import re
from collections.abc import Iterator
from typing import Any, Final

ABBREVIATIONS: Final = frozenset(
    "mr mrs ms dr prof rev gen sen rep gov capt lt col sgt st mt jr sr vs cf approx inc ltd co corp vol fig eq ed eds "
    "jan feb apr jun jul aug sep sept oct nov dec ph.d "
    "abb bd bspw bzw ca dipl evtl exkl fa fr geb gegr ggf hr hrsg ing inkl insb mio mrd nr sog str tel tab vgl zzgl "
    "mlle mgr mme mm pr env tél av chap sra srta ud uds vd ee pág págs pp aprox gral lic núm tel depto dra "
    "проф доц акад ул пл пр пер дер см рис стр табл гл ст им св гг тыс млн млрд руб "
    "هـ डॉ श्री पं सुश्री प्रो मो कि मी पू प्र पृ रु कु स्व सं कि.मी ई.पू".split()
)
"""Words whose final period ends no sentence, in lower case."""
_NUMBERED: Final = frozenset("no art cap al abs sec mar тел ок".split())
"""Abbreviations only before a number, because they are words, too."""
STREETS: Final = "str"
"""End of abbreviations of German streets, such as Bahnhofstr."""
_LETTER: Final = (
    r"(?:[^\W\d_]|ए|बी|सी|डी|एफ|जी|एच|जे|के|एल|एम|एन|पी|क्यू|आर|एस|टी|यू|वी|डब्ल्यू|एक्स|वाई|जेड)"  # Latin ones in Hindi
)
_INITIALS: Final = re.compile(rf"و?{_LETTER}(?:\.-?{_LETTER})*")
"""Single letters joined by periods, such as J, J.-P, U.S or z.B; Arabic ones also after "and"."""
_STARTERS: Final = frozenset(
    "the this that these those it he she they we you i there then but and so in if when however my his her our their "
    "its der die er sie es wir ich ein eine dann dort hier aber jetzt heute "
    "il elle ils elles on nous vous je cela ce cette mais puis "
    "él ella ellos ellas esto esta este pero luego después entonces allí ahora también "
    "он она оно они мы вы я это этот эта эти его её их ему ей им но потом затем теперь тогда там здесь сейчас и а в на "
    "с по после при".split()
)
"""Words that begin a sentence after an abbreviation or an initial, if they are capitalized and no initials."""
_BEFORE_NAMES: Final = re.compile(
    r"(?:^|[\s(])(?:z\.\s?b|d\.\s?h|u\.\s?a|i\.\s?a|e\.\s?g|i\.\s?e|т\.\s?е|m|vs|cf|vgl|см)$", re.IGNORECASE
)
"""Abbreviations after which even these words begin no sentence."""
_ORDINALS: Final = re.compile(
    r"""(?:^|\s) (?: (?<!\bI\s)am | im | vo[mn] | zu[mr] | beim | bis | ab | seit | und | oder | de[rmns] | d(?:ie|as)
                   | (?:dies|jed|ihr|sein|mein|dein|unser)(?:e[rmns]?)? ) \s$""",
    re.VERBOSE | re.IGNORECASE,
)
"""German words before an ordinal, such as am 3. Mai."""
_AFTER_ORDINALS: Final = re.compile(
    r"\d|(?:Januar|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember|Jahrhundert|Jh\b|Auflage)"
)
_ROMAN: Final = re.compile(r"\d|(?!I\b)[IVXLC]+\b")
_DOUBLED: Final = re.compile(r"([^\W\d_])\1")
"""Spanish abbreviations of plurals, such as EE. UU."""
_MOST_OF_WORD: Final = 40
"""Characters before a period that are looked at: more than any abbreviation has."""
_MOST_DIGITS: Final = 2
"""Digits of a number that may be an ordinal or that of an item; years have more."""
_MOST_OF_QUOTE: Final = 200
"""Characters before an end mark in which the quote or bracket is looked for that is closed after it."""
_OPENING: Final = dict(zip("»”“’\"')]）」』", "«“„‘\"'([（「『", strict=True))

_SAID: Final = re.compile(
    r"""(?: (?:قال|سأل|صاح|صرخ|أجاب|رد|هتف|همس|تساءل|أضاف)(?:ت|وا)?\b
          | [^।॥.!?\n]{0,40}?(?:पूछा|कहा|बोला|बोली|बोले|चिल्लाया|चिल्लाई)
          | [^，。！？、；：\s“”「」『』没沒不]{0,8}?
            (?: (?<![听聽据據小])[说說](?![明话話]) | 问(?!题) | 問(?!題) | 喊 | (?<![知难難])道 )
        )""",
    re.VERBOSE,
)
"""Words after a quote that tell who said it, where no capital letter tells sentences apart."""
_JAPANESE_PARTICLES: Final = re.compile(
    r"って|[をにがの]|と(?!ても|ころ|にかく|うとう|りあえず|き)|は(?![いじっ])|で(?![もは、])|も(?!う|し|っと|ちろん)"
)
"""Particles that join a Japanese quote to the sentence around it."""

_HTML_BREAK: Final = re.compile(r"<br ?/?>", re.IGNORECASE)
_EMOJI: Final = "(?:[\\ ]?+(?![👆👇👈👉])[\U0001f300-\U0001faff❤☺♥][\ufe0f\u200d]*+)*+"
_ENDS: Final = re.compile(
    rf"""(?: (?: [。！？]++ …*+ | …{{2,}}+ ) [。！？!?…]*+ [”’」』）》〉)"']*+ {_EMOJI}  # Chinese: no space follows
          | (?<![.!?…]) [!?]++ [。！？!?…]*+ [”’」』）》〉)"']*+ (?=[\u3400-\u9fff])  # half-width marks in Chinese
          | (?<=[\u3040-\u30ff\u3400-\u9fff])(?<![一二三四五六七八九十]) [.．] (?=[\u3040-\u30ff\u3400-\u9fff])
          | (?<![.!?…]) (?P<mark> [.!?…؟۔।॥]++ ) (?:[\ \u00a0\u202f]?+»)? [”’"')\]»“]*+ {_EMOJI} (?=\s)  # others
          | \n+
        )""",
    re.VERBOSE,
)


def sentence_rules() -> dict[str, Any]:
    """List the rules of :func:`split_sentences`, for programs in other languages.

    Returns:
        "patterns", "words" as sets, "opening" marks of closing ones, and "most" characters that are looked at.
    """
    return {
        "patterns": {
            "ends": _ENDS,
            "html_break": _HTML_BREAK,
            "initials": _INITIALS,
            "before_names": _BEFORE_NAMES,
            "ordinals": _ORDINALS,
            "after_ordinals": _AFTER_ORDINALS,
            "roman": _ROMAN,
            "doubled": _DOUBLED,
            "said": _SAID,
            "japanese_particles": _JAPANESE_PARTICLES,
        },
        "words": {
            "abbreviations": ABBREVIATIONS,
            "numbered": _NUMBERED,
            "starters": _STARTERS,
            "streets": frozenset({STREETS}),
        },
        "opening": _OPENING,
        "most": {"word": _MOST_OF_WORD, "digits": _MOST_DIGITS, "quote": _MOST_OF_QUOTE},
    }


def split_sentences(text: str) -> list[str]:
    """Split a text into sentences.

    A period after an abbreviation, an initial, the number of an item or a German ordinal, or before a lower-case word,
    ends no sentence; nor do the marks of a quote that the sentence around it goes on after. Emoji after an end mark
    belong to the sentence before. A line break, also one of HTML, always ends a sentence.

    Returns:
        The sentences without surrounding space, in order; none for blank text.

    Example:
        >>> split_sentences('Dr. Who sat down. "Why?" he asked. 房间很好。服务不错！')
        ['Dr. Who sat down.', '"Why?" he asked.', '房间很好。', '服务不错！']
    """
    text = _HTML_BREAK.sub("\n", text)
    parts = (text[start:end].strip() for start, end in sentence_spans(text))
    return [part for part in parts if part]


def sentence_spans(text: str) -> Iterator[tuple[int, int]]:
    """Find the sentences of a text by the rules of :func:`split_sentences`, except that HTML is not interpreted.

    Yields:
        Start and end of each sentence with the space before it and the line breaks after it; the spans cover the text.
    """
    start = 0
    for end in _ENDS.finditer(text):
        if _ends_sentence(text, end, start):
            yield start, end.end()
            start = end.end()
    yield start, len(text)


def _ends_sentence(text: str, end: re.Match[str], start: int) -> bool:
    if end[0].startswith("\n"):
        return True
    following = text[end.end() : end.end() + 60]
    begun = text[max(start, end.start() - _MOST_OF_WORD) : end.start()]
    if end["mark"] is None:
        return not (_goes_on_unspaced(text, end, start, following) or _repeats(begun, end, following))
    following = following.lstrip(" \t\u00a0\"'“‘([—–")
    if following[:1].islower() or _goes_on_without_case(text, end, start, following) or _repeats(begun, end, following):
        return False
    return end["mark"] != "." or not _is_abbreviated(begun, following)


def _is_abbreviated(begun: str, following: str) -> bool:
    if not begun or begun[-1].isspace():
        return False
    word = begun.split()[-1].lstrip("\"'“‘([«„")
    before = begun[: len(begun) - len(word)]
    if word.isdecimal():
        is_ordinal = _ORDINALS.search(before) or _AFTER_ORDINALS.match(following)
        return len(word) <= _MOST_DIGITS and (not before.strip() or is_ordinal is not None)
    first = re.match(r"[^\W\d_]+(?=[\s'’])", following)
    if first and first[0].lower() in _STARTERS and not _BEFORE_NAMES.search(begun):
        return False
    if word == "I":
        return False
    last = re.split(r"\.-|['’]", word.lower())[-1]
    return (
        last in ABBREVIATIONS
        or last.endswith(STREETS)
        or _INITIALS.fullmatch(word) is not None
        or (last in _NUMBERED and _ROMAN.match(following) is not None)
        or (_DOUBLED.fullmatch(word) is not None and _DOUBLED.match(following) is not None)
    )


def _repeats(begun: str, end: re.Match[str], following: str) -> bool:
    """Whether dots stand between the same word twice, as in "I... I know"."""
    if not (end[0].startswith("…") or end[0].startswith("..")):
        return False
    if end["mark"] is None:
        return begun[-1:].isalpha() and begun[-1:] == following[:1]
    words, others = begun.split(), following.split(maxsplit=1)
    return bool(words and others) and words[-1].lower() == others[0].rstrip(",").lower()


def _opening(text: str, end: re.Match[str], start: int) -> str | None:
    """The sentence up to the quote or bracket that is closed after its end mark."""
    if (mark := _OPENING.get(end[0][-1])) is None:
        return None
    beginning = text.rfind(mark, max(start, end.start() - _MOST_OF_QUOTE), end.start())
    return None if beginning < 0 else text[max(start, beginning - 2) : beginning].strip()


def _goes_on_unspaced(text: str, end: re.Match[str], start: int, following: str) -> bool:
    closing = end[0][-1]
    if closing in "》〉":
        return True
    if closing in "）)":
        return bool(_opening(text, end, start))
    if closing not in "”’」』\"'":
        return False
    is_said = _opening(text, end, start) == "" and _SAID.match(following) is not None
    return is_said or following[:1] in tuple("，、；：,;:") or _JAPANESE_PARTICLES.match(following) is not None


def _goes_on_without_case(text: str, end: re.Match[str], start: int, following: str) -> bool:
    """Whether a quote or bracket is part of its sentence, in scripts whose letters tell no beginning."""
    if not following[:1].isalpha() or following[:1].isupper() or (before := _opening(text, end, start)) is None:
        return False
    if not before:
        return end[0][-1] not in ")]" and _SAID.match(following) is not None
    return before[-1] not in ":،,："
