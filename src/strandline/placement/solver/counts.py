"""How many voters `survive` needs: 2f + 1 for f losses, and more if the cluster requires it.

How:    So many losses at once take at least so many voters, and N - W may be lost. Beyond the least
        N, only numbers that may lose more are worth a try: the odd ones, or with a large
        min.insync.replicas each.
Source: design section 7; decision 0008."""

from collections.abc import Iterator

from strandline.placement.policy.document import VOTERS_MAX, goal_levels
from strandline.placement.solver.request import Request
from strandline.placement.survival.replicas import Quorum


def voter_counts(request: Request) -> Iterator[int]:
    """The numbers of voters to try, ascending: one where it is given; none above VOTERS_MAX."""
    policy = request.policy
    counts = [rule.count for rule in policy.voter_rules()]
    given = sum(count or 0 for count in counts)
    if None not in counts:
        yield given
        return
    if not policy.survive:
        yield max(request.default_voters, given + 1)
        return
    losses = max(sum(goal_levels(goal).values()) for goal in policy.survive)
    tolerated = losses - 1
    for voters in range(1, VOTERS_MAX + 1):
        loss_max = Quorum.of(voters, request.min_insync_replicas).stops_at - 1
        if loss_max > tolerated and voters > given:
            tolerated = loss_max
            yield voters
