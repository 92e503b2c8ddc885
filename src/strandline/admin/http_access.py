"""Decides which client may see which page of the HTTP port.

Why:    metrics and pages name topics, groups and brokers: not every machine that reaches the port
        may see them. A supervisor that looks at health has no token, in most clusters.
How:    clients without a token may see the path, or this one has a certificate --> seen
        no credentials                          --> 401, at once
        a token of the file                     --> seen
        a token of the identity provider        --> seen; 403 if rules deny its user `describe` on
                                                    the cluster, 503 while rules are not known yet
        anything else                           --> 401 after a delay, a line in the audit log
        A token comes as `Bearer TOKEN`, or as the password of `Basic`: browsers ask for that.
        The port has no calls that change anything, so there is no other right.
Owns:   nothing.
Source: RFC 6750, RFC 7617, RFC 9110 section 11; decision 0069."""

import asyncio
import logging
from collections.abc import Callable
from http import HTTPStatus

from strandline.admin.http_credentials import HEALTH_PATHS, is_open_to, token_in, unauthorised
from strandline.admin.http_server import Answer, Asker
from strandline.broker.broker import Broker
from strandline.broker.operations.log_budget import LogBudget
from strandline.config.other_ports import MetricsSection
from strandline.model.access import CLUSTER_NAME, Kind, Operation
from strandline.security.audit.event import AuditEvent, EventKind, groups_detail
from strandline.security.http_tokens import HttpTokens
from strandline.security.sasl import oauth_bearer
from strandline.security.sasl.mechanism import SaslError
from strandline.security.session import Principal, Session

PLACE = "[metrics]"
"""The port's name in the audit log, which no listener has."""
FILE_TOKEN = "TOKEN"
"""The mechanism of a token that is no JSON Web Token, in the audit log."""
LOGGED_LENGTH_MAX = 300
_log = logging.getLogger("strandline.security")


class HttpAccess:
    """See the module. `tokens`: None without a file; `is_ready`: whether the broker has the rules
    of its cluster."""

    def __init__(
        self,
        config: MetricsSection,
        tokens: HttpTokens | None,
        broker: Broker,
        *,
        is_ready: Callable[[], bool],
    ) -> None:
        self._open_right = config.anonymous_right
        self._tokens = tokens
        self._services = broker.services
        self._verifier = broker.services.logins.tokens if config.oauthbearer else None
        self._is_ready = is_ready
        self._lines = LogBudget(_log, lambda: asyncio.get_running_loop().time() * 1000)

    async def refuse(self, asker: Asker, path: str) -> Answer | None:
        """The answer to a client that may not see a path; None if it may."""
        if is_open_to(self._open_right, path) or asker.has_certificate:
            return None
        if not asker.authorization:
            return unauthorised()
        token = token_in(asker.authorization)
        if token is None:
            return await self._fail(asker, FILE_TOKEN, "credentials that are no token")
        if self._tokens is not None and self._tokens.find(token) is not None:
            self._services.logins.delays.forgive(asker.host)
            return None
        if self._verifier is None or token.count(".") != 2:
            return await self._fail(asker, FILE_TOKEN, "an unknown token")
        try:
            found = await self._verifier.verify(token)
        except SaslError as error:
            return await self._fail(asker, oauth_bearer.NAME, str(error))
        self._services.logins.delays.forgive(asker.host)
        session = Session(
            principal=Principal.user(found.user),
            groups=found.groups,
            listener=PLACE,
            host=asker.host,
            mechanism=oauth_bearer.NAME,
        )
        return self._judge(session, path)

    def _judge(self, session: Session, path: str) -> Answer | None:
        """By the rules of the cluster."""
        access = self._services.access
        if path in HEALTH_PATHS or not access.is_enforced:
            return None
        if not self._is_ready():
            return Answer([b"not ready\n"], HTTPStatus.SERVICE_UNAVAILABLE)
        verdict = access.judge(session, Operation.DESCRIBE, Kind.CLUSTER, CLUSTER_NAME)
        if verdict.is_allowed:
            return None
        self._audit(
            AuditEvent(
                kind=EventKind.REFUSAL,
                is_allowed=False,
                principal=str(session.principal),
                listener=session.listener,
                address=session.host,
                mechanism=session.mechanism,
                api=path,
                operation=Operation.DESCRIBE.name,
                resource_type=Kind.CLUSTER.name,
                resource_name=CLUSTER_NAME,
                details=groups_detail(verdict.groups),
            )
        )
        told = f"Forbidden: {session.principal} may not describe the cluster\n"
        return Answer([told.encode()], HTTPStatus.FORBIDDEN)

    async def _fail(self, asker: Asker, mechanism: str, reason: str) -> Answer:
        """Answer credentials that do not hold, late."""
        now_ms = asyncio.get_running_loop().time() * 1000
        delay_ms = self._services.logins.delays.note(asker.host, now_ms)
        text = "a request from %s at the HTTP port failed to authenticate: %s"
        self._lines.write(logging.WARNING, text, asker.host, reason[:LOGGED_LENGTH_MAX])
        self._audit(
            AuditEvent(
                kind=EventKind.LOGIN,
                is_allowed=False,
                principal="unknown",
                listener=PLACE,
                address=asker.host,
                mechanism=mechanism,
            )
        )
        await asyncio.sleep(delay_ms / 1000)
        return unauthorised(', error="invalid_token"')

    def _audit(self, event: AuditEvent) -> None:
        if self._services.audit is not None:
            self._services.audit.add(event)
