"""Translations of test sentences as people write them: other case, typing errors, several on a line, kept spans.

    python benchmarks/real_text.py MODEL... --pairs val.de val.en --words train.de train.en

Prints a table for each model: chrF and lower-cased BLEU of each form of the sentences, and for spans that stay as they
are the share that stands in the output exactly once, and beside the word that translates the one beside it in the
source (by IBM model 2 on the pairs of `--words` and `--pairs`; counted where the output has that word once). BLEU of
such outputs is without the spans. `--segments off` translates each line as a whole, without all this.
"""

import argparse
import random
import re
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from heedful.predictors.table import load
from heedful.predictors.translator import Translator
from heedful.text.segments import Policy
from heedful.text.terms import is_word, unit_ranges
from heedful.text.word_alignment import align_pairs

FINAL = ".!?…"
FOLDED = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue"})
NUMBER = "a number"  # of one to six digits, another one each time
SPANS = (
    "https://example.org/a?b=1",
    "max.muster@example.org",
    "@heedful",
    NUMBER,
    "2026-11-28",
    "{name}",
    "%s",
    "%(count)d",
    "$HOME",
    "{n, plural, one {# dog} other {# dogs}}",
    "<br/>",
    "🐶",
    "`x = 1`",
    "привет",
)
MOST_SPANS = 3
Pair = tuple[str, str]


def typo(text: str, draw: random.Random) -> str:
    places = [index for index in range(1, len(text) - 1) if text[index : index + 2].isalpha()]
    if not places:
        return text
    place = draw.choice(places)
    return text[:place] + text[place + 1] + text[place] + text[place + 2 :]


def title(text: str) -> str:
    return " ".join(word[:1].upper() + word[1:] for word in text.split(" "))


FORMS: dict[str, Callable[[Pair, random.Random], Pair]] = {
    "clean": lambda pair, _: pair,
    "lower case": lambda pair, _: (pair[0].lower(), pair[1]),
    "Title Case": lambda pair, _: (title(pair[0]), pair[1]),
    "UPPER CASE": lambda pair, _: (pair[0].upper(), pair[1].upper()),
    "no final mark": lambda pair, _: (pair[0].rstrip(FINAL), pair[1].rstrip(FINAL)),
    "one typing error": lambda pair, draw: (typo(pair[0], draw), pair[1]),
    "ae oe ue ss": lambda pair, _: (pair[0].translate(FOLDED), pair[1]),
}


class Marked:
    """Sentences with one to three kept spans, each behind a source word whose translation is known."""

    def __init__(self, pairs: Sequence[Pair], others: Sequence[Pair], draw: random.Random) -> None:
        words = [tuple(map(_words, pair)) for pair in (*pairs, *others)]
        linked = align_pairs([(_folded(one), _folded(other)) for one, other in words], model="ibm2")[: len(pairs)]
        self.sources: list[str] = []
        self.spans: list[list[Pair]] = []
        for (source, _), (one, other), links in zip(pairs, words, linked, strict=False):
            usable = [(left, right) for left, right in links if is_word(one[left][0]) and is_word(other[right][0])]
            chosen = sorted(draw.sample(usable, min(len(usable), draw.randint(1, MOST_SPANS))))
            spans = [_number(draw) if span == NUMBER else span for span in draw.sample(SPANS, len(chosen))]
            written = source
            for (left, _), span in reversed([*zip(chosen, spans, strict=True)]):
                stop = one[left][2]
                written = f"{written[:stop]} {span}{written[stop:]}"
            self.sources.append(written)
            self.spans.append(
                [(span, other[right][0].casefold()) for (_, right), span in zip(chosen, spans, strict=True)]
            )

    def row(self, outputs: Sequence[str], references: Sequence[str]) -> str:
        present = total = beside = known = 0
        rest: list[str] = []
        for output, spans in zip(outputs, self.spans, strict=True):
            left = output
            for span, word in spans:
                total += 1
                # Not within a longer number.
                places = re.compile(rf"(?<!\d){re.escape(span)}(?!\d)")
                is_once = len(places.findall(output)) == 1
                present += is_once
                words = places.sub(" \0 ", output).casefold()
                for other, _ in spans:
                    words = words.replace(other.casefold(), " ")
                units = [unit for unit, _, _ in _words(words)] if is_once else []
                if units.count(word) == 1 and "\0" in units:
                    known += 1
                    beside += abs(units.index("\0") - units.index(word)) == 1
                left = left.replace(span, " ")
            rest.append(" ".join(left.split()))
        kept, right = 100 * present / total, 100 * beside / max(1, known)
        return f"{scores(rest, references)} | {kept:.2f} % of {total:,} | {right:.1f} % of {known:,} |"


