"""Train on SIGMORPHON 2021, task 1 (grapheme-to-phoneme conversion), and print the score beside the baseline's.

git clone https://github.com/sigmorphon/2021-task1
python examples/shared_tasks/g2p_2021.py 2021-task1/data/low out
python examples/shared_tasks/g2p_2021.py 2021-task1/data/low out --languages ita rum --seeds 5

For each language, `out` gets a model and the outputs of the development set in the official form, a word, a tab and
its phones. The score is the task's: the share of words whose phones are not those of the file (word error rate), and
its mean over the languages. Training stops at the best model on the development set; the test set is read with --test
alone.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import heedful
from heedful.cli.main import main as heedful_command

BASELINE: Final = {
    **{"eng_us": (45.13, 41.94), "arm_e": (4.5, 7.0), "bul": (8.3, 18.3), "dut": (10.8, 14.7), "fre": (7.4, 8.5)},
    **{"geo": (0.0, 0.0), "hbs_latn": (34.7, 32.1), "hun": (1.5, 1.8), "jpn_hira": (6.2, 5.2), "kor": (18.4, 16.3)},
    **{"vie_hanoi": (1.3, 2.5), "ady": (22.0, 22.0), "gre": (5.0, 21.0), "ice": (11.0, 12.0), "ita": (22.0, 19.0)},
    **{"khm": (34.0, 34.0), "lav": (41.0, 55.0), "mlt_latn": (20.0, 19.0), "rum": (10.0, 10.0), "slv": (43.0, 49.0)},
    **{"wel_sw": (16.0, 10.0)},
}
"""Word error rates of the baseline on the development and the test set, an ensemble of neural transducers (Makarov and
Clematide 2018): README.md of the task's repository, section "Baseline"."""

Rows = list[tuple[str, str]]


def read(path: Path) -> Rows:
    """Words and phones of an official file."""
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").split("\n") if line]
    return [(word, phones) for word, phones in rows]


def word_error_rate(outputs: Rows, gold: Rows) -> float:
    """Share of words whose phones are wrong, in percent, as `evaluation/evaluate.py` of the task counts them."""
    wrong = sum(output != right for output, right in zip(outputs, gold, strict=True))
    return 100.0 * wrong / len(gold)


def train(language: str, folder: Path, out: Path, num_seeds: int, options: Sequence[str]) -> heedful.Translator:
    """Model of one language, by the plain command; trained or resumed."""
    files = [folder / f"{language}_train.tsv", "--dev", folder / f"{language}_dev.tsv", "--out", out]
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
    options: Sequence[str] = (),
) -> None:
    part = "test" if has_test else "dev"
    found = languages or sorted(path.name.removesuffix("_train.tsv") for path in folder.glob("*_train.tsv"))
    table: list[tuple[str, float, float]] = []
    print(f"{'':10}{'heedful':>9}{'baseline':>10}   word error rate, {part}")
    for language in found:
        translator = train(language, folder, out / f"{language}.model", num_seeds, options)
        gold = read(folder / f"{language}_{part}.tsv")
        words = [word for word, _ in gold]
        results = translator.translate(words, segments=None)
        outputs = [(word, one.text) for word, one in zip(words, results, strict=True)]
        text = "".join(f"{word}\t{phones}\n" for word, phones in outputs)
        (out / f"{language}_{part}.tsv").write_text(text, encoding="utf-8", newline="\n")
        table.append((language, word_error_rate(outputs, gold), BASELINE[language][has_test]))
        print(f"{language:10}{table[-1][1]:9.2f}{table[-1][2]:10.2f}", flush=True)
    means = [sum(row[column] for row in table) / len(table) for column in (1, 2)]
    print(f"{'mean':10}{means[0]:9.2f}{means[1]:10.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="official folder: data/low, data/medium or data/high")
    parser.add_argument("out", type=Path, help="folder of models and outputs")
    parser.add_argument("--languages", nargs="*", default=())
    parser.add_argument("--seeds", type=int, default=1, help="models of an ensemble")
    parser.add_argument("--test", action="store_true", help="score the test set")
    given = parser.parse_args()
    main(given.folder, given.out, given.languages, given.seeds, given.test)
