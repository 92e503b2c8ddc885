"""Topics without a policy whose preferred leaders pile up on one broker, as notes.

Source: decision 0012; `placement.explain.piles`."""

from strandline.base.errors import StrandlineError
from strandline.client.cluster import Client
from strandline.client.operations.configs import describe_configs
from strandline.controller.placing.policies import TOPIC_POLICY_KEYS
from strandline.model.ids import BrokerId
from strandline.placement.explain.piles import Pile, pile_of

PARTITIONS_MIN = 3


def notes_on_piles(client: Client) -> list[str]:
    """A line for each topic. Empty if the cluster does not answer."""
    try:
        topics = client.metadata(None).topics
        piles: dict[str, tuple[Pile, int]] = {}
        for name, one in sorted(topics.items()):
            replicas = [tuple(map(BrokerId, each.replicas)) for each in one.partitions]
            pile = pile_of(replicas) if len(replicas) >= PARTITIONS_MIN else None
            if pile is not None and not one.is_internal:
                piles[name] = pile, len(replicas)
        configs = describe_configs(client, list(piles), TOPIC_POLICY_KEYS) if piles else {}
    except StrandlineError:
        return []
    return [
        f"topic {name}: broker {pile.broker} is the preferred leader of {pile.led} of {count} "
        "partitions, and without a policy their order stays; to even them out: "
        f"strandline topic alter {name} -c placement.policy={{}}"
        for name, (pile, count) in piles.items()
        if not any(one.value for one in configs[name] if one.name in TOPIC_POLICY_KEYS)
    ]
