"""Evaluation of models that translate: options of the search, perplexity of the references, and confidence."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, final

from heedful.cli.evaluation_pictures import draw_lengths, draw_risks
from heedful.cli.lines import refuse_overwriting
from heedful.cli.messages import Messages
from heedful.errors import UsageError
from heedful.text.counts import counted
from heedful.text.durations import duration
from heedful.text.segments import Policy

if TYPE_CHECKING:
    from heedful.data.prepare import EvaluationSet
    from heedful.data.rows import Columns
    from heedful.engines.text_constraints import TextConstraints
    from heedful.evaluation.confidence import ConfidenceReport
    from heedful.predictors.perplexity import Perplexity
    from heedful.predictors.translation_scores import TranslationScores
    from heedful.predictors.translator import Translator


@final
@dataclass(frozen=True)
class TranslationScoring:
    """Options of `heedful evaluate` that are for models that translate."""

    metrics: tuple[str, ...]
    beam: int | None
    replace_unknown: bool | None
    has_shortlist: bool
    constraints: "TextConstraints"
    batch_tokens: int
    segments: Policy | None
    lowercase: bool
    seed: int
    is_ensemble: bool = False
    """True where further models decode together with the first; the confidence is that of one model alone."""
    is_recorded: bool = False
    png: Path | None = None
    """Picture of the score by source length."""
    risk_png: Path | None = None
    """Picture of the confidence."""

    def run(
        self, models: "Sequence[Translator]", items: "EvaluationSet", messages: Messages
    ) -> "list[TranslationScores]":
        """Score a model and its baselines; store the scores of the first, and draw its pictures.

        Raises:
            FileRefused: the confidence is to be drawn, and the model has none.
        """
        from heedful.predictors.cached_test_scores import keep_evaluation
        from heedful.predictors.confidence import read_confidence

        first, path = models[0], models[0].folder.path
        if self.risk_png:
            read_confidence(first.folder)  # before it translates
        scores = [self._score(first, items, messages, self.is_ensemble)]
        if self.is_recorded:
            keep_evaluation(first.folder, scores[0].outputs)
            messages.say(f"{path}: scores stored; heedful serve {path} shows them")
        draw_risks(self.risk_png, scores[0].confidence, f"{path}, {counted(len(items), 'source')}")
        scores += [self._score(baseline, items, messages) for baseline in models[1:]]
        paths = (str(one.folder.path) for one in models)
        draw_lengths(self.png, dict(zip(paths, (one.outputs.report for one in scores), strict=True)))
        return scores

    def _score(
        self, translator: "Translator", items: "EvaluationSet", messages: Messages, is_ensemble: bool = False
    ) -> "TranslationScores":
        """Translate sources and score the outputs, the references and the confidence."""
        from heedful.cli.scoring import announce_engine, changed_search
        from heedful.predictors.translation_scores import TranslationScores

        changes = {"replace_unknown": self.replace_unknown, "shortlist": self.has_shortlist or None}
        chosen = changed_search(translator, self.beam, changes=changes)
        strictest = self.constraints.of_sources(translator.target_tokenizer).strictest
        search = announce_engine(translator, chosen, False, messages, strictest)
        outputs = translator.measure(
            items,
            self.metrics,
            search=search,
            batch_tokens=self.batch_tokens,
            constraints=self.constraints,
            segments=self.segments,
            lowercase=self.lowercase,
            seed=self.seed,
        )
        speed = f"{len(items) / max(1e-9, outputs.seconds):.1f} a second, beam {search.beam}"
        name, number = translator.folder.path, counted(len(items), "source")
        messages.say(f"{name}: {number} in {duration(outputs.seconds)}, {speed}")
        confidence = None
        if not is_ensemble and self.segments is None:  # confidence is calibrated on single sentences
            confidence = self._confidence(translator, items, outputs.outputs, outputs.generated, messages)
        return TranslationScores(outputs, _perplexity(translator, items, messages), confidence)

    def _confidence(
        self,
        translator: "Translator",
        items: "EvaluationSet",
        outputs: list[str],
        generated: tuple[str, ...],
        messages: Messages,
    ) -> "ConfidenceReport | None":
        from heedful.predictors.calibration import measure_confidence
        from heedful.predictors.confidence import ROLE

        report = measure_confidence(translator, items, outputs, self.seed, generated)
        if report is None and ROLE in translator.folder.facts:
            reason = f"it needs attention, which --engine {translator.backends.engine} does not give"
            messages.warn(f"{translator.folder.path}: confidence not measured: {reason}")
        return report


def read_pairs(
    translator: "Translator",
    data: list[Path],
    columns: "Columns",
    messages: Messages,
    lacks_last: bool = False,
    limit: int = 0,
) -> "EvaluationSet":
    """Read the evaluation set of a model; print how its columns are understood, and which rows cannot be read.

    Args:
        lacks_last: whether the last column of every source is given by --as.
        limit: largest number of sources; 0 = all.
    """
    from heedful.predictors.measured_translations import read_items
    from heedful.predictors.source_columns import model_pairs

    pairs = model_pairs(translator.folder, data, columns, lacks_last, leaves_out_faults=True)
    messages.say(pairs.describe())
    items = read_items(pairs, limit)
    for note in items.notes:
        messages.warn(note)
    return items


def refuse_conflicts(
    is_recording: bool, pictures: tuple[Path | None, Path | None], has_ensemble: bool, has_terms: bool, is_split: bool
) -> None:
    """Check options that exclude each other.

    Args:
        pictures: files of --png and --risk-png.

    Raises:
        UsageError: they do, or the picture would replace something else than a file.
    """
    if is_recording and (has_ensemble or has_terms):
        raise UsageError("evaluate: --record stores the scores of one model alone; leave out --ensemble and --terms")
    _, risks = pictures
    if risks is not None and has_ensemble:
        raise UsageError("evaluate: --risk-png draws the confidence of one model alone; leave out --ensemble")
    if risks is not None and is_split:
        raise UsageError("evaluate: --risk-png draws the confidence of whole outputs; leave out --segments")
    for path in pictures:
        if path is not None:
            refuse_overwriting(path, ())


def _perplexity(translator: "Translator", items: "EvaluationSet", messages: Messages) -> "Perplexity":
    """Perplexity of the references, with a warning about those that were cut."""
    from heedful.predictors.perplexity import perplexity

    of_references = perplexity(translator, items)
    if of_references.num_cut:
        cut, most = counted(of_references.num_cut, "reference"), translator.text.max_tokens
        messages.warn(f"perplexity: {cut} cut at {most} tokens, the most {translator.folder.path} takes")
    return of_references
