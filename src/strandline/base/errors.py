"""The one tree of errors.

    StrandlineError
    |- OperatorError      a command or configuration is wrong: one line that says what to do
    |- ProtocolError      the peer broke the protocol: close its connection
    |- ApiError(code)     a request is refused with a Kafka error code
    |  `- RejectedError   not here or not now: carries where to go
    `- StorageError       a file is not as it must be: carries file, position, expected, found

Programmer errors are assertions and are never caught. Source: STYLE, "Errors"."""


class StrandlineError(Exception):
    """Everything that Strandline raises on purpose."""


class OperatorError(StrandlineError):
    """A command or a configuration is wrong; the message is one line that says what to do."""


class ProtocolError(StrandlineError):
    """The peer broke the protocol; its connection is closed."""


class ApiError(StrandlineError):
    """A request, or a part of one, is refused. `code` is a Kafka error code (`protocol.errors`)."""

    def __init__(self, code: int, message: str = "") -> None:
        super().__init__(message or f"Kafka error {code}")
        self.code = code
        self.message = message


class RejectedError(ApiError):
    """Not here or not now. `leader_id` says where to go, -1 when nobody knows yet."""

    def __init__(self, code: int, message: str = "", *, leader_id: int = -1) -> None:
        super().__init__(code, message)
        self.leader_id = leader_id


class StorageError(StrandlineError):
    """A file is not as it must be."""

    def __init__(self, path: str, position: int, *, expected: str, found: str) -> None:
        super().__init__(f"{path} at byte {position}: expected {expected}, found {found}")
        self.path = path
        self.position = position
        self.expected = expected
        self.found = found
