"""What the exit code of `strandline` means.

Source: the table in docs/reference/cli.md is made from `EXIT_CODES`."""

OK = 0
ERROR = 1
USAGE = 2
CANNOT_CONNECT = 3
UNHEALTHY = 10
INTERRUPTED = 130

EXIT_CODES: dict[int, str] = {
    OK: "done",
    ERROR: "refused or failed; standard error says why, in one line if that is enough; `doctor "
    "security`: something is open; `doctor settings`: brokers differ where they must not",
    USAGE: "an unknown command or option, or a missing argument",
    CANNOT_CONNECT: "no broker was reachable, or none answered in time",
    UNHEALTHY: "`dev status`: a broker is not serving; `broker ok-to-stop`: no; `cluster status`: "
    "something is down, stopped, at risk or not known; `tiered`: an object is not sound, or a "
    "broker does not say what should be there",
    INTERRUPTED: "interrupted (Ctrl-C)",
}
