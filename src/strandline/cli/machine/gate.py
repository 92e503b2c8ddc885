"""Decides which client may see which page of a machine's HTTP port.

Why:    the machine's pages have what its brokers' pages have, so the same clients may see them.
How:    by the same section of the file. The supervisor knows certificates and tokens of the file.
        Other tokens need the identity provider's keys and the cluster's rules, so a broker judges
        them as at its own port: it delays, logs and audits what fails.
            credentials that the supervisor does not know, no broker answers --> 503
Owns:   nothing.
Source: decisions 0069 and 0071."""

from http import HTTPStatus

from strandline.admin.http_credentials import is_open_to, token_in, unauthorised
from strandline.admin.http_server import Answer, Asker
from strandline.cli.machine.broker_process import NoAnswerError
from strandline.cli.machine.supervisor import Supervisor
from strandline.cli.machine.wire import Judge
from strandline.config.other_ports import MetricsSection
from strandline.security.http_tokens import HttpTokens

JUDGE_TIMEOUT_S = 20.0
"""A broker delays its answer to a client that guesses."""


class MachineGate:
    """See the module. `tokens`: None without a file."""

    def __init__(
        self, config: MetricsSection, tokens: HttpTokens | None, supervisor: Supervisor
    ) -> None:
        self._open_right = config.anonymous_right
        self._tokens = tokens
        self._supervisor = supervisor

    async def refuse(self, asker: Asker, path: str) -> Answer | None:
        """The answer to a client that may not see a path; None if it may."""
        if is_open_to(self._open_right, path) or asker.has_certificate:
            return None
        if not asker.authorization:
            return unauthorised()
        token = token_in(asker.authorization)
        if token is not None and self._tokens is not None and self._tokens.find(token) is not None:
            return None
        return await self._judge(asker, path)

    async def _judge(self, asker: Asker, path: str) -> Answer | None:
        for one in self._supervisor.processes:
            if one.process is None or not one.process.is_linked:
                continue
            question = Judge(asker.host, asker.authorization, path)
            try:
                told = await one.process.ask(question, timeout_s=JUDGE_TIMEOUT_S)
            except NoAnswerError:
                continue
            if told.is_allowed:
                return None
            status = HTTPStatus(told.status or HTTPStatus.SERVICE_UNAVAILABLE)
            return Answer([told.body], status, headers=told.headers)
        return Answer([b"no broker runs that could verify it\n"], HTTPStatus.SERVICE_UNAVAILABLE)
