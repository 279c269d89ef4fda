"""Guard: hosts, origins, sizes, rates."""

import asyncio

import pytest
from starlette.exceptions import HTTPException
from starlette.testclient import TestClient
from starlette.types import Message

from heedful.serving.guard import Hosts
from heedful.serving.limits import Budget, Limits, client_of
from tests.serving.reversing import serve

PAIR = {"q": "abc", "source": "de", "target": "en"}
FOREIGN = (
    "https://evil.example",
    "null",
    "http://testserver.evil.example",
    "http://testserver:81",
    "file://",
    "http://",
)


@pytest.mark.parametrize("origin", FOREIGN)
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
def test_a_foreign_page_is_refused(origin: str, method: str):
    headers = {"Origin": origin, "Access-Control-Request-Method": "POST"}
    answer = serve().request(method, "/translate", params=PAIR, headers=headers)
    assert answer.status_code == 403
    assert not any(name.startswith("access-control") for name in answer.headers)


def test_a_form_of_another_site_is_refused_without_an_origin():
    headers = {"Sec-Fetch-Site": "cross-site"}
    assert serve().post("/translate", data=PAIR, headers=headers).status_code == 403


def test_the_servers_own_page_is_allowed():
    assert serve().post("/translate", json=PAIR, headers={"Origin": "http://testserver"}).status_code == 200


def test_a_listed_origin_is_allowed_alone():
    client = serve(origins=("https://good.example",))
    answer = client.post("/translate", json=PAIR, headers={"Origin": "https://good.example"})
    assert answer.headers["access-control-allow-origin"] == "https://good.example"
    assert "access-control-allow-credentials" not in answer.headers
    preflight = {"Origin": "https://good.example", "Access-Control-Request-Method": "POST"}
    assert client.options("/translate", headers=preflight).status_code == 204
    assert client.post("/translate", json=PAIR, headers={"Origin": "https://other.example"}).status_code == 403


HOSTS = ("localhost", "LOCALHOST:80", "127.0.0.1:5000", "[::1]:5000", "localhost.")
OTHERS = (
    "",
    "evil.example",
    "localhost.evil.example",
    "a/b?x",
    "localhost#",
    "127.0.0.1:99999",
    "localhost:80:80",
    "[::1",
    "127.0.0.1@evil",
    "192.168.1.4",
)


@pytest.mark.parametrize("host", HOSTS)
def test_names_of_the_server_are_allowed(host: str):
    assert Hosts("127.0.0.1").allows(host)


@pytest.mark.parametrize("host", OTHERS)
def test_other_names_are_refused(host: str):
    assert not Hosts("127.0.0.1").allows(host)
    assert serve().get("/health", headers={"Host": host}).status_code == 400


def test_on_all_addresses_every_number_is_a_name():
    hosts = Hosts("0.0.0.0", ["translate.example"])
    assert hosts.allows("192.168.1.4:5000")
    assert hosts.allows("Translate.Example")
    assert not hosts.allows("evil.example")


def test_large_bodies_are_refused():
    client = serve(limits=Limits(body_bytes=1000))
    assert client.post("/translate", content=b"x" * 1001).status_code == 413
    answer = client.post("/translate", content=iter([b"q=" + b"x" * 600] * 2))  # without a Content-Length
    assert (answer.status_code, answer.headers["connection"]) == (413, "close")


