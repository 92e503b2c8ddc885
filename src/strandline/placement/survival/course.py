"""The fates that a partition can have. Pure.

Why:    pages that only name them need none of the model that finds them (`courses.py`).
Source: decision 0026."""

from enum import StrEnum


class Course(StrEnum):
    """The fate of a partition, the harmless first."""

    ELECTION = "election"
    ARBITRATION = "arbitration"
    STANDS_IN = "stands-in"
    """The same, or a majority is left; acks=all is refused until observers have been promoted."""
    LOWER = "lower-min-insync"
    """A leader stays; acks=all is refused until an operator lowers `min.insync.replicas`."""
    LET_LEAVE = "let-voters-leave"
    """No leader until the topic's voters may leave (`voters.shrink.enable`)."""
    RETURN = "return"
    """Nothing is lost, and acks=all waits until enough are back."""
    MAY_LACK = "may-lack"
    """No leader, and the survivors may lack acknowledged writes."""
    GONE = "gone"
    """No voter is left."""

    @property
    def acts_alone(self) -> bool:
        """Whether writes continue without help."""
        return self in (Course.ELECTION, Course.ARBITRATION, Course.STANDS_IN)

    @property
    def keeps_data(self) -> bool:
        """Whether survivors, or brokers that are only cut off, have all acknowledged records."""
        return self not in (Course.MAY_LACK, Course.GONE)


BADNESS = {course: number for number, course in enumerate(Course)}
"""How bad each course is, from 0."""
