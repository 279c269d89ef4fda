"""Terms given by their lemma: a list drawn from aligned pairs, and the forms in which a model uses it.

    python benchmarks/terms.py list train.en train.de --of val.en val.de --number 500 --lemmas de --out terms
    heedful train train.en train.de --dev val.en --dev val.de --set training.term_share=0.6 --out terms.model
    python benchmarks/terms.py score terms.model terms

`list` takes the first pairs of --of and writes them to terms/source.txt and terms/reference.txt, and the terms to
terms/terms.tsv. A term is a source word of at least four letters and the lemma (simplemma) of a target word of at
least five. IBM model 2 of all pairs in both directions links the words; of several lemmas the one with the most links
counts. Every reference whose source has the word, in any form that `--terms` finds, has the lemma in some form.

`score` prints how the outputs use the terms: without terms; with bound ones; with offered ones; with their source words
hidden where an output lacks them; and with those bound by stem or form that are still missing, which is the default.
"In the reference's form" means that the output has the very word of the reference; p is that of a sign test over the
terms of which only one of two outputs has it.
"""

import argparse
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from math import comb
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from heedful.cli.options import use_threads
from heedful.data.corpus import find_pairs
from heedful.engines.offered_terms import TermSearch
from heedful.engines.text_constraints import TextConstraints
from heedful.evaluation.evaluate import evaluate
from heedful.predictors.table import load
from heedful.predictors.translator import Translator
from heedful.text.term_files import read_terms
from heedful.text.terms import Term, Terms, split_units
from heedful.text.word_alignment import align_pairs

LEAST_SOURCE, LEAST_TARGET = 4, 5
SOURCE, REFERENCE, TERMS = "source.txt", "reference.txt", "terms.tsv"
Words = list[str]
Lemma = Callable[[str], str]


def is_word(text: str, least: int) -> bool:
    return len(text) >= least and text.isalpha()


def linked_words(pairs: Sequence[tuple[Words, Words]], number: int, lemma: Lemma) -> dict[str, Counter[str]]:
    """Lemmas of the target words that source words are linked to in the first pairs, with the number of links."""
    folded = [tuple([word.casefold() for word in side] for side in pair) for pair in pairs]
    links = align_pairs([(source, target) for source, target in folded], "intersection", model="ibm2")[:number]
    lemmas: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for (source, target), ones in zip(pairs, links, strict=False):
        for left, right in ones:
            if is_word(source[left], LEAST_SOURCE) and is_word(target[right], LEAST_TARGET):
                lemmas[source[left].casefold()][lemma(target[right])] += 1
    return dict(lemmas)


def chosen_terms(pairs: Sequence[tuple[str, str]], links: Mapping[str, Counter[str]], lemma: Lemma) -> list[Term]:
    """Source words with their lemma, if all references of sentences with the word in any form have it."""
    lemmas = [{lemma(word) for word in split_units(reference)} for _, reference in pairs]
    terms: list[Term] = []
    for word, found in sorted(links.items()):
        term = Term(word, found.most_common(1)[0][0])
        matching = Terms((term,))
        if all(term.target in lemmas[index] for index, (source, _) in enumerate(pairs) if matching.match(source)):
            terms.append(term)
    return terms


