"""Posts one message to a webhook whose host an operator has listed. Blocks: for a thread.

Why:    DNS is not the operator's alone: a listed name may lead to the machine itself or to the
        metadata service of its cloud.
How:    It resolves the host, leaves out addresses that may not be called, and connects to one of
        the others: no second look-up happens in between. Certificates are checked. It follows no
        redirects and uses no proxy.
Owns:   nothing.
Source: decision 0069, "Webhooks"."""

import http.client
import socket
import ssl
from urllib.parse import urlsplit

from strandline.base.errors import OperatorError
from strandline.config.webhook_hosts import WebhookHosts, target_of

HEADERS = {"Content-Type": "application/json", "User-Agent": "strandline", "Connection": "close"}


def post(url: str, body: bytes, *, hosts: WebhookHosts, timeout_s: float) -> int:
    """The status that the receiver answers. `timeout_s`: for each wait. Raises OperatorError if it
    may not be called; OSError, ValueError and HTTPException if that fails."""
    reason = hosts.refuse(url)
    if reason is not None:
        raise OperatorError(reason)
    parts = urlsplit(url)
    host, port = target_of(url)
    sock = _connected(url, host, port, hosts=hosts, timeout_s=timeout_s)
    with sock:
        if parts.scheme == "https":
            with ssl.create_default_context().wrap_socket(sock, server_hostname=host) as secure:
                return _exchange(secure, url, body)
        return _exchange(sock, url, body)


def _connected(
    url: str, host: str, port: int, *, hosts: WebhookHosts, timeout_s: float
) -> socket.socket:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = dict.fromkeys(str(one[4][0]) for one in found)
    allowed = [one for one in addresses if hosts.allows(url, one)]
    if not allowed:
        raise OperatorError(
            f"{host} is {next(iter(addresses))}, an address of this machine, its link or a "
            "metadata service: [security] webhook_hosts has to list the address itself"
        )
    for address in allowed[:-1]:
        try:
            return socket.create_connection((address, port), timeout_s)
        except OSError:
            continue
    return socket.create_connection((allowed[-1], port), timeout_s)


def _exchange(sock: socket.socket, url: str, body: bytes) -> int:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port)
    connection.sock = sock
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    connection.request("POST", target, body, {"Host": parts.netloc, **HEADERS})
    with connection.getresponse() as answer:
        return answer.status
