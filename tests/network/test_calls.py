"""Answers go to the process that asked. Source: outage seed 623920."""

import asyncio
import random
from pathlib import Path

from tests.replication.hosts import BROKERS, Host, until

from strandline.network.calls import CallMessage
from strandline.replication.host.replication import Replication


def test_an_answer_to_an_earlier_process_is_none_to_the_next(tmp_path: Path) -> None:
    """A broker was killed while its registration was under way, and its next process took the
    answer to that for one to its own: it waited for ever to be registered."""

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        sent: list[CallMessage] = []

        def process(life: int) -> Replication:
            host = Host(BROKERS[0], tmp_path / str(life), rng=random.Random(life))
            calls = host.replication.calls

            def send(_: int, message: bytes) -> bool:
                sent.append(calls._decoder.decode(message))
                return True

            calls._send = send
            return host.replication

        earlier, now = process(1).calls, process(2).calls
        tasks = [
            loop.create_task(calls.call(BROKERS[1], "ask", b"", timeout_ms=5_000))
            for calls in (earlier, now)
        ]
        await until(lambda: len(sent) == 2, "both have asked")
        for question, payload in zip(sent, (b"late", b"its own"), strict=True):
            answer = CallMessage(question.number, "", payload)
            now.on_message(BROKERS[1], memoryview(now._encoder.encode(answer)))
        assert await tasks[1] == b"its own"
        earlier.stop()

    asyncio.run(scenario())
