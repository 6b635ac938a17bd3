"""An OTLP/HTTP receiver on loopback that decodes traces, or fails on demand."""

import gzip
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Condition, Event, Thread

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

SOON = 20.0


@dataclass(frozen=True)
class Received:
    name: str
    trace_id: str
    span_id: str
    parent_id: str
    facts: Mapping[str, object]
    service: Mapping[str, object]
    failed: bool


class OtlpReceiver:
    def __init__(self) -> None:
        self.paths: list[str] = []
        self.raw: list[bytes] = []
        self.spans: list[Received] = []
        self.status = 200
        self.goes_on = Event()
        self.goes_on.set()
        self._heard = Condition()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def wait_for(self, count: int) -> list[Received]:
        with self._heard:
            assert self._heard.wait_for(lambda: len(self.spans) >= count, SOON), f"only {self.spans}"
        return self.spans

    def wait_for_requests(self, count: int) -> None:
        with self._heard:
            assert self._heard.wait_for(lambda: len(self.paths) >= count, SOON)

    def _take(self, path: str, body: bytes) -> int:
        with self._heard:
            self.paths.append(path)
            self._heard.notify_all()
        self.goes_on.wait()
        with self._heard:
            if self.status == 200:
                self.raw.append(body)
                self.spans += _spans(ExportTraceServiceRequest.FromString(body))
            self._heard.notify_all()
        return self.status

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                packed = self.headers.get("Content-Encoding") == "gzip"
                self.send_response(receiver._take(self.path, gzip.decompress(body) if packed else body))
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                """Log nothing."""

        return Handler


@contextmanager
def otlp_receiver() -> Iterator[OtlpReceiver]:
    receiver = OtlpReceiver()
    thread = Thread(target=receiver._server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield receiver
    finally:
        receiver.goes_on.set()
        receiver._server.shutdown()
        receiver._server.server_close()
        thread.join()


def _spans(request: ExportTraceServiceRequest) -> Iterator[Received]:
    for resource in request.resource_spans:
        service = _facts(resource.resource.attributes)
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield Received(
                    span.name,
                    span.trace_id.hex(),
                    span.span_id.hex(),
                    span.parent_span_id.hex(),
                    _facts(span.attributes),
                    service,
                    span.status.code == 2,
                )


def _facts(attributes: Iterable[KeyValue]) -> dict[str, object]:
    return {attribute.key: _value(attribute.value) for attribute in attributes}


def _value(value: AnyValue) -> object:
    return getattr(value, value.WhichOneof("value") or "string_value")
