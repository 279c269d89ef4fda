"""Sentence splitting of hard texts by our rules and by sentencex (PyPI), by language.

    python benchmarks/sentences.py [--show]

`hard_sentences.txt` has a language and the sentences of one text on each line, written for this comparison; those below
the comment line are the blind part, written without knowledge of the rules. A text counts as right where all its
sentences are found, and nothing else. `--show` also prints the wrong ones.
"""

import argparse
from collections import defaultdict
from pathlib import Path

import sentencex  # pyright: ignore[reportMissingImports]

from heedful.text.sentences import split_sentences

UNSPACED = ("zh", "ja")
PARTS = ("first", "blind")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true", help="print the texts that one of the two splits wrongly")
    is_shown = parser.parse_args().show
    part = PARTS[0]
    right: defaultdict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    for line in Path(__file__).with_name("hard_sentences.txt").read_text("utf-8").splitlines():
        if line.startswith("#"):
            part = PARTS[1]
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
