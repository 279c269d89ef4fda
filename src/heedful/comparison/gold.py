"""Manual alignments that the rows of a comparison are evaluated against."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from heedful.comparison.grid import GoldSettings
from heedful.comparison.run_result import run_key
from heedful.data.corpus import find_pairs
from heedful.data.rows import Columns
from heedful.engines.scored_pairs import TextPair
from heedful.errors import ConfigError
from heedful.evaluation.alignment_error import gold_links, score_alignments
from heedful.predictors.translator import Translator
from heedful.text.links import GoldLinks

AER: Final = "aer"
"""Key of the alignment error rate's column in `heedful.comparison.summary.COLUMNS`."""


@final
@dataclass(frozen=True)
class Gold:
    """Pairs with manual alignments.

    Attributes:
        pairs: source and target of each pair.
        links: sure and possible alignment links between the words of each pair.
        paths: the file of the links, then the files of the pairs.
        key: hash of pairs and links; equal keys mean equal pairs and links.
    """

    pairs: tuple[TextPair, ...]
    links: tuple[GoldLinks, ...]
    paths: tuple[Path, ...]
    key: str

    def remark(self) -> str:
        """Return the note that explains the AER column below the table."""
        return (
            f"AER: of {len(self.pairs):,} pairs with links in {self.paths[0]}, by forced decoding, a link for "
            "each target word; - where a model has no attention"
        )


def read_gold_pairs(settings: GoldSettings, test: Sequence[Path], columns: Columns) -> Gold | None:
    """Read the pairs and manual alignments of a comparison.

    Args:
        settings: the grid's [gold] section.
        test: test files, which serve as the pairs where the settings name none.
        columns: 1-based columns of source and target.

    Returns:
        The aligned pairs, in the order of the file of links; None where the settings name no links.

    Raises:
        ConfigError: there are links without pairs, or other [gold] settings without links.
        DataError: a file is unusable, or the links do not fit the pairs.
    """
    if not settings.links:
        if settings.pairs or settings.is_one_based or settings.is_turned:
            raise ConfigError("gold.links: name the file of manual links")
        return None
    paths = [Path(path) for path in settings.pairs] or [*test]
    if not paths:
        raise ConfigError("gold.pairs: name the pairs that the links are of, or give --test, whose links they are then")
    pairs = [(pair.source, pair.target) for pair in find_pairs(paths, columns)]
    links = gold_links(Path(settings.links), pairs, settings.is_one_based, settings.is_turned)
    aligned = tuple(pairs[index] for index in links)
    return Gold(
        pairs=aligned,
        links=tuple(links.values()),
        paths=(Path(settings.links), *paths),
        key=run_key({"pairs": aligned, "links": [*links.values()]}),
    )


def alignment_error(translator: Translator, gold: Gold) -> float | None:
    """Align the pairs with a model, as `heedful align` does, and return the error rate.

    Args:
        translator: the model or ensemble.

    Returns:
        The alignment error rate in per cent; None where the model has no attention.
    """
    if translator.backends.scoring(attention=True).supports_scoring(True):
        return None
    scored_pairs = translator.scored_pairs(gold.pairs, attention=True)
    return score_alignments(
        [list(pair.alignment or ()) for pair in scored_pairs], gold.links, num_resamples=1
    ).error_rate
