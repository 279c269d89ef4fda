"""The offline page is one file: no link leads out of it, and no sentence can become markup."""

import base64
import hashlib
import json
import re
from importlib.resources import files

from heedful.pages.bundle import ENGINE_ENTRY, ENTRY, MODEL_ENTRY, bundled_script, offline_page, page_files
from tests.pages.views import sentence_view


def test_every_module_is_in_the_script_and_no_import_remains():
    app = {f"pages/app/{name}" for name in page_files() if name.endswith(".js")}
    others = {
        f"{folder}/{path.name}"
        for folder in ("js", "pages/standalone")
        for path in files("heedful").joinpath(*folder.split("/")).iterdir()
        if path.name.endswith(".js")
    }
    shared = {"js/archive.js", "js/errors.js"}
    with_model = (
        app - {ENTRY} | shared | {MODEL_ENTRY, *(f"pages/standalone/{name}.js" for name in ("connection", "local"))}
    )
    engine = others - with_model - {"js/index.js"} | shared | {"js/runtime/ort.js"}
    for script, modules in (
        (bundled_script(), app),
        (bundled_script(MODEL_ENTRY), with_model),
        (bundled_script(ENGINE_ENTRY, "const ort = {};\nexport { ort };\n"), engine),
    ):
        assert set(re.findall(r"^modules\['([a-z_/]+\.js)'\] =", script, re.MULTILINE)) == modules
        assert not re.search(r"^(import|export) ", script, re.MULTILINE)


def test_no_text_replaces_another():
    text = page_files()["text.js"]
    names = re.findall(r"(?:^ |\],) '?([\w-]+)'?: \[", text if isinstance(text, str) else text.decode(), re.MULTILINE)
    assert len(names) > 150
    assert [name for name in set(names) if names.count(name) > 1] == []


def test_the_policy_admits_the_page_s_own_script_alone():
    page = offline_page("title", sentence_view().to_dict())
    (script,) = re.findall(r'<script type="module">(.*?)</script>', page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in page
    assert "default-src 'none'" in page


def test_no_address_outside_the_file_is_named():
    page = offline_page("title", sentence_view().to_dict())
    addresses = set(re.findall(r"https?://[^\s'\"<>)]+", page))
    assert addresses == {"http://www.w3.org/2000/svg"}


def test_a_sentence_that_looks_like_markup_stays_data():
    hostile = "</script><script>alert(1)</script>"
    view = sentence_view(source=(hostile, "</s>")).to_dict()
    page = offline_page(hostile, view)
    assert page.count("</script>") == 2
    (data,) = re.findall(r'<script type="application/json" id="view-data">(.*?)</script>', page, re.DOTALL)
    assert json.loads(data)["source"]["text"] == hostile
    assert "<title>&lt;/script&gt;" in page
