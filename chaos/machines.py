"""Five machines of several brokers each: `strandline serve --cores N` on each host.

Why:    a supervisor and its brokers fail in ways that one process cannot: the supervisor alone, a
        broker alone, all at once.
How:    as `brokers`, with a supervisor in the place of a broker's process.

            supervisor killed    its brokers end in order; a start may find them still there
            broker killed        its supervisor starts it again
            power-off            the machine is cut off, then all is killed
        The supervisor hides how its brokers end. So what it logs of them is judged at the end.
Owns:   the supervisors, and what their brokers leave; the directory `machine-N` of each."""

import os
import re
import select
import signal
from collections import Counter
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from chaos.access.files import SecureFiles
from chaos.brokers import LEADS, Brokers, Led, render_config
from chaos.hosts import BROKERS, RPC_PORT, Host, brokers_of, machine_of
from chaos.network import Network

GONE_TIMEOUT_S = 60
_NAME = "strandline-"
"""Before the id, in the name of a broker's process."""
_BROKER = re.compile(r"\bbroker=(\d+)\b")
_ENDED = re.compile(
    r'"broker (\d+) (was killed by (?P<signal>\w+)|ended with exit code (?P<code>\d+))'
    r"(?P<reason>[^;]*)"
)
_STILL_THERE = "in use"
"""In the reason of a broker whose process before it has not ended yet."""


