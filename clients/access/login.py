"""How a client comes in: a file of lines KEY=VALUE, which each program reads in its language.

How:        protocol                 SASL_SSL or SSL
            ca                       the authority to trust
            mechanism                SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER
            user, password           for SCRAM
            certificate, key         for a certificate of the client's own
            keystore                 the two in one file, as Java reads PEM
            token_url, client_id, client_secret    where tokens come from (RFC 6749, 4.4)"""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from strandline.security.authority import Files

VARIABLE = "CLIENT_ACCESS"
LIBRDKAFKA = {
    "protocol": "security.protocol",
    "ca": "ssl.ca.location",
    "certificate": "ssl.certificate.location",
    "key": "ssl.key.location",
    "mechanism": "sasl.mechanism",
    "user": "sasl.username",
    "password": "sasl.password",
}


@dataclass(frozen=True, slots=True)
class Login:
    """`told`: the lines of the file; `bootstrap`: the listener that takes such a login."""

    bootstrap: str
    told: Mapping[str, str]

    def but(self, **told: str) -> "Login":
        """The same with other lines."""
        return Login(self.bootstrap, {**self.told, **told})

    def environment(self, directory: Path, name: str) -> dict[str, str]:
        """Write the file; what a program needs to find it."""
        path = directory / f"{name}.access"
        path.write_text("".join(f"{key}={value}\n" for key, value in self.told.items()))
        return {VARIABLE: str(path)}

    def librdkafka(self) -> dict[str, str]:
        """What librdkafka calls these lines."""
        return {LIBRDKAFKA[key]: value for key, value in self.told.items() if key in LIBRDKAFKA}

    def aiokafka(self) -> dict[str, object]:
        """What aiokafka needs to come in by a certificate."""
        context = ssl.create_default_context(cafile=self.told["ca"])
        context.load_cert_chain(self.told["certificate"], self.told["key"])
        return {"security_protocol": "SSL", "ssl_context": context}

    def java(self) -> dict[str, str]:
        """What Java calls them; tokens are left out."""
        told = self.told
        found = {
            "bootstrap.servers": self.bootstrap,
            "security.protocol": told["protocol"],
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": told["ca"],
        }
        if "keystore" in told:
            found |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": told["keystore"]}
        if "user" in told:
            module = "org.apache.kafka.common.security.scram.ScramLoginModule"
            words = f'username="{told["user"]}" password="{told["password"]}"'
            found["sasl.mechanism"] = told["mechanism"]
            found["sasl.jaas.config"] = f"{module} required {words};"
        return found


def by_password(bootstrap: str, trust: Path, mechanism: str, user: str, password: str) -> Login:
    """SCRAM over TLS."""
    return Login(
        bootstrap,
        {
            "protocol": "SASL_SSL",
            "ca": str(trust),
            "mechanism": mechanism,
            "user": user,
            "password": password,
        },
    )


def by_certificate(bootstrap: str, files: Files) -> Login:
    """A certificate on both sides."""
    keystore = files.certificate.with_suffix(".keystore.pem")
    keystore.write_text(files.key.read_text() + files.certificate.read_text())
    return Login(
        bootstrap,
        {
            "protocol": "SSL",
            "ca": str(files.trust),
            "certificate": str(files.certificate),
            "key": str(files.key),
            "keystore": str(keystore),
        },
    )


def by_token(bootstrap: str, trust: Path, url: str, *, client_id: str, client_secret: str) -> Login:
    """A token that the client fetches for its credentials."""
    return Login(
        bootstrap,
        {
            "protocol": "SASL_SSL",
            "ca": str(trust),
            "mechanism": "OAUTHBEARER",
            "token_url": url,
            "client_id": client_id,
            "client_secret": client_secret,
        },
    )
