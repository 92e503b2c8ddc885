"""Which client programs run where, how they are started, and what they print while they run."""

import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from chaos import processes
from chaos.access.files import ADMIN, SecureFiles
from chaos.hosts import CLIENTS, ChaosError, Host
from chaos.ledger import Entry, LedgerReader
from chaos.network import Network

TOPICS = {"orders": 4, "payments": 2, "audit": 1, "trades": 2}
VOTERS = "voters"
"""The role of who looks whether those vote who should."""
TOPICS_TIMEOUT_S = 90.0
LIVES_MAX = 5


@dataclass(frozen=True, slots=True)
class Program:
    """One client. `role`: producer, consumer, watcher, prober or voters; `life`: 1, until it dies;
    `user`: as whom it logs in, in a secure run."""

    base_name: str
    role: str
    module: str
    region: str
    options: tuple[str, ...] = ()
    life: int = 1
    user: str = ADMIN

    @property
    def name(self) -> str:
        """Another one in each life."""
        return self.base_name if self.life == 1 else f"{self.base_name}-life-{self.life}"


def _producer(name: str, library: str, region: str, *options: str) -> Program:
    user = "kp" if library == "kafka_python" else name
    return Program(name, "producer", f"{library}_producer", region, options, user=user)


def _consumer(name: str, library: str, region: str, group: str) -> Program:
    options = ("--group", group)
    return Program(name, "consumer", f"{library}_consumer", region, options, user=group)


PROGRAMS = (
    _producer("rd-east", "librdkafka", "east", "--per-second", "60"),
    _producer("rd-west", "librdkafka", "west", "--per-second", "60"),
    _producer("rd-south", "librdkafka", "south", "--per-second", "60"),
    _producer("kp-all", "kafka_python", "east", "--per-second", "40", "--acks", "all"),
    _producer("kp-one", "kafka_python", "west", "--per-second", "40", "--acks", "1"),
    _consumer("board-1", "librdkafka", "east", "board"),
    _consumer("board-2", "librdkafka", "west", "board"),
    _consumer("lake-1", "aiokafka", "west", "lake"),
    _consumer("lake-2", "aiokafka", "south", "lake"),
    *(
        Program(f"watch-{host.region}", "watcher", "watcher", host.region, user="watch")
        for host in CLIENTS
    ),
)
SECURE_PROGRAMS = (
    _producer("ruled", "ruled", "west", "--per-second", "10"),
    *(Program(f"probe-{one}", "prober", "prober", one, user="ruled") for one in ("east", "south")),
)
"""Those that a secure run has beside."""


