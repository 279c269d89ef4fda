"""CTranslate2 without models; engines with models are tested in tests/export/test_ctranslate2.py."""

from pathlib import Path

import pytest

from heedful.engines.ctranslate2 import CTranslate2, token_names
from heedful.errors import FileRefused


def test_every_token_has_a_name_of_its_own():
    names = token_names(200)
    assert len(set(names)) == 200
    assert names[:5] == ["<pad>", "<unk>", "<s>", "</s>", "4"]


def test_a_folder_without_a_model_is_refused(tmp_path: Path):
    with pytest.raises(FileRefused, match=r"not readable: .*; export the model again"):
        CTranslate2("ctranslate2", tmp_path, 20)
