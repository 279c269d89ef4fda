"""A few made-up items that the tests of evaluation share: different lengths, numbers of references and faults."""

from sacrebleu.metrics.base import Metric

SOURCES = [
    "eine Katze sitzt auf der Matte",
    "zwei Hunde laufen heute schnell durch den nassen grünen Park",
    "ja",
    "der Mann mit dem roten Hut liest eine Zeitung",
    "Kinder spielen im Sand",
    "es regnet",
]
REFERENCES = [
    ["A cat is sitting on the mat.", "A cat sits on the mat."],
    ["Two dogs are running fast through the wet green park today."],
    ["Yes."],
    [
        "The man in the red hat is reading a newspaper.",
        "The man with the red hat reads a paper, quietly.",
        "A man reads.",
    ],
    ["Children are playing in the sand."],
    ["It is raining.", "It rains."],
]
HYPOTHESES = [
    "A cat sits on a mat.",
    "Two dogs run through the wet green park fast today.",
    "Yes.",
    "The man with the red hat is reading the paper.",
    "",
    "It rains.",
]
WORSE = ["A dog.", "Two dogs are in the park.", "No.", "The red hat reads.", "Sand", "it rains"]


def sacre_score(scorer: Metric, hypotheses: list[str], references: list[list[str]]) -> float:
    """What sacreBLEU itself says, missing references filled with None."""
    most = max(map(len, references))
    streams = [[texts[rank] if rank < len(texts) else None for texts in references] for rank in range(most)]
    return scorer.corpus_score(hypotheses, streams).score  # type: ignore[arg-type]