class Machines(Brokers):
    """See the module. The numbers are those of machines."""

    def __init__(self, work: Path, network: Network, *, frugal: int, cores: int) -> None:
        self._cores = cores
        self._orphans: list[int] = []
        """pidfds of brokers whose supervisor was killed, and which may run."""
        self._paused: dict[int, list[int]] = {}
        """{machine: pidfds of its brokers that stand still}"""
        self._killed: Counter[int] = Counter()
        """{broker: how often it was killed alone}"""
        super().__init__(work, network, frugal=frugal)

    def directory(self, number: int) -> Path:
        """Everything of one machine."""
        return self._work / f"machine-{number}"

    def data_directories(self) -> dict[int, Path]:
        """{broker: its data directory}"""
        return {
            broker: self.data(host.broker) / f"broker-{broker}"
            for host in BROKERS
            for broker in brokers_of(host.broker, self._cores)
        }

    def leaders(self) -> list[Led]:
        """Who said of itself that it leads what, and in which epoch."""
        found = []
        for _, led in self._in_logs(LEADS):
            broker = _BROKER.search(led.string)
            assert broker is not None, led.string
            found.append(Led(int(broker[1]), led["partition"], int(led["epoch"])))
        return found

    # ---- faults ----------------------------------------------------------------------------------

    def kill(self, numbers: Collection[int]) -> None:
        """kill -9 of supervisors. Their brokers end by themselves."""
        gone, _, _ = select.select(self._orphans, [], [], 0)
        self._orphans = [one for one in self._orphans if one not in gone]
        _close(gone)
        for number in numbers:
            self._orphans += self._brokers_on(number).values()
        super().kill(numbers)

    def kill_brokers(self, brokers: Collection[int]) -> None:
        """kill -9 of brokers, whose supervisors start them again."""
        for broker in brokers:
            found = self._brokers_on(machine_of(broker))
            if broker in found:
                self._killed[broker] += 1
                _send(found[broker], signal.SIGKILL)
            _close(found.values())

    def power_off(self, numbers: Collection[int]) -> None:
        """kill -9 of all that runs there. Nothing runs on between the first kill and the last."""
        doomed = [pidfd for number in numbers for pidfd in self._brokers_on(number).values()]
        for pidfd in doomed:
            _send(pidfd, signal.SIGSTOP)
        super().kill(numbers)
        _kill(doomed)

    def _signal(self, numbers: Collection[int], number: signal.Signals) -> None:
        """To the supervisors and all of their brokers."""
        is_stop = number is signal.SIGSTOP
        if is_stop:  # The supervisor first: it starts none meanwhile.
            super()._signal(numbers, number)
        for machine in numbers:
            if is_stop:
                self._paused[machine] = list(self._brokers_on(machine).values())
            for pidfd in self._paused[machine]:
                _send(pidfd, number)
            if not is_stop:
                _close(self._paused.pop(machine))
        if not is_stop:
            super()._signal(numbers, number)

    # ---- ends ------------------------------------------------------------------------------------

    def check_ends(self, *, small_disk: int) -> None:
        """Complain of brokers that ended by themselves for another reason than a full disk or a
        process of theirs that was still there; and of more kills than there were."""
        unexplained = Counter[int]()
        for machine, found in self._in_logs(_ENDED.pattern):
            broker, reason = int(found[1]), found["reason"]
            if found["signal"] == "SIGKILL":
                unexplained[broker] += 1
            elif found["code"] == "0" or (machine == small_disk and "No space left" in reason):
                continue
            elif _STILL_THERE not in reason:
                self.complaints.append(f"broker {broker} ended by itself: {found[0]}")
        for broker, count in (unexplained - self._killed).items():
            self.complaints.append(f"broker {broker} was killed {count} times more than by the run")

    def end(self) -> None:
        """None is left."""
        for number in self._running:
            self._orphans += self._brokers_on(number).values()
        for pidfds in self._paused.values():
            self._orphans += pidfds
        self._paused.clear()
        super().end()
        _kill(self._orphans)
        self._orphans.clear()

    # ---- inside ----------------------------------------------------------------------------------

    @property
    def _options(self) -> tuple[str, ...]:
        return ("--cores", str(self._cores))

    def _render(self, host: Host, *, preallocates: bool, secure: SecureFiles | None) -> str:
        assert secure is None, "a secure run has no machines"
        return render_machine(host, self.data(host.broker), preallocates=preallocates)

    def _brokers_on(self, number: int) -> dict[int, int]:
        """{broker that runs on a machine: its pidfd}"""
        process = self._running.get(number)
        if process is None:
            return {}
        found: dict[int, int] = {}
        with suppress(FileNotFoundError, ProcessLookupError):
            path = Path(f"/proc/{process.pid}/task/{process.pid}/children")
            for pid in path.read_text().split():
                with suppress(FileNotFoundError, ProcessLookupError):
                    name = Path(f"/proc/{pid}/comm").read_text().strip()
                    known = name.removeprefix(_NAME)
                    # A process that has not read its order yet has no name; it has done nothing.
                    if name.startswith(_NAME) and known.isdigit():
                        found[int(known)] = os.pidfd_open(int(pid))
        return found


def render_machine(host: Host, data: Path, *, preallocates: bool) -> str:
    """The configuration of one machine, in TOML."""
    text = render_config(host, data, preallocates=preallocates)
    (first, *_) = brokers_of(host.broker, 1)
    seeds = ", ".join(
        f'"{brokers_of(one.broker, 1)[0]}@{one.address}:{RPC_PORT}"' for one in BROKERS
    )
    labels = f'[broker.labels]\nregion = "{host.region}"\nhost = "{host.name}"\n'
    for pattern, new in (
        (r"^id = \d+$", f"id = {first}"),
        (r"^seeds = .*$", f"seeds = [{seeds}]"),
        (r"^\[broker\.labels\]\nregion = .*\n", labels),
    ):
        text, count = re.subn(pattern, new, text, flags=re.MULTILINE)
        assert count == 1, pattern
    return text


def _kill(pidfds: Collection[int]) -> None:
    """SIGKILL; returns once they are gone."""
    for pidfd in pidfds:
        _send(pidfd, signal.SIGKILL)
    for pidfd in pidfds:
        select.select([pidfd], [], [], GONE_TIMEOUT_S)
    _close(pidfds)


def _send(pidfd: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(pidfd, number)


def _close(pidfds: Collection[int]) -> None:
    for pidfd in pidfds:
        os.close(pidfd)
