"""Which brokers are interchangeable, given the seats that are taken.

Why:    an exact search over 200 brokers is small only if equal brokers are tried once.
How:    The nested levels that constraints count by make a tree, with the candidates as leaves. Two
        nodes are of one class if the trees below them are isomorphic. Leaves differ by all that
        constraints ask of them (their attribute), and nodes by whether their level has a label: two
        brokers of one host exclude each other, two without a host do not. While no seat lies in a
        node, it can be exchanged for a sibling of its class without changing any constraint. So a
        candidate may stand for all in untouched nodes of its class below the deepest touched node
        that holds it. Labels that do not nest are part of the attribute.
Owns:   nothing that changes.
Source: decision 0008 (canonical forms of rooted trees, Aho, Hopcroft and Ullman)."""

from collections.abc import Hashable, Mapping, Sequence

from strandline.placement.topology.universe import LEVELS, Universe


class Orbits:
    """Made once for a plan. `touched` is a mask for each depth: the nodes there that hold seats."""

    def __init__(
        self, universe: Universe, labels: Sequence[str], attributes: Sequence[Hashable]
    ) -> None:
        """`labels`: what constraints count by; `attributes[bit]`: what else they ask of it."""
        levels = [universe.domains(level) for level in LEVELS if level in labels]
        others = [universe.domains(label) for label in labels if label not in LEVELS]
        self._all = universe.all
        self._nodes = [[one.masks[number] for number in one.of] for one in levels]
        """By depth and bit: the node that holds the candidate."""
        self._classes: dict[Hashable, int] = {}
        leaves = [
            self._class((attribute, tuple(one.of[bit] for one in others)))
            for bit, attribute in enumerate(attributes)
        ]
        suffixes = [leaves]
        below = leaves
        for depth, one in reversed(list(enumerate(levels))):
            children: dict[int, dict[int, int]] = {}
            for bit, node in enumerate(self._nodes[depth]):
                is_leaf = depth + 1 == len(levels)
                child = 1 << bit if is_leaf else self._nodes[depth + 1][bit]
                children.setdefault(node, {})[child] = below[bit]
            named = {mask: bool(value) for mask, value in zip(one.masks, one.values, strict=True)}
            classes = {
                node: self._class((depth, named[node], tuple(sorted(found.values()))))
                for node, found in children.items()
            }
            below = [classes[node] for node in self._nodes[depth]]
            suffixes.append(
                [
                    self._class(("path", own, rest))
                    for own, rest in zip(below, suffixes[-1], strict=True)
                ]
            )
        suffixes.reverse()
        self._kinds = suffixes[0]
        self._peers = [self._by_bit(suffix) for suffix in suffixes]
        """By depth and bit: all whose path from that depth down is of the same classes."""

    @property
    def kinds(self) -> list[int]:
        """By bit: equal for those that are interchangeable while no seat is taken."""
        return self._kinds

    def peers(self, bit: int) -> int:
        """Those of the same kind."""
        return self._peers[0][bit]

    @property
    def untouched(self) -> tuple[int, ...]:
        """The mask of each depth while no seat is taken."""
        return (0,) * len(self._nodes)

    def touch(self, touched: tuple[int, ...], bit: int) -> tuple[int, ...]:
        """The masks once a candidate has a seat."""
        return tuple(mask | nodes[bit] for mask, nodes in zip(touched, self._nodes, strict=True))

    def of(self, bit: int, touched: tuple[int, ...]) -> int:
        """The candidates that a candidate without a seat stands for, itself included.

        Those that have seats may be among them."""
        parent = self._all
        for depth, mask in enumerate(touched):
            if not mask >> bit & 1:
                return self._peers[depth][bit] & parent & ~mask
            parent = self._nodes[depth][bit]
        return self._peers[-1][bit] & parent

    def images(self, bit: int, touched: tuple[int, ...], images: Mapping[int, int]) -> int:
        """The candidates that may take a seat's place in an image of a placement.

        `images`: {bit of an earlier seat: its image}; `touched`: the nodes of those seats. The
        image keeps apart and together what the placement keeps so; those that have seats may be
        among the candidates."""
        used = [0] * len(self._nodes)
        for image in images.values():
            for depth, nodes in enumerate(self._nodes):
                used[depth] |= nodes[image]
        parent = self._all
        for depth, mask in enumerate(touched):
            node = self._nodes[depth][bit]
            if not mask >> bit & 1:
                return self._peers[depth][bit] & parent & ~used[depth]
            beside = next(other for other in images if node >> other & 1)
            parent = self._nodes[depth][images[beside]]
        return self._peers[-1][bit] & parent

    def _class(self, key: Hashable) -> int:
        return self._classes.setdefault(key, len(self._classes))

    @staticmethod
    def _by_bit(classes: list[int]) -> list[int]:
        masks: dict[int, int] = {}
        for bit, number in enumerate(classes):
            masks[number] = masks.get(number, 0) | 1 << bit
        return [masks[number] for number in classes]
