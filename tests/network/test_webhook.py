"""Alarms are posted, and a receiver that does not take them costs nothing.

Source: decision 0018."""

import logging
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from strandline.config.webhook_hosts import WebhookHosts
from strandline.network.webhook import ATTEMPTS_MAX, QUEUED_COUNT_MAX, Webhook

WAIT_S = 30
HERE = WebhookHosts(["127.0.0.1", "[::1]:9"])


class Receiver:
    """A server that answers as it is told, in turn, and then as the last time."""

    def __init__(self, *codes: int) -> None:
        self.codes, self.got = list(codes), list[tuple[str, bytes]]()
        self.changed = threading.Condition()
        self.gate = threading.Event()
        self.gate.set()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.gate.wait(WAIT_S)
                with receiver.changed:
                    code = receiver.codes[0]
                    if len(receiver.codes) > 1:
                        receiver.codes.pop(0)
                    receiver.got.append((self.headers["Content-Type"], body))
                    receiver.changed.notify_all()
                self.send_response(code)
                self.send_header("Location", "/elsewhere")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/secret"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def wait(self, count: int) -> list[bytes]:
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.got) >= count, WAIT_S)
            return [body for _, body in self.got]

    def close(self) -> None:
        self.gate.set()
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    made = Webhook(HERE, pause_ms=1, pause_ms_max=4)
    yield made
    made.stop()


@pytest.fixture
def receivers() -> Iterator[list[Receiver]]:
    made: list[Receiver] = []
    yield made
    for one in made:
        one.close()


def receive(receivers: list[Receiver], *codes: int) -> Receiver:
    receivers.append(Receiver(*codes))
    return receivers[-1]


def test_messages_come_in_order_as_json(webhook: Webhook, receivers: list[Receiver]) -> None:
    receiver = receive(receivers, 204)
    webhook.aim(receiver.url)
    for number in range(3):
        webhook.post(f"zone {number}", b"%d" % number)
    assert receiver.wait(3) == [b"0", b"1", b"2"]
    assert {kind for kind, _ in receiver.got} == {"application/json"}


def test_a_failure_is_tried_again(webhook: Webhook, receivers: list[Receiver]) -> None:
    receiver = receive(receivers, 503, 200)
    webhook.aim(receiver.url)
    webhook.post("zone a", b"a")
    webhook.post("zone b", b"b")
    assert receiver.wait(3) == [b"a", b"a", b"b"]


@pytest.mark.parametrize("code", [400, 302, 404])
def test_what_is_refused_is_dropped_after_some_attempts(
    webhook: Webhook, receivers: list[Receiver], caplog: pytest.LogCaptureFixture, code: int
) -> None:
    caplog.set_level(logging.WARNING)
    receiver = receive(receivers, *(code for _ in range(ATTEMPTS_MAX)), 200)
    webhook.aim(receiver.url)
    webhook.post("zone a", b"a")
    webhook.post("zone b", b"b")
    assert receiver.wait(ATTEMPTS_MAX + 1) == [b"a"] * ATTEMPTS_MAX + [b"b"]
    host = receiver.url.removesuffix("/secret")
    assert caplog.messages == [f"an alarm could not be posted to {host}: it answers {code}"]


@pytest.mark.parametrize("code", [500, 429])
def test_who_cannot_take_it_now_gets_it_once_that_is_over(
    webhook: Webhook, receivers: list[Receiver], caplog: pytest.LogCaptureFixture, code: int
) -> None:
    caplog.set_level(logging.WARNING)
    failures = 3 * ATTEMPTS_MAX
    receiver = receive(receivers, *(code for _ in range(failures)), 200)
    webhook.aim(receiver.url)
    webhook.post("zone a", b"a")
    assert receiver.wait(failures + 1) == [b"a"] * (failures + 1)
    host = receiver.url.removesuffix("/secret")
    text = f"an alarm could not be posted to {host}: it answers {code}: it is tried again"
    assert caplog.messages == [text]  # Once, however long that takes.


def test_one_that_the_receiver_never_takes_keeps_no_other_waiting(
    webhook: Webhook, receivers: list[Receiver]
) -> None:
    """It answers 500 to what it cannot read."""
    receiver = receive(receivers, *(500 for _ in range(ATTEMPTS_MAX)), 200, 500, 500)
    webhook.aim(receiver.url)
    receiver.gate.clear()
    webhook.post("zone a", b"a")
    webhook.post("zone b", b"b")
    receiver.gate.set()
    tries = [b"a"] * ATTEMPTS_MAX
    assert receiver.wait(ATTEMPTS_MAX + 3) == [*tries, b"b", b"a", b"a"]


def test_the_newest_of_a_thing_is_posted_and_nothing_older(
    webhook: Webhook, receivers: list[Receiver]
) -> None:
    receiver = receive(receivers, 503, 200)
    webhook.aim(receiver.url)
    receiver.gate.clear()
    webhook.post("zone a", b"begun")
    webhook.post("zone b", b"other")
    webhook.post("zone a", b"over")
    receiver.gate.set()
    assert receiver.wait(3)[1:] == [b"other", b"over"]


