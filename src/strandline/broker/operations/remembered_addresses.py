"""Reads where the controller's voters listen from this broker's own copy of the controller's log.

Why:    a broker that restarts knows the addresses of its seeds alone. If votes have moved to
        brokers that are not on its list, and the seeds are gone, it could neither reach the voters
        nor answer them.
How:    the last registration of each voter that is not a seed, committed or not: an address is only
        a place to try, and the replayed state replaces it. Damage ends the reading without an
        error; the replay reports it.
Owns:   nothing.
Source: decision 0048."""

from collections.abc import Collection, Iterator

from strandline.base.errors import StrandlineError
from strandline.controller.records import BrokerRegistered, Record, decode_record
from strandline.model.cluster import Address
from strandline.model.ids import BrokerId
from strandline.records import record as records
from strandline.records.batch import iterate_headers
from strandline.replication.replica.replica import Replica
from strandline.replication.replica.verified_read import verified_bytes

READ_BYTES = 1 << 20


def remembered_addresses(replica: Replica, known: Collection[BrokerId]) -> dict[BrokerId, Address]:
    """{voter of the controller's group: its rpc address}, of voters that are not `known`."""
    wanted = set(replica.configuration.all_voters).difference(known)
    found: dict[BrokerId, Address] = {}
    if not wanted:
        return found
    try:
        for record in _records(replica):
            if isinstance(record, BrokerRegistered) and record.id in wanted:
                found[record.id] = record.rpc
    except (OSError, StrandlineError):
        return found
    return found


def _records(replica: Replica) -> Iterator[Record]:
    log = replica.log
    offset = log.start_offset
    while offset < log.end_offset:
        data = verified_bytes(log.read_records(offset, READ_BYTES, log.end_offset))
        if not data:
            return
        for header in iterate_headers(data):
            batch = data[header.position : header.position + header.size]
            for one in records.decode_records(batch):
                if one.value is not None:
                    yield decode_record(one.value)
            offset = header.next_offset
