"""Who is who does not matter: states that differ by the names of members that are alike are one.

Why:    of four voters and two observers, 48 states are the same one under other names.
How:    members carry names of a type of their own, and everything is pickled with each name apart
        from the rest: loaded with other names it is what it would be, had the others done it.
        Values have numbers, and are renamed once for each way of renaming.
Owns:   the values met, by number; all renamings.
Source: Ip, Dill, "Better verification through symmetry" (1996)."""

import io
import pickle
from collections.abc import Hashable, Iterator, Sequence
from itertools import permutations, product
from typing import Any, Generic, TypeVar

import msgspec

from strandline.model.ids import BrokerId
from strandline.raft.core import Raft
from strandline.raft.group.configuration import Configuration, PromisedQuorum

T = TypeVar("T", bound=Hashable)
Table = tuple[tuple[type, type, str], ...]
"""Of events or messages: who handles each, and by which method."""
Renaming = tuple[BrokerId, ...]
"""At each member's place (its name, less one), its new name."""


class Name(int):
    """Of a member; other numbers are none."""


def name(number: int) -> BrokerId:
    """The name of a member."""
    return BrokerId(Name(number))


class _Pickler(pickle.Pickler):
    def persistent_id(self, obj: Any) -> int | None:
        return int(obj) if type(obj) is Name else None

    def reducer_override(self, obj: Any) -> Any:
        if type(obj) is Configuration:
            return _configuration, msgspec.structs.astuple(obj)
        if type(obj) is Raft:
            return Raft.__new__, (Raft,), _without_tables(obj), None, None, _with_tables
        return NotImplemented


class _Unpickler(pickle.Unpickler):
    names: Sequence[BrokerId]

    def persistent_load(self, pid: int) -> BrokerId:
        return self.names[pid - 1]


def _configuration(
    voters: tuple[BrokerId, ...],
    old_voters: tuple[BrokerId, ...],
    observers: tuple[BrokerId, ...],
    min_insync: int,
    version: int,
    floor: PromisedQuorum,
) -> Configuration:
    """The order of members says nothing."""
    return Configuration(
        tuple(sorted(voters)),
        tuple(sorted(old_voters)),
        tuple(sorted(observers)),
        min_insync,
        version,
        floor,
    )


_TABLES = ("_handlers",)


_handlers: list[Table] = []
"""Of each table; the same for all cores."""


def _without_tables(raft: Raft) -> tuple[dict[str, Any], list[Any]]:
    """What a core is made of. Thirty bound methods would take longer than all the rest."""
    state = dict(vars(raft))
    tables = [state.pop(table) for table in _TABLES]
    if not _handlers:
        for table in tables:
            entries = ((of, type(one.__self__), one.__name__) for of, one in table.items())
            _handlers.append(tuple(entries))
    owners = {id(one.__self__): one.__self__ for table in tables for one in table.values()}
    return state, list(owners.values())


def _with_tables(raft: Raft, parts: tuple[dict[str, Any], list[Any]]) -> None:
    state, owners = parts
    by_type = {type(owner): owner for owner in owners}
    vars(raft).update(state)
    for table, entries in zip(_TABLES, _handlers, strict=True):
        setattr(raft, table, {of: getattr(by_type[owner], name) for of, owner, name in entries})


def pack(value: object) -> bytes:
    """Any value, its names apart."""
    file = io.BytesIO()
    _Pickler(file, pickle.HIGHEST_PROTOCOL).dump(value)
    return file.getvalue()


def unpack(packed: bytes, names: Sequence[BrokerId]) -> Any:
    """The value, under these names."""
    unpickler = _Unpickler(io.BytesIO(packed))
    unpickler.names = names
    return unpickler.load()


class Numbered(Generic[T]):
    """Values by number, each once: what is hashed a million times is short."""

    def __init__(self) -> None:
        self.values: list[T] = []
        self._numbers: dict[T, int] = {}
        self._renamed: dict[tuple[int, Renaming], int] = {}

    def of(self, value: T) -> int:
        """Its number."""
        number = self._numbers.get(value)
        if number is None:
            number = self._numbers[value] = len(self.values)
            self.values.append(value)
        return number

    def renamed(self, number: int, renaming: Renaming) -> int:
        """The number of that value under other names."""
        key = number, renaming
        after = self._renamed.get(key)
        if after is None:
            after = self.of(unpack(pack(self.values[number]), renaming))
            self._renamed[key] = after
        return after


class Renamings:
    """Members in groups of those who are alike: how they may be renamed."""

    def __init__(self, alike: Sequence[Sequence[BrokerId]]) -> None:
        self._alike = [tuple(group) for group in alike if group]
        self.same: Renaming = tuple(one for group in self._alike for one in group)
        self._known: dict[tuple[int, ...], tuple[Renaming, ...]] = {}

    def for_colours(self, colours: tuple[int, ...]) -> tuple[Renaming, ...]:
        """All renamings after which colours ascend within each group. Colours do not depend on
        names, so that of equal states one and the same is among what these lead to."""
        order = {colour: rank for rank, colour in enumerate(sorted(set(colours)))}
        ranks = tuple([order[colour] for colour in colours])
        known = self._known.get(ranks)
        if known is None:
            known = self._known[ranks] = tuple(self._sorting(ranks))
        return known

    def _sorting(self, colours: tuple[int, ...]) -> Iterator[Renaming]:
        orders = []
        for group in self._alike:
            wanted = sorted(colours[one - 1] for one in group)
            orders.append(
                [
                    order
                    for order in permutations(group)
                    if [colours[one - 1] for one in order] == wanted
                ]
            )
        for chosen in product(*orders):
            renaming = list(self.same)
            for group, order in zip(self._alike, chosen, strict=True):
                for new, old in zip(group, order, strict=True):
                    renaming[old - 1] = new
            yield tuple(renaming)
