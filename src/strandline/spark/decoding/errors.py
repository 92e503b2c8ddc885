"""The error for record batches that cannot be decoded.

StrandlineError
`- DamagedBatchError    a batch or a record in it is not as it was written"""

from strandline.base.errors import StrandlineError


class DamagedBatchError(StrandlineError):
    """A batch cannot be decoded. The message names topic, partition, offset and reason."""

    def __init__(self, topic: str, partition: int, offset: int, reason: str) -> None:
        super().__init__(f"{topic}-{partition} at offset {offset}: {reason}")
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.reason = reason

    def __reduce__(self) -> tuple[type["DamagedBatchError"], tuple[str, int, int, str]]:
        """Spark pickles errors of executors."""
        return type(self), (self.topic, self.partition, self.offset, self.reason)
