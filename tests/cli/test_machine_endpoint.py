"""A machine's HTTP port: health of each process, merged metrics, and which client may see them.

How:    real sockets between supervisor and client; processes are made by hand, and one of them
        answers as a broker's process does (`entry.answer`).
Source: docs/operating/cores.md; docs/decisions/0069-access.md, 0071-cores.md."""

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path

from tests.integration.ports import free_ports
from tests.storage.storage_world import ManualClock

from strandline.admin.http_server import Answer, Asker
from strandline.cli.machine.broker_process import NoAnswerError
from strandline.cli.machine.endpoint import MachineEndpoint
from strandline.cli.machine.entry import answer
from strandline.cli.machine.supervisor import Supervisor
from strandline.cli.machine.wire import MESSAGE_BYTES_MAX, Order, Question, Told
from strandline.config.cores import derive_brokers
from strandline.config.load import load_broker_config
from strandline.security.http_tokens import HttpTokens, create_token

SCRAPE = b"# HELP a A.\n# TYPE a gauge\na 1\n"
FILE = """
[broker]
id = 7
data_directory = "/d"
[cluster]
seeds = ["7@127.0.0.1:33145"]
"""


@dataclass
class HandBroker:
    """What a broker's process asks to answer its supervisor: `MetricsEndpoint`'s part."""

    is_ready: bool = True
    parts: Sequence[bytes] = (SCRAPE,)
    refusal: Answer | None = None
    asked: list[tuple[Asker, str]] = field(default_factory=list)
    says_nothing: bool = False

    async def scrape(self) -> Sequence[bytes]:
        return self.parts

    async def refuse(self, asker: Asker, path: str) -> Answer | None:
        self.asked.append((asker, path))
        return self.refusal


class HandProcess:
    """A process that answers for a broker; None: it does not."""

    pid = 4711
    is_linked = True
    has_answered = True
    is_unregistered = False

    def __init__(self, broker: HandBroker | None) -> None:
        self.broker = broker
        self._ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def wait(self) -> str:
        return await self._ended

    async def ask(self, question: Question, *, timeout_s: float = 0) -> Told:
        if self.broker is None:
            raise NoAnswerError
        if self.broker.says_nothing:
            return Told(number=1)
        return await answer(self.broker, 1, question)  # type: ignore[arg-type]

    def end(self) -> None:
        self.kill()

    def kill(self) -> None:
        if not self._ended.done():
            self._ended.set_result("was killed by SIGKILL")


def ask_all(
    brokers: Sequence[HandBroker | None],
    asked: Sequence[tuple[str, str]],
    *,
    section: str = "",
    tokens: HttpTokens | None = None,
    dead: Sequence[int] = (),
) -> list[tuple[int, str]]:
    """(status, text) of each page, asked for with a token. `dead`: processes that were killed."""
    (port,) = free_ports(1)
    config = load_broker_config(FILE + f"[metrics]\nport = {port}\n{section}", file="f")

    def fetch(path: str, token: str) -> tuple[int, str]:
        request = urllib.request.Request(f"http://127.0.0.1:{port}{path}")
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        try:
            with urllib.request.urlopen(request, timeout=20) as found:
                return found.status, found.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    async def course() -> list[tuple[int, str]]:
        left = iter(brokers)
        clock = ManualClock()
        orders = {
            7 + index: Order(
                text="", file="f", cores=len(brokers), index=index, labels={}, origin={}
            )
            for index in range(len(brokers))
        }
        supervisor = Supervisor(orders, clock=clock, spawn=lambda _: HandProcess(next(left)))
        endpoint = MachineEndpoint(
            config.metrics,
            derive_brokers(config, len(brokers)),
            supervisor,
            clock=clock,
            host="node-7",
        )
        supervisor.start()
        await endpoint.start(None, tokens)
        await asyncio.sleep(0)
        for index in dead:
            process = supervisor.processes[index].process
            assert process is not None
            process.kill()
        try:
            return [await asyncio.to_thread(fetch, *one) for one in asked]
        finally:
            endpoint.stop()
            await supervisor.end()

    return asyncio.run(course())


