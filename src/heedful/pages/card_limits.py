"""Section "Limits" of a model card: how far a model reaches, by what its folder says of it."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from heedful.config.base import read_toml, validate
from heedful.data.encoded import EncodedCorpus
from heedful.engines.folder import CONFIG
from heedful.errors import HeedfulError
from heedful.pages.record import training_size
from heedful.text.counts import counted
from heedful.text.tokenizer import TextConfig

_EXAMPLES: Final = {"translation": "pair", "classification": "text", "captioning": "caption", "answering": "question"}
"""Name of one example of each task."""
_OF_TEXTS: Final = ("translation", "classification")
"""Tasks whose stored sources are texts."""


def limits_of(
    path: Path,
    facts: Mapping[str, Any],
    languages: Sequence[str],
    metrics: Sequence[Mapping[str, Any]],
    tested: str,
) -> list[str]:
    """List known limits of a model.

    Args:
        path: the model's folder.
        facts: content of its `heedful.json`.
        languages: those of source and target; none = unknown.
        metrics: scores of the model, as `stored_scores` gives them.
        tested: name of the test set that they are of.

    Returns:
        Sentences. What the folder no longer says, such as the length of its training texts after `heedful pack`, is
        left out.
    """
    task = str(facts.get("task", "translation"))
    lines: list[str] = []
    if task == "translation" and len(languages) == 2:
        lines.append(f"It reads {languages[0]} and writes {languages[1]}; texts in other languages give nonsense.")
    elif languages:
        lines.append(f"It reads {' and '.join(dict.fromkeys(languages))}, and no other language.")
    number, longest = _trained_on(path, task)
    lines += [*_lengths(path, task, longest)]
    number = number or training_size(path)
    learned = f"It learned from {counted(number, _EXAMPLES.get(task, 'row'))}; " if number else ""
    what = "Pictures" if task == "captioning" else "Texts"
    unlike = f"{what} unlike its training data give worse outputs: try it on your own first."
    lines.append(learned + (unlike[0].lower() + unlike[1:] if learned else unlike))
    if metrics:
        best = metrics[0]
        score = f"{best['name']} {best['score']:.1f} {best['unit']}".rstrip()
        lines.append(f"Its scores, such as {score}, are those on one set of texts: the {tested}.")
    else:
        lines.append("No score on a test set is known.")
    return lines


def _trained_on(path: Path, task: str) -> tuple[int, int]:
    """Number of examples of the training, and tokens of the longest source, without EOS; 0 where nothing says it."""
    try:
        corpus = EncodedCorpus.read(path / "run/data")
    except (HeedfulError, OSError):
        return 0, 0
    longest = int(corpus.source.lengths.max(initial=0)) - 1 if task in _OF_TEXTS else 0
    return len(corpus), max(0, longest)


def _lengths(path: Path, task: str, longest: int) -> Iterator[str]:
    try:
        text = validate(TextConfig, read_toml(path / CONFIG).get("text", {}), "text")
    except HeedfulError:
        return
    units = f" ({text.source_units})" if task in _OF_TEXTS else ""
    if longest:
        yield f"The longest source in training had {counted(longest, 'token')}{units}; longer ones give worse outputs."
    if task in _OF_TEXTS:
        yield f"Of a text that it reads at once, what follows {counted(text.max_tokens, 'token')} is left out."
