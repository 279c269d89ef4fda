"""Figures of a server for Prometheus; none of them holds text."""

from typing import Final, final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest


@final
class Metrics:
    """Counters of one server."""

    def __init__(self) -> None:
        """Start at zero."""
        self.registry: Final = CollectorRegistry()
        self.requests: Final = Counter(
            "heedful_requests", "Requests by route and status.", ["route", "status"], registry=self.registry
        )
        self.seconds: Final = Histogram(
            "heedful_request_seconds", "Seconds from the head of a request to its answer.", registry=self.registry
        )
        self.sentences: Final = Counter("heedful_sentences", "Sentences translated.", registry=self.registry)
        self.characters: Final = Counter("heedful_characters", "Source characters translated.", registry=self.registry)
        self.batch: Final = Histogram(
            "heedful_batch_sentences",
            "Sentences of a batch.",
            buckets=(1, 2, 4, 8, 16, 32, 64, 128),
            registry=self.registry,
        )
        self.waiting: Final = Gauge(
            "heedful_waiting_requests", "Requests that wait for the models or are in a batch.", registry=self.registry
        )
        self.cancelled: Final = Counter(
            "heedful_cancelled", "Requests whose client left or whose time was up.", registry=self.registry
        )
        self.refused: Final = Counter(
            "heedful_refused", "Requests refused because the queue was full or too slow.", registry=self.registry
        )

    def text(self) -> bytes:
        """Write all figures.

        Returns:
            Text in Prometheus's exposition format.
        """
        return generate_latest(self.registry)
