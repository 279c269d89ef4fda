"""Answers to the page's requests: models, views of sentences, and records of training, as JSON values."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.util import find_spec
from typing import Annotated, Any, Final, final

from pydantic import Field

from heedful.config.base import Config, validate
from heedful.errors import EXTRAS, HeedfulError, MissingExtra, UsageError, did_you_mean
from heedful.pages.evaluation import evaluation
from heedful.pages.record import points, read_run
from heedful.pages.sentence import MeasureName
from heedful.pages.training import samples_of
from heedful.predictors.answerer import Answerer, story_of_line
from heedful.predictors.captioner import Captioner
from heedful.predictors.interface import Predictor
from heedful.predictors.label_views import MOST_CHARACTERS, VIEWS
from heedful.predictors.passage_view import passage_of
from heedful.predictors.sentence_view import SentenceViewer, ViewRequest
from heedful.predictors.translator import Translator

MOST_BEAM: Final = 12
_MOST_TOKEN: Final = 10_000_000


@final
class PageView(Config):
    """Request for the view of a sentence."""

    text: str = Field(max_length=MOST_CHARACTERS)
    model: str = Field(default="", max_length=300)
    """Name of a loaded model; empty = the first."""
    prefix: tuple[Annotated[int, Field(ge=0, le=_MOST_TOKEN)], ...] = Field(default=(), max_length=1000)
    beam: int = Field(default=0, ge=0, le=MOST_BEAM)
    alpha: float | None = Field(default=None, ge=0.0, le=10.0, allow_inf_nan=False)
    changes: tuple[dict[str, Any], ...] = Field(default=(), max_length=50)
    reference: str = Field(default="", max_length=MOST_CHARACTERS)
    """Translation whose departure from the beam is shown."""
    traced: bool = False
    layers: bool = False
    measure: MeasureName = "attention"
    """Measure that the maps of layers and heads show."""
    segment: int = Field(default=0, ge=0, le=MOST_CHARACTERS)
    """Index of the segment of the text that the view is of; beyond the last, the last."""


@final
class PageRequests:
    """Answers for the models that are loaded."""

    def __init__(self, models: Mapping[str, Predictor]) -> None:
        """Wrap predictors.

        Args:
            models: loaded models by the name that the page shows; at least one.
        """
        self._models: Final = dict(models)
        self._viewers: Final = {
            name: SentenceViewer(each) for name, each in models.items() if isinstance(each, Translator)
        }

    def models(self) -> dict[str, Any]:
        """List the models.

        Returns:
            Names, tasks, languages and kinds.
        """
        listed = [
            {
                "name": name,
                "task": each.folder.task,
                "languages": [str(one) for one in each.folder.facts.get("languages", ("", ""))],
                "kind": str(each.folder.facts.get("kind", "")),
            }
            for name, each in self._models.items()
        ]
        return {"models": listed}

    def view(self, body: Mapping[str, Any], cancelled: Callable[[], bool] | None = None) -> dict[str, Any]:
        """Ask a model, and collect what the page shows: a translation, a label, an answer or a caption.

        Args:
            body: fields of `PageView`, or of the requests of `heedful.predictors.label_views`.
            cancelled: called before every step of a search, which ends once it returns True.

        Returns:
            Values of `heedful.predictors.label_views`; or, of a translator, fields of `SentenceView`, of a segment of
            the text; with changes of attention also "unchanged", the output without them, and "passage", the whole text
            with its translation, where the text is more than one segment or the model reads it in another form.

        Raises:
            ConfigError: a field is missing, unknown or out of range.
            UsageError: there is no such model.
        """
        name = self._named(body.get("model", ""))
        if name not in self._viewers:
            view = next(view for kind, view in VIEWS.items() if isinstance(self._models[name], kind))
            return view(self._models[name], body, cancelled) | {"model": name}
        wanted = validate(PageView, body, "view")
        viewer = self._viewers[name]
        request = ViewRequest(
            wanted.text,
            prefix=wanted.prefix,
            beam=wanted.beam,
            alpha=wanted.alpha,
            has_layers=wanted.layers,
            traced_beams=(wanted.beam or 5,) if wanted.traced else (),
            changes=wanted.changes,
            reference=wanted.reference,
            cancelled=cancelled,
            measure=wanted.measure,
        )
        passage = passage_of(viewer.translator, wanted.text, viewer.search_config(request), cancelled)
        if passage is not None:
            request = replace(request, text=passage.parts[min(wanted.segment, len(passage.parts) - 1)].reading)
        view = viewer.view(request)
        is_forced = bool(wanted.prefix or wanted.changes)
        best = None if is_forced or not view.outputs else view.outputs[0].text
        if passage is not None and passage.is_plain(wanted.text.strip(), best):
            passage = None
        tree: dict[str, Any] = view.to_dict() | {"model": name, "passage": passage and passage.to_dict()}
        if find_spec("torch") is None:
            reason = str(MissingExtra("torch", EXTRAS["torch"], "changing attention"))
            tree["missing"] = {**tree["missing"], "override": reason}
        if wanted.changes:
            plain = viewer.view(replace(request, has_layers=False, traced_beams=(), changes=()))
            tree["unchanged"] = plain.outputs[0].text if plain.outputs else ""
        return tree

    def training(self, model: str) -> dict[str, Any]:
        """Return the record of a model's training.

        Args:
            model: name of a loaded model; empty = the first.

        Returns:
            Curves by name, each a list of [step, value], and samples; empty without a record.

        Raises:
            UsageError: there is no such model.
        """
        predictor = self._models[self._named(model)]
        try:
            run = read_run(predictor.folder.path)
        except HeedfulError:
            return {"curves": {}, "samples": [], "best": 0}
        lines = run.validations
        scores = list(lines[-1]["scores"]) if lines else []
        curves = {"training loss": points(lines, "loss")}
        curves |= {name: points(lines, "scores", name) for name in scores}
        curves["learning rate"] = points(lines, "learning_rate")
        curves["speed"] = points(lines, "tokens_per_second")
        samples: list[dict[str, Any]] = [
            {"source": source, "reference": reference, "outputs": []} for source, reference in samples_of(run)
        ]
        for line in lines:
            outputs = {
                source: output for source, _, output in line.get("samples") or [line.get("sample", ["", "", ""])]
            }
            for sample in samples:
                if sample["source"] in outputs:
                    sample["outputs"].append([int(line["step"]), outputs[sample["source"]]])
        for sample in samples if isinstance(predictor, Answerer) else ():
            story = story_of_line(sample["source"])
            sample |= {"source": "\n".join(story.facts), "question": story.question}
        if isinstance(predictor, Captioner):
            samples = []  # their sources are paths of this machine
        finite = {
            name: [[step, value] for step, value in curve if math.isfinite(value)] for name, curve in curves.items()
        }
        return {"curves": finite, "samples": samples, "best": int(run.best.get("step", 0)), "metric": run.metric}

    def evaluation(self, model: str) -> dict[str, Any]:
        """Return the scores of a model on a test set that are stored in its folder.

        Args:
            model: name of a loaded model; empty = the first.

        Returns:
            Values of `heedful.pages.evaluation.evaluation`.

        Raises:
            UsageError: there is no such model.
        """
        folder = self._models[self._named(model)].folder
        return evaluation(folder.path, str(folder.facts.get("weights", "")))

    def routes(self) -> dict[str, Callable[..., dict[str, Any]]]:
        """List the requests by their path.

        Returns:
            Functions; `page/view` takes a body; `page/training` and `page/evaluation` take the name of a model.
        """
        return {
            "page/models": self.models,
            "page/view": self.view,
            "page/training": self.training,
            "page/evaluation": self.evaluation,
        }

    def _named(self, model: object) -> str:
        """Name of a loaded model.

        Raises:
            UsageError: there is no such model.
        """
        name = model or next(iter(self._models))
        if not isinstance(name, str) or name not in self._models:
            known = did_you_mean(str(name)[:100], self._models)
            raise UsageError(f"no model {str(name)[:100]!r} is loaded{known}")
        return name
