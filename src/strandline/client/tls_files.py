"""The files of TLS that a client's configuration names: authorities, certificate, key.

How:    both spellings are known, Java's stores in PEM and librdkafka's files.
Owns:   nothing.
Source: Kafka's client configuration; librdkafka's CONFIGURATION.md; decision 0069."""

import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from strandline.base.errors import OperatorError

Find = Callable[[str], Path]
"""Where a file of this name is on this machine."""


@dataclass(frozen=True, slots=True)
class Stores:
    """The files of TLS that a configuration names."""

    trust: Path | None
    certificate: Path | None
    key: Path | None

    @classmethod
    def of(cls, where: str, values: Mapping[str, str], find: Find) -> "Stores":
        """Those of these values, all readable. Raises OperatorError."""
        trust = values.get("ssl.ca.location") or values.get("ssl.truststore.location")
        certificate = values.get("ssl.certificate.location") or values.get("ssl.keystore.location")
        key = values.get("ssl.key.location") or certificate
        found = cls(*(None if name is None else find(name) for name in (trust, certificate, key)))
        for file in found.files:
            try:
                file.read_bytes()
            except OSError as error:
                raise OperatorError(f"{where}: cannot read {file}: {error.strerror}") from error
        return found

    @property
    def files(self) -> tuple[Path, ...]:
        """All of them, once each."""
        named = (self.trust, self.certificate, self.key)
        return tuple(dict.fromkeys(one for one in named if one is not None))

    def context(self, where: str, values: Mapping[str, str]) -> ssl.SSLContext:
        """What connections are opened with. Raises OperatorError."""
        try:
            context = ssl.create_default_context(cafile=self.trust)
        except ssl.SSLError as error:
            raise OperatorError(f"{where}: {self.trust} has no certificate in PEM") from error
        if values.get("ssl.endpoint.identification.algorithm", "https").lower() in ("", "none"):
            context.check_hostname = False
        if self.certificate is not None:
            try:
                context.load_cert_chain(self.certificate, self.key, lambda: b"")
            except ssl.SSLError as error:
                raise OperatorError(
                    f"{where}: {self.certificate} and {self.key} are no certificate in PEM with "
                    f"its key: {error.reason or error}"
                ) from error
        return context
