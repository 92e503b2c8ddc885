"""The faults of access, carried out beside the others.

How:    `look` begins and ends what is due. Files change at once; commands wait for their turn
        (`commands`); an impostor and a flood of logins are processes that end with their fault.
        An authority is rotated in three steps, one for each fault of its kind: the next one is
        trusted, too; certificates move to it; the one before is trusted no more.
Owns:   the processes that it starts."""

import sys
import time
from collections.abc import Callable
from pathlib import Path

from chaos import processes
from chaos.access.commands import Commands
from chaos.access.files import ADMIN, CLUSTER, SecureFiles
from chaos.access.plan import AccessFault, AccessKind
from chaos.brokers import STRANDLINE
from chaos.hosts import BROKERS, CLIENTS, KAFKA_PORT, RPC_PORT
from chaos.network import Network

EASTERN, STRANGER, RULED = "eastern", "stranger", "ruled"
WRITERS = ("rd-east", "rd-west", "rd-south", "kp")
READERS = ("board", "lake", "watch")
USERS = (*WRITERS, *READERS, EASTERN, STRANGER, RULED)
SETUP_TIMEOUT_S = 120.0
FINISH_TIMEOUT_S = 120.0
_EVERYTHING = ("--topic", "*")
_RULED_RIGHT = ("--operation", "write", *_EVERYTHING)


class AccessRunner:
    """See the module."""

    def __init__(
        self,
        faults: tuple[AccessFault, ...],
        files: SecureFiles,
        network: Network,
        *,
        work: Path,
        say: Callable[[str], None],
    ) -> None:
        self.impostors: list[Path] = []
        self._files = files
        self._network = network
        self._work = work / "access"
        self._work.mkdir()
        self._say = say
        moments = [(fault.begin_ms, True, fault) for fault in faults]
        moments += [(fault.end_ms, False, fault) for fault in faults]
        self._moments = sorted(moments, key=lambda one: one[:2])
        self._begun_s: float | None = None
        self._steps = 0
        self._process: processes.Process | None = None
        self.commands = Commands(
            network, CLIENTS[0], files.client(ADMIN), self._work / "commands.log"
        )

    def set_up(self) -> None:
        """Users in the cluster and their rules. Raises ChaosError."""
        for user in USERS:
            self._set_password(user)
        self._allow(WRITERS, "--operation", "write", *_EVERYTHING)
        self._allow(READERS, "--operation", "read", *_EVERYTHING, "--group", "*")
        self._allow((RULED,), "--operation", "describe", *_EVERYTHING)
        self._allow((RULED,), *_RULED_RIGHT)
        self._allow((EASTERN,), "--operation", "read", *_EVERYTHING, "--region", "east")
        self.commands.finish(SETUP_TIMEOUT_S)

    def look(self) -> None:
        """Do what is due."""
        if self._begun_s is None:
            self._begun_s = time.monotonic()
        at_ms = (time.monotonic() - self._begun_s) * 1000
        while self._moments and self._moments[0][0] <= at_ms:
            _, is_begin, fault = self._moments.pop(0)
            if is_begin:
                self._say(str(fault))
                self._begin(fault)
            else:
                self._end_fault(fault)
        self.commands.look()

    def finish(self) -> None:
        """Every change of rights and passwords has come about. Raises ChaosError."""
        self.commands.finish(FINISH_TIMEOUT_S)

    def end(self) -> None:
        """Nothing is left."""
        self.commands.end()
        self._stop()

    def _begin(self, fault: AccessFault) -> None:
        match fault.kind:
            case AccessKind.RENEW:
                self._files.renew(fault.broker)
            case AccessKind.ROTATE:
                steps = (
                    self._files.trust_both,
                    self._files.move_to_next,
                    self._files.trust_present,
                )
                steps[self._steps % len(steps)]()
                self._steps += 1
            case AccessKind.PASSWORD:
                self._set_password(fault.user)
            case AccessKind.RULE:
                principal = ("--principal", f"User:{RULED}")
                self.commands.add("acl", "delete", *principal, *_RULED_RIGHT)
            case AccessKind.IMPOSTOR:
                self._process = self._impostor(fault.broker)
            case AccessKind.FLOOD:
                self._process = self._flood()

    def _end_fault(self, fault: AccessFault) -> None:
        if fault.kind is AccessKind.RULE:
            self._allow((RULED,), *_RULED_RIGHT)
        elif fault.kind in (AccessKind.IMPOSTOR, AccessKind.FLOOD):
            self._stop()

    def _stop(self) -> None:
        if self._process is not None:
            processes.kill([self._process])
            self._process = None

    def _set_password(self, user: str) -> None:
        path = self._files.draw_password(user)
        self.commands.add(
            *("user", "create", user, "--password-file", str(path)),
            then=lambda: self._files.write_client(user),
        )

    def _allow(self, users: tuple[str, ...], *rule: str) -> None:
        principals = [part for user in users for part in ("--allow-principal", f"User:{user}")]
        self.commands.add("acl", "create", *principals, *rule)

    def _impostor(self, broker: int) -> processes.Process:
        """A broker with a certificate of an authority that the others do not trust."""
        host = CLIENTS[-1]
        directory = self._work / f"impostor-{len(self.impostors) + 1}"
        directory.mkdir()
        self.impostors.append(directory)
        seeds = ", ".join(f'"{one.broker}@{one.address}:{RPC_PORT}"' for one in BROKERS)
        (directory / "broker.toml").write_text(
            f'[broker]\nid = {broker}\ndata_directory = "{directory}/data"\n\n'
            f'[broker.labels]\nregion = "{host.region}"\n\n'
            f'[cluster]\nid = "{CLUSTER}"\nseeds = [{seeds}]\n\n'
            f'[listener]\nkafka_host = "127.0.0.1"\nkafka_port = {KAFKA_PORT}\n\n'
            + self._files.peer_section(host.address, self._files.forge(broker))
        )
        return processes.start(
            [
                *self._network.command(host),
                *(STRANDLINE, "serve", "--config", str(directory / "broker.toml")),
            ],
            log=directory / "broker.log",
        )

    def _flood(self) -> processes.Process:
        return processes.start(
            [
                *self._network.command(CLIENTS[1]),
                *(sys.executable, "-m", "chaos.clients.login_flood"),
                *("--client-config", str(self._files.client(RULED))),
            ],
            log=self._work / "flood.log",
        )
