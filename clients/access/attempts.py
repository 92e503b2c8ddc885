"""What is refused, and what each client calls the error.

How:    a program tries one thing and prints `refused` with the name of its client's error. The
        audit logs of the brokers count the logins that a wrong password cost: a client that tries
        without a pause is seen there."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from clients.access.cluster import ALLOWED, AccessCluster
from clients.access.login import Login
from clients.client import Access, Place
from clients.program import Program
from clients.records import CellError
from strandline.security.authority import Authority

FORBIDDEN = "forbidden"
SEEN = f"{ALLOWED}seen"
FAILED_LOGINS_MAX = 60
"""Of one attempt with a wrong password, in all brokers' audit logs."""
RULES = ("write", "read", "join", "create", "delete", "operate")


@dataclass(frozen=True, slots=True)
class Attempting:
    """The attempts of one client."""

    cluster: AccessCluster
    access: Access
    place: Place

    def check(self) -> None:
        """Raises CellError."""
        observer = self.place.observer
        present = observer.topics()
        for name in (FORBIDDEN, SEEN):
            if name not in present:
                observer.create(name)
                observer.write(name, range(1))
        password = self.cluster.password()
        for what in (one for one in RULES if one not in self.access.not_tried):
            name = f"new-{self.place.prefix}" if what == "create" else FORBIDDEN
            judge_attempt(self.access, what, self._run(password, name, what))
        for what, login in self._logins().items():
            judge_attempt(self.access, what, self._run(login, SEEN, "login"))
        if FORBIDDEN not in observer.topics():
            raise CellError("a topic was deleted without a right")
        if sum(observer.end_offsets(FORBIDDEN).values()) != 1:
            raise CellError("a record was written without a right")

    def _logins(self) -> Mapping[str, Login]:
        """Logins of which none may get in."""
        stranger = Authority(self.place.directory / "stranger")
        password, certificate = self.cluster.password(), self.cluster.certificate()
        here = password.bootstrap.replace("127.0.0.1", "localhost")
        bare = {key: certificate.told[key] for key in ("protocol", "ca")}
        return {
            "wrong password": password.but(password="wrong"),
            "wrong authority": password.but(ca=str(stranger.trust)),
            "wrong host": Login(here, password.told),
            "no certificate": Login(certificate.bootstrap, bare),
            "wrong secret": self.cluster.token().but(client_secret="wrong"),
        }

    def _run(self, login: Login, name: str, what: str) -> str:
        environment = login.environment(self.place.directory, f"{self.place.prefix}-{what}")
        program = Program(self.access.argv(), environment=environment)
        failed = self.cluster.audited(event="login", result="denied", listener="PASSWORDS")
        lines = program.run("attempt", login.bootstrap, name, what)
        failed = self.cluster.audited(event="login", result="denied", listener="PASSWORDS") - failed
        if failed > FAILED_LOGINS_MAX:
            raise CellError(f"{what}: {failed} logins failed at one attempt")
        return next((one for one in lines if one.startswith(("refused\t", "done"))), "no word")


def judge_attempt(access: Access, what: str, line: str) -> None:
    """Raises CellError unless the program was refused by the error that this client has for it."""
    expected = access.refusals[what]
    if not re.fullmatch(f"refused\t({expected})", line):
        raise CellError(f"{what}: {line!r}, not {expected!r}")
