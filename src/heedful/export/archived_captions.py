"""Archives of models that describe pictures, for JavaScript."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

from heedful.data.images import ImageConfig
from heedful.engines.folder import ModelFolder
from heedful.export.archive import GRAPHS, SETTINGS, ArchivedModel, described, refuse, search_faults
from heedful.search.config import SearchConfig
from heedful.text.tokenizer import PieceTokenizer, TextConfig, Tokenizer, UnitTokenizer

IMAGE_SETTINGS: Final = {"height", "width", "channels", "region_size", "region_height"}
"""Settings of images that JavaScript reads."""


@final
@dataclass(frozen=True)
class ArchivedCaptioner(ArchivedModel):
    """Captioner that is archived."""

    folder: ModelFolder
    tokenizer: Tokenizer
    text: TextConfig
    search: SearchConfig
    images: ImageConfig

    def check(self) -> None:
        is_known = isinstance(self.tokenizer, PieceTokenizer | UnitTokenizer)
        faults = {
            "it reads features in place of pictures": self.images.kind == "features",
            "its captions are folded": self.text.normalization == "folded",
            "its tokenizer is of a kind of its own": not is_known,
        }
        refuse(self.folder, faults | search_faults(self.search))

    def graphs(self, engine: Path) -> tuple[str, ...]:
        return GRAPHS

    def facts(self) -> dict[str, Any]:
        dumped = self.search.model_dump(mode="json")
        return {
            "search": {name: dumped[name] for name in SETTINGS},
            "tokenizer": described(self.tokenizer),
            "images": self.images.model_dump(mode="json", include=IMAGE_SETTINGS),
        }
