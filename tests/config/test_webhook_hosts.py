"""`[security] webhook_hosts`: which URLs brokers may post alarms to.

Source: decision 0069, "Webhooks"."""

import pytest

from strandline.config.webhook_hosts import WebhookHosts, check_webhook_hosts

HOSTS = WebhookHosts(["alarms.example", "10.1.2.3:8080", "[2001:db8::1]", "localhost", "::1"])


@pytest.mark.parametrize(
    "url",
    [
        "",
        "https://alarms.example/x?token=y",
        "http://ALARMS.example.:8443/x",
        "http://10.1.2.3:8080/",
        "https://[2001:DB8:0::1]/x",
        "http://localhost:99/",
    ],
)
def test_a_listed_host_may_be_named(url: str) -> None:
    assert HOSTS.refuse(url) is None


@pytest.mark.parametrize(
    "url",
    [
        "https://other.example/",
        "https://sub.alarms.example/",
        "http://10.1.2.3/",
        "http://10.1.2.3:80801/",
        "http://alarms.example@other.example/",
        "http://alarms.example:x@other.example/",
        "http://other.example\\@alarms.example/",
        "http://other.example#@alarms.example/",
        "http://other.example?alarms.example/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://[::ffff:127.0.0.1]/",
        "http://169.254.169.254/latest",
        "ftp://alarms.example/",
        "http:///x",
        "http://[alarms.example/",
    ],
)
def test_another_host_is_refused(url: str) -> None:
    assert HOSTS.refuse(url)


def test_without_a_list_no_host_may_be_named() -> None:
    assert "alarms.example:443" in (WebhookHosts().refuse("https://alarms.example/s3cret") or "")
    assert "s3cret" not in (WebhookHosts().refuse("https://alarms.example/s3cret") or "")


@pytest.mark.parametrize(
    ("url", "address", "is_allowed"),
    [
        ("http://alarms.example/", "203.0.113.9", True),
        ("http://alarms.example/", "10.0.0.1", True),
        ("http://alarms.example/", "127.8.0.1", False),
        ("http://alarms.example/", "169.254.169.254", False),
        ("http://alarms.example/", "100.100.100.200", False),
        ("http://alarms.example/", "64:ff9b::a9fe:a9fe", False),
        ("http://alarms.example/", "2002:7f00:1::", False),
        ("http://alarms.example/", "fe80::1%eth0", False),
        ("http://alarms.example/", "::1", True),
        ("http://localhost/", "127.0.0.1", True),
        ("http://localhost/", "169.254.169.254", False),
    ],
)
def test_addresses_of_the_machine_its_link_and_metadata_have_to_be_listed_themselves(
    url: str, address: str, is_allowed: bool
) -> None:
    assert HOSTS.allows(url, address) is is_allowed


@pytest.mark.parametrize(
    "text", ["", "a b", "http://x", "x:0", "x:99999", "[::1", "*.example", "a/b"]
)
def test_a_list_of_something_else_is_refused(text: str) -> None:
    assert check_webhook_hosts(("alarms.example", text))
