"""Time of `translate` of the package in JavaScript, one text at a time, in Node and in Chromium, one thread.

    heedful export MODEL --to js
    python benchmarks/package.py model.tgz sources.txt [--num 200] [--words 15] [--neighbours 0,2]

The median over the sources, greedily and with a beam of 5, after five sources that are not counted. `--words 15` takes
the sources of 15 words alone. `--neighbours 2` does all of it beside two loops that never wait. The page of a model
with all that it shows is measured by page.py.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from _neighbours import neighbours

PACKAGE: Final = Path(__file__).parents[1] / "src" / "heedful" / "js"
NUM_WARM: Final = 5
BEAMS: Final = 1, 5
MEASURE: Final = f"""async (model, sources, beams) => {{
  const medians = [];
  for (const beam of beams) {{
    const times = [];
    for (const source of sources) {{
      const begun = performance.now();
      await model.translate([source], {{ beam }});
      times.push(performance.now() - begun);
    }}
    const counted = times.slice({NUM_WARM}).sort((one, other) => one - other);
    medians.push(counted[counted.length >> 1]);
  }}
  return medians;
}}"""
NODE: Final = f"""
import {{ readFile }} from 'node:fs/promises';
import {{ gunzip }} from './js/archive.js';
import {{ load }} from './js/load.js';
import {{ ort }} from './js/runtime/ort.js';
ort.env.wasm.numThreads = 1;
ort.env.wasm.wasmBinary = await gunzip(await readFile('js/runtime/ort.wasm.gz'));
const model = await load(await readFile('model.tgz'), {{ ort }});
const {{ sources, beams }} = JSON.parse(await readFile('sources.json', 'utf8'));
console.log(JSON.stringify(await ({MEASURE})(model, sources, beams)));
"""


def in_node(site: Path, sources: list[str]) -> list[float]:
    (site / "sources.json").write_text(json.dumps({"sources": sources, "beams": BEAMS}), encoding="utf-8")
    (site / "program.mjs").write_text(NODE, encoding="utf-8")
    words = ["node", "program.mjs"]
    done = subprocess.run(words, cwd=site, capture_output=True, encoding="utf-8", check=False)
    if done.returncode:
        sys.exit(done.stderr[-2000:])
    return json.loads(done.stdout.splitlines()[-1])


def in_chromium(site: Path, sources: list[str]) -> list[float]:
    from tests.pages.browser import Tab, chromium
    from tests.prove.served import POLICY, served

    with served(site, POLICY) as address, chromium() as browser:
        tab = Tab(browser, f"{address}/index.html", ready="#ready")
        tab.page.set_default_timeout(0)
        arguments: list[Any] = [sources, list(BEAMS)]
        return tab.page.evaluate(f"([sources, beams]) => ({MEASURE})(model, sources, beams)", arguments)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("archive", type=Path)
    parser.add_argument("sources", type=Path)
    parser.add_argument("--num", type=int, default=200, help="sources that are counted")
    parser.add_argument("--words", type=int, default=0, help="words of a source; 0 = any number")
    parser.add_argument("--neighbours", default="0,2", help="numbers of loops beside")
    wanted = parser.parse_args()
    lines = [line.partition("\t")[0] for line in wanted.sources.read_text("utf-8").splitlines()]
    suited = [line for line in lines if not wanted.words or len(line.split()) == wanted.words]
    sources = suited[: wanted.num + NUM_WARM]
    if len(sources) <= NUM_WARM:
        sys.exit(f"{wanted.sources}: {len(sources)} sources of {wanted.words} words")
    sys.path.append(str(Path(__file__).parents[1]))
    from tests.prove.served import write_site

    with tempfile.TemporaryDirectory() as name:
        site = Path(name)
        write_site(site, PACKAGE, wanted.archive)
        for number in map(int, wanted.neighbours.split(",")):
            with neighbours(number):
                for place, measured in ("Node", in_node), ("Chromium", in_chromium):
                    greedy, beam = measured(site, sources)
                    print(
                        f"beside {number} loops, {place}: {greedy:.1f} ms greedily, {beam:.1f} ms with a beam of 5 "
                        f"(median of {len(sources) - NUM_WARM})",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
