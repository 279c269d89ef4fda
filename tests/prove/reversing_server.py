"""Server of a model that reverses its sources, in a process of its own; prints its port."""

import argparse
import os
import time
from pathlib import Path
from typing import Any

from heedful.serving.app import guarded, make_app
from heedful.serving.catalog import Catalog
from heedful.serving.guard import Hosts
from heedful.serving.keys import Keys
from heedful.serving.limits import Limits
from heedful.serving.server import BACKLOG, listen, make_server
from heedful.serving.service import Service
from heedful.serving.suggestions import Suggestions
from tests.serving.reversing import Reverser


class SlowReverser(Reverser):
    """Model with the speed of a small one: a fixed time for each batch and each sentence."""

    batch_seconds = 0.002
    sentence_seconds = 0.0005

    def translate(self, texts: Any, **settings: Any) -> list[Any]:
        batch = list(texts)
        stop = time.monotonic() + self.batch_seconds + self.sentence_seconds * len(batch)
        while (left := stop - time.monotonic()) > 0:
            if settings["cancelled"]():
                break
            time.sleep(min(left, 0.01))
        self.batches.clear()  # what the tests look at would grow for ever here
        return super().translate(batch, **settings)


def main() -> None:
    """Serve until a signal."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sentence-seconds", type=float, default=0.0005)
    parser.add_argument("--receive-seconds", type=float, default=10.0)
    parser.add_argument("--answer-seconds", type=float, default=30.0)
    parser.add_argument("--queue", type=int, default=2000)
    parser.add_argument("--api-key", default="")
    parser.add_argument("--suggestions", type=Path)
    options = parser.parse_args()
    model = SlowReverser(poison="poisonous text")
    model.sentence_seconds = options.sentence_seconds
    limits = Limits(
        requests_per_minute=0,
        receive_seconds=options.receive_seconds,
        answer_seconds=options.answer_seconds,
        queue=options.queue,
    )
    with listen("127.0.0.1", 0) as bound:
        suggestions = Suggestions(options.suggestions) if options.suggestions else None
        service = Service(Catalog([model]), limits, Keys([options.api_key]), suggestions)  # type: ignore[list-item]
        server = make_server(guarded(make_app(service), service, Hosts("127.0.0.1")), limits)
        bound.listen(BACKLOG)
        print(bound.getsockname()[1], os.getpid(), flush=True)
        server.run([bound])


if __name__ == "__main__":
    main()
