"""Loaded models by name and by language pair, and the shortest chain of models between two languages."""

from collections import deque
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Final, cast, final

from heedful.errors import UsageError, needed_for
from heedful.predictors.answerer import Answerer
from heedful.predictors.captioner import Captioner
from heedful.predictors.classifier import Classifier
from heedful.predictors.interface import Predictor
from heedful.predictors.table import load
from heedful.predictors.translator import Translator
from heedful.serving.languages import candidates, canonical, name_of

_OTHERS: Final = (Classifier, Answerer, Captioner)
"""Predictors of models that do not translate."""


@final
class Catalog:
    """Models of a server, by name and by language pair."""

    def __init__(self, models: Sequence[Predictor]) -> None:
        """File the models under their names, and translators under their language pairs.

        Args:
            models: one model or more; the first of a pair answers for it.

        Raises:
            UsageError: there is no model, or a folder is named twice.
        """
        if not models:
            raise UsageError("serve: no model; name at least one model folder")
        folders: set[Path] = set()
        for model in models:
            folder = model.folder.path.resolve()
            if folder in folders:
                raise UsageError(f"serve: {model.folder.path} is named twice; leave one out")
            folders.add(folder)
        self.named: Final = _named(models)
        """All models by the name that clients and the page use."""
        translators = cast(list[Translator], [each for each in models if not isinstance(each, _OTHERS)])
        self.translators: Final = tuple(translators)
        """All translators; the page compares those of one pair."""
        self.models: Final[dict[tuple[str, str], Translator]] = {}
        """Model that answers requests, by language pair."""
        for translator in translators:
            self.models.setdefault(language_pair(translator), translator)
        self.sources: Final = tuple(dict.fromkeys(source for source, _ in self.models))
        """Codes of the source languages, in the order of the models."""
        self.codes: Final = tuple(dict.fromkeys(code for pair in self.models for code in pair))
        """Codes of all languages, in the order of the models."""

    def role_of(self, model: Predictor) -> str:
        """Describe what a model does on this server.

        Returns:
            Its task or languages and its folder, and which model answers in its place.
        """
        if model not in self.translators:
            return f"{model.folder.task}: {model.folder.path}"
        translator = cast(Translator, model)
        source, target = pair = language_pair(translator)
        first = self.models[pair]
        note = "" if translator is first else f" (on the page only: {first.folder.path} answers requests)"
        return f"{source} -> {target}: {translator.folder.path}{note}"

    def find(self, code: str) -> str | None:
        """Find the language that a client means.

        Returns:
            The code of a language of this server; None if there is none.
        """
        return next((each for each in candidates(code) if each in self.codes), None)

    def targets(self, source: str) -> tuple[str, ...]:
        """List the languages that can be reached from another.

        Returns:
            Codes of the targets, directly reached ones first.
        """
        return tuple(self._paths(source))

    def path(self, source: str, target: str) -> tuple[Translator, ...] | None:
        """Find the shortest chain of models between two languages.

        Returns:
            The models, one after another; None if no chain leads there.
        """
        return self._paths(source).get(target)

    def languages(self) -> list[dict[str, object]]:
        """List the languages as `/languages` answers them.

        Returns:
            Code, English name and reachable targets of each language.
        """
        return [{"code": code, "name": name_of(code), "targets": [*self.targets(code)]} for code in self.codes]

    def _paths(self, source: str) -> dict[str, tuple[Translator, ...]]:
        """Shortest chain to every language that can be reached, by breadth-first search."""
        paths: dict[str, tuple[Translator, ...]] = {source: ()}
        waiting = deque([source])
        while waiting:
            code = waiting.popleft()
            for (start, end), translator in self.models.items():
                if start == code and end not in paths:
                    paths[end] = (*paths[code], translator)
                    waiting.append(end)
        del paths[source]
        return paths


def _named(models: Sequence[Predictor]) -> dict[str, Predictor]:
    """Name models by their folders, with numbers where two folders have one name."""
    named: dict[str, Predictor] = {}
    for model in models:
        name = model.folder.path.resolve().name
        number = 2
        while name in named:
            name, number = f"{model.folder.path.resolve().name} {number}", number + 1
        named[name] = model
    return named


def language_pair(translator: Translator) -> tuple[str, str]:
    """Return the languages of a model.

    Returns:
        Canonical codes of source and target; ``source`` and ``target`` where the folder has no codes.
    """
    codes = [str(code) for code in translator.folder.facts.get("languages", ["", ""])]
    source, target = (canonical(code) for code in codes)
    return source or "source", target or "target"


def open_models(paths: Sequence[Path], engine: str = "auto", device: str = "cpu") -> Catalog:
    """Open model folders, and load their weights, those of translators by one translation each.

    Args:
        engine: torch, the name of an exported engine, or "auto".
        device: PyTorch device.

    Raises:
        UsageError: a folder has no model, one for a task that has no interface here, or is named twice.
        FileRefused: a folder is damaged.
    """
    models: list[Predictor] = [load(path, device, engine) for path in paths]
    for model in models:
        match model:
            case Translator():
                model.translate([model.source_tokenizer.trial_text()], beam=1)
            case Captioner():
                with needed_for("captions of pictures"):
                    import_module("PIL.Image")
                model.backends.searching(model.search)
            case Classifier() | Answerer():
                model.label_run()
            case _:
                raise UsageError(f"serve: {model.folder.path}: a model for {model.folder.task}, which is not served")
    return Catalog(models)
