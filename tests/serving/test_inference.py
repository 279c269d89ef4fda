"""Models of all tasks over HTTP, in the shapes of Hugging Face Inference and of OpenAI's embeddings."""

import io
import struct
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from PIL import Image
from starlette.testclient import TestClient

from heedful.predictors.answerer import Answerer
from heedful.predictors.captioner import Captioner
from heedful.predictors.classifier import Classifier
from heedful.predictors.table import load
from heedful.predictors.translator import Translator
from heedful.serving.app import guarded, make_app_with_page
from heedful.serving.catalog import Catalog
from heedful.serving.guard import Hosts
from heedful.serving.keys import Keys
from heedful.serving.limits import Limits
from heedful.serving.service import Service
from heedful.text.stories import Story
from tests.cli.conftest import Trained
from tests.serving.task_models import TaskModels

Make = Callable[..., TestClient]
CONTEXT = "Ada went to the attic. Boris went to the cellar."
QUESTION = "Where is Ada?"


@pytest.fixture(scope="module")
def make(task_models: TaskModels, trained: Trained) -> Make:
    models = [load(path, engine="torch") for path in (*task_models, trained.model)]

    def client(**settings: Any) -> TestClient:
        service = Service(Catalog(models), **settings)
        app = guarded(make_app_with_page(service), service, Hosts("127.0.0.1"))
        return TestClient(app, base_url="http://127.0.0.1")

    return client


@pytest.fixture(scope="module")
def client(make: Make) -> TestClient:
    return make()


def approximate(value: Any) -> Any:
    match value:
        case dict():
            return {key: approximate(each) for key, each in value.items()}
        case list():
            return [approximate(each) for each in value]
        case float():
            return pytest.approx(value, abs=1e-5)
        case _:
            return value


def test_each_task_has_the_shape_of_hugging_face(client: TestClient, task_models: TaskModels, trained: Trained):
    classifier, answerer = load(task_models.classifier, kind=Classifier), load(task_models.answerer, kind=Answerer)
    finder, captioner = load(task_models.finder, kind=Answerer), load(task_models.captioner, kind=Captioner)
    translator = load(trained.model, kind=Translator)

    def ask(model: str, inputs: Any, **fields: Any) -> Any:
        answer = client.post(f"/models/{model}", json={"inputs": inputs, **fields})
        assert answer.status_code == 200, answer.text
        return answer.json()

    texts = ["A clean room. Rude staff.", "a dark view"]
    labels = [
        [{"label": label, "score": share} for label, share in one.probabilities.items()]
        for one in classifier.classify(texts)
    ]
    assert ask("reviews.model", texts) == approximate(labels)
    assert ask("reviews.model", texts[0], parameters={"top_k": 1}) == approximate([labels[0][:1]])
    vectors = classifier.encode(texts)
    extracted = ask("reviews.model/pipeline/feature-extraction", texts, normalize=True)
    np.testing.assert_allclose(extracted, vectors / np.linalg.norm(vectors, axis=1, keepdims=True), atol=1e-5)

    asked = {"question": QUESTION, "context": CONTEXT}
    (answer,) = answerer.answer([Story(tuple(f"{one}." for one in CONTEXT[:-1].split(". ")), QUESTION)])
    assert ask("stories.model", asked)["score"] == pytest.approx(answer.probability, abs=1e-5)
    (span,) = finder.answer([Story((CONTEXT,), QUESTION)])
    found = ask("notices.model", asked, parameters={"top_k": 2, "max_seq_len": 384})
    assert (len(found), found[0]["answer"]) == (2, span.answer)
    assert CONTEXT.lower()[found[0]["start"] : found[0]["end"]] == span.answer.lower()

    caption = [{"generated_text": captioner.caption([task_models.picture])[0].text}]
    raw = client.post("/models/scenes.model", content=task_models.picture, headers={"Content-Type": "image/png"})
    assert raw.json() == caption == ask("scenes.model", b64encode(task_models.picture).decode())
    assert client.post("/models/scenes.model", content=task_models.picture).json() == caption

    output = translator.translate(["fade"])[0].text
    name = trained.model.name
    assert ask(name, "fade", parameters={"truncation": "only_first"}) == [{"translation_text": output}]
    assert ask(f"{name}/pipeline/summarization", ["fade"]) == [{"summary_text": output}]


