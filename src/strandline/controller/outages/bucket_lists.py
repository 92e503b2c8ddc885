"""Reports buckets that some broker lacks, or that are not the ones of their names there. Pure.

Why:    a broker without a bucket that others have uploads nothing to it and lets local records go
        with fewer copies; one whose buckets are exchanged stops using them. Its own log says so,
        but an operator looks at the cluster.
How:    brokers' reports --compared--> one alarm a bucket: begun after `BEGUN_MS`, over after
        `OVER_MS` without a fault. A broker that reports no list, as earlier releases do, is left
        out. A new controller raises the present alarms again.
Owns:   since when each bucket has a fault or none, and the reported alarms; on the active
        controller.
Source: decision 0068."""

from collections.abc import Mapping

from strandline.controller.outages.alarms import Alarm
from strandline.controller.outages.happenings import Happening, Kind, brokers_text
from strandline.model.ids import BrokerId

BEGUN_MS = 10_000
OVER_MS = 30_000

BucketList = Mapping[str, str]
"""{bucket in a broker's file: why it is not used there; empty if nothing is wrong with it}."""


def bucket_faults(lists: Mapping[BrokerId, BucketList]) -> dict[str, str]:
    """{bucket: what is wrong with it, and on which brokers}, of brokers' lists."""
    faults: dict[str, str] = {}
    for bucket in sorted({name for one in lists.values() for name in one}):
        having = {broker for broker, one in lists.items() if bucket in one}
        lacking = lists.keys() - having
        found = []
        if lacking:
            lack = "lacks" if len(lacking) == 1 else "lack"
            have = "has" if len(having) == 1 else "have"
            found.append(
                f"{brokers_text(lacking)} {lack} it in [tiered] buckets, and "
                f"{brokers_text(having)} {have} it"
            )
        reasons: dict[str, set[BrokerId]] = {}
        for broker in having:
            if lists[broker][bucket]:
                reasons.setdefault(lists[broker][bucket], set()).add(broker)
        for reason, brokers in sorted(reasons.items()):
            found.append(f"on {brokers_text(brokers)}: {reason}")
        if found:
            faults[bucket] = "; ".join(found)
    return faults


class BucketAlarms:
    """See the module."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        """{bucket: its present fault}"""
        self._since_ms: dict[str, int] = {}
        """{bucket that has, or had, a fault: since when it has one, or none}"""
        self._begun_ms: dict[str, int] = {}
        """{bucket with a reported alarm that is not over: since when}"""

    @property
    def happenings(self) -> list[Happening]:
        """The reported alarms that are not over."""
        return [
            Happening(Kind.TIERED_BUCKETS, _subject(bucket), self._text(bucket), begun_ms)
            for bucket, begun_ms in sorted(self._begun_ms.items())
        ]

    def step(self, now_ms: int, faults: Mapping[str, str]) -> list[Alarm]:
        """The alarms that begin or end now."""
        for bucket in faults.keys() | self._since_ms.keys():
            if (bucket in faults) != (bucket in self._texts):
                self._since_ms[bucket] = now_ms
        self._texts = dict(faults)
        found = []
        for bucket, since_ms in sorted(self._since_ms.items()):
            lasting_ms, is_begun = now_ms - since_ms, bucket in self._begun_ms
            if bucket in faults and not is_begun and lasting_ms >= BEGUN_MS:
                self._begun_ms[bucket] = since_ms
                found.append(self._alarm(bucket, is_over=False))
            elif bucket not in faults and lasting_ms >= OVER_MS:
                del self._since_ms[bucket]
                if is_begun:
                    del self._begun_ms[bucket]
                    found.append(self._alarm(bucket, is_over=True))
        return found

    def _alarm(self, bucket: str, *, is_over: bool) -> Alarm:
        return Alarm(Kind.TIERED_BUCKETS, _subject(bucket), is_over, self._text(bucket))

    def _text(self, bucket: str) -> str:
        fault = self._texts.get(bucket)
        return f"bucket {bucket}: {fault or 'all brokers use it'}"


def _subject(bucket: str) -> str:
    return f"bucket {bucket}"
