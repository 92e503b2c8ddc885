"""Changed certificates are taken, and their end is seen in time (decision 0069)."""

import logging
from pathlib import Path

import pytest

from strandline.broker.operations.certificate_watch import DAY_MS, CertificateWatch
from strandline.security.authority import Authority, Files
from strandline.security.tls import Pair, ServerTls, TlsSettings


class Wall:
    """A clock that stands still."""

    def __init__(self, now_ms: int) -> None:
        self.now_ms = now_ms

    def wall_ms(self) -> int:
        return self.now_ms


def tls_of(files: Files) -> ServerTls:
    pairs = (Pair(files.certificate, files.key),)
    return ServerTls(TlsSettings(place="[[listener]] A", pairs=pairs))


def watch_of(tls: ServerTls, *, days_left: float) -> tuple[CertificateWatch, Wall]:
    clock = Wall(tls.ends_at_ms - int(days_left * DAY_MS))
    return CertificateWatch([tls], clock=clock), clock  # type: ignore[arg-type]


def said(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    told = [(one.levelname, one.getMessage()) for one in caplog.records]
    caplog.clear()
    return told


@pytest.mark.parametrize(
    ("days", "told"),
    [
        (40, []),
        (12.5, [("WARNING", "[[listener]] A: the certificate expires in 12 days: renew it")]),
        (-1, [("ERROR", "[[listener]] A: the certificate has expired: renew it")]),
    ],
)
def test_the_end_of_a_certificate_is_told_once_a_day(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, days: float, told: list[tuple[str, str]]
) -> None:
    watch, clock = watch_of(tls_of(Authority(tmp_path).issue("a")), days_left=days)
    watch.look()
    assert said(caplog) == told
    assert watch.seconds_left() == {"[[listener]] A": int(days * 86_400)}
    watch.look()
    assert said(caplog) == []
    clock.now_ms += DAY_MS
    watch.look()
    assert len(said(caplog)) == len(told)


def test_files_that_do_not_fit_are_told_once_and_then_taken(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    authority = Authority(tmp_path)
    files, renewed = authority.issue("a"), authority.issue("b")
    watch, _ = watch_of(tls_of(files), days_left=100)
    watch.look()
    assert said(caplog) == []
    files.certificate.write_bytes(renewed.certificate.read_bytes())
    watch.look()
    ((level, line),) = said(caplog)
    assert level == "ERROR"
    assert line.endswith("both must be of one request; the files read before stay in use")
    watch.look()
    assert said(caplog) == []
    files.key.write_bytes(renewed.key.read_bytes())
    watch.look()
    assert said(caplog) == [("INFO", "[[listener]] A: new TLS handshakes use the changed files")]
