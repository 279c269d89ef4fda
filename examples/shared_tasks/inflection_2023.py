"""Train on SIGMORPHON-UniMorph 2023, task 0, part 1 (inflection), and print the score of the task.

git clone https://github.com/sigmorphon/2023InflectionST
python examples/shared_tasks/inflection_2023.py 2023InflectionST/part1/data out
python examples/shared_tasks/inflection_2023.py 2023InflectionST/part1/data out --languages fin spa --seeds 5

For each language, `out` gets a model and the outputs of the development set in the official form: a word, a tab, its
features, a tab and its form. The score is the task's: the share of forms that are right, and its mean over the
languages. Training stops at the best model on the development set; the test set is read with --test alone. With
--outputs FOLDER, the outputs of another system, such as a baseline, are scored beside: files of the same form and name.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import heedful
from heedful.cli.main import main as heedful_command

Rows = list[tuple[str, str, str]]


def read(path: Path) -> Rows:
    """Words, features and forms of an official file."""
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").split("\n") if line]
    return [(word, features, form) for word, features, form in rows]


def accuracy(outputs: Rows, gold: Rows) -> float:
    """Share of forms that are right, in percent."""
    return 100.0 * sum(output == right for output, right in zip(outputs, gold, strict=True)) / len(gold)


def train(language: str, folder: Path, out: Path, num_seeds: int, options: Sequence[str]) -> heedful.Translator:
    """Model of one language, by the plain command; trained or resumed."""
    files = [folder / f"{language}.trn", "--dev", folder / f"{language}.dev", "--out", out]
    arguments = ["train", *map(str, files), "--seeds", str(num_seeds), "--quiet", *options]
    if code := heedful_command(arguments):
        raise SystemExit(code)
    return heedful.load(out, kind=heedful.Translator)


def main(
    folder: Path,
    out: Path,
    languages: Sequence[str] = (),
    num_seeds: int = 1,
    has_test: bool = False,
    others: Path | None = None,
    options: Sequence[str] = (),
) -> None:
    suffix = ".tst" if has_test else ".dev"
    found = languages or sorted(path.stem for path in folder.glob("*.trn"))
    table: list[tuple[float, ...]] = []
    print(f"{'':8}{'heedful':>9}{f'{others.name:>12}' if others else ''}   forms right, %, {suffix}")
    for language in found:
        translator = train(language, folder, out / f"{language}.model", num_seeds, options)
        gold = read(folder / f"{language}{suffix}")
        results = translator.translate([f"{word} | {features}" for word, features, _ in gold])
        outputs = [(word, features, one.text) for (word, features, _), one in zip(gold, results, strict=True)]
        text = "".join("\t".join(row) + "\n" for row in outputs)
        (out / f"{language}{suffix}").write_text(text, encoding="utf-8", newline="\n")
        scored = [outputs, read(others / f"{language}{suffix}")] if others else [outputs]
        table.append(tuple(accuracy(rows, gold) for rows in scored))
        print(f"{language:8}{table[-1][0]:9.2f}" + "".join(f"{score:12.2f}" for score in table[-1][1:]), flush=True)
    means = [sum(scores) / len(scores) for scores in zip(*table, strict=True)]
    print(f"{'mean':8}{means[0]:9.2f}" + "".join(f"{mean:12.2f}" for mean in means[1:]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="official folder part1/data")
    parser.add_argument("out", type=Path, help="folder of models and outputs")
    parser.add_argument("--languages", nargs="*", default=())
    parser.add_argument("--seeds", type=int, default=1, help="models of an ensemble")
    parser.add_argument("--test", action="store_true", help="score the test set")
    parser.add_argument("--outputs", type=Path, help="folder of another system's outputs")
    given = parser.parse_args()
    main(given.folder, given.out, given.languages, given.seeds, given.test, given.outputs)
