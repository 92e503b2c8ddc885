"""Clients that log in at once, again and again: `python -m bench.login_flood PORT CA USER PASSWORD
CLIENTS`, until its standard input ends; then it prints how many logins there were.

Why:    in the producer's process it would hold up the producer itself."""

import ssl
import sys
import threading

from bench import scram_client


class Flood:
    """See the module."""

    def __init__(self, port: int, trust: str, user: str, password: str) -> None:
        self.counts: list[int] = []
        self.is_over = False
        self._port = port
        self._context = ssl.create_default_context(cafile=trust)
        self._login = user, password

    def run(self, number: int) -> None:
        """One client; it has an address of its own."""
        count = 0
        while not self.is_over:
            try:
                source = f"127.0.{1 + number // 250}.{1 + number % 250}"
                with scram_client.connect(self._port, self._context, source=source) as sock:
                    scram_client.log_in(sock, *self._login)
                count += 1
            except OSError as error:
                sys.stderr.write(f"{error}\n")
        self.counts.append(count)


def main() -> None:
    """See the module."""
    port, trust, user, password, clients = sys.argv[1:]
    flood = Flood(int(port), trust, user, password)
    threads = [threading.Thread(target=flood.run, args=(n,)) for n in range(int(clients))]
    for thread in threads:
        thread.start()
    sys.stdin.read()
    flood.is_over = True
    for thread in threads:
        thread.join()
    sys.stdout.write(f"{sum(flood.counts)}\n")


if __name__ == "__main__":
    main()