class Workload:
    """The client processes; `ledgers` is {name of a client, dead or alive: reader}.

    A client that dies of a signal was killed by its own library: it is said, and another one takes
    its place, with a name and a ledger of its own. What it had been told is judged all the same."""

    def __init__(
        self,
        work: Path,
        network: Network,
        *,
        say: Callable[[str], None],
        secure: SecureFiles | None = None,
        cores: int = 0,
    ) -> None:
        self._say = say
        self._cores = cores
        self._directory = work / "clients"
        self._directory.mkdir()
        self._network = network
        self._secure = secure
        self._running: dict[Program, processes.Process] = {}
        self._ending: set[str] = set()
        """Roles that have been asked to end."""
        self.ledgers: dict[str, LedgerReader] = {}
        self._roles: dict[str, str] = {}
        """{name of a client, dead or alive: its role}."""

    def make_topics(self) -> None:
        """Returns when every broker serves and every partition has a leader."""
        process = self._start(Program("topics", "", "topics", CLIENTS[0].region))
        try:
            if not processes.wait_ended([process], timeout_s=TOPICS_TIMEOUT_S):
                raise ChaosError(f"no topics within {TOPICS_TIMEOUT_S:.0f} s")
            if process.returncode:
                raise ChaosError(f"no topics: see {self._directory}/topics.log")
        finally:
            processes.kill([process])

    def start(self) -> None:
        """All clients."""
        for program in PROGRAMS if self._secure is None else (*PROGRAMS, *SECURE_PROGRAMS):
            self._begin(program)

    def check(self) -> None:
        """Replaces clients that have died; raises ChaosError for one that ended otherwise."""
        for program, process in list(self._running.items()):
            code = process.poll()
            if code is None or (code == 0 and program.role in self._ending):
                continue
            if code >= 0 or program.role in self._ending or program.life == LIVES_MAX:
                raise ChaosError(
                    f"client {program.name} ended with code {code}: "
                    f"see {self._directory}/{program.name}.log"
                )
            del self._running[program]
            following = replace(program, life=program.life + 1)
            name = signal.Signals(-code).name
            self._say(f"client {program.name} died of {name}; {following.name} takes its place")
            self._begin(following)

    def read_on(self) -> list[tuple[str, Entry]]:
        """What the ledgers have got since; (name of the client, entry)."""
        return [
            (name, entry) for name, ledger in self.ledgers.items() for entry in ledger.read_on()
        ]

    def ask_to_end(self, role: str) -> None:
        """SIGTERM to all of one role."""
        self._ending.add(role)
        processes.ask_to_end(self._of(role))

    def look_at_voters(self) -> None:
        """Start who ends by itself once those vote who should."""
        self._ending.add(VOTERS)
        self._begin(Program("voters", VOTERS, "voters", CLIENTS[0].region))

    def have_ended(self, role: str) -> bool:
        """Whether all of one role are gone."""
        return all(process.poll() is not None for process in self._of(role))

    def forget(self, role: str) -> None:
        """They may be gone from now on."""
        for program in [program for program in self._running if program.role == role]:
            processes.kill([self._running.pop(program)])

    def end(self) -> None:
        """None is left."""
        processes.kill(self._running.values())
        self._running.clear()

    def by_role(self, role: str) -> list[LedgerReader]:
        """The ledgers of one role that have begun, also of clients that died."""
        readers = [self.ledgers[name] for name, known in self._roles.items() if known == role]
        return [reader for reader in readers if reader.has_begun]

    def begun(self) -> list[LedgerReader]:
        """All ledgers of clients that have begun."""
        return [reader for reader in self.ledgers.values() if reader.has_begun]

    def living(self, role: str) -> list[LedgerReader]:
        """The ledgers of the clients of one role that run."""
        return [self.ledgers[program.name] for program in self._running if program.role == role]

    def _of(self, role: str) -> list[processes.Process]:
        return [process for program, process in self._running.items() if program.role == role]

    def _begin(self, program: Program) -> None:
        self._roles[program.name] = program.role
        self.ledgers[program.name] = LedgerReader(self._ledger(program.name))
        self._running[program] = self._start(program)

    def _ledger(self, name: str) -> Path:
        return self._directory / f"{name}.jsonl"

    def _start(self, program: Program) -> processes.Process:
        login: tuple[str, ...] = ()
        if self._secure is not None:
            login = ("--client-config", str(self._secure.client(program.user)))
        topics = ",".join(f"{name}={count}" for name, count in TOPICS.items())
        return processes.start(
            [
                *self._network.command(_host_of(program.region)),
                *(sys.executable, "-X", "faulthandler", "-m", f"chaos.clients.{program.module}"),
                *("--name", program.name, "--ledger", str(self._ledger(program.name))),
                *("--topics", topics, "--cores", str(self._cores), *login, *program.options),
            ],
            log=self._directory / f"{program.name}.log",
        )


def idempotent_names() -> list[str]:
    """The idempotent producers, in all lives they may have."""
    return [
        replace(program, life=life).name
        for program in PROGRAMS
        if program.module == "librdkafka_producer"
        for life in range(1, LIVES_MAX + 1)
    ]


def partitions() -> list[tuple[str, int]]:
    """Every partition that clients use."""
    return [(topic, number) for topic, count in TOPICS.items() for number in range(count)]


def _host_of(region: str) -> Host:
    return next(host for host in CLIENTS if host.region == region)
