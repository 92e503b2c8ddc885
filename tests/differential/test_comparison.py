"""Answers as paths, and differences that have a reason."""

from pathlib import Path

from differential.answers import Names, flatten
from differential.cases import CASES
from differential.comparison import PAGE, Difference, Known, compare, judge, read_known

from strandline.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from strandline.protocol.messages.list_groups import ListedGroup, ListGroupsResponse
from strandline.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)


def test_the_order_of_a_list_is_no_difference() -> None:
    one = ListGroupsResponse(groups=[ListedGroup("a", "consumer"), ListedGroup("b", "")])
    other = ListGroupsResponse(groups=[ListedGroup("b", ""), ListedGroup("a", "consumer")])
    assert flatten(one, Names()) == flatten(other, Names())


def test_random_ids_are_numbered_as_they_appear() -> None:
    def answer(leader: str, follower: str) -> JoinGroupResponse:
        members = [JoinGroupResponseMember(leader), JoinGroupResponseMember(follower)]
        return JoinGroupResponse(leader=leader, member_id=follower, members=members)

    one = flatten(answer("x-1", "x-2"), Names())
    assert one == flatten(answer("y-9", "y-8"), Names())
    assert one != flatten(answer("y-9", "y-9"), Names())


def test_addresses_and_texts_count_as_set_or_unset() -> None:
    assert flatten(MetadataResponse(cluster_id="one"), Names()) == flatten(
        MetadataResponse(cluster_id="other"), Names()
    )
    assert flatten(MetadataResponse(cluster_id=None), Names()) != flatten(
        MetadataResponse(cluster_id="other"), Names()
    )


def test_a_difference_is_named_by_its_path() -> None:
    def answer(error: int) -> MetadataResponse:
        partition = MetadataResponsePartition(error_code=error, partition_index=3)
        return MetadataResponse(topics=[MetadataResponseTopic(name="t", partitions=[partition])])

    found = compare(
        "topics.metadata",
        {"v1": flatten(answer(0), Names())},
        {"v1": flatten(answer(5), Names())},
    )
    place = "topics.metadata/v1 topics[t].partitions[3].error_code"
    assert found == [Difference(place, 0, 5)]


def test_an_answer_that_only_one_gives_is_a_difference() -> None:
    found = compare("c", {"only kafka": {"error_code": 0}}, {})
    assert found == [Difference("c/only kafka error_code", 0, "absent")]


def test_a_row_gives_differences_a_reason_and_is_out_of_date_without_one() -> None:
    known = [Known("topics.*/v? error_code", "a"), Known("topics.* error_code", "b")]
    found = [Difference("topics.grow/v1 error_code", 1, 2), Difference("topics.grow/v1 x", 1, 2)]
    unknown, outdated = judge(found, known, is_whole=True)
    assert unknown == found[1:]
    assert outdated == known[:1]
    assert judge(found, known, is_whole=False)[1] == []


def test_a_row_may_say_what_each_answers() -> None:
    known = [Known("topics.*/* error_code => 1, *", "a")]
    found = [Difference("topics.grow/v1 error_code", 1, 2), Difference("topics.grow/v2 x", 1, 2)]
    found += [Difference("topics.grow/v3 error_code", 2, 1)]
    assert judge(found, known, is_whole=True) == (found[1:], [])


def test_elements_of_one_name_and_without_a_name_are_told_apart() -> None:
    one = ListGroupsResponse(groups=[ListedGroup("a", "x"), ListedGroup(""), ListedGroup("a", "y")])
    other = ListGroupsResponse(groups=[ListedGroup("a", "x"), ListedGroup("a"), ListedGroup("")])
    found = compare("c", {"l": flatten(one, Names())}, {"l": flatten(other, Names())})
    assert found == [Difference("c/l groups[a 2].protocol_type", "y", "")]


def test_the_page_has_a_reason_in_each_row_and_a_case_for_each() -> None:
    text = Path(PAGE).read_text()
    rows = read_known(text)
    assert len(rows) == text.count("\n| `")
    for row in rows:
        subject = Known(row.pattern.partition("/")[0], "")
        assert any(subject.matches(Difference(name, 0, 0)) for name in CASES), row.pattern
