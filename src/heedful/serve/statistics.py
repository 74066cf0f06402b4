"""The numbers that `/metrics` reports: requests, latencies, queue length, batch sizes, tokens."""

from __future__ import annotations

import os

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"  # several workers add their numbers up there
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Statistics:
    """Counts of one application; those of several workers are added up by `report`."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "heedful_requests", "Requests by path and status", ("path", "status"), registry=self.registry
        )
        self._seconds = Histogram(
            "heedful_request_seconds", "Seconds per request", ("path",), buckets=SECONDS, registry=self.registry
        )
        self._queue = Gauge(
            "heedful_queue_length", "Inputs that wait", registry=self.registry, multiprocess_mode="livesum"
        )
        self._open = Gauge(
            "heedful_requests_in_progress", "Requests in progress", registry=self.registry, multiprocess_mode="livesum"
        )
        self._batches = Histogram("heedful_batch_size", "Inputs per batch", buckets=SIZES, registry=self.registry)
        self._tokens = Counter("heedful_source_tokens", "Tokens of the inputs of all batches", registry=self.registry)

    def request(self, path: str, status: int, seconds: float) -> None:
        """Count a request that was answered; `path` is its route, not what a client sent."""
        self._requests.labels(path, str(status)).inc()
        self._seconds.labels(path).observe(seconds)

    def in_progress(self, change: int) -> None:
        """Count requests that have begun or ended."""
        self._open.inc(change)

    def queue(self, length: int) -> None:
        """Set the number of inputs that wait."""
        self._queue.set(length)

    def batch(self, inputs: int, tokens: int) -> None:
        """Count a batch."""
        self._batches.observe(inputs)
        self._tokens.inc(tokens)

    def report(self) -> bytes:
        """Return all numbers in the text format of Prometheus, of all workers of this machine."""
        registry = self.registry
        if os.environ.get(FOLDER_VARIABLE):
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)
