"""What clients are told about access rules and delegation tokens: there is no authoriser.

Why:    an empty list of rules would look as if everything were forbidden, or as if a rule could be
        added. Kafka without an authoriser refuses, and tools show its reason.
        Clients that ask which operations they may do are told all that a kind of resource has.
Source: KIP-140, KIP-48, KIP-430 (authorised operations).

Authorised operations are bits, by the numbers of Kafka's operations:
    3 read, 4 write, 5 create, 6 delete, 7 alter, 8 describe, 9 cluster action,
    10 describe configs, 11 alter configs, 12 idempotent write"""

NO_AUTHORISER = "no authoriser is configured: every client may do everything"


def _bits(*operations: int) -> int:
    return sum(1 << one for one in operations)


TOPIC_OPERATIONS = _bits(3, 4, 5, 6, 7, 8, 10, 11)
GROUP_OPERATIONS = _bits(3, 6, 8, 10, 11)
CLUSTER_OPERATIONS = _bits(5, 7, 8, 9, 10, 11, 12)
