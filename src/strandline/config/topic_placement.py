"""The keys of a topic that say where its replicas and leaders are, and who promotes observers.

Why:    Kafka has none of them; its tools set them like any other key.
Owns:   nothing.
Source: design section 7; decisions 0008, 0025 and 0033."""

from dataclasses import dataclass

from strandline.config.keys import key


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPlacement:
    """The part of a topic's configuration that is about places."""

    confluent_placement_constraints: str = key(
        "",
        "A placement policy (see `placement.policy`) in Confluent's JSON, versions 1 and 2, "
        "with `replicas` and `observers`; `rack` is the label `region`. With observers, "
        "`observerPromotionPolicy` says when they are promoted in place of lost voters "
        "(`voters.shrink.enable`). A change moves replicas. An empty value also overrides the "
        "cluster's default; a topic that is created with a replication factor has an empty "
        "value.",
        own=True,
        cluster_name="confluent.log.placement.constraints",
        reloadable=True,
        example='{"version":2,"replicas":[{"count":3,"constraints":{"rack":"east"}}],'
        '"observers":[{"count":1,"constraints":{"rack":"west"}}]}',
    )
    fetch_from_nearest_enable: bool = key(
        True,
        "Whether leaders redirect consumers that set `client.rack` to a nearer replica.",
        own=True,
        cluster_name="default.fetch.from.nearest.enable",
        reloadable=True,
    )
    observer_demotion_delay_ms: int = key(
        10_000,
        "With `voters.shrink.enable`: how long the promotion policy must not have needed a "
        "promoted observer before it is demoted.",
        own=True,
        unit="ms",
        minimum=0,
        cluster_name="observer.demotion.delay.ms",
        reloadable=True,
    )
    observer_promotion_lag_max_ms: int = key(
        2_000,
        "With `voters.shrink.enable`: an observer that has lagged for longer than this is not "
        "promoted.",
        own=True,
        unit="ms",
        minimum=0,
        cluster_name="observer.promotion.lag.max.ms",
        reloadable=True,
    )
    observer_promotion_lag_max_records: int = key(
        10_000,
        "With `voters.shrink.enable`: an observer that lags by more records than this is not "
        "promoted, because writes would wait until it has them.",
        own=True,
        unit="records",
        minimum=0,
        cluster_name="observer.promotion.lag.max.records",
        reloadable=True,
    )
    observer_promotion_ready_ms: int = key(
        500,
        "With `voters.shrink.enable`: how long an observer must have kept up before it is "
        "promoted.",
        own=True,
        unit="ms",
        minimum=0,
        cluster_name="observer.promotion.ready.ms",
        reloadable=True,
    )
    placement_policy: str = key(
        "",
        "Which failures the topic must survive and where its replicas and data may be, as JSON "
        "or YAML. A change moves replicas. See docs/operating/placement.md.",
        own=True,
        cluster_name="strandline.placement.policy",
        reloadable=True,
        example='{"survive":["region"]}',
    )
    redpanda_leaders_preference: str = key(
        "",
        "Where leaders should be, in Redpanda's form: `none`, `racks:a,b` or "
        "`ordered_racks:a,b`; a rack is the label `region`. It applies if the placement policy "
        "does not say where leaders should be.",
        own=True,
        cluster_name="default_leaders_preference",
        reloadable=True,
        example="ordered_racks:east,west",
    )
    voters_shrink_enable: bool = key(
        False,
        "Whether voters that are lost or far behind leave the voters until they are back, as "
        "Kafka's in-sync replicas do; observers are promoted in their place if the placement "
        "policy has a promotion. If neither this key nor the cluster's default is set, it is "
        "true for topics whose policy has a promotion, and false for all others.",
        own=True,
        cluster_name="default.voters.shrink.enable",
        reloadable=True,
    )
