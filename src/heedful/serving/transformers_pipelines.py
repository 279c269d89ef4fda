"""Pipelines with the arguments and return keys that translation, summarization and text2text had in Transformers 4.

A model folder of heedful with an exported engine runs without PyTorch. A Marian folder in Hugging Face's layout is
converted on its first use, which needs PyTorch, and stored in the user's cache.
"""

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, final

from heedful.errors import UsageError, needed_for
from heedful.predictors.interface import Predictor
from heedful.predictors.table import load
from heedful.predictors.translation import Translation
from heedful.predictors.translator import Translator
from heedful.search.config import SearchConfig, with_outputs
from heedful.serving.task_pipelines import PIPELINES, TaskPipeline, texts_of_call

KEYS: Final[Mapping[str, str]] = {
    "translation": "translation",
    "summarization": "summary",
    "text2text-generation": "generated",
}
"""First part of the keys of the results, by task."""
_PAIR: Final = re.compile(r"translation_([A-Za-z_-]+)_to_([A-Za-z_-]+)")
_RENAMED: Final = {
    "num_beams": "beam",
    "num_return_sequences": "nbest",
    "length_penalty": "alpha",
    "repetition_penalty": "repetition_penalty",
    "no_repeat_ngram_size": "no_repeat_ngram_size",
    "min_new_tokens": "min_length",
    "temperature": "temperature",
    "top_k": "top_k",
    "top_p": "top_p",
    "min_p": "min_p",
    "seed": "seed",
}
"""Search settings by their names in Transformers."""
_IGNORED: Final = frozenset(("truncation", "clean_up_tokenization_spaces", "src_lang", "tgt_lang", "use_cache"))
"""Arguments without effect: a heedful model has one language pair, and cuts sources that exceed its limit."""

_STOPPING: Final[Mapping[str, str]] = {"False": "full", "True": "likely", "never": "certain"}
"""Rules that end a beam search, by the values of `early_stopping`."""

Result = dict[str, Any]


@final
class Pipeline:
    """Callable over texts, as `transformers.pipeline` returned it.

    Example:
        >>> translate = heedful.pipeline("translation", "de-en.model")  # doctest: +SKIP
        >>> translate(["Guten Tag", "Danke"], num_beams=4)  # doctest: +SKIP
        [{'translation_text': 'Good day'}, {'translation_text': 'Thanks'}]
    """

    def __init__(self, task: str, translator: Translator, settings: Mapping[str, Any]) -> None:
        """Keep the settings of every call.

        Args:
            task: key of `KEYS`.
            translator: model that generates the outputs.
            settings: arguments of `__call__`.
        """
        self.task: Final = task
        self.model: Final = translator
        self._settings: Final = dict(settings)

    def __call__(self, inputs: str | Sequence[str], **settings: Any) -> list[Result] | list[list[Result]]:
        """Generate outputs.

        Args:
            inputs: a text or a list of texts.
            settings: num_beams, num_return_sequences, max_length, max_new_tokens, min_length, length_penalty,
                early_stopping, no_repeat_ngram_size, repetition_penalty, do_sample, temperature, top_k, top_p,
                batch_size, return_tensors, return_text and prefix, as in Transformers.

        Returns:
            For a text a list of one dictionary per output; for a list of texts one dictionary per text, or one list per
            text where several outputs were asked for.

        Raises:
            UsageError: an argument is unknown, or an input is no text, such as None.
        """
        merged = self._settings | settings
        texts = texts_of_call(self.task, inputs)
        prefix = str(merged.pop("prefix", "") or "")
        has_ids = bool(merged.pop("return_tensors", False))
        batch_size = int(merged.pop("batch_size", 0) or 0)
        merged.pop("return_text", None)
        search = search_settings(self.model.search, merged)
        size = batch_size or max(1, len(texts))
        outputs = [
            self._results(one, has_ids)
            for start in range(0, len(texts), size)
            for one in self.model.stream(
                [prefix + text for text in texts[start : start + size]], search, corrected=True, segments="auto"
            )
        ]
        if isinstance(inputs, str):
            return outputs[0]
        return [one[0] for one in outputs] if all(len(one) == 1 for one in outputs) else outputs

    def _results(self, translation: Translation, has_ids: bool) -> list[Result]:
        key = KEYS[self.task]
        texts = [alternative.text for alternative in translation.alternatives]
        if not has_ids:
            return [{f"{key}_text": text} for text in texts]
        return [{f"{key}_token_ids": list(self.model.target_tokenizer.encode(text))} for text in texts]


