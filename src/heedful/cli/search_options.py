"""Options of search and sampling, in panels of their own in the help."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, final

import typer

from heedful.cli.options import MOST_HYPOTHESES, MOST_SEED, SEARCH, parse_languages
from heedful.errors import UsageError

if TYPE_CHECKING:
    from heedful.engines.text_constraints import TextConstraints
    from heedful.predictors.translator import Translator
    from heedful.search.config import SearchConfig
    from heedful.text.terms import Terms

_WORDING: Final = "Constraints on outputs"
_SAMPLING: Final = "Sampling instead of search"

Nbest = Annotated[
    int,
    typer.Option(min=1, max=10_000, metavar="INTEGER", help="Number of outputs per line.", rich_help_panel=SEARCH),
]
Groups = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=MOST_HYPOTHESES,
        metavar="INTEGER",
        help="Number of groups of diverse beam search.",
        rich_help_panel=SEARCH,
    ),
]
Diversity = Annotated[
    float | None,
    typer.Option(
        min=0.0,
        max=1000.0,
        metavar="FLOAT",
        help="Penalty, in nats, on tokens that earlier groups chose; default with --groups: 0.5.",
        rich_help_panel=SEARCH,
    ),
]
Prefix = Annotated[
    str, typer.Option(metavar="TEXT", help="Text that every output begins with.", rich_help_panel=_WORDING)
]
Require = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PHRASE", help="Phrase that every output contains; may be repeated.", rich_help_panel=_WORDING
    ),
]
Ban = Annotated[
    list[str] | None,
    typer.Option(metavar="PHRASE", help="Phrase that no output contains; may be repeated.", rich_help_panel=_WORDING),
]
TermsPath = Annotated[
    Path | None,
    typer.Option(
        "--terms",
        metavar="FILE",
        help="Terms, one per line: source term TAB target form TAB note, or a term base (.tbx); outputs contain the "
        "forms of their terms, inflected where the model was trained with training.term_share.",
        rich_help_panel=_WORDING,
    ),
]
TermLanguages = Annotated[
    str,
    typer.Option(
        metavar="SRC:TGT",
        help="Languages of a term base, such as de:en.",
        show_default="the model's",
        rich_help_panel=_WORDING,
    ),
]
BindTerms = Annotated[
    bool,
    typer.Option("--bind-terms", help="Use the forms of --terms exactly as they are.", rich_help_panel=_WORDING),
]
Keep = Annotated[
    list[str] | None,
    typer.Option(
        metavar="REGEX",
        help="Spans of sources that stay as they are, beside addresses, numbers, placeholders and the like; may be "
        "repeated.",
        rich_help_panel=_WORDING,
    ),
]
Sample = Annotated[
    bool, typer.Option("--sample", help="Sample outputs; implied by the options below.", rich_help_panel=_SAMPLING)
]
Temperature = Annotated[
    float | None,
    typer.Option(
        min=0.0,
        max=1000.0,
        metavar="FLOAT",
        help="Softmax temperature; below 1 sharpens, above 1 flattens.",
        rich_help_panel=_SAMPLING,
    ),
]
TopK = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=1_000_000,
        metavar="INTEGER",
        help="Sample from the N most probable tokens.",
        rich_help_panel=_SAMPLING,
    ),
]
TopP = Annotated[
    float | None,
    typer.Option(
        min=0.0,
        max=1.0,
        metavar="FLOAT",
        help="Sample from the fewest tokens with this total probability.",
        rich_help_panel=_SAMPLING,
    ),
]
MinP = Annotated[
    float | None,
    typer.Option(
        min=0.0,
        max=1.0,
        metavar="FLOAT",
        help="Sample from tokens at least this fraction as probable as the best.",
        rich_help_panel=_SAMPLING,
    ),
]
SampleSeed = Annotated[
    int | None,
    typer.Option(
        "--seed",
        min=0,
        max=MOST_SEED,
        metavar="INTEGER",
        help="Seed of the sampled outputs.",
        rich_help_panel=_SAMPLING,
    ),
]


def text_constraints(
    prefix: str = "",
    require: Sequence[str] | None = None,
    ban: Sequence[str] | None = None,
    terms: "Terms | None" = None,
    bind_terms: bool = False,
    keep: Sequence[str] | None = None,
) -> "TextConstraints":
    """Combine the constraints of the command line.

    Raises:
        UsageError: there are no terms to bind.
    """
    from heedful.engines.text_constraints import TextConstraints

    if bind_terms and terms is None:
        raise UsageError("--bind-terms: there are no terms; give a file by --terms")
    return TextConstraints(prefix, require or (), ban or (), terms, bind_terms, tuple(keep or ()))


def listed_terms(path: Path | None, languages: str, model: Path) -> "Terms | None":
    """Read the file of --terms.

    Args:
        path: the file; None = there is none.
        model: folder of the model, whose languages are those of a term base if no others are given.

    Returns:
        The terms; None without a file.

    Raises:
        DataError: the file is no list of terms, or a term base whose languages are not known.
        UsageError: the languages are not two codes, or are given for no term base.
    """
    from heedful.engines.folder import read_manifest
    from heedful.text.tbx import is_tbx
    from heedful.text.term_files import read_terms
    from heedful.text.text_files import UNNAMED

    is_base = path is not None and is_tbx(path)
    if languages and not is_base:
        raise UsageError("--term-languages is about a term base; give a .tbx file by --terms")
    if path is None or not is_base:
        return read_terms(path) if path else None
    if languages:
        return read_terms(path, parse_languages(languages, "--term-languages"))
    source, target = read_manifest(model).facts.get("languages", UNNAMED)
    return read_terms(path, ("", "") if (source, target) == UNNAMED else (str(source), str(target)))


@final
@dataclass(frozen=True)
class SearchOptions:
    """Search options of the command line; None = the model's setting."""

    beam: int | None
    nbest: int
    groups: int | None
    diversity: float | None
    drawn: Mapping[str, Any]
    """Settings of sampling."""
    is_drawn: bool
    replace_unknown: bool | None
    shortlist: bool

    def search(self, translator: "Translator") -> "SearchConfig":
        """Apply the options to the model's own search settings."""
        from heedful.cli.scoring import changed_search

        is_drawn = self.is_drawn or any(value is not None for value in self.drawn.values())
        changes = self._sampling() if is_drawn else self._grouping(self.beam or translator.search.beam)
        others = {"replace_unknown": self.replace_unknown, "shortlist": self.shortlist or None}
        return changed_search(translator, self.beam, self.nbest, {**changes, **others})

    def _sampling(self) -> dict[str, Any]:
        """Settings of sampling; the model's own search settings are ignored."""
        settings = {"num_groups": self.groups or 1, "diversity": self.diversity or 0.0, "beam": self.beam or 1}
        return {**self.drawn, **settings, "method": "sampling", "stopping": "likely"}

    def _grouping(self, beam: int) -> dict[str, Any]:
        """Settings of groups: by default one hypothesis each, with a beam that divides evenly."""
        if self.groups is None and self.diversity is None:
            return {}
        number = self.groups or max(2, beam)
        unlike = 0.0 if number == 1 else 0.5
        return {
            "num_groups": number,
            "diversity": unlike if self.diversity is None else self.diversity,
            "beam": -(-beam // number) * number,
        }
