"""A network namespace for each host, with the relay between them.

How:    the state of every link follows from the faults that are active: cut by any of them, delayed
        by all of them, lossy as the worst of them.
Owns:   the namespaces `chaos-PID-HOST` and the relay's process."""

import json
import os
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from chaos import processes
from chaos.hosts import CALM, HOSTS, PREFIX_BITS, ChaosError, Host, Profile, one_way_ms
from chaos.plan import Fault
from chaos.targets import Kind

TUN = Path("/dev/net/tun")
TUN_NUMBER = (10, 200)


class Sent(NamedTuple):
    """What a host has sent to another one, IP headers included."""

    size_bytes: int
    packets: int


class Network:
    """See the module."""

    def __init__(self, work: Path, profile: Profile = CALM) -> None:
        self._work = work
        self._profile = profile
        self._relay: processes.Process | None = None
        self._made: list[str] = []

    def __enter__(self) -> "Network":
        try:
            self._make()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._remove()

    def command(self, host: Host) -> list[str]:
        """What stands before a command that is to run on a host; its process id stays."""
        return ["nsenter", f"--net={self.namespace(host)}", "--"]

    def namespace(self, host: Host) -> Path:
        """The file that stands for a host's namespace."""
        return Path("/run/netns") / _namespace(host)

    def set_faults(self, active: Collection[Fault]) -> None:
        """Make the links so; returns when they are."""
        hosts = HOSTS
        self._tell([link_state(a, b, active, self._profile) for a in hosts for b in hosts])

    def sent_bytes(self) -> dict[tuple[str, str], int]:
        """{(host that sends, host that is sent to): bytes so far, IP headers included}."""
        return {link: sent.size_bytes for link, sent in self.sent().items()}

    def sent(self) -> dict[tuple[str, str], Sent]:
        """{(host that sends, host that is sent to): all so far}."""
        assert self._relay is not None and self._relay.stdin is not None
        self._relay.stdin.write(b"\n")
        self._relay.stdin.flush()
        told = json.loads(self._answer())
        return {(HOSTS[one].name, HOSTS[other].name): Sent(*sent) for one, other, *sent in told}

    def _make(self) -> None:
        if not TUN.exists():
            TUN.parent.mkdir(exist_ok=True)
            os.mknod(TUN, 0o20666, os.makedev(*TUN_NUMBER))
        for host in HOSTS:
            processes.run_tool("ip", "netns", "add", _namespace(host))
            self._made.append(_namespace(host))
        self._relay = processes.start(
            [
                *(sys.executable, "-m", "chaos.relay"),
                *(f"{_namespace(host)}={host.address}" for host in HOSTS),
            ],
            log=self._work / "relay.log",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._expect("ready")
        for host in HOSTS:
            tool = ("ip", "-n", _namespace(host))
            address = f"{host.address}/{PREFIX_BITS}"
            processes.run_tool(*tool, "link", "set", "lo", "up")
            processes.run_tool(*tool, "addr", "add", address, "dev", "wan0")
            processes.run_tool(*tool, "link", "set", "wan0", "txqueuelen", "20000", "up")
        self.set_faults(())

    def _tell(self, state: list[list[float | bool]]) -> None:
        assert self._relay is not None and self._relay.stdin is not None
        try:
            self._relay.stdin.write(json.dumps(state).encode() + b"\n")
            self._relay.stdin.flush()
        except BrokenPipeError:
            pass  # Said below, by what it does not answer.
        self._expect("ok")

    def _expect(self, word: str) -> None:
        if self._answer() != word:
            raise ChaosError(f"the relay did not answer {word!r}")

    def _answer(self) -> str:
        assert self._relay is not None and self._relay.stdout is not None
        line = self._relay.stdout.readline().decode().strip()
        if not line:
            lines = (self._work / "relay.log").read_text().strip().splitlines()
            raise ChaosError(f"the relay ended: {lines[-1] if lines else 'no reason given'}")
        return line

    def _remove(self) -> None:
        if self._relay is not None:
            processes.kill([self._relay])
        for namespace in self._made:
            processes.run_tool("ip", "netns", "del", namespace)
        self._made.clear()


def link_state(
    one: Host, other: Host, active: Collection[Fault], profile: Profile = CALM
) -> list[float | bool]:
    """What the relay is told of one direction, while these faults are active."""
    is_far = one.region != other.region
    delay_ms, loss, is_cut = one_way_ms(one, other, profile), 0.0, False
    if is_far:
        loss = profile.loss
    for fault in active:
        if (one.name, other.name) not in fault.target.links:
            continue
        if fault.kind in (Kind.CUT, Kind.POWER_OFF):
            is_cut = True
        elif fault.kind is Kind.DELAY:
            delay_ms += fault.target.amount
        else:
            loss = max(loss, fault.target.amount)
    jitter_ms = profile.jitter_ms / 2 if is_far else 0.0
    return [HOSTS.index(one), HOSTS.index(other), delay_ms, loss, is_cut, jitter_ms]


def _namespace(host: Host) -> str:
    return f"chaos-{os.getpid()}-{host.name}"