def pipeline(
    task: str, model: str | Path | Predictor, *, device: str | int = "cpu", engine: str = "auto", **settings: Any
) -> Pipeline | TaskPipeline:
    """Make a pipeline, as `transformers.pipeline` of Transformers 4 did.

    Args:
        task: translation, translation_xx_to_yy, summarization or text2text-generation; text-classification or
            sentiment-analysis, feature-extraction, image-to-text or question-answering.
        model: a model folder, a Marian folder in Hugging Face's layout, or an opened model.
        device: PyTorch device; a number is a CUDA device, -1 the CPU.
        engine: torch, the name of an exported engine, or "auto".
        settings: arguments for every call.

    Raises:
        UsageError: there is no such task, or the model is for another one.

    Example:
        >>> heedful.pipeline("translation", "de-en.model")("Guten Tag")  # doctest: +SKIP
        [{'translation_text': 'Good day'}]
    """
    name = "translation" if _PAIR.fullmatch(task) else task
    if name not in KEYS and name not in PIPELINES:
        raise UsageError(f"pipeline {task!r}: no such task; known: {', '.join((*KEYS, *PIPELINES))}")
    if isinstance(model, Predictor):
        return _made(name, model, settings)
    path = Path(model)
    if (path / "config.json").is_file() and not (path / "heedful.json").is_file():
        path = converted(path)
    named = ("cpu" if device < 0 else f"cuda:{device}") if isinstance(device, int) else device
    return _made(name, load(path, named, engine), settings)


def _made(name: str, model: Predictor, settings: Mapping[str, Any]) -> Pipeline | TaskPipeline:
    """Pipeline of an opened model.

    Raises:
        UsageError: the model is for another task.
    """
    if name in PIPELINES:
        return TaskPipeline(name, model, settings)
    if not isinstance(model, Translator):
        raise UsageError(f"pipeline {name!r}: a model for {model.folder.task}; it takes a Translator")
    return Pipeline(name, model, settings)


def search_settings(default: SearchConfig, settings: Mapping[str, Any]) -> SearchConfig:
    """Translate Transformers' generation arguments to search settings.

    Args:
        settings: generation arguments; None = the default.

    Raises:
        UsageError: an argument is unknown, or the values do not fit together.

    Example:
        >>> config = search_settings(SearchConfig(), {"num_beams": 4, "max_new_tokens": 20})
        >>> config.beam, config.max_length_ratio, config.max_length_offset
        (4, 0.0, 19)
    """
    values = default.model_dump(mode="json")
    is_sampling = bool(settings.get("do_sample", False))
    if is_sampling:
        values |= {"method": "sampling", "beam": 1, "stopping": "likely"}
    for name, value in settings.items():
        if value is None or name in {*_IGNORED, "do_sample", "early_stopping"}:
            continue
        if name in _RENAMED:
            if is_sampling or name not in ("temperature", "top_k", "top_p", "min_p", "seed"):
                values[_RENAMED[name]] = value
        elif name in ("max_length", "max_new_tokens"):
            # Transformers counts the token that starts the output in max_length, and forces EOS to be the last token.
            number = int(value) - (2 if name == "max_length" else 1)
            values |= {"max_length_ratio": 0.0, "max_length_offset": max(1, number)}
        elif name == "min_length":
            values["min_length"] = max(0, int(value) - 2)  # counts the start and EOS
        else:
            others = ("do_sample", "early_stopping", "max_length", "max_new_tokens", "min_length")
            known = ", ".join(sorted({*_RENAMED, *_IGNORED, *others}))
            raise UsageError(f"pipeline: unknown argument {name}; known: {known}")
    nbest, beam = int(values.pop("nbest")), int(values.pop("beam"))
    early = str(settings.get("early_stopping") or False)
    if early not in _STOPPING:
        raise UsageError(f"pipeline: early_stopping={early}; expected False, True or 'never'")
    if not is_sampling and max(beam, nbest) > 1:  # greedy search ends by the same rule, and more engines have it
        values["stopping"] = _STOPPING[early]
    config = SearchConfig.model_validate(values | {"nbest": 1, "beam": 1 if is_sampling else max(1, beam)})
    return with_outputs(config, beam, nbest)


def converted(folder: Path) -> Path:
    """Convert a Marian folder to a model folder in the user's cache, once.

    Args:
        folder: folder in Hugging Face's layout; not changed.

    Returns:
        The model folder, with engines that run without PyTorch.

    Raises:
        MissingExtra: it is not converted yet, and PyTorch is not installed.
        FileRefused: the folder is damaged, or no Marian model.
    """
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "heedful"
    states = [(each.name, each.stat().st_size, each.stat().st_mtime_ns) for each in sorted(folder.resolve().iterdir())]
    name = hashlib.sha256(repr((str(folder.resolve()), states)).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    out = root / f"{name}.model"
    if not (out / "heedful.json").is_file():
        with needed_for("converting a Marian folder"):
            from heedful.runs.marian import import_marian

        import_marian(folder, out)
        imported = load(out, engine="torch")
        for name in imported.usual_engines:
            imported.exporter(name)()
    return out