def _one_sentence(pairs: Sequence[Pair]) -> Pair:
    """Sentences as the clauses of one, with commas between them."""
    sides = ([one.rstrip(FINAL) for one in side] for side in zip(*pairs, strict=True))
    source, target = (", ".join([side[0], *(one[:1].lower() + one[1:] for one in side[1:])]) + "." for side in sides)
    return source, target


def _number(draw: random.Random) -> str:
    return str(draw.randrange(10 ** draw.randrange(1, 7)))


def scores(outputs: Sequence[str], references: Sequence[str]) -> str:
    chrf = CHRF().corpus_score([*outputs], [[*references]]).score
    bleu = BLEU(lowercase=True).corpus_score([*outputs], [[*references]]).score
    return f"{chrf:.1f} | {bleu:.1f}"


def rows(translator: Translator, pairs: Sequence[Pair], marked: Marked, segments: Policy | None) -> Iterable[str]:
    def outputs(sources: Sequence[str]) -> list[str]:
        return [one.text for one in translator.translate(sources, segments=segments)]

    alone: list[str] = []  # translations of the clean sentences, one by one
    for name, form in FORMS.items():
        draw = random.Random(1)
        changed = [form(pair, draw) for pair in pairs]
        started = time.perf_counter()
        texts = outputs([source for source, _ in changed])
        seconds = time.perf_counter() - started
        yield f"| {name} | {scores(texts, [target for _, target in changed])} | | | {seconds:.0f} s"
        alone = alone or texts
    for size in (2, 4, 10):
        lines = [pairs[start : start + size] for start in range(0, len(pairs) - size + 1, size)]
        found = translator.translate([" ".join(source for source, _ in line) for line in lines], segments=segments)
        num_segments = sum(len(one.segments) for one in found)
        references = [" ".join(target for _, target in line) for line in lines]
        counted = f"{num_segments:,} segments of {size * len(lines):,} sentences" if segments else ""
        one_by_one = [" ".join(alone[start : start + size]) for start in range(0, len(pairs) - size + 1, size)]
        yield f"| {size} sentences on a line | {scores([one.text for one in found], references)} | {counted} | |"
        yield f"| the same, one by one | {scores(one_by_one, references)} | | |"
    for size in (2, 4, 10):
        joined = [_one_sentence(pairs[start : start + size]) for start in range(0, len(pairs) - size + 1, size)]
        found = translator.translate([source for source, _ in joined], segments=segments)
        references = [target for _, target in joined]
        words = sum(len(one.text.split()) for one in found) / sum(len(one.split()) for one in references)
        yield f"| {size} in one sentence | {scores([one.text for one in found], references)} | {words:.2f} words | |"
    yield f"| with kept spans | {marked.row(outputs(marked.sources), [target for _, target in pairs])}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--pairs", nargs=2, required=True, type=Path)
    parser.add_argument("--words", nargs=2, required=True, type=Path)
    parser.add_argument("--segments", default="auto", choices=["auto", "sentence", "line", "off"])
    parser.add_argument("--number", type=int, default=0, help="number of pairs; 0 = all")
    options = parser.parse_args()
    pairs = _read(options.pairs)[: options.number or None]
    marked = Marked(pairs, _read(options.words)[:10_000], random.Random(1))
    for model in options.models:
        print(f"{model.name}, segments {options.segments}\n\n| | chrF | BLEU-lc | kept once | beside its word |")
        print("|---|---|---|---|---|")
        policy = None if options.segments == "off" else options.segments
        for row in rows(load(model, kind=Translator), pairs, marked, policy):
            print(row, flush=True)
        print()


def _read(paths: Sequence[Path]) -> list[Pair]:
    source, target = (path.read_text("utf-8").splitlines() for path in paths)
    return [pair for pair in zip(source, target, strict=True) if all(map(str.strip, pair))]


def _words(text: str) -> list[tuple[str, int, int]]:
    return [(text[start:stop], start, stop) for start, stop in unit_ranges(text)]


def _folded(words: Iterable[tuple[str, int, int]]) -> list[str]:
    return [word.casefold() for word, _, _ in words]


if __name__ == "__main__":
    main()
