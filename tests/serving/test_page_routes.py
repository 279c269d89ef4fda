"""The page and its JSON, served behind the guard."""

import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from starlette.testclient import TestClient

from heedful.pages.bundle import page_files
from heedful.predictors.interface import Predictor
from heedful.predictors.page_requests import PageRequests
from heedful.predictors.table import load
from heedful.predictors.translator import Translator
from heedful.serving.app import guarded, make_app_with_page
from heedful.serving.catalog import Catalog
from heedful.serving.guard import Hosts
from heedful.serving.keys import Keys
from heedful.serving.limits import Limits
from heedful.serving.service import Service
from heedful.serving.suggestions import LinksFile
from tests.cli.command import disk_quota
from tests.cli.conftest import Trained


def client_of(trained: Trained, **settings: Any) -> TestClient:
    translator = load(trained.model, engine="torch")
    assert isinstance(translator, Translator)
    service = Service(Catalog([translator]), **settings)
    app = guarded(make_app_with_page(service), service, Hosts("127.0.0.1"))
    return TestClient(app, base_url="http://127.0.0.1")


def test_every_file_of_the_page_is_served_with_its_type(trained: Trained):
    client = client_of(trained)
    assert client.get("/").content == page_files()["index.html"]
    for name, content in page_files().items():
        answer = client.get(f"/app/{name}")
        assert answer.content == content
        assert "script-src 'self'" in answer.headers["content-security-policy"]
    assert client.get("/app/main.js").headers["content-type"].startswith("text/javascript")
    assert client.get("/app/../bundle.py").status_code == 404
    assert client.get("/app/%2e%2e%2fbundle.py").status_code == 404


def test_a_view_is_json(trained: Trained):
    client = client_of(trained)
    assert client.get("/page/models").json()["models"][0]["name"] == trained.model.name
    view = client.post("/page/view", json={"text": "fade", "layers": True}).json()
    assert view["outputs"]
    assert [one["role"] for one in view["maps"]] == ["cross", "encoder", "decoder"]
    assert client.get("/page/training").json()["curves"]["training loss"]
    assert client.get("/page/evaluation").json()["command"].endswith("TEST.tsv --record")


@pytest.mark.parametrize(
    ("body", "reason"),
    [({"text": "fade", "beam": 99}, "beam"), ({"text": "fade", "model": "other"}, "other"), ({}, "text")],
)
def test_refusals_have_the_server_s_error_body(trained: Trained, body: dict[str, Any], reason: str):
    answer = client_of(trained).post("/page/view", json=body)
    assert answer.status_code == 400
    assert reason in answer.json()["error"]


def test_limits_and_keys_hold_for_the_page_too(trained: Trained):
    client = client_of(trained, limits=Limits(characters=3))
    assert client.post("/page/view", json={"text": "fade"}).status_code == 400
    client = client_of(trained, keys=Keys(["secret"]))
    assert client.post("/page/view", json={"text": "fade"}).status_code in (400, 403)
    assert client.post("/page/view", json={"text": "fade", "api_key": "secret"}).status_code == 200
    assert client.get("/").status_code == 200


def test_models_of_one_name_are_numbered():
    models = [SimpleNamespace(folder=SimpleNamespace(path=Path(f"/{part}/pairs.model"), facts={})) for part in "abc"]
    assert list(Catalog(cast(list[Predictor], models)).named) == ["pairs.model", "pairs.model 2", "pairs.model 3"]


def test_links_are_stored_where_the_server_has_a_file(trained: Trained, tmp_path: Path):
    body = {"source": "das Haus", "target": "the house", "links": "1-1 0-0"}
    client = client_of(trained)
    assert client.get("/page/models").json()["takesLinks"] is False
    assert client.post("/page/links", json=body).status_code == 403
    client = client_of(trained, links=LinksFile(tmp_path / "links.tsv"), keys=Keys(["secret"]))
    headers = {"X-API-Key": "secret"}
    assert client.get("/page/models", headers=headers).json()["takesLinks"] is True
    assert client.post("/page/links", json=body).status_code == 403
    with disk_quota(20):
        answer = client.post("/page/links", json=body, headers=headers)
    assert (answer.status_code, answer.json()) == (403, {"error": "The links cannot be written."})
    assert client.post("/page/links", json=body, headers=headers).json() == {"success": True}
    assert client.post("/page/links", json=body | {"links": "0-7"}, headers=headers).status_code == 400
    assert client.post("/page/links", json=body | {"source": "a " * 5000}, headers=headers).status_code == 400
    assert (tmp_path / "links.tsv").read_text("utf-8") == "das Haus\tthe house\t0-0 1-1\n"


def test_a_view_that_takes_too_long_is_given_up(trained: Trained, monkeypatch: pytest.MonkeyPatch):
    stopped: list[bool] = []

    def endless(_: PageRequests, body: object, cancelled: Callable[[], bool]) -> dict[str, Any]:
        ends = time.monotonic() + 30
        while not cancelled() and time.monotonic() < ends:
            time.sleep(0.01)
        stopped.append(cancelled())
        return {}

    monkeypatch.setattr(PageRequests, "view", endless)
    answer = client_of(trained, limits=Limits(answer_seconds=0.2)).post("/page/view", json={"text": "fade"})
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "2"
    assert stopped == [True]


def test_a_search_of_the_page_ends_when_it_is_cancelled(trained: Trained):
    translator = load(trained.model, engine="torch")
    assert isinstance(translator, Translator)
    calls: list[bool] = []

    def cancelled() -> bool:
        calls.append(len(calls) >= 2)
        return calls[-1]

    view = PageRequests({"words": translator}).view({"text": "fadecab"}, cancelled)
    assert True in calls
    assert len(view["outputs"][0]["ids"]) <= 3
