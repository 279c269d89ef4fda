"""The package in JavaScript in a page of its own: what Node gives, under the policy that its README names."""

from pathlib import Path
from typing import Any

from tests.export.archives import archive_of
from tests.export.conftest import Make
from tests.js.node import PACKAGE, Run, answers, needs_node
from tests.pages.browser import Tab, chromium, needs_chromium
from tests.prove.served import POLICY, served, write_site

CALL = "([texts, options]) => model.translate(texts, options)"


@needs_node
@needs_chromium
def test_the_package_runs_under_the_policy_that_it_names(exported: Make, tmp_path: Path):
    assert f"`{POLICY}`" in (PACKAGE / "README.md").read_text("utf-8")
    archive = archive_of(exported("rnnsearch-after")[1], tmp_path)
    given: list[Any] = [["abc", "fade cab"], {"beam": 3, "nbest": 2, "attention": True}]
    (expected,) = answers(Run(archive, [["translate", *given]]))
    write_site(tmp_path / "site", PACKAGE, archive)
    with chromium() as browser:
        with served(tmp_path / "site", POLICY) as address:
            tab = Tab(browser, f"{address}/index.html", ready="#ready")
            assert tab.page.locator("#ready").inner_text() == "ready"
            found = tab.page.evaluate(CALL, given)
            assert [one["alternatives"] for one in found] == [one["alternatives"] for one in expected]
            tab.close()
        # The policy is one that is followed: without its second source no WebAssembly is compiled.
        with served(tmp_path / "site", POLICY.removesuffix(" 'wasm-unsafe-eval'")) as address:
            tab = Tab(browser, f"{address}/index.html", ready="#ready")
            assert "WebAssembly is switched off" in tab.page.locator("#ready").inner_text()
            tab.context.close()