def test_health_names_each_process_and_readiness_needs_all() -> None:
    pages = [("/healthz", ""), ("/readyz", "")]
    lines = "1 of 4 brokers serve\nbroker 7 serves\nbroker 8 starts\nbroker 9 does not answer\n"
    lines += "broker 10 has ended\n"
    brokers = (HandBroker(), HandBroker(is_ready=False), None, HandBroker())
    assert ask_all(brokers, pages, dead=[3]) == [(200, lines), (503, lines)]
    all_well = "2 of 2 brokers serve\nbroker 7 serves\nbroker 8 serves\n"
    assert ask_all((HandBroker(), HandBroker()), pages) == [(200, all_well), (200, all_well)]


def test_metrics_are_of_all_processes_and_say_which_do_not_answer() -> None:
    brokers = (HandBroker(), None, HandBroker(parts=(b"x" * MESSAGE_BYTES_MAX,)))
    ((status, text),) = ask_all(brokers, [("/metrics", "")])
    assert status == 200
    assert 'a{broker="7"} 1\n' in text and 'a{broker="8"}' not in text
    up = [line for line in text.splitlines() if line.startswith("strandline_process_up")]
    assert up == [
        f'strandline_process_up{{broker="{one}"}} {up}'
        for one, up in zip((7, 8, 9), (1, 0, 0), strict=True)
    ]


def test_the_processes_are_told_as_json() -> None:
    ((_, text),) = ask_all((HandBroker(), HandBroker()), [("/v1/machine", "")], dead=[1])
    told = json.loads(text)
    assert told["host"] == "node-7"
    first, second = told["brokers"]
    assert (first["id"], first["condition"], first["pid"], first["kafka"]) == (
        7, "serves", 4711, "127.0.0.1:9092",
    )  # fmt: skip
    assert (second["condition"], second["pid"], second["last_end"], second["next_start_ms"]) == (
        "has ended", None, "was killed by SIGKILL", 500,
    )  # fmt: skip
    assert second["data_directory"] == "/d/broker-8"


def test_a_client_sees_what_the_section_lets_it_see(tmp_path: Path) -> None:
    path = tmp_path / "tokens.jsonl"
    token = create_token(path, "prometheus")
    tokens = HttpTokens(path)
    section = f'tokens_file = "{path}"\nanonymous = "health"\n'
    broker = HandBroker(refusal=Answer([b"no\n"], HTTPStatus.FORBIDDEN))
    pages = ("/metrics", "/v1/machine", "/no-such-page", "/healthz/")
    asked = [(one, "") for one in ("/healthz", "/readyz", *pages)]
    found = ask_all([broker], asked, section=section, tokens=tokens)
    assert [status for status, _ in found] == [200, 200, 401, 401, 401, 401]
    found = ask_all([broker], [(one, token) for one in pages], section=section, tokens=tokens)
    assert [status for status, _ in found] == [200, 200, 404, 404]
    # Also while no broker runs: then health matters most.
    found = ask_all([None], [("/v1/machine", token)], section=section, tokens=tokens)
    assert found[0][0] == 200
    assert broker.asked == []


def test_a_broker_judges_what_the_supervisor_cannot(tmp_path: Path) -> None:
    path = tmp_path / "tokens.jsonl"
    create_token(path, "prometheus")
    tokens = HttpTokens(path)
    section = f'tokens_file = "{path}"\n'
    refusing = HandBroker(refusal=Answer([b"no\n"], HTTPStatus.FORBIDDEN, headers=[("X-A", "b")]))
    asked = [("/metrics", "a.b.c")]
    assert ask_all([None, refusing], asked, section=section, tokens=tokens) == [(403, "no\n")]
    ((asker, page),) = refusing.asked
    assert (asker.authorization, asker.has_certificate, asker.host, page) == (
        ("Bearer a.b.c",), False, "127.0.0.1", "/metrics",
    )  # fmt: skip
    assert ask_all([HandBroker()], asked, section=section, tokens=tokens)[0][0] == 200
    ((status, _),) = ask_all([None, HandBroker()], asked, section=section, tokens=tokens, dead=[1])
    assert status == 503


def test_an_answer_that_does_not_allow_a_page_refuses_it(tmp_path: Path) -> None:
    path = tmp_path / "tokens.jsonl"
    create_token(path, "prometheus")
    section, tokens = f'tokens_file = "{path}"\n', HttpTokens(path)
    broker = HandBroker(says_nothing=True)
    ((status, _),) = ask_all([broker], [("/metrics", "a.b.c")], section=section, tokens=tokens)
    assert status == 503