def test_embeddings_have_the_shape_of_openai(client: TestClient, task_models: TaskModels):
    vectors = load(task_models.classifier, kind=Classifier).encode(["a clean room", "b"])
    body = {"input": ["a clean room", "b"], "model": "reviews.model", "dimensions": vectors.shape[1]}
    plain = client.post("/v1/embeddings", json=body).json()
    np.testing.assert_allclose([one["embedding"] for one in plain["data"]], vectors, atol=1e-5)
    assert [one["index"] for one in plain["data"]] == [0, 1]
    assert (plain["object"], plain["usage"]["prompt_tokens"]) == ("list", plain["usage"]["total_tokens"])
    packed = client.post("/v1/embeddings", json=body | {"encoding_format": "base64"}).json()
    unpacked = [np.frombuffer(b64decode(one["embedding"]), "<f4") for one in packed["data"]]
    np.testing.assert_allclose(unpacked, vectors, atol=1e-5)
    names = [one["id"] for one in client.get("/v1/models").json()["data"]]
    assert names[:2] == ["reviews.model", "stories.model"]


REFUSED: tuple[tuple[str, Any, int, str], ...] = (
    ("/models/other", {"inputs": "a"}, 404, "there is no model"),
    ("/models/reviews.model", {}, 400, "missing inputs"),
    ("/models/reviews.model", {"inputs": {"question": "a", "context": "b"}}, 400, "neither a text nor a list"),
    ("/models/reviews.model", {"inputs": ["a", 1]}, 400, "neither a text nor a list"),
    ("/models/reviews.model", {"inputs": "a", "parameters": []}, 200, ""),
    ("/models/reviews.model", {"inputs": "a", "parameters": [1]}, 400, "parameters is not an object"),
    ("/models/reviews.model", {"inputs": "a", "parameters": {"top_k": 0}}, 400, "top_k"),
    ("/models/reviews.model", {"inputs": "a", "parameters": {"temperature": 2}}, 400, "temperature is not supported"),
    ("/models/reviews.model", {"inputs": "a", "parameters": {"function_to_apply": "none"}}, 400, "softmax"),
    ("/models/reviews.model", {"inputs": "a" * 5001}, 400, "exceeds text limit"),
    ("/models/reviews.model", {"inputs": ["a"] * 501}, 400, "exceed the limit of 500"),
    ("/models/reviews.model/pipeline/translation", {"inputs": "a"}, 400, "it does: text-classification"),
    ("/models/stories.model", {"inputs": "a"}, 400, "question and context"),
    ("/models/stories.model", {"inputs": {"question": "a", "context": "b" * 5000}}, 400, "exceeds text limit"),
    ("/models/scenes.model", {"inputs": "no base64!"}, 400, "not a picture in base64"),
    ("/models/scenes.model", {"inputs": b64encode(b"text").decode()}, 400, "no picture"),
    ("/v1/embeddings", {"input": "a"}, 400, "missing model"),
    ("/v1/embeddings", {"input": "a", "model": "gpt"}, 404, "there is no model"),
    ("/v1/embeddings", {"input": "a", "model": "stories.model"}, 400, "has no vectors"),
    ("/v1/embeddings", {"input": [[1, 2]], "model": "reviews.model"}, 400, "token ids"),
    ("/v1/embeddings", {"input": [], "model": "reviews.model"}, 400, "missing input"),
    ("/v1/embeddings", {"input": "a", "model": "reviews.model", "dimensions": 1}, 400, "dimensions"),
    ("/v1/embeddings", {"input": "a", "model": "reviews.model", "encoding_format": "int8"}, 400, "encoding_format"),
    ("/page/view", {"text": "a", "model": "stories.model"}, 400, "question"),
    ("/page/view", {"text": "a", "model": ["x"]}, 400, "no model"),
    ("/page/view", {"model": "scenes.model"}, 400, "expected a picture"),
    ("/page/view", {"model": "scenes.model", "picture": "a"}, 400, "no picture"),
)


def test_wrong_requests_are_refused_with_a_reason(client: TestClient):
    for path, body, status, reason in REFUSED:
        answer = client.post(path, json=body)
        assert (answer.status_code, reason.lower() in answer.text.lower()) == (status, True), (path, body, answer.text)


