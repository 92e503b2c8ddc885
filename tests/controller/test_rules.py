"""Rules of access: added, refused and removed, each for itself, in a log that replays the same.

Source: Kafka 4.3's AclControlManager and its tests; decision 0069."""

import msgspec
import pytest
from tests.controller.controller_world import World

from strandline.controller.commands import Refused
from strandline.controller.decide import rules as limits
from strandline.controller.records import decode_record
from strandline.controller.rule_commands import CreateRules, DeleteRules, RuleResults
from strandline.model.access import Kind, Operation, PatternType, Permission, Rule
from strandline.protocol.errors import Error
from strandline.security.acls.rule_filter import RuleFilter

RULE = Rule(Kind.TOPIC, PatternType.LITERAL, "t", "User:a", "*", Operation.READ, Permission.ALLOW)
PREFIX = msgspec.structs.replace(RULE, name="or", pattern=PatternType.PREFIXED)
ILLEGAL = msgspec.structs.replace(RULE, name="")


def create(world: World, *rules: Rule) -> list[int]:
    answer = world.run(CreateRules(rules))
    assert isinstance(answer, RuleResults)
    return [one.error_code for one in answer.results]


def delete(world: World, *filters: RuleFilter) -> RuleResults:
    answer = world.run(DeleteRules(filters))
    assert isinstance(answer, RuleResults)
    return answer


def test_an_illegal_rule_leaves_the_others_alone() -> None:
    world = World()
    assert create(world, RULE, ILLEGAL, PREFIX) == [0, Error.INVALID_REQUEST, 0]
    assert list(world.state.cluster.access.rules) == [RULE, PREFIX]
    assert world.replayed().cluster.access == world.state.cluster.access


def test_a_rule_that_is_there_already_is_no_error_and_no_record() -> None:
    world = World()
    create(world, RULE)
    size, version = len(world.log), world.state.cluster.access.version
    assert create(world, RULE, RULE) == [0, 0]
    assert (len(world.log), world.state.cluster.access.version) == (size, version)


def test_filters_remove_what_they_name_and_say_it() -> None:
    world = World()
    create(world, RULE, PREFIX)
    orders = RuleFilter(pattern=PatternType.MATCH, name="orders")
    answer = delete(world, orders, RuleFilter(kind=Kind.UNKNOWN), RuleFilter(principal="User:b"))
    assert [one.removed for one in answer.results] == [(PREFIX,), (), ()]
    assert [one.error_code for one in answer.results] == [0, Error.INVALID_REQUEST, 0]
    assert list(world.state.cluster.access.rules) == [RULE]
    assert world.replayed().cluster.access == world.state.cluster.access
    delete(world, RuleFilter())
    assert not world.state.cluster.access.rules


def test_a_cluster_has_a_bound_of_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "RULES_MAX", 2)
    world = World()
    some = [msgspec.structs.replace(RULE, name=f"t{number}") for number in range(4)]
    refused = Error.POLICY_VIOLATION
    assert create(world, *some[:3]) == [0, 0, refused]
    assert create(world, some[0], some[3]) == [0, refused]
    monkeypatch.setattr(limits, "RULES_PER_COMMAND_MAX", 1)
    for command in (CreateRules(tuple(some)), DeleteRules((RuleFilter(),))):
        answer = world.run(command)
        assert isinstance(answer, Refused) and answer.error_code == refused
    assert len(world.state.cluster.access.rules) == 2


def test_a_release_without_rules_reads_an_empty_change() -> None:
    """It ignores fields that it does not know, so its log goes on."""
    world = World()
    create(world, RULE)
    record = msgspec.json.decode(world.log[-1])
    assert record.pop("access") and record["kind"] == "configs_changed"
    assert (record["scope"], record["name"], record["values"]) == ("cluster", "", {})
    decode_record(msgspec.json.encode(record))
