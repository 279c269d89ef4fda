"""Loaded models by language pair, and the shortest chain of models between two languages."""

from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Final, final

from heedful.errors import UsageError
from heedful.predictors.table import load
from heedful.predictors.translator import Translator
from heedful.serving.languages import candidates, canonical, name_of


@final
class Catalog:
    """Models of a server, by language pair."""

    def __init__(self, translators: Sequence[Translator]) -> None:
        """File the models under their language pairs.

        Args:
            translators: one model or more; the first of a pair answers for it.

        Raises:
            UsageError: there is no model, or a folder is named twice.
        """
        if not translators:
            raise UsageError("serve: no model; name at least one model folder")
        folders: set[Path] = set()
        for translator in translators:
            folder = translator.folder.path.resolve()
            if folder in folders:
                raise UsageError(f"serve: {translator.folder.path} is named twice; leave one out")
            folders.add(folder)
        self.translators: Final = tuple(translators)
        """All models; the page compares those of one pair."""
        self.models: Final[dict[tuple[str, str], Translator]] = {}
        """Model that answers requests, by language pair."""
        for translator in translators:
            self.models.setdefault(language_pair(translator), translator)
        self.sources: Final = tuple(dict.fromkeys(source for source, _ in self.models))
        """Codes of the source languages, in the order of the models."""
        self.codes: Final = tuple(dict.fromkeys(code for pair in self.models for code in pair))
        """Codes of all languages, in the order of the models."""

    def role_of(self, translator: Translator) -> str:
        """Describe what a model does on this server.

        Returns:
            Its languages and folder, and which model answers in its place.
        """
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


def language_pair(translator: Translator) -> tuple[str, str]:
    """Return the languages of a model.

    Returns:
        Canonical codes of source and target; ``source`` and ``target`` where the folder has no codes.
    """
    codes = [str(code) for code in translator.folder.facts.get("languages", ["", ""])]
    source, target = (canonical(code) for code in codes)
    return source or "source", target or "target"


def open_models(paths: Sequence[Path], engine: str = "auto", device: str = "cpu") -> Catalog:
    """Open model folders, and load their weights by one translation each.

    Args:
        engine: torch, the name of an exported engine, or "auto".
        device: PyTorch device.

    Raises:
        UsageError: a folder has no translation model, or is named twice.
        FileRefused: a folder is damaged.
    """
    catalog = Catalog([load(path, device, engine, kind=Translator) for path in paths])
    for translator in catalog.translators:
        translator.translate([translator.source_tokenizer.trial_text()], beam=1)
    return catalog