def claiming(width: int, height: int) -> bytes:
    """A PNG file of a hundred bytes that claims so many pixels."""
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = [
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in ((b"IHDR", head), (b"IDAT", zlib.compress(b"\0" * 10)), (b"IEND", b""))
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def test_a_picture_is_refused_by_its_size_before_it_is_decoded(client: TestClient, monkeypatch: pytest.MonkeyPatch):
    decoded: list[object] = []
    monkeypatch.setattr(Captioner, "_read", lambda self, image: decoded.append(image))
    for path in ("/models/scenes.model", "/page/view?model=scenes.model"):
        for width, height in ((5_000, 5_000), (30_000, 30_000)):
            answer = client.post(path, content=claiming(width, height), headers={"Content-Type": "image/png"})
            assert (answer.status_code, "pixels" in answer.text) == (400, True), answer.text
    assert decoded == []


def test_a_picture_that_breaks_off_fails_alone(client: TestClient):
    stream = io.BytesIO()
    Image.effect_noise((200, 200), 90).save(stream, "PNG")
    answer = client.post("/models/scenes.model", content=stream.getvalue()[:20_000])
    assert (answer.status_code, "truncated or damaged picture" in answer.text) == (400, True), answer.text


def test_only_captioners_take_large_bodies_and_a_few_at_a_time(make: Make):
    limits = Limits(body_bytes=1000, file_bytes=3000, large_bodies=0)
    for path, size, status in (
        ("/models/reviews.model", 1001, 413),
        ("/models/scenes.model", 3001, 413),
        ("/models/scenes.model", 1001, 503),  # no room for one
        ("/models/scenes.model", 999, 400),
        ("/page/view?model=reviews.model", 999, 400),
    ):
        answer = make(limits=limits).post(path, content=b"x" * size, headers={"Content-Type": "image/png"})
        assert answer.status_code == status, (path, size, answer.text)
    client = make(limits=Limits(body_bytes=1000, file_bytes=3000, large_bodies=1))
    for _ in range(3):  # each gives its room back
        answer = client.post("/models/scenes.model", content=b"x" * 2000)
        assert (answer.status_code, "no picture" in answer.text) == (400, True)


def test_keys_hold_for_all_of_it(make: Make, task_models: TaskModels):
    client = make(keys=Keys(["secret"]))
    asked = {"/models/reviews.model": {"inputs": "a"}, "/v1/embeddings": {"input": "a", "model": "reviews.model"}}
    for path, body in asked.items():
        assert client.post(path, json=body).status_code == 403
        assert client.post(path, json=body, headers={"Authorization": "Bearer secret"}).status_code == 200
    assert client.post("/models/scenes.model", content=task_models.picture).status_code == 403
    assert client.get("/v1/models").status_code == 403


def test_the_page_has_a_view_of_each_model(client: TestClient, task_models: TaskModels, trained: Trained):
    listed = {one["name"]: one["task"] for one in client.get("/page/models").json()["models"]}
    tasks = ["classification", "answering", "answering", "captioning", "translation"]
    assert list(listed.values()) == tasks

    def view(**body: Any) -> Any:
        return client.post("/page/view", json=body).json()

    text = "A clean room. Rude staff."
    labels = view(model="reviews.model", text=text)
    (result,) = load(task_models.classifier, kind=Classifier).classify([text])
    assert labels["label"] == result.label
    words = [[word for word, _, _ in sentence if word] for sentence in labels["sentences"]]
    assert words == [["a", " clean", " room", "."], ["rude", " staff", "."]]
    assert sum(weight for sentence in labels["sentences"] for _, weight, _ in sentence) == pytest.approx(1, abs=1e-4)
    assert all(effect is not None for sentence in labels["sentences"] for word, _, effect in sentence if word)

    facts = "Ada went to the attic.\n\nBoris went to the cellar."
    answer = view(model="stories.model", text=facts, question=QUESTION)
    assert (answer["facts"], len(answer["weights"][0]), answer["span"]) == (facts.split("\n\n"), 2, None)
    span = view(model="notices.model", text=facts, question=QUESTION)["span"]
    assert "".join(span["passage"][span["start"] : span["end"]]).strip()
    assert len(span["tokens"]) == len(span["start_weights"])

    headers = {"Content-Type": "image/png"}
    caption = client.post("/page/view?model=scenes.model", content=task_models.picture, headers=headers).json()
    assert len(caption["weights"]) == len(caption["pieces"])
    assert len(caption["weights"][0]) == caption["grid"][0] * caption["grid"][1]
    assert view(model=trained.model.name, text="fade")["outputs"]


def test_a_server_without_translators_says_so(task_models: TaskModels):
    service = Service(Catalog([load(task_models.classifier, engine="torch")]))
    client = TestClient(make_app_with_page(service), raise_server_exceptions=False)
    assert client.get("/languages").json() == []
    assert client.get("/frontend/settings").status_code == 200
    assert client.post("/detect", json={"q": "a"}).json() == []
    for source in ("auto", "en"):
        assert client.post("/translate", json={"q": "a", "source": source, "target": "en"}).status_code == 400
    assert client.get("/v2/languages").json() == []
