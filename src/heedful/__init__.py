"""Attention sequence-to-sequence models: trained in one command, inspected, measured, and run without PyTorch.

>>> import heedful                                          # doctest: +SKIP
>>> translator = heedful.train("pairs.tsv", preset="small") # doctest: +SKIP
>>> translator.translate(["How are you?"])[0].text          # doctest: +SKIP
'Comment allez-vous ?'
"""

from heedful.version import __version__

# Nothing else is imported here: the time until a command can be interrupted without a traceback begins with this file.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from heedful.comparison.compare import compare_grid as compare
    from heedful.inspection.capture import capture
    from heedful.predictors.captioner import Captioner
    from heedful.predictors.classifier import Classifier
    from heedful.predictors.evaluation import evaluate_model as evaluate
    from heedful.predictors.notebook import make_widget as widget
    from heedful.predictors.table import load
    from heedful.predictors.translation import Translation
    from heedful.predictors.translator import Translator
    from heedful.runs.api import train_model as train
    from heedful.serving.transformers_pipelines import pipeline

__all__ = [
    "Captioner",
    "Classifier",
    "Translation",
    "Translator",
    "__version__",
    "capture",
    "compare",
    "evaluate",
    "load",
    "pipeline",
    "train",
    "widget",
]

# Public names, loaded on first use, so that `import heedful` is cheap. Module names are strings, because an import here
# would make every module of the package depend on all others.
_LAZY = {
    "capture": ("heedful.inspection.capture", "capture"),
    "compare": ("heedful.comparison.compare", "compare_grid"),
    "evaluate": ("heedful.predictors.evaluation", "evaluate_model"),
    "train": ("heedful.runs.api", "train_model"),
    "pipeline": ("heedful.serving.transformers_pipelines", "pipeline"),
    "load": ("heedful.predictors.table", "load"),
    "widget": ("heedful.predictors.notebook", "make_widget"),
    "Captioner": ("heedful.predictors.captioner", "Captioner"),
    "Classifier": ("heedful.predictors.classifier", "Classifier"),
    "Translator": ("heedful.predictors.translator", "Translator"),
    "Translation": ("heedful.predictors.translation", "Translation"),
}


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module 'heedful' has no attribute {name!r}")
    import importlib

    from heedful.errors import needed_for

    module, attribute = _LAZY[name]
    with needed_for(f"heedful.{name}"):
        return getattr(importlib.import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted(__all__)
