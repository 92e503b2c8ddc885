"""Logins with a wrong password, many at once, at every broker, until the process is killed.

Why:    logins that fail must not keep out the clients of the same host whose password is right."""

import argparse
import threading
import time
from dataclasses import replace
from pathlib import Path

from chaos.clients.direct import connect, transport_of
from chaos.hosts import BROKER_IDS
from strandline.base.errors import StrandlineError
from strandline.client.wire.login import Login

THREADS_PER_BROKER = 8
TIMEOUT_MS = 7_000
PAUSE_S = 0.02


def flood(config: Path, broker: int) -> None:
    """One login after the other."""
    transport = transport_of(config)
    assert isinstance(transport.login, Login)
    transport.login = replace(transport.login, password="wrong")
    while True:
        try:
            connect(transport, broker, TIMEOUT_MS).close()
        except StrandlineError:
            time.sleep(PAUSE_S)


def main() -> None:
    """Until it is killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--client-config", type=Path, required=True)
    config = parser.parse_args().client_config
    threads = [
        threading.Thread(target=flood, args=(config, broker))
        for broker in BROKER_IDS
        for _ in range(THREADS_PER_BROKER)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
