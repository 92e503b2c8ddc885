"""Kafka's broker keys of security, none of which can be set.

Why:    security is in the broker's file, under other names; a second place would mislead.
Source: Kafka 4.3's broker configuration; decision 0045."""

from strandline.config.kafka.rows import (
    BOOLEAN,
    CLASS,
    DOUBLE,
    INT,
    LIST,
    LONG,
    PASSWORD,
    SHORT,
    STRING,
    fixed,
)
from strandline.config.keys import Key

_RULES = "Rules of access are in the broker's file: `[access]`."
_LOGINS = "Logins are in the broker's file: `[[listener]]`."
_NO_KERBEROS = "Strandline has no GSSAPI."
_NO_TOKENS = "What brokers ask of tokens is in the broker's file, `[oauthbearer]`; they fetch none."
_PEERS = "Brokers show each other certificates: `[rpc] tls`."
_NO_TLS = "The TLS of a listener is in the broker's file: `[[listener]]`."

SECURITY_FIXED: tuple[Key, ...] = (
    fixed(
        "authorizer.class.name",
        STRING,
        "",
        f"The class that decides which client may do what. {_RULES}",
    ),
    fixed(
        "connections.max.reauth.ms",
        LONG,
        0,
        f"How long a client stays authenticated on one connection. {_LOGINS}",
    ),
    fixed(
        "principal.builder.class",
        CLASS,
        "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
        f"The class that names the principal of a connection. {_LOGINS}",
    ),
    fixed(
        "sasl.client.callback.handler.class",
        CLASS,
        None,
        f"The class that answers the client's part of a mechanism. {_LOGINS}",
    ),
    fixed(
        "sasl.enabled.mechanisms",
        LIST,
        ("GSSAPI",),
        f"The mechanisms that clients may use. {_LOGINS}",
    ),
    fixed(
        "sasl.jaas.config",
        PASSWORD,
        None,
        f"The login of a mechanism, in the form of JAAS. {_LOGINS}",
    ),
    fixed(
        "sasl.kerberos.kinit.cmd",
        STRING,
        "/usr/bin/kinit",
        f"The path of Kerberos' kinit. {_NO_KERBEROS}",
    ),
    fixed(
        "sasl.kerberos.min.time.before.relogin",
        LONG,
        60_000,
        f"The shortest time between two logins with Kerberos. {_NO_KERBEROS}",
    ),
    fixed(
        "sasl.kerberos.principal.to.local.rules",
        LIST,
        ("DEFAULT",),
        f"How short names are made of Kerberos principals. {_NO_KERBEROS}",
    ),
    fixed(
        "sasl.kerberos.service.name",
        STRING,
        None,
        f"The Kerberos principal of the brokers. {_NO_KERBEROS}",
    ),
    fixed(
        "sasl.kerberos.ticket.renew.jitter",
        DOUBLE,
        0.05,
        f"The random part of the time until a ticket is renewed. {_NO_KERBEROS}",
    ),
    fixed(
        "sasl.kerberos.ticket.renew.window.factor",
        DOUBLE,
        0.8,
        f"The share of a ticket's life after which it is renewed. {_NO_KERBEROS}",
    ),
    fixed(
        "sasl.login.callback.handler.class",
        CLASS,
        None,
        f"The class that answers a login. {_NO_TOKENS}",
    ),
    fixed("sasl.login.class", CLASS, None, f"The class that logs in. {_NO_TOKENS}"),
    fixed(
        "sasl.login.connect.timeout.ms",
        INT,
        None,
        f"How long a login waits for the connection to its provider. {_NO_TOKENS}",
    ),
    fixed(
        "sasl.login.read.timeout.ms",
        INT,
        None,
        f"How long a login waits for its provider's answer. {_NO_TOKENS}",
    ),
    fixed(
        "sasl.login.refresh.buffer.seconds",
        SHORT,
        300,
        f"How long before its end a credential is refreshed at the latest. {_NO_TOKENS}",
    ),
    fixed(
        "sasl.login.refresh.min.period.seconds",
        SHORT,
        60,
        f"The shortest time until a credential is refreshed. {_NO_TOKENS}",
    ),
    fixed(
        "sasl.login.refresh.window.factor",
        DOUBLE,
        0.8,
        f"The share of a credential's life after which it is refreshed. {_NO_TOKENS}",
    ),
    fixed(
        "sasl.login.refresh.window.jitter",
        DOUBLE,
        0.05,
        f"The random part of that time. {_NO_TOKENS}",
    ),
    fixed(
        "sasl.login.retry.backoff.max.ms",
        LONG,
        10_000,
        f"The longest pause between two attempts to log in. {_NO_TOKENS}",
    ),
    fixed(
        "sasl.login.retry.backoff.ms",
        LONG,
        100,
        f"The first pause between two attempts to log in. {_NO_TOKENS}",
    ),
    fixed(
        "sasl.mechanism.controller.protocol",
        STRING,
        "GSSAPI",
        f"The mechanism between brokers and the controller. {_PEERS}",
    ),
    fixed(
        "sasl.mechanism.inter.broker.protocol",
        STRING,
        "GSSAPI",
        f"The mechanism between brokers. {_PEERS}",
    ),
    fixed(
        "sasl.oauthbearer.assertion.algorithm",
        STRING,
        "RS256",
        f"The algorithm that signs an assertion. {_NO_TOKENS}",
    ),
    fixed(
        "sasl.oauthbearer.assertion.claim.aud",
        STRING,
        None,
        f"The audience that an assertion claims. {_NO_TOKENS}",
    ),
    fixed(
        "sasl.oauthbearer.assertion.claim.exp.seconds",
        INT,
        300,
        f"How long an assertion is valid. {_NO_TOKENS}",
    ),
    fixed(
        "sasl.oauthbearer.assertion.claim.iss",
        STRING,
        None,
        f"The issuer that an assertion claims. {_NO_TOKENS}",
    ),
    fixed(
        "sasl.oauthbearer.assertion.claim.jti.include",
        BOOLEAN,
        False,
        f"Whether an assertion has an id of its own. {_NO_TOKENS}",
    ),
    fixed(
        "sasl.oauthbearer.assertion.claim.nbf.seconds",
        INT,
        60,
        f"How long before now an assertion begins to be valid. {_NO_TOKENS}",
    ),
    fixed(
        "sasl.oauthbearer.assertion.claim.sub",
        STRING,
        None,
        f"The subject that an assertion claims. {_NO_TOKENS}",
    ),
    fixed(
        "sasl.oauthbearer.assertion.file",
        STRING,
        None,
        f"The file with a finished assertion. {_NO_TOKENS}",
    ),
    fixed(
        "sasl.oauthbearer.assertion.private.key.file",
        STRING,
        None,
        f"The file with the key that signs an assertion. {_NO_TOKENS}",
    ),
    fixed(
        "sasl.oauthbearer.assertion.private.key.passphrase",
        PASSWORD,
        None,
        f"The password of that key. {_NO_TOKENS}",
    ),
    fixed(
        "sasl.oauthbearer.assertion.template.file",
        STRING,
        None,
        f"The file with the form of an assertion. {_NO_TOKENS}",
    ),
    fixed(
        "sasl.oauthbearer.client.credentials.client.id",
        STRING,
        None,
        f"The client id for token requests. {_NO_TOKENS}",
    ),
    fixed(
        "sasl.oauthbearer.client.credentials.client.secret",
        PASSWORD,
        None,
        f"The client secret for token requests. {_NO_TOKENS}",
    ),
    fixed(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        LONG,
        10_000,
        f"The longest pause between two attempts to read them. {_NO_TOKENS}",
    ),
    fixed(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        LONG,
        100,
        f"The first pause between two attempts to read them. {_NO_TOKENS}",
    ),
    fixed(
        "sasl.oauthbearer.jwt.retriever.class",
        CLASS,
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever",
        f"The class that obtains tokens. {_NO_TOKENS}",
    ),
    fixed(
        "sasl.oauthbearer.jwt.validator.class",
        CLASS,
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator",
        f"The class that checks tokens. {_NO_TOKENS}",
    ),
    fixed("sasl.oauthbearer.scope", STRING, None, f"The scope of token requests. {_NO_TOKENS}"),
    fixed(
        "sasl.oauthbearer.scope.claim.name",
        STRING,
        "scope",
        f"The name of the claim that has the scope. {_NO_TOKENS}",
    ),
    fixed(
        "sasl.oauthbearer.token.endpoint.url",
        STRING,
        None,
        f"Where tokens are asked for. {_NO_TOKENS}",
    ),
    fixed(
        "sasl.server.callback.handler.class",
        CLASS,
        None,
        f"The class that answers the server's part of a mechanism. {_LOGINS}",
    ),
    fixed(
        "sasl.server.max.receive.size",
        INT,
        524_288,
        f"The largest message of a mechanism. {_LOGINS}",
    ),
    fixed(
        "security.inter.broker.protocol",
        STRING,
        "PLAINTEXT",
        "The security protocol between brokers, which is in the broker's file: `[rpc] tls`.",
    ),
    fixed(
        "security.providers",
        STRING,
        None,
        "Classes that provide algorithms of security. Strandline loads no Java classes.",
    ),
    fixed(
        "ssl.allow.dn.changes",
        BOOLEAN,
        False,
        f"Whether a new certificate may have another name. {_NO_TLS}",
    ),
    fixed(
        "ssl.allow.san.changes",
        BOOLEAN,
        False,
        f"Whether a new certificate may have other alternative names. {_NO_TLS}",
    ),
    fixed("ssl.cipher.suites", LIST, (), f"The cipher suites that may be used. {_NO_TLS}"),
    fixed(
        "ssl.client.auth", STRING, "none", f"Whether clients have to show a certificate. {_NO_TLS}"
    ),
    fixed(
        "ssl.enabled.protocols",
        LIST,
        ("TLSv1.2", "TLSv1.3"),
        f"The versions of TLS that may be used. {_NO_TLS}",
    ),
    fixed(
        "ssl.endpoint.identification.algorithm",
        STRING,
        "https",
        f"How the host name in a server's certificate is checked. {_NO_TLS}",
    ),
    fixed("ssl.engine.factory.class", CLASS, None, f"The class that makes TLS engines. {_NO_TLS}"),
    fixed("ssl.key.password", PASSWORD, None, f"The password of the private key. {_NO_TLS}"),
    fixed(
        "ssl.keymanager.algorithm",
        STRING,
        "SunX509",
        f"The algorithm of the key manager. {_NO_TLS}",
    ),
    fixed(
        "ssl.keystore.certificate.chain",
        PASSWORD,
        None,
        f"The certificate chain, as PEM text. {_NO_TLS}",
    ),
    fixed("ssl.keystore.key", PASSWORD, None, f"The private key, as PEM text. {_NO_TLS}"),
    fixed("ssl.keystore.location", STRING, None, f"The file with the private key. {_NO_TLS}"),
    fixed("ssl.keystore.password", PASSWORD, None, f"The password of that file. {_NO_TLS}"),
    fixed("ssl.keystore.type", STRING, "JKS", f"The format of that file. {_NO_TLS}"),
    fixed(
        "ssl.principal.mapping.rules",
        STRING,
        "DEFAULT",
        f"How the principal is made of the name in a client's certificate. {_NO_TLS}",
    ),
    fixed("ssl.protocol", STRING, "TLSv1.3", f"The version of TLS that is preferred. {_NO_TLS}"),
    fixed("ssl.provider", STRING, None, f"The provider of TLS. {_NO_TLS}"),
    fixed(
        "ssl.secure.random.implementation",
        STRING,
        None,
        f"The source of random numbers for TLS. {_NO_TLS}",
    ),
    fixed(
        "ssl.trustmanager.algorithm",
        STRING,
        "PKIX",
        f"The algorithm of the trust manager. {_NO_TLS}",
    ),
    fixed(
        "ssl.truststore.certificates",
        PASSWORD,
        None,
        f"The trusted certificates, as PEM text. {_NO_TLS}",
    ),
    fixed(
        "ssl.truststore.location",
        STRING,
        None,
        f"The file with the trusted certificates. {_NO_TLS}",
    ),
    fixed("ssl.truststore.password", PASSWORD, None, f"The password of that file. {_NO_TLS}"),
    fixed("ssl.truststore.type", STRING, "JKS", f"The format of that file. {_NO_TLS}"),
)
