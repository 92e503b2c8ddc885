"""Buckets that some broker lacks, or that are not the ones of their names there. Pure.

Why:    a broker without a bucket that others have uploads nothing to it and lets local records go
        with fewer copies; one whose buckets are exchanged stops using them. Its own log says so,
        but an operator looks at the cluster.
How:    brokers' reports --compared--> one fault a bucket. A broker that reports no list, as
        earlier releases do, is left out.
Owns:   nothing.
Source: decision 0068."""

from collections.abc import Mapping

from strandline.controller.outages.happenings import brokers_text
from strandline.model.ids import BrokerId

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
