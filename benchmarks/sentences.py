"""Sentence splitting of hard texts by our rules and by sentencex (PyPI), by language.

    python benchmarks/sentences.py [--show]
    python benchmarks/sentences.py --lines de=train.de

`hard_sentences.txt` has a language and the sentences of one text on each line, written for this comparison; those below
a comment line are a blind part, written without knowledge of the rules and before any run. A text counts as right
where all its sentences are found, and nothing else. `--show` also prints the wrong ones. `--lines` takes
other texts instead: two lines of a file of single sentences, drawn at random.
"""

import argparse
import gzip
from collections import defaultdict
from pathlib import Path
from random import Random

import sentencex  # pyright: ignore[reportMissingImports]

from heedful.text.sentences import split_sentences

UNSPACED = ("zh", "ja")
PARTS = ("first", "blind", "second blind")
MOST_LINES = 20_000
ENDS = tuple('.!?。！？…”"»')


def split_lines(language: str, path: Path) -> None:
    opened = gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8")
    with opened as file:
        lines = [line.strip() for line, _ in zip(file, range(MOST_LINES), strict=False)]
    lines = [line for line in lines if line.endswith(ENDS)]
    Random(1).shuffle(lines)
    pairs = [*zip(lines[::2], lines[1::2], strict=False)]
    texts = [("" if language in UNSPACED else " ").join(pair) for pair in pairs]
    ours = sum((*split_sentences(text),) == pair for text, pair in zip(texts, pairs, strict=True))
    theirs = sum(
        (*filter(None, map(str.strip, sentencex.segment(language, text))),) == pair  # pyright: ignore
        for text, pair in zip(texts, pairs, strict=True)
    )
    shares = (f"{name} {100 * right / len(texts):.1f} %" for name, right in (("ours", ours), ("sentencex", theirs)))
    print(f"{language}: {len(texts)} texts", *shares, sep=", ")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true", help="print the texts that one of the two splits wrongly")
    parser.add_argument("--lines", metavar="LANGUAGE=FILE", help="two lines each of a file of single sentences")
    options = parser.parse_args()
    if options.lines:
        language, _, path = options.lines.partition("=")
        split_lines(language, Path(path))
        return
    is_shown = options.show
    parts = iter(PARTS)
    part = next(parts)
    right: defaultdict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    for line in Path(__file__).with_name("hard_sentences.txt").read_text("utf-8").splitlines():
        if line.startswith("#"):
            part = next(parts)
            continue
        language, content = line.split("\t")
        sentences = content.split("|")
        text = ("" if language in UNSPACED else " ").join(sentences)
        ours = split_sentences(text)
        theirs = [one.strip() for one in sentencex.segment(language, text) if one.strip()]  # pyright: ignore
        for row in (right[language, part], right[language, "all"]):
            row[0] += 1
            row[1] += ours == sentences
            row[2] += theirs == sentences
        if is_shown and ours != sentences:
            print(f"{language}, {part}: ours: {'|'.join(ours)}")
        if is_shown and theirs != sentences:
            print(f"{language}, {part}: sentencex: {'|'.join(theirs)}")
    languages = dict.fromkeys(language for language, _ in right)
    print("| | " + " | ".join(languages) + " | all |\n|---|" + "---:|" * (len(languages) + 1))
    for name in (*PARTS, "all"):
        for place, splitter in enumerate(("texts", "ours", "sentencex")):
            numbers = [right[language, name][place] for language in languages]
            print(f"| {name}: {splitter} | " + " | ".join(map(str, (*numbers, sum(numbers)))) + " |")


if __name__ == "__main__":
    main()
