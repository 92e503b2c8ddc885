"""A small schema registry over HTTP that speaks Confluent's API, for tests.

It keeps schemas in memory, numbers them from 1 and counts requests; `failures` answers 503 so many
times first. Protobuf schemas are given as serialized FileDescriptorProtos in base64, the form that
`?format=serialized` answers."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit


@dataclass
class Registry:
    """The schemas, and what was asked."""

    url: str = ""
    schemas: list[dict[str, Any]] = field(default_factory=list)
    subjects: dict[str, list[int]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    authorization: list[str | None] = field(default_factory=list)
    failures: int = 0

    def register(
        self, subject: str, text: str, kind: str = "AVRO", references: tuple[str, ...] = ()
    ) -> int:
        """The id of a schema; `references`: subjects, by which its names are called, too."""
        answer: dict[str, Any] = {"schema": text}
        if kind != "AVRO":
            answer["schemaType"] = kind
        if references:
            answer["references"] = [
                {"name": one, "subject": one, "version": len(self.subjects[one])}
                for one in references
            ]
        self.schemas.append(answer)
        self.subjects.setdefault(subject, []).append(len(self.schemas))
        return len(self.schemas)

    def answer(self, path: str) -> tuple[int, dict[str, Any]]:
        parts = [unquote(part) for part in path.strip("/").split("/")]
        match parts:
            case ["schemas", "ids", number] if 0 < int(number) <= len(self.schemas):
                return 200, self.schemas[int(number) - 1]
            case ["schemas", "ids", _]:
                return 404, {"error_code": 40403, "message": "Schema not found"}
            case ["subjects", subject, "versions", version] if subject in self.subjects:
                ids = self.subjects[subject]
                number = len(ids) if version == "latest" else int(version)
                found = ids[number - 1]
                told = {"subject": subject, "version": number, "id": found}
                return 200, self.schemas[found - 1] | told
            case ["subjects", _, "versions", _]:
                return 404, {"error_code": 40401, "message": "Subject not found"}
        return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}


@contextmanager
def serve_registry() -> Iterator[Registry]:
    """A registry on a free port."""
    registry = Registry()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            registry.requests.append(self.path)
            registry.authorization.append(self.headers.get("Authorization"))
            if registry.failures:
                registry.failures -= 1
                status, answer = 503, {"error_code": 50003, "message": "no leader"}
            else:
                status, answer = registry.answer(urlsplit(self.path).path)
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    registry.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield registry
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
