"""One file per command group; each has an `app` or functions that main.py registers.

Map:    serve.py, dev.py, topic.py, topic_explain.py, broker.py, broker_label.py,
        broker_ok_to_stop.py, broker_removal.py, cluster.py, cluster_status.py, cluster_alter.py,
        cluster_balance.py, cluster_upgrade.py, partition.py, partition_survivors.py,
        partition_declare_lost.py,
        partition_declare_many.py, partition_from_buckets.py, replica.py, produce.py, consume.py,
        group.py, log.py, policy.py,
        policy_topic.py, config.py, drill.py, drill_cancel.py, zone.py, tiered.py, restore.py,
        user.py, acl.py, http_token.py, quota.py, version.py,
        doctor.py, doctor_settings.py,
        broker_dry_run.py, topic_dry_run.py."""
