"""The TLS of a broker's connections to and from other brokers.

Why:    a broker appends, votes and deletes at the word of another one, so each must prove that it
        is the broker that it says it is, of this cluster.
How:    A certificate names its broker as strandline://CLUSTER/broker/ID, a URI among the subject's
        alternative names. Both sides show one, of an authority in `trust`. The side that connects
        compares the name with the broker that it wants, the other one with the greeting.
            A running cluster turns TLS on one broker after the other: `prefer` accepts connections
        of both kinds, and opens one without TLS where the other side ends its greeting.
Owns:   the contexts of both directions.
Source: docs/decisions/0069-access.md."""

import ssl
from pathlib import Path

from strandline.base.errors import OperatorError
from strandline.model.ids import BrokerId
from strandline.security.certificates import der_of, uri_names
from strandline.security.tls import Pair, ServerTls, TlsSettings, client_context

IDENTITY = "strandline://{cluster}/broker/{broker}"


class PeerTls:
    """See the module. `is_required`: without TLS nothing is opened or accepted. Raises
    OperatorError if the files cannot be used, or name another broker."""

    def __init__(
        self,
        *,
        certificate: Path,
        private_key: Path,
        trust: Path,
        cluster: str,
        broker: BrokerId,
        is_required: bool,
    ) -> None:
        self.is_required = is_required
        self.settings = TlsSettings(
            place="[rpc]",
            pairs=(Pair(certificate, private_key),),
            trust=trust,
            client_certificates="required",
        )
        self._cluster = cluster
        self._broker = broker
        self._server = ServerTls(self.settings, self._check_own)
        self._client = client_context(self.settings)

    @property
    def ends_at_ms(self) -> int:
        """When the certificate ends, in milliseconds since 1970."""
        return self._server.ends_at_ms

    @property
    def accepting(self) -> ssl.SSLContext:
        """For the next connection that another broker opens."""
        return self._server.context

    @property
    def connecting(self) -> ssl.SSLContext:
        """For the next connection that this broker opens."""
        return self._client

    def reload_if_changed(self) -> bool:
        """See `ServerTls`."""
        if not self._server.reload_if_changed():
            return False
        self._client = client_context(self.settings)
        return True

    def broker_of(self, sock: ssl.SSLSocket) -> BrokerId:
        """The broker at the other end, by its certificate. Raises ValueError with the reason if it
        names none of this cluster."""
        der = sock.getpeercert(binary_form=True)
        assert der is not None, "a handshake without a certificate fails"
        return self._broker_in(der)

    def _broker_in(self, der: bytes) -> BrokerId:
        prefix = IDENTITY.format(cluster=self._cluster, broker="")
        found = {one.removeprefix(prefix) for one in uri_names(der) if one.startswith(prefix)}
        ids = {one for one in found if one.isascii() and one.isdigit()}
        if len(found) != 1 or not ids:
            raise ValueError(
                f"the certificate does not name one broker of this cluster: it needs one URI "
                f"{prefix}ID among its subject alternative names"
            )
        return BrokerId(int(ids.pop()))

    def _check_own(self, certificate: Path) -> None:
        """Raise OperatorError if the certificate is not this broker's own."""
        try:
            named = self._broker_in(der_of(certificate))
        except ValueError as error:
            raise OperatorError(f"[rpc] certificate: {certificate}: {error}") from error
        if named != self._broker:
            raise OperatorError(
                f"[rpc] certificate: {certificate} is broker {named}'s, and this is broker "
                f"{self._broker}: give the one of broker {self._broker}"
            )
