"""Spark's errors in one line: what is wrong, and what to do.

Why:    Spark answers with a Java stack of a hundred lines; a person needs the sentence.
How:    a table of known failures, searched for in the whole text; else the first telling line."""

import re
from typing import Final

from strandline.base.errors import OperatorError

_AGAIN = "then start it again: the table has whole batches only"

KNOWN: Final = (
    (
        r"No space left on device|Disk quota exceeded",
        "the disk is full: free space for the table and for Spark's files (SPARK_LOCAL_DIRS), "
        f"{_AGAIN}",
    ),
    (
        r"ConcurrentTransactionException|DELTA_CONCURRENT_|ConcurrentAppendException"
        r"|ConcurrentWriteException|MetadataChangedException|ProtocolChangedException"
        r"|CommitFailedException|DELTA_METADATA_CHANGED|DELTA_PROTOCOL_CHANGED",
        "another program changed the table at the same moment: run one job at a time for a table, "
        "and start this one again",
    ),
    (
        r"OutOfMemoryError|GC overhead limit",
        "Java ran out of memory: give it more (--conf spark.driver.memory=4g), or make batches "
        f"smaller (--batch-records), {_AGAIN}",
    ),
    (
        r"Answer from Java side is empty|Connection reset by peer.*py4j|Py4JNetworkError"
        r"|Error while sending or receiving|^\[Errno 111\] Connection refused$",
        f"Spark's Java process ended: was it killed, or out of memory? {_AGAIN.capitalize()}",
    ),
    (
        r"All masters are unresponsive|Failed to connect to master|Master removed our application",
        "no Spark master answers: check --master",
    ),
    (
        r"No FileSystem for scheme \"?(?P<scheme>[\w+.-]+)",
        "Spark cannot reach {scheme}: locations: put the jars of its file system on the class path",
    ),
    (
        r"DELTA_CANNOT_CREATE_LOG_PATH.*?Cannot create (?P<path>\S+)"
        r"|(?P<denied>\S+)[^\n]{0,40}\(?Permission denied",
        "cannot write {path}{denied}: choose another location, or correct its permissions",
    ),
    (r"UnknownTopicOrPartitionException", "the topic does not exist"),
    (
        r"Some data may have been lost",
        "the topic no longer holds records that were not read yet (retention removed them, or the "
        "topic was recreated)",
    ),
)
"""(what the text holds, what to say); names of groups are filled in."""

_OWN_ERROR = re.compile(r"strandline[\w.]*\.(?P<name>\w+Error): (?P<text>[^\n]+)")
"""An error of our own code in a Python worker, at the end of its traceback."""
_MASTER = re.compile(
    r"local|local\[(\*|[1-9]\d*)(,\s*\d+)?\]|local-cluster\[.+\]|spark://[^/\s]+:\d+(,[^/\s]+:\d+)*"
    r"|yarn|k8s://\S+"
)
LINE_CHARS_MAX = 400


def check_master(master: str) -> None:
    """Raises OperatorError for what no Spark takes as a master."""
    if not _MASTER.fullmatch(master):
        raise OperatorError(
            f"--master {master}: expected local[N], local[*], spark://host:port, yarn or k8s://..."
        )


def summarize(message: str) -> str:
    """The sentence of a Spark error that a person needs, without its stack and its ids."""
    for pattern, words in KNOWN:
        match = re.search(pattern, message, re.DOTALL)
        if match is not None:
            return words.format_map({key: text or "" for key, text in match.groupdict().items()})
    own = list(_OWN_ERROR.finditer(message))
    if own:
        return own[-1]["text"].strip()[:LINE_CHARS_MAX]
    text = message.partition("JVM stacktrace")[0].partition("\n\tat ")[0]
    text = text.rpartition("terminated with exception:")[2]
    lines = [line.strip() for line in text.splitlines()]
    telling = [line for line in lines if line and not line.startswith(("at ", ": "))]
    java = [line.removeprefix(": ") for line in lines if line.startswith(": ")]
    first = (java or telling or ["no reason given"])[0]
    return first.partition(" SQLSTATE:")[0].rstrip(".")[:LINE_CHARS_MAX]
