"""The cell `group`: two members share a topic, one leaves, the next one resumes.

How:    one member gets all partitions; a second one joins and both have some; it leaves and the
        first has all again; that leaves too, and what it committed is the end of the log. A third
        member reads nothing but what was written afterwards."""

from clients.client import Place
from clients.observer import PARTITIONS, wait
from clients.program import Member, Program
from clients.records import CellError, judge

COUNT = 40


def check(place: Place, program: Program) -> None:
    """Raises CellError."""
    topic, group = f"{place.prefix}-group", f"{place.prefix}-members"
    observer = place.observer
    observer.create(topic)
    arguments = (place.cluster.bootstrap, topic, group)
    with program.member(*arguments) as first, program.member(*arguments) as second:
        _wait_for(place, group, [first, second], members=2)
        observer.write(topic, range(COUNT))
        _wait_read([first, second], COUNT)
        for member in (first, second):
            if not member.records:
                raise CellError("a member with partitions read nothing")
        second.stop()
        _wait_for(place, group, [first], members=1)
        observer.write(topic, range(COUNT, 2 * COUNT))
        _wait_read([first, second], 2 * COUNT, running=[first])
        first.stop()
        found = {(r.partition, r.offset): r for r in first.records + second.records}
        judge(found.values(), range(2 * COUNT), where="both members")
    ends = observer.end_offsets(topic)
    committed = {partition: at for (_, partition), at in observer.committed(group).items()}
    behind = {p: (committed.get(p), end) for p, end in ends.items() if committed.get(p, 0) != end}
    if behind:
        raise CellError(f"committed offsets and log ends differ: {behind}")
    with program.member(*arguments) as third:
        observer.write(topic, range(2 * COUNT, 3 * COUNT))
        _wait_read([third], COUNT)
        third.stop()
        judge(third.records, range(2 * COUNT, 3 * COUNT), where="the member that resumed")
    observer.delete(topic)


def _wait_for(place: Place, group: str, running: list[Member], *, members: int) -> None:
    def is_so() -> bool:
        for member in running:
            member.check()
        counts = place.observer.assignment(group)
        return len(counts) == members and counts[0] > 0 and sum(counts) == PARTITIONS

    wait(is_so, what=f"a stable group of {members} that has all partitions")


def _wait_read(members: list[Member], count: int, *, running: list[Member] | None = None) -> None:
    def is_so() -> bool:
        for member in members if running is None else running:
            member.check()
        return len({r.number for member in members for r in member.records}) >= count

    wait(is_so, what=f"{count} records read by the group")
