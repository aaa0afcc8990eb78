"""What the server counts, for Prometheus: waiting, running, batch sizes, answers by status."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

__all__ = ["Metrics"]

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """The figures of one server; each has its own registry, so that several can live in one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)  # CPU time and memory
        self.queue_time = Histogram(
            "deixis_queue_seconds", "Time a request waited for the network", buckets=SECONDS, registry=self.registry
        )
        self.inference_time = Histogram(
            "deixis_inference_seconds", "Time of one run of the network", buckets=SECONDS, registry=self.registry
        )
        self.batch_size = Histogram(
            "deixis_batch_documents", "Documents answered by one run", buckets=SIZES, registry=self.registry
        )
        self.waiting = Gauge("deixis_waiting_documents", "Documents in the queue", registry=self.registry)
        self.requests = Counter(
            "deixis_requests", "Requests by endpoint and status", ["endpoint", "status"], registry=self.registry
        )

    def render(self) -> bytes:
        """Return the figures in Prometheus' text format."""
        return generate_latest(self.registry)