def write_list(options: argparse.Namespace) -> None:
    import simplemma

    known: dict[str, str] = {}

    def lemma(word: str) -> str:
        if word not in known:
            known[word] = simplemma.lemmatize(word, lang=options.lemmas)
        return known[word]

    wanted = [*find_pairs(options.of)]
    pairs = [(split_units(one.source), split_units(one.target)) for one in (*wanted, *find_pairs(options.files))]
    rows = [(one.source, one.target) for one in wanted[: options.number]]
    terms = chosen_terms(rows, linked_words(pairs, len(rows), lemma), lemma)
    if 0 < options.sample < len(terms):
        terms = sorted(random.Random(1).sample(terms, options.sample), key=lambda term: term.source)
    options.out.mkdir(parents=True, exist_ok=True)
    for name, lines in (
        (SOURCE, [source for source, _ in rows]),
        (REFERENCE, [target for _, target in rows]),
        (TERMS, [f"{term.source}\t{term.target}" for term in terms]),
    ):
        (options.out / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    print(f"{options.out / TERMS}: {len(terms):,} terms of {len(rows):,} sentences")


class Place(NamedTuple):
    """Term of a sentence, and the form that its reference has."""

    sentence: int
    term: Term
    form: str


class Row(NamedTuple):
    """Outputs of one way to give terms, counted at each place."""

    lemma: list[bool]
    other: list[bool]
    reference: list[bool]

    @classmethod
    def of(cls, places: Sequence[Place], outputs: Sequence[str]) -> "Row":
        uses = [place.term.used(outputs[place.sentence]) for place in places]
        has_form = [place.form in split_units(outputs[place.sentence]) for place in places]
        return cls([use == "exact" for use in uses], [use == "stem" for use in uses], has_form)


def sign_test(first: Sequence[bool], second: Sequence[bool]) -> tuple[int, int, float]:
    """Numbers of places that only one of two rows has right, and the two-sided p-value."""
    both = [*zip(first, second, strict=True)]
    wins, losses = both.count((True, False)), both.count((False, True))
    number = wins + losses
    tail = sum(comb(number, k) for k in range(max(wins, losses), number + 1))
    return wins, losses, min(1.0, 2 * tail / 2**number)


def score(options: argparse.Namespace) -> None:
    use_threads(options.threads)
    translator = load(options.model, kind=Translator, engine=options.engine)
    sources = (options.folder / SOURCE).read_text(encoding="utf-8").splitlines()
    references = (options.folder / REFERENCE).read_text(encoding="utf-8").splitlines()
    terms = read_terms(options.folder / TERMS)
    places = [
        Place(index, term, form)
        for index, source in enumerate(sources)
        for term in dict.fromkeys(terms.match(source))
        if (form := term.form_in(references[index]))
    ]
    inflected = [place.form != place.term.target for place in places]
    print(f"{len(places):,} terms in the sources, {sum(inflected):,} of which have another form in the reference")
    ways = {
        "no terms": None,
        "bound": TextConstraints(terms=terms, bind_terms=True),
        "offered": TextConstraints(terms=terms),
        "then hidden": TextConstraints(terms=terms),
        "then bound": TextConstraints(terms=terms),
    }
    # The method that says what is missing, as if nothing were.
    cut_short = {"offered": "_lacking", "then hidden": "_required"}
    rows: dict[str, Row] = {}
    for name, constraints in ways.items():
        method = cut_short.get(name)
        with mock.patch.object(TermSearch, method, return_value=[]) if method else nullcontext():
            outputs = [
                one.text
                for one in translator.translate(sources, beam=options.beam, constraints=constraints, corrected=False)
            ]
        row = rows[name] = Row.of(places, outputs)
        report = evaluate(outputs, [[one] for one in references], sources, ("bleu",), translator.target_language)
        right = [flag for flag, is_inflected in zip(row.reference, inflected, strict=True) if is_inflected]
        columns = (row.lemma, row.other, row.reference, right)
        shares = " | ".join(f"{100 * sum(flags) / max(1, len(flags)):.1f} %" for flags in columns)
        print(f"{name:<20} | {shares} | BLEU {report.results[0].score:.2f}")
    wins, losses, p = sign_test(rows["then bound"].reference, rows["bound"].reference)
    print(f"reference's form: {wins} only by default, {losses} only bound; p = {p:.4f}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Terms given by their lemma.")
    commands = parser.add_subparsers(required=True)
    listing = commands.add_parser("list", help="draw a list of terms from aligned pairs")
    listing.add_argument("files", type=Path, nargs="+", help="one file of pairs, or two aligned ones, to learn from")
    listing.add_argument("--of", type=Path, nargs="+", required=True, help="the pairs whose terms are listed")
    listing.add_argument("--number", type=int, default=500, help="number of these pairs")
    listing.add_argument("--sample", type=int, default=0, help="number of terms, drawn at random; 0 = all")
    listing.add_argument("--lemmas", default="de", help="target language, as simplemma names it")
    listing.add_argument("--out", type=Path, required=True, help="folder of the list and its sentences")
    listing.set_defaults(run=write_list)
    scoring = commands.add_parser("score", help="count how a model uses the terms")
    scoring.add_argument("model", type=Path)
    scoring.add_argument("folder", type=Path)
    scoring.add_argument("--beam", type=int, default=0, help="0 = the model's own")
    scoring.add_argument("--engine", default="auto")
    scoring.add_argument("--threads", type=int, default=1)
    scoring.set_defaults(run=score)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
