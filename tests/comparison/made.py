"""Made-up results: outputs that are right for some sources and wrong for others."""

from collections.abc import Mapping, Sequence

from heedful.comparison.run_result import ComparedItems, RunResult

SOURCES = tuple(" ".join(["wort"] * (1 + place % 12)) for place in range(60))
REFERENCES = tuple((" ".join(f"word{(place + step) % 7}" for step in range(4 + place % 5)),) for place in range(60))
ITEMS = ComparedItems(
    sources=SOURCES,
    references=REFERENCES,
    target_language="en",
    is_validation=False,
    default_metrics=("bleu", "chrf"),
    data="d" * 64,
)


def make_outputs(num_right: int) -> tuple[str, ...]:
    """The references for so many items, evenly spread over all lengths, and other words for the rest."""
    return tuple(
        texts[0] if (place * 7) % 60 < num_right else f"word1 {texts[0].split()[0]} nothing at all"
        for place, texts in enumerate(REFERENCES)
    )


def make_finding(row: str, num_right: int, seed: int = 1, **changes: object) -> RunResult:
    facts: dict[str, object] = {
        "row": row,
        "seed": seed,
        "key": "k",
        "command": f"heedful train pairs.tsv --set 'training.seed={seed}'",
        "settings": f'[model]\nkind = "{row}"\n\n[training]\nseed = {seed}\n',
        "tokenizers": ("a", "b"),
        "num_parameters": 12_345,
        "step": 30,
        "num_target_tokens": 7_000,
        "seconds": 61.5,
        "tokens_per_second": 120.0 + seed,
        "ended": "30 steps",
        "best_step": 20,
        "device": "cpu",
        "versions": "heedful 0, PyTorch 0, 1 threads",
        "perplexity": 4.0 + num_right / 100,
        "bits_per_character": 1.0,
        "outputs": make_outputs(num_right),
    }
    return RunResult.model_validate({**facts, **changes})


def by_row(results: Sequence[RunResult]) -> Mapping[str, list[RunResult]]:
    return {row: [each for each in results if each.row == row] for row in dict.fromkeys(f.row for f in results)}
