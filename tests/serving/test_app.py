"""Every route of the server, over a model that reverses its sources."""

from tests.serving.reversing import Reverser, serve


def test_the_server_describes_itself():
    client = serve()
    assert client.get("/health").json() == {"status": "ok"}
    assert "/translate" in client.get("/openapi.json").json()["paths"] == client.get("/spec").json()["paths"]
    assert "heedful_requests_total" in client.get("/metrics").text


def test_errors_have_one_body():
    client = serve()
    assert client.get("/nothing").json() == {"error": "Not Found"}
    assert client.get("/translate").status_code == 405
    assert set(client.get("/translate").json()) == {"error"}


def test_a_fault_tells_no_text():
    answer = serve(Reverser(poison="secret")).post("/translate", json={"q": "secret", "source": "de", "target": "en"})
    assert answer.status_code == 500
    assert answer.json() == {"error": "Internal error"}


def test_no_answer_may_load_anything_from_elsewhere():
    for path in ("/health", "/nothing", "/metrics"):
        assert "default-src 'none'" in serve().get(path).headers["content-security-policy"]
