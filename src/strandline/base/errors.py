"""The one tree of errors.

    Exception
    |- StrandlineError             Strandline raised it on purpose
    |  |- OperatorError            a command or a configuration is wrong: one line says what to do
    |  |  |- MissingRightError     no rule allows what a command wants to do
    |  |  |- NotServingError       the brokers run but did not serve in time
    |  |  |- UnregisteredError     the cluster has forgotten this broker
    |  |  `- LoginError            a broker does not accept the login of a command
    |  |     `- TokenError         a token for a login could not be had
    |  |- ProtocolError            the peer broke the protocol: close its connection
    |  |- ApiError                 a request is refused with a Kafka error code
    |  |  |- RejectedError         not here or not now: names the leader to ask
    |  |  |- RemoteOffsetError      the record is in a bucket only: it is read from there
    |  |  |- RefusedRecordsError   some records of a batch are refused: names each
    |  |  `- MalformedProduceError  the batches are refused before they are held against a log
    |  |- StorageError             a file is damaged: names the file, position, expected, found
    |  |- DamagedObjectError       an object of a bucket is damaged, or another
    |  |- ExportTooLargeError      the head of a partition's export does not fit
    |  |- DamagedBatchError        a fetched batch is damaged: names topic, partition, offset
    |  |- DataLossError            records are gone before Spark read them: failOnDataLoss is true
    |  |- NotHereError             a broker has not the records that it shall upload
    |  |- UnchangedError           a rewrite would leave its only object as it is
    |  |- TierError                what buckets have is unknown, or less than a query needs
    |  |- BucketsFailedError       no bucket gives the next records
    |  |- CallError                a call to another broker got no answer
    |  |- SaslError                a client has not proved who it is: the log has the reason
    |  |- FetchError               a document could not be had from its server or file
    |  |- KeySetError              a set of keys for tokens is none, or of no use
    |  `- ClientError              our client cannot make a request or use its answer
    |     |- NotOfferedError       the broker does not offer that API: it has another version
    |     `- CannotConnectError    no broker was reached or answered before the deadline
    |- InvariantError              a simulation found a broken promise
    |- FaultError                  a record of a fetched batch is malformed: becomes its error
    |- UnfitValueError             a value has no place in its type: becomes its problem
    |  |- UnknownSchemaError       the registry has no schema of a value's id
    |  `- _PlacedError             a value inside another has none: names the field
    |- UnfitRowsError              rows that a table of files does not take: names the reason
    |- UnfitColumnError            some values of a column do not fit: the exact way reads them
    |- BadSnapshotError            a snapshot of the controller's state is damaged or unknown
    |- _DamagedObjectError         an object's bytes are not those that the log says
    |- NoAnswerError               a broker process of this machine did not answer
    |- StoreError                  an object store gave no usable answer
    |  |- ObjectAbsentError        it says for certain that it has no such object
    |  |- WrongBytesError          its bytes have another checksum than they should have
    |  |- ObjectExistsError        the name has another content
    |  |- ForeignClaimError        another cluster has the bucket's prefix
    |  |- WrongBucketError         it is not the bucket that the cluster uses under this name
    |  |- _LacksAllError           it has neither the first nor the last live object
    |  |- _OtherBytesError         the object is there with other bytes, or a part of it only
    |  |- NotFoundAnswerError      it answered that there is no such object, or no such bucket
    |  |- TakenAnswerError         it answered that the name is taken
    |  `- _CredentialsError        it does not take these credentials
    |- TrailerError                the trailer of a segment's object is damaged or unknown
    |- UnfitBatchError             no segment's object is made: a batch is damaged or missing
    |- UnknownTypeError         a request about quotas names a type of entity that there is not
    |- UncertainError              it is not known now what a partition's log has
    |  `- UnknownTopicError        the controller knows neither the topic nor its deletion
    |- UnreadableError             no bucket has usable bytes of an offset now
    |- UnresolvableError           a writer's schema cannot be read as the reader's
    |- _NotPlainError              a command needs Typer to read its options
    |- _PasswordError              a private key has a password
    |- _UnfitError                 a value does not fit: UnfitColumnError names its place
    `- _UnusualError               a batch that NumPy does not read: the exact way does
    BaseException
    `- ProcessDied                 a simulated process dies in the middle of a callback

A test compares the drawing with the classes. Programmer errors are assertions: no code catches
them. Source: STYLE, "Errors"."""

from collections.abc import Iterable, Sequence


class StrandlineError(Exception):
    """Strandline raised it on purpose. `details`: what a reader sees below the message, each a line
    of its own; the message says enough without them."""

    details: tuple[str, ...] = ()


class OperatorError(StrandlineError):
    """A command or a configuration is wrong; the message is one line that says what to do."""

    def __init__(self, message: str, details: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.details = tuple(details)


class UnregisteredError(OperatorError):
    """This broker was unregistered: only a person may have it join anew."""


class ProtocolError(StrandlineError):
    """The peer broke the protocol; its connection is closed."""


class ApiError(StrandlineError):
    """A request, or a part of one, is refused. `code` is a Kafka error code (`protocol.errors`)."""

    def __init__(self, code: int, message: str = "", details: Iterable[str] = ()) -> None:
        super().__init__(message or f"Kafka error {code}")
        self.code = code
        self.message = message
        self.details = tuple(details)


class RejectedError(ApiError):
    """Not here or not now. `leader_id`: the broker to ask, -1 while no leader is known."""

    def __init__(self, code: int, message: str = "", *, leader_id: int = -1) -> None:
        super().__init__(code, message)
        self.leader_id = leader_id


class RefusedRecordsError(ApiError):
    """Some records of a batch are refused, and so is the batch. `record_errors`: (which record of
    its batch, why) of the first ones."""

    def __init__(self, code: int, message: str, record_errors: Sequence[tuple[int, str]]) -> None:
        super().__init__(code, message)
        self.record_errors = record_errors


class StorageError(StrandlineError):
    """A file is damaged: at `position` it has `found` and not `expected`."""

    def __init__(self, path: str, position: int, *, expected: str, found: str) -> None:
        super().__init__(f"{path} at byte {position}: expected {expected}, found {found}")
        self.path = path
        self.position = position
        self.expected = expected
        self.found = found
