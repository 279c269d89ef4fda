"""Segments of texts in JavaScript: the same sentences, kept spans, usual forms and outputs as in Python."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import numpy as np

from heedful.engines.folder import ModelFolder
from heedful.engines.text_constraints import SourceConstraints
from heedful.engines.translation_memory import TranslationMemory
from heedful.export.archive import ArchivedTranslator, described
from heedful.predictors.segment_decoding import SegmentDecoding
from heedful.predictors.segmented import Segmenter
from heedful.predictors.translation import Alternative, Translation
from heedful.search.config import SearchConfig
from heedful.search.constraints import Constraints
from heedful.text.kept import has_words
from heedful.text.lexicon import Lexicon
from heedful.text.tokenizer import TextConfig, UnitTokenizer
from heedful.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from heedful.text.word_forms import WordForms
from tests.js.node import PACKAGE, Run, answers, changed_package, needs_node

pytestmark = needs_node

DICTIONARY: Final = {
    "Hund": "dog",
    "roter": "red",
    "Ein": "A",
    "läuft": "runs",
    "auf": "on",
    "Straße": "street",
    "Mädchen": "girl",
    "Schleife": "loop loop loop loop loop loop",
    "Kehrreim": "red dog red dog red dog",
    "&": "&amp;",
    "und": "and",
    "Ende.": "End!",
    "Tag.": "Day!",
    "ich.": "I",
    "Schleife.": "loop loop loop loop loop loop",
    "Kehrreim.": "red dog red dog red dog",
    "Nichts.": "",
    "7": "seven",
    "10": "101",
    "11": "11 5",
    "nichts": "",
    "房间很好。服务不错！下次再来？": "Good.",
    "房间很好。": "Good.",
}
TOKENIZER: Final = UnitTokenizer(Vocabulary([*SPECIAL_TOKENS, *DICTIONARY]), "words", "NFC")
TEXT: Final = TextConfig(source_units="words", target_units="words", max_tokens=16)
WORDS: Final[Sequence[str]] = (
    "Ein roter Hund läuft auf Straße Strasse Maedchen Mädchen und die Katze ß İstanbul EU USA 7 12 3. 1.234,56 € "
    "房间很好。 服务不错！ Привет мир {name} {{x}} <b> </b> <br/> https://example.org/a?b=(1), max.m@example.org. 🐶 "
    "🇩🇪 ☀️ %s $HOME @heini #tag `x = 1` 3.5.2024 12:30 A4 COVID-19 50% (Dr. Fox). z.B. Bahnhofstr. 2nd ({x}) [%s] "
    "„Hund“ Ende. Was? Ja! "
    'sagte: "Nein!" , ; \ufffc \u200d don\'t l’eau ²'
).split(" ")
JOINTS: Final = (" ",) * 9 + ("\n", "\r\n", "  ", "\n\n", "\n- ", "\n1. ", "\n2. ", "\n٣. ", "\u2028", "\x1c", "\t")
SEARCH: Final = SearchConfig(beam=2, nbest=2)
TEXTS: Final[tuple[str, ...]] = (
    "",
    " \n",
    "4711",
    "Schleife",
    "Kehrreim",
    "Weg, weg, weg Kehrreim",
    "走走走 Kehrreim",
    "Ein roter Hund & Hund",
    "Ein NATO Hund und EU Hund, ÖBB-Hund",
    "EIN NATO HUND, ÖBB",
    "EIN BMW HUND UND",
    "UND Hund läuft",
    "Ein Hund läuft auf Straße und auf Straße, auf straße ein roter hund.",
    "Ein aaaaaaaa Hund&nbsp;läuft<br/>Hund<b>roter</b>Hund [[x]] 100%% § 5",
    "Ein " + "Hund-" * 13 + " roter " + "Hund-" * 11 + "Hund " + "1-" * 12 + "2",
    "EIN & {name} HUND & HUND",
    "Ein & &lt; Hund",
    "nichts",
    "Ein roter Hund nichts Schleife",
    "EIN ROTER HUND LÄUFT",
    "ein roter hund läuft auf der strasse",
    "Ein Roter Hund Läuft",
    "Ein 10 Hund",
    "Ein 11 Hund läuft",
    "Ein 12 Hund",
    "EIN {name} HUND 🐶",
    "Ein HUND läuft AUF STRASSE",
    "Maedchen, Maedchen und Strasse",
    "Dies ist ein längerer Text, der von Hand umbrochen wurde, damit er in\neine Nachricht passt und nicht breit ist. "
    "Er hat zwei Sätze, und\r\nder letzte ist kurz.\n",
    "Hallo,\n\n> Dies ist ein längerer Text, der von Hand umbrochen wurde, damit er\n> in eine Nachricht passt. Und "
    "der zweite Satz, der ist\n>\tnicht so lang. Ende\r\n> > - Hund, Hund\n>> läuft\n> >x\n>y\n>\n> 1. Ja\n> 2. "
    "Hund\n>= 7 Hund\n" + "> Hund, roter\n" * 20,
    "> Ein Satz, der so lang ist, dass er hier bis zum Ende der Zeile geht.\n> Der nächste Satz beginnt erst hier in "
    "der Zeile, und auch er ist\n> lang. Ein Satz, der so lang ist, dass er bis zum Ende der Zeile und\n>> Hund\n",
    "房间很好。服务不错！下次再来？",
    "房间很好。房间很好。房间很好。",
    "- eins\n* zwei\n1. drei\n2. vier. Fünf\n\n3. Mai\n(a) sechs",
    "Am 3. Mai kommt Dr. Fox. Er wohnt in der Bahnhofstr. 12 in Bonn. Sie auch.",
    "Hund " * 40,
    "Hund, roter " * 20,
    "ein roter Hund läuft Auf Straße, " * 8,
    "Ein roter Hund, https://example.org/a?b=(1), {{x}} Mädchen.",
    "Ein roter Hund.Auf Straße läuft er.Ein Hund.",
    "Ein (roter).Auf Straße läuft er.",
    "1. Auf Straße läuft Hund.",
    "Ein Roter Hund Läuft Auf Straße, " * 8,
    "x" * 300,
    "𝔸" * 300,
    "(Ein Hund läuft.) [Hund] \"Ein Hund.\" 'Hund' **Hund** - *** Hund *** ===Hund=== Hund :-) ...Hund",
    "(Ein Hund läuft.)\n\n(Ein Hund. Ein roter Hund.)\n\n[Hund]\n\n(Ein) Hund (auf)\n\n"
    '"Ein Hund."\n\n"Hund. Auf Straße."',
    "'Hund'\n\n**Hund**\n\n*** Hund 😀 ***\n\n===Hund===\n\nHund :-)\n\n...Hund...\n\nHund ?!\n\n𝔸 ((([Hund]\n\n"
    "ein roter Hund läuft auf Straße und auf Straße läuft ein Mädchen und ein roter Hund auf Straße",
    "Hund läuft, ein Hund und Auf Straße läuft Hund und roter Hund, auf Straße und Hund",
    "„Ein Hund.“\n\n“Ein Hund. Ein Hund. Hund.”\n\n»Hund« läuft:\n\nund Hund {x},\n\nund HUND LÄUFT",
    "hund A\n\nhund Tag\n\nhund ich\n\nhund Mädchen {x}\n\nhund läuft Ende\n\nhund NATO\n\nein Hund EU.",
    "ein Hund läuft roter",
    '(Ein Hund).\n\n"Ein Hund"!\n\nEin Hund (roter).',
    "ein roter Hund läuft auf\nder Straße Hund und Hund\nund läuft auf",
    "EIN ROTER HUND LÄUFT AUF STRASSE UND AUF STRASSE LÄUFT HUND, AUF STRASSE UND AUF STRASSE HUND UND HUND",
    "Ein roter Hund, Hund Hund läuft\nauf der Straße Hund Hund\nHund Hund läuft",
    "Ein roter Hund läuft auf\nder Straße und.\n\n"
    "ein roter Hund läuft auf\nder Straße und.\n\nEin Hund auf\nder Straße.",
    "Ein roter Hund läuft auf\nHund Mädchen Hund und Hund\nHund läuft auf und Hund\n\n"
    "Ein roter Hund läuft auf\nhund\nhund",
    "Ein roter Hund, Hund Hund läuft Ein roter Hund Auf:\nein Hund Hund läuft auf Straße Hund\nHund",
    "Hund läuft, auf Straße ein Hund, auf Straße Hund, auf Straße",
    "Ein Hund\nläuft auf der\nStraße.\n\nHund\nläuft\n\nhund\nläuft.\n\nHund\troter\nhund läuft.\n\n"
    "{x} Hund läuft.\n\n%s %s roter Hund.\n\n{x} Ein Hund.\n\n<b> Hund.\n\n🐶 Hund.\n\n({x}) Hund.\n\n{x}: Hund.\n\n"
    "Hund und die\nHund\nläuft\n\nHund.\nläuft auf.",
    "roter Hund läuft ein Hund, roter Hund und auf Straße läuft Hund",
    '[(*Hund*)]\n\n"Hund läuft. Ein Hund läuft. Auf Straße läuft Hund."',
)


def texts() -> list[str]:
    source = random.Random(0)
    drawn: list[str] = [*TEXTS]
    for _ in range(100):
        words = source.choices(WORDS, k=source.randrange(1, 25))
        text = "".join(word + source.choice(JOINTS) for word in words)
        drawn.append(source.choice((str, str, str, str.upper, str.lower, str.title))(text))
    return drawn


@dataclass(frozen=True)
class Reversed:
    """Stand-in for a decoding: it writes the words of a source in the opposite order."""

    can_align: bool
    shift: int
    attention: bool = False
    search: SearchConfig = SEARCH

    @property
    def model(self) -> Any:
        return SimpleNamespace(tables=TABLES, alignment_shift=self.shift)

    def translate(self, sources: Sequence[str], constraints: object, indices: Sequence[int]) -> list[Translation]:
        return [self._output(text.split(), text) for text in sources]

    def _output(self, words: list[str], text: str) -> Translation:
        output = [DICTIONARY.get(word, word) for word in reversed(words)]
        alternatives = [Alternative(" ".join(output[rank:]), -1.0, -1.0) for rank in range(self.search.nbest)]
        one = Translation(text, alternatives[0].text, -1.0, -1.0, tuple(alternatives))
        if not self.attention:
            return one
        size = len(words)
        weights = np.vstack(
            [np.ones((self.shift, size)), 0.9 * np.eye(size)[::-1] + 0.1 / size * (1 - np.eye(size)[::-1])]
        )
        weights = np.hstack([weights, np.zeros((len(weights), 1))])
        weights[: self.shift] = 1
        return replace(one, source_pieces=(*words, "<eos>"), target_pieces=(*output, "<eos>"), attention=weights)


FORMS: Final = WordForms(
    ("Hund", "ein", "roter", "läuft", "auf", "Straße", "Mädchen", "der", "EU", *map("w{}".format, range(51))), TOKENIZER
)
LEXICON: Final = Lexicon({word.lower(): {output: 0.9} for word, output in DICTIONARY.items() if output.isalpha()})
TABLES: Final[Any] = SimpleNamespace(forms=FORMS, lexicon=LEXICON, final_marks=(".", "!"), is_name="End".__eq__)
KINDS: Final = {"attention": (True, 0), "attention of the next step": (True, 1), "lexicon": (False, 0)}


def in_python(folder: ModelFolder, can_align: bool, shift: int) -> list[Any]:
    segmenter = Segmenter(folder, TranslationMemory(folder.path / "none", str), TABLES, TOKENIZER, TEXT)
    decoding: Any = Reversed(can_align, shift)
    found: list[Any] = []
    for text in texts():
        parts = segmenter.split(text)
        given = parts.segments, SourceConstraints(Constraints(), Constraints(), None, {}), [0] * len(parts.segments)
        outputs = [*SegmentDecoding(decoding).translate(*given)]
        layout = parts.join([one.text for one in outputs])
        rows: list[Any] = []
        for segment, one in zip(parts.segments, outputs, strict=True):
            kept = [[segment.reading[each.start : each.end], each.kind] for each in segment.kept]
            read = one.decoded[0] if one.decoded else segment.reading
            reading = read if has_words(segment.reading, segment.kept) else ""
            rows.append([segment.reading, [each.text for each in one.alternatives], kept, reading, one.fault])
        found.append([layout, rows])
    return found


def run(folder: ModelFolder, can_align: bool, shift: int) -> Run:
    model = ArchivedTranslator(folder, (TOKENIZER, TOKENIZER), TEXT, SearchConfig(), shift)
    facts = {"segments": model.facts()["segments"], "search": {"beam": 2}}
    stored: dict[str, str] = {}
    for name, table in (("forms.txt", FORMS), ("lexicon.tsv", LEXICON)):
        table.save(folder.path / name)
        stored[name] = (folder.path / name).read_text("utf-8")
    given = {"dictionary": DICTIONARY, "tables": stored, "hasWeights": can_align}
    return Run(described(TOKENIZER) | {"most": TEXT.max_tokens, "facts": facts}, [["passages", given, texts()]])


def until_it_differs(right: Run, call: int, package: Path) -> Run:
    """The same texts by another package, until one is not what a call before gave: a wrong rule takes few of them."""
    ((_, *given),) = right.calls
    return right._replace(calls=[["differing", *given, call]], folder=package)


def joined(found: Any) -> list[Any]:
    """Whole texts in place of their layouts."""
    return [
        [
            "".join(between + (rows[index][1][0] if index < len(rows) else "") for index, between in enumerate(layout)),
            rows,
        ]
        for layout, rows in found
    ]


# By module, expressions with others in their place that make it wrong.
MUTANTS: Final = (
    ("segments.js", "numbers.has(number - 1) || ", ""),
    ("segments.js", " || openings.has(word)", ""),
    ("segments.js", "divided(sentences.spans(line), ends)", "sentences.spans(line)"),
    ("segments.js", "kept.find(plain).filter(({ kind }) => !READ.includes(kind))", "[]"),
    ("segments.js", "spans.length > this.facts.usual", "false"),
    ("segments.js", "|| (spans.length > 1 && !this.isUsual(line)) ", ""),
    ("segments.js", "sizeOf(lines[index]) + size > width || ", ""),
    ("segments.js", "(!isWide && sizeOf(lines[index]) >= LIKE * width)", "false"),
    ("segments.js", " && !COLONS.test(lines[index])", ""),
    ("segments.js", "width >= LEAST_WRAPPED && ", ""),
    ("segments.js", "isEven && isBegun", "isBegun"),
    ("segments.js", " && !beginsLower(lines[0])", ""),
    ("segments.js", "2 * isLower.filter(Boolean).length >= isLower.length", "true"),
    ("segments.js", "[starts, clauses, spaces, [middle]]", "[starts, spaces, [middle]]"),
    ("segments.js", "[starts, clauses, spaces, [middle]]", "[clauses, spaces, [middle]]"),
    ("segments.js", "caseOf(source) ? [] : ", ""),
    ("segments.js", "(isLearned || this.fits(source))", "isLearned"),
    ("segments.js", "sizeOf(sentence) <= size ||", "true ||"),
    ("segments.js", "lift(sentence, this.kept.find(sentence)).text", "sentence"),
    ("segments.js", "return ' ';\n    return between", "return '';\n    return between"),
    ("segments.js", "withoutEdges(strip(part))", "[0, strip(part).length]"),
    ("edges.js", "part.split('\"').length === 2", "false"),
    ("edges.js", "Number(partner === null)", "0"),
    ("edges.js", "if (last < end - 1)", "if (false)"),
    ("edges.js", "(?![.!?…])", ""),
    ("edges.js", "layer < MOST_LAYERS", "layer < 1"),
    ("documents.js", "!strip(before) || ", ""),
    ("kept.js", "if (start >= end || isTaken.subarray(start, end).includes(1)) return;", ""),
    ("kept.js", "ASCII.test(text) ? [] : this.foreign(text)", "[]"),
    ("kept.js", "start -= 1; end += 1;", ""),
    ("kept.js", ".replace(SPACE_BEFORE_MARK, '')", ""),
    ("kept.js", "if (numbersOf(text)", "if ([].concat(numbers.length > 9 ? numbers : [])"),
    ("kept.js", "if (OPENING_TAG.test(span) && isLast", "if (false"),
    ("kept.js", "touches || ", ""),
    ("kept.js", "offsets[tags[rank]] = offset;", ""),
    ("kept.js", "(isLeft ? weight : FOLLOWING * weight)", "FOLLOWING * weight"),
    ("kept.js", "distance(one[0]) < distance(best[0])", "distance(one[0]) > distance(best[0])"),
    ("links.js", "(PLAIN.test(right[row]) === PLAIN.test(left[column]) ? 1 : UNLIKE)", "1"),
    ("faults.js", "return hasLoop(output) && !(hasRepetitions(source) || hasLoop(source)) ? 'loop' : ''", "return ''"),
    ("entities.js", "source.search(ENTITY) >= 0 || ", ""),
    ("passages.js", "target: [plain.indices", "target: [0 * plain.indices"),
    ("segments.js", " || levels[index] !== levels[index - 1]", ""),
    ("segments.js", ".replace(QUOTED_BREAKS,", ".replace(BREAKS,"),
    ("kept.js", "this.lacks(word) && ", ""),
    ("kept.js", "isMixed || ", ""),
    ("kept.js", " && (isMixed || !VOWEL.test(word))", ""),
    ("kept.js", "take(index, index + word.length, 'word')", ""),
    ("kept.js", "if (partsWords(text, start, end)) ", "if (false) "),
    ("kept.js", "isBetween && !WITHIN_WORD", "isBetween || !WITHIN_WORD"),
    ("segments.js", "MOST_UNUSUAL = 3", "MOST_UNUSUAL = 9"),
    ("faults.js", "REPETITIONS = 3", "REPETITIONS = 4"),
    ("faults.js", "hasRepetitions(source) || ", ""),
    ("faults.js", "LETTER.test(source) ? 'empty' : ''", "''"),
    ("forms.js", "if (this.hasCapitals && words.length >= FEWEST_WORDS)", "if (false)"),
    ("forms.js", "quiet.replace(WORD, (word) => this.withMarks(word))", "quiet"),
    ("forms.js", "isBeside || ", ""),
    ("passages.js", "filter(([one, output]) => hasAll(output, one))", "filter(() => true)"),
    ("passages.js", "attention.slice(this.facts.alignment_shift)", "attention"),
    ("passages.js", "isUpper ? raised(unmarked, spans)", "isUpper ? unmarked"),
    ("segments.js", "likely.length || isLearned ? likely : ends.length ? ends : joints", "ends.length ? ends : joints"),
    ("segments.js", "ends.length ? ends : joints", "ends"),
    ("segments.js", "MOST_SHORT = 0.2", "MOST_SHORT = 1"),
    ("segments.js", "word = ''] = FIRST_WORD.exec(text.slice(joint.length))", "word = ''] = FIRST_WORD.exec(text)"),
    ("edges.js", "[${SPACE},;:–—]+", "[${SPACE}]+"),
    ("edges.js", "'„': '“”', '“': '”',", "'„': '“”',"),
    ("links.js", "one[1] > best[1] ? one : best", "best"),
    ("passages.js", "isBegun ? capital(words) : words", "words"),
    ("passages.js", "!!marks[0] || ", ""),
    ("passages.js", "FIRST_PERSON.test(word) || ", ""),
    ("passages.js", "rest !== rest.toLowerCase() || ", ""),
    ("passages.js", " || source.match(WORD)?.includes(word)", ""),
    ("passages.js", "!!segment.isInner || ", ""),
    ("passages.js", " || isName(word)", ""),
    ("passages.js", "ENDED.test(plain) || ", ""),
    ("passages.js", "text.slice(0, -mark.length)", "text"),
    ("passages.js", "this.forms.hasCapitals && CONJUNCTION.exec(reading)", "false"),
    ("passages.js", "joint && !isKept", "joint"),
    ("passages.js", "alternatives: sound.slice(0, nbest)", "alternatives: sound"),
)


def test_segments_and_their_outputs_are_those_of_python_and_wrong_rules_are_told_from_right_ones(tmp_path: Path):
    folder = ModelFolder(
        tmp_path,
        {
            "languages": ["de", "en"],
            "sentences": 2,
            "usual_characters": 40,
            "openings": ["Auf"],
            "final_marks": [".", "!"],
            "files": {},
        },
    )
    right = [run(folder, *kind) for kind in KINDS.values()]
    call = [*KINDS.values()].index((True, 1))
    packages = [changed_package(tmp_path / str(index), *one) for index, one in enumerate(MUTANTS)]
    # The unchanged package first, which differs nowhere.
    wrong = [until_it_differs(right[call], call, package) for package in (PACKAGE, *packages)]
    found = answers(*right, *wrong)
    for (name, kind), theirs in zip(KINDS.items(), found, strict=False):
        ours = in_python(folder, *kind)
        assert [pair for pair in zip(ours, joined(theirs), strict=True) if pair[0] != pair[1]] == [], name
    same, *others = found[len(KINDS) :]
    assert same is None
    assert [mutant for mutant, one in zip(MUTANTS, others, strict=True) if one is None] == []
