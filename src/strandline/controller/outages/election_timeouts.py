"""Brokers whose election time-outs differ by more than leases allow. Pure.

Why:    no request fails for it: a leader that was deposed may answer stale reads, and a leader that
        died is replaced late, without a word about the reason.
How:    brokers' reports --compared--> a fault that names the brokers and their values. A broker
        that reports none, as earlier releases do, is left out. Differences that leases allow are
        steps of a change, and no fault.
Owns:   nothing.
Source: `config.shared_keys`; decision 0073."""

from collections.abc import Mapping

from strandline.config.shared_keys import TIMEOUT, Harm, differences
from strandline.controller.outages.happenings import brokers_text
from strandline.model.ids import BrokerId


def timeout_faults(timeouts: Mapping[BrokerId, int]) -> dict[str, str]:
    """{key: what is wrong with it, and on which brokers}, of {broker: its election time-out}."""
    values = {str(broker): {TIMEOUT: str(one)} for broker, one in sorted(timeouts.items())}
    faults = {}
    for one in differences(values):
        if one.harm is Harm.WRONG:
            places = "; ".join(
                f"{value} on {brokers_text(BrokerId(int(id)) for id in ids)}"
                for value, ids in one.places.items()
            )
            faults[one.key] = f"{places}: {one.what}; `strandline doctor settings` says what to do"
    return faults
