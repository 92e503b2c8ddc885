"""What is told of each class of loss, and shown on the page; that it is so,
`tests/broker/test_remedies.py` does.

Source: decision 0026."""

from pathlib import Path

import pytest
from tests.placement.test_outcomes import HALVES, THREE, one_of
from tests.placement.test_survival import placed

from strandline.cli.live_cluster import LiveTopic
from strandline.cli.losses import tell, tell_losses
from strandline.model.ids import BrokerId
from strandline.placement.explain.outcomes import Rules, outcomes
from strandline.placement.explain.topics import PartitionState
from strandline.placement.policy.document import Policy, Promotion
from strandline.placement.solver.request import Request


def told(paths: tuple[str, ...], observers: tuple[str, ...], promotion: Promotion) -> str:
    """How the loss of a region goes, where three have to acknowledge and voters may leave."""
    placement = placed(*paths, observers=observers, min_insync_replicas=3)
    rules = Rules(min_insync_replicas=3, shrinks=True, promotion=promotion)
    request = Request(policy=Policy(), min_insync_replicas=3)
    topic = LiveTopic("orders", "", request, (), {}, shrinks=True)
    return tell(topic, one_of(outcomes([(placement, (0,))], rules), "1 region"))


LOWER = "acks=all is refused until: strandline topic alter orders -c min.insync.replicas=2"


@pytest.mark.parametrize(
    ("paths", "begin"),
    [
        (THREE, "the 2 of 3 voters that are left do with each other; "),
        (
            HALVES,
            "the controller seats a leader among the 2 of 4 voters that are left; ",
        ),
    ],
)
def test_what_an_observer_gives_is_told(paths: tuple[str, ...], begin: str) -> None:
    stands_in = "then 1 observer stands in: acks=all goes on"
    assert told(paths, ("d/1",), "under-min-isr") == begin + stands_in
    assert told(paths, (), "under-min-isr") == begin + LOWER
    assert told(paths, ("d/1",), "leader-is-observer") == begin + LOWER
    assert told(paths, ("a/1",), "under-min-isr") == begin + LOWER, "it is lost with a region"


PAGE = Path(__file__).parents[2] / "docs/operating/outages.md"


def test_the_table_on_the_page_is_what_is_told_of_such_a_topic(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Two replicas in each of two regions; a line may end before the command that it names."""
    request = Request(policy=Policy(), min_insync_replicas=1)
    partition = PartitionState(0, tuple(map(BrokerId, range(1, 5))), BrokerId(1))
    topic = LiveTopic("orders", "", request, (partition,), {}, shrinks=False)
    tell_losses(topic, outcomes([(placed(*HALVES), (0,))], Rules(1)))
    told = capsys.readouterr().out.splitlines()[1:]
    section = PAGE.read_text().partition("## Who acts after which loss\n")[2]
    shown = section.partition("```text\n")[2].partition("\n```")[0].splitlines()
    assert len(shown) == 4
    for line in shown:
        begin = line.removesuffix("...").split()
        assert any(one.split()[: len(begin)] == begin for one in told), (line, told)