def test_who_takes_nothing_costs_a_bounded_queue(
    webhook: Webhook, receivers: list[Receiver], caplog: pytest.LogCaptureFixture
) -> None:
    receiver = receive(receivers, 200)
    webhook.aim(receiver.url)
    receiver.gate.clear()
    for number in range(QUEUED_COUNT_MAX + 10):
        webhook.post(f"broker {number}", b"a")
    dropped = [one for one in caplog.messages if "100 wait for the receiver" in one]
    assert len(dropped) == 10
    receiver.gate.set()
    receiver.wait(QUEUED_COUNT_MAX)


def test_what_waits_for_who_is_gone_is_posted_to_where_is_said_then(
    receivers: list[Receiver],
) -> None:
    webhook = Webhook(HERE, pause_ms=1_000 * WAIT_S, pause_ms_max=1_000 * WAIT_S)
    gone = Receiver(200)
    gone.close()
    receiver = receive(receivers, 200)
    webhook.aim(gone.url)
    webhook.post("zone a", b"a")
    webhook.post("zone b", b"b")
    for url in ("http://[::1]:9/nothing", receiver.url):
        webhook.aim(url)
    assert receiver.wait(2) == [b"a", b"b"]
    webhook.stop()


def test_where_nothing_is_to_be_posted_nothing_waits(
    webhook: Webhook, receivers: list[Receiver]
) -> None:
    receiver = receive(receivers, 503)
    webhook.post("zone a", b"nowhere")
    webhook.aim(receiver.url)
    webhook.post("zone b", b"b")
    receiver.wait(1)
    webhook.aim("")
    other = receive(receivers, 200)
    webhook.aim(other.url)
    webhook.post("zone c", b"c")
    assert other.wait(1) == [b"c"]


def test_once_stopped_nothing_is_posted(webhook: Webhook, receivers: list[Receiver]) -> None:
    receiver = receive(receivers, 200)
    webhook.aim(receiver.url)
    webhook.stop()
    webhook.post("zone a", b"a")
    other = Webhook(HERE)
    other.aim(receiver.url)
    other.post("zone b", b"b")
    assert receiver.wait(1) == [b"b"]


def test_a_host_that_is_not_listed_gets_nothing_and_the_log_says_so_once(
    receivers: list[Receiver], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    receiver = receive(receivers, 200)
    webhook = Webhook(WebhookHosts(["alarms.example"]), pause_ms=1)
    for _ in range(2):
        webhook.aim(receiver.url)
        webhook.post("zone a", b"a")
    (line,) = caplog.messages
    assert "alarms are not posted" in line and "[security] webhook_hosts" in line
    assert "/secret" not in line and receiver.got == []


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "169.254.169.254",
        "::1",
        "fe80::1",
        "::ffff:127.0.0.1",
        "fd00:ec2::254",
        "0.0.0.0",
    ],
)
def test_a_listed_name_that_leads_to_the_machine_itself_is_not_called(
    receivers: list[Receiver],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    address: str,
) -> None:
    """DNS may change after the URL was set."""
    caplog.set_level(logging.WARNING)
    receiver = receive(receivers, 200)
    port = receiver.server.server_port
    asked: list[str] = []

    def resolve(host: str, port: int, **_: object) -> list[tuple[object, ...]]:
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    webhook = Webhook(WebhookHosts(["alarms.example"]), pause_ms=1, pause_ms_max=4)
    webhook.aim(f"http://alarms.example:{port}/secret")
    webhook.post("zone a", b"a")
    webhook.wait_idle(WAIT_S)
    assert asked == ["alarms.example"] * ATTEMPTS_MAX and receiver.got == []
    (line,) = caplog.messages
    assert f"alarms.example is {address}, an address of this machine" in line


def test_an_address_that_is_listed_itself_is_called(
    receivers: list[Receiver], monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver = receive(receivers, 200)
    port = receiver.server.server_port
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]
    connect = socket.create_connection
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    monkeypatch.setattr(socket, "create_connection", lambda to, wait: connect(to, wait))
    webhook = Webhook(WebhookHosts(["alarms.example", f"127.0.0.1:{port}"]), pause_ms=1)
    webhook.aim(f"http://alarms.example:{port}/secret")
    webhook.post("zone a", b"a")
    assert receiver.wait(1) == [b"a"]


def test_a_redirect_leads_nowhere(webhook: Webhook, receivers: list[Receiver]) -> None:
    receiver = receive(receivers, 307)
    webhook.aim(receiver.url)
    webhook.post("zone a", b"a")
    webhook.wait_idle(WAIT_S)
    assert receiver.wait(ATTEMPTS_MAX) == [b"a"] * ATTEMPTS_MAX