def test_a_client_has_a_budget():
    client = serve(limits=Limits(requests_per_minute=3))
    answers = [client.get("/health") for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert int(answers[-1].headers["retry-after"]) >= 20


@pytest.mark.parametrize(
    "body",
    [
        b'{"q": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"q": NaN}',
        b'{"q": 1e999, "source": "de", "target": "en"}',
        b'{"q": "\\ud800", "source": "de", "target": "en"}',
        b'{"q": "\xff"}',
        b"[]",
        b"{",
        b'{"q": "a", "source": {}, "target": []}',
    ],
    ids=lambda body: repr(body[:24]),
)
def test_malformed_json_is_refused(body: bytes):
    answer = serve().post("/translate", content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, set(answer.json())) == (400, {"error"})


def test_nothing_a_client_writes_is_logged(capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture):
    client = serve()
    client.post("/translate", json={"q": "canary", "source": "de", "target": "canary"})
    client.post("/canary?canary=1", content=b"canary", headers={"X-API-Key": "canary"})
    out = capfd.readouterr()
    assert "canary" not in out.out + out.err + caplog.text + client.get("/metrics").text


@pytest.mark.parametrize("path", ["/health", "/languages", "/languages/"])
def test_head_is_answered_as_get_without_its_body(path: str):
    client = serve()
    head, get = client.head(path), client.get(path)
    assert (head.status_code, head.headers["content-length"]) == (200, get.headers["content-length"])
    assert head.content == b""
    assert get.content
    assert client.head("/nowhere").status_code == 404
    assert client.head("/translate").status_code == 405


def test_only_forms_may_be_as_large_as_files():
    """A hundred stalled bodies of JSON held 850 MB once: all of a body but the parts of a form is in memory."""
    client = serve(limits=Limits(body_bytes=1000, file_bytes=100_000))
    for headers in ({"Content-Type": "application/json"}, {"Content-Type": "text/plain"}, {}):
        answer = client.post("/translate_file", content=b" " * 1001, headers=headers)
        assert answer.status_code == 413, headers
        answer = client.post("/translate_file", content=iter([b" " * 600] * 2), headers=headers)
        assert answer.status_code == 413, headers
    fields, files = {"source": "de", "target": "en"}, {"file": ("a.txt", b"a" * 50_000)}
    assert client.post("/translate_file", data=fields, files=files).status_code == 200


def test_two_lengths_are_refused_and_the_connection_is_closed():
    headers = {"Content-Length": "2", "Transfer-Encoding": "chunked", "Content-Type": "application/json"}
    answer = serve().post("/translate", content=b"{}", headers=headers)
    assert (answer.status_code, answer.headers["connection"]) == (400, "close")
    assert "Transfer-Encoding" in answer.json()["error"]


@pytest.mark.parametrize("kind", ["application/json", "multipart/form-data; boundary=x"])
def test_an_upload_that_breaks_off_is_no_fault(kind: str):
    client = serve()
    scope = {
        "type": "http", "http_version": "1.1", "method": "POST", "scheme": "http", "path": "/translate_file",
        "raw_path": b"/translate_file", "query_string": b"", "root_path": "", "client": ("127.0.0.1", 1),
        "headers": [(b"host", b"testserver"), (b"content-type", kind.encode()), (b"content-length", b"900")],
    }  # fmt: skip
    incoming = [
        {"type": "http.request", "body": b'--x\r\nContent-Disposition: form-data; name="file"', "more_body": True},
        {"type": "http.disconnect"},
    ]
    sent: list[Message] = []

    async def receive() -> Message:
        return incoming.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(client.app(scope, receive, send))  # raises what a server would log as a fault
    assert sent[0]["status"] == 499


def test_a_network_of_addresses_has_one_budget():
    budget = Budget(2)
    for number in range(2):
        budget.spend(client_of(f"2001:db8::{number:x}"), now=0.0)
    with pytest.raises(HTTPException):
        budget.spend(client_of("2001:db8::ffff:1:2:3"), now=0.0)
    budget.spend(client_of("2001:db8:0:1::1"), now=0.0)
    assert client_of("testclient") == "testclient"


def test_requests_of_a_network_of_addresses_are_counted_as_one_clients():
    app = serve(limits=Limits(requests_per_minute=2)).app
    addresses = (
        "2001:db8::1",
        "2001:db8::2",
        "2001:db8::ffff:1:2:3",
        "2001:db8:0:1::1",
        "192.0.2.1",
        "::ffff:192.0.2.1",
    )
    answers = [TestClient(app, client=(address, 50_000)).get("/health").status_code for address in addresses]
    assert answers == [200, 200, 429, 200, 200, 200]
    assert TestClient(app, client=("192.0.2.1", 50_000)).get("/health").status_code == 429
