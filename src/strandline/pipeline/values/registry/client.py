"""Asks a schema registry over HTTP, once for each id.

Why:    an id names the same schema for ever, so that one answer is enough for each process.
How:    GET with the standard library; a few tries if the registry does not answer or answers 5xx.
        An id that the registry does not know is a fault of the record: UnknownSchemaError, asked
        anew each time. A registry that cannot be asked is a fault of the job: OperatorError, so
        that no good record becomes a dead letter.
Owns:   the answers of this process; a pickled client takes them along, and never the password of
        a message: it stays out of every error.
Source: Confluent's schema registry API; Karapace and Apicurio speak it, too."""

import base64
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from strandline.base.errors import OperatorError
from strandline.pipeline.values.problems import UnfitValueError

TIMEOUT_S = 10
RETRY_DELAYS_S = (0.2, 1.0)
ANSWER_BYTES_MAX = 16 << 20
REFERENCES_MAX = 1_000


class UnknownSchemaError(UnfitValueError):
    """The registry has no schema with this id."""


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """One schema, with the schemas that it refers to, each after those that it needs."""

    id: int
    kind: str
    """AVRO, JSON or PROTOBUF."""
    text: str
    references: tuple[tuple[str, str], ...] = ()
    """(name, text) of each."""


class SchemaRegistry:
    """A client of one registry. `headers`: for its security, beside `user:password@` in the URL."""

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        retry_delays_s: tuple[float, ...] = RETRY_DELAYS_S,
    ) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise OperatorError("--registry: expected http://HOST:PORT or https://HOST:PORT")
        host = parts.netloc.rpartition("@")[2]
        self._url = urllib.parse.urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))
        self._headers = {"Accept": "application/vnd.schemaregistry.v1+json", **(headers or {})}
        if parts.username is not None:
            user, password = (
                urllib.parse.unquote(one or "") for one in (parts.username, parts.password)
            )
            token = base64.b64encode(f"{user}:{password}".encode()).decode()
            self._headers["Authorization"] = f"Basic {token}"
        self._delays = retry_delays_s
        self._schemas: dict[tuple[int, str], RegisteredSchema] = {}

    @property
    def url(self) -> str:
        """Where the registry is, without a password."""
        return self._url

    def schema(self, schema_id: int, *, format: str = "") -> RegisteredSchema:
        """The schema with this id. `format`: `serialized` for Protobuf descriptors."""
        known = self._schemas.get((schema_id, format))
        if known is None:
            answer = self._get(f"/schemas/ids/{schema_id}", format)
            if answer is None:
                raise UnknownSchemaError(f"schema {schema_id} is not in the registry")
            known = self._registered(schema_id, answer, format)
            self._schemas[schema_id, format] = known
        return known

    def latest(self, subject: str, *, format: str = "") -> RegisteredSchema:
        """The newest schema of a subject such as `flights-value`; asked anew each time."""
        answer = self._get(f"/subjects/{_quoted(subject)}/versions/latest", format)
        if answer is None:
            raise OperatorError(
                f"registry {self._url}: there is no subject {subject}: name one with --subject"
            )
        if not isinstance(answer.get("id"), int):
            raise self._strange("a subject without an id")
        return self._registered(answer["id"], answer, format)

    def _registered(
        self, schema_id: int, answer: Mapping[str, Any], format: str
    ) -> RegisteredSchema:
        text = answer.get("schema")
        if not isinstance(text, str):
            raise self._strange("a schema without text")
        references: dict[str, str] = {}
        self._follow(answer, references, format, ())
        kind = str(answer.get("schemaType") or "AVRO")
        return RegisteredSchema(schema_id, kind, text, tuple(references.items()))

    def _follow(
        self, answer: Mapping[str, Any], found: dict[str, str], format: str, within: tuple[str, ...]
    ) -> None:
        for reference in answer.get("references") or ():
            name, subject = str(reference.get("name")), str(reference.get("subject"))
            if name in found:
                continue
            if name in within or len(found) >= REFERENCES_MAX:
                raise self._strange(f"references without an end at {name}")
            path = f"/subjects/{_quoted(subject)}/versions/{reference.get('version')}"
            referenced = self._get(path, format)
            if referenced is None:
                raise OperatorError(f"registry {self._url}: {subject} is referred to but not there")
            self._follow(referenced, found, format, (*within, name))
            found[name] = str(referenced.get("schema"))

    def _get(self, path: str, format: str) -> dict[str, Any] | None:
        """The answer; None if the registry does not know what is asked for."""
        query = f"?format={format}" if format else ""
        request = urllib.request.Request(f"{self._url}{path}{query}", headers=self._headers)
        for delay_s in (*self._delays, None):
            try:
                with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:
                    data = response.read(ANSWER_BYTES_MAX + 1)
                break
            except urllib.error.HTTPError as error:
                with error:
                    if error.code == 404 and _is_unknown(error.read(4096)):
                        return None
                if error.code < 500 or delay_s is None:
                    raise OperatorError(
                        f"registry {self._url}: answered {error.code} {error.reason} to {path}"
                    ) from None
            except OSError as error:
                if delay_s is None:
                    reason = getattr(error, "reason", None) or error
                    raise OperatorError(f"registry {self._url}: no answer: {reason}") from None
            time.sleep(delay_s)
        if len(data) > ANSWER_BYTES_MAX:
            raise self._strange(f"more than {ANSWER_BYTES_MAX >> 20} MB")
        try:
            answer = json.loads(data)
        except ValueError:
            raise self._strange("no JSON: is this a schema registry?") from None
        if not isinstance(answer, dict):
            raise self._strange("no JSON object: is this a schema registry?")
        return answer

    def _strange(self, what: str) -> OperatorError:
        return OperatorError(f"registry {self._url}: answered with {what}")


def _is_unknown(body: bytes) -> bool:
    """Whether a 404 is about the id, the subject or the version, and not about the address."""
    try:
        return json.loads(body)["error_code"] in (40401, 40402, 40403)
    except (ValueError, KeyError, TypeError):
        return False


def _quoted(name: str) -> str:
    return urllib.parse.quote(name, safe="")
