"""Sentence splitting of hard texts by our rules and by sentencex (PyPI), by language.

    python benchmarks/sentences.py

`hard_sentences.txt` has a language and the sentences of one text on each line, written for this comparison. A text
counts as right where all its sentences are found, and nothing else.
"""

from collections import defaultdict
from pathlib import Path

import sentencex  # pyright: ignore[reportMissingImports]

from heedful.text.sentences import split_sentences

UNSPACED = ("zh", "ja")


def main() -> None:
    right: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for line in Path(__file__).with_name("hard_sentences.txt").read_text("utf-8").splitlines():
        language, content = line.split("\t")
        sentences = content.split("|")
        text = ("" if language in UNSPACED else " ").join(sentences)
        theirs = [one.strip() for one in sentencex.segment(language, text) if one.strip()]  # pyright: ignore
        row = right[language]
        row[0] += 1
        row[1] += split_sentences(text) == sentences
        row[2] += theirs == sentences
        if split_sentences(text) != sentences:
            print(f"{language}: ours: {split_sentences(text)}")
    print("| | texts | ours | sentencex |\n|---|---|---|---|")
    for language, (number, ours, theirs) in right.items():
        print(f"| {language} | {number} | {ours} | {theirs} |")


if __name__ == "__main__":
    main()
