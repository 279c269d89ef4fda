"""The page and its JSON, served behind the guard."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from starlette.testclient import TestClient

from heedful.pages.bundle import page_files
from heedful.predictors.table import load
from heedful.predictors.translator import Translator
from heedful.serving.app import guarded, make_app_with_page
from heedful.serving.catalog import Catalog
from heedful.serving.guard import Hosts
from heedful.serving.keys import Keys
from heedful.serving.limits import Limits
from heedful.serving.page_routes import named
from heedful.serving.service import Service
from tests.cli.conftest import Trained, trained  # noqa: F401


def client_of(trained: Trained, **settings: Any) -> TestClient:  # noqa: F811
    translator = load(trained.model, engine="torch")
    assert isinstance(translator, Translator)
    service = Service(Catalog([translator]), **settings)
    app = guarded(make_app_with_page(service), service, Hosts("127.0.0.1"))
    return TestClient(app, base_url="http://127.0.0.1")


def test_every_file_of_the_page_is_served_with_its_type(trained: Trained):  # noqa: F811
    client = client_of(trained)
    assert client.get("/").content == page_files()["index.html"]
    for name, content in page_files().items():
        answer = client.get(f"/app/{name}")
        assert answer.content == content
        assert "script-src 'self'" in answer.headers["content-security-policy"]
    assert client.get("/app/main.js").headers["content-type"].startswith("text/javascript")
    assert client.get("/app/../bundle.py").status_code == 404
    assert client.get("/app/%2e%2e%2fbundle.py").status_code == 404


def test_a_view_is_json(trained: Trained):  # noqa: F811
    client = client_of(trained)
    assert client.get("/page/models").json()["models"][0]["name"] == trained.model.name
    view = client.post("/page/view", json={"text": "fade", "layers": True}).json()
    assert view["outputs"]
    assert [one["role"] for one in view["maps"]] == ["cross", "encoder", "decoder"]
    assert client.get("/page/training").json()["curves"]["training loss"]


@pytest.mark.parametrize(
    ("body", "reason"),
    [({"text": "fade", "beam": 99}, "beam"), ({"text": "fade", "model": "other"}, "other"), ({}, "text")],
)
def test_refusals_have_the_server_s_error_body(trained: Trained, body: dict[str, Any], reason: str):  # noqa: F811
    answer = client_of(trained).post("/page/view", json=body)
    assert answer.status_code == 400
    assert reason in answer.json()["error"]


def test_limits_and_keys_hold_for_the_page_too(trained: Trained):  # noqa: F811
    client = client_of(trained, limits=Limits(characters=3))
    assert client.post("/page/view", json={"text": "fade"}).status_code == 400
    client = client_of(trained, keys=Keys(["secret"]))
    assert client.post("/page/view", json={"text": "fade"}).status_code in (400, 403)
    assert client.post("/page/view", json={"text": "fade", "api_key": "secret"}).status_code == 200
    assert client.get("/").status_code == 200


def test_models_of_one_name_are_numbered():
    models = [SimpleNamespace(folder=SimpleNamespace(path=Path(f"/{part}/pairs.model"))) for part in "abc"]
    assert list(named(cast(list[Translator], models))) == ["pairs.model", "pairs.model 2", "pairs.model 3"]
