"""Archives of small models with random weights, whose characters or pieces are made up."""

from pathlib import Path

from heedful.engines.folder import ModelFolder
from heedful.engines.onnx import Graphs
from heedful.export.archive import ArchivedTranslator, write_archive
from heedful.search.config import SearchConfig
from heedful.text.tokenizer import TextConfig, Tokenizer, UnitTokenizer
from heedful.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests.export.conftest import MOST
from tests.models.tiny import NUM_SOURCE_TOKENS, NUM_TARGET_TOKENS

SOURCE = UnitTokenizer(Vocabulary([*SPECIAL_TOKENS, *"abcdef "][:NUM_SOURCE_TOKENS]), "characters", "NFC")
TARGET = UnitTokenizer(Vocabulary([*SPECIAL_TOKENS, *"VWXYZ"][:NUM_TARGET_TOKENS]), "characters", "NFC")


def archived(
    folder: Path, kind: str, tokenizers: tuple[Tokenizer, Tokenizer] = (SOURCE, TARGET), **search: object
) -> ArchivedTranslator:
    """Model of a folder that has no file."""
    text = TextConfig(source_units="characters", target_units="characters", max_tokens=MOST)
    facts = {"kind": kind, "languages": ["xx", "yy"], "files": {}}
    return ArchivedTranslator(ModelFolder(folder, facts), tokenizers, text, SearchConfig.model_validate(search))


def archived_words(folder: Path) -> ArchivedTranslator:
    """Model that reads words and sentences, with the rules of spans that stay."""
    source, target = (
        UnitTokenizer(Vocabulary([*SPECIAL_TOKENS, *words][:number]), "words", "NFC")
        for words, number in (("abcdefg", NUM_SOURCE_TOKENS), ("VWXYZ", NUM_TARGET_TOKENS))
    )
    text = TextConfig(source_units="words", target_units="words", max_tokens=MOST)
    return ArchivedTranslator(archived(folder, "rnnsearch").folder, (source, target), text, SearchConfig())


def archive_of_words(graphs: Graphs, folder: Path) -> Path:
    """File of a model that reads words and sentences."""
    path = folder / f"{graphs.folder.name}-words.tgz"
    path.write_bytes(write_archive(archived_words(folder / "words.model"), graphs.folder, "float32"))
    return path


def archive_of(graphs: Graphs, folder: Path, tokenizers: tuple[Tokenizer, Tokenizer] = (SOURCE, TARGET)) -> Path:
    """File of a model whose graphs are there."""
    path = folder / f"{graphs.folder.name}.tgz"
    path.write_bytes(write_archive(archived(folder, "rnnsearch", tokenizers), graphs.folder, "float32"))
    return path
