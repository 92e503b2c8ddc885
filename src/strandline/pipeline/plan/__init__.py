"""What a placement policy is worth: availability, lost records, bytes and money, by simulation.

Why:    "3+2+1 or 2+2+1?" is decided for years, before the first loss; rates and prices are known.
How:    Losses are drawn; the cluster's own code says what follows (`placement`, `controller`).
        Nothing here decides about partitions.

            assumptions + cluster + policies -> Plan -> trials (anywhere) -> rows -> Results

Map:    assumptions.py   rates, traffic and prices: the TOML file
        clusters.py      the cluster: described or running
        alternatives.py  the policies to compare, placed
        domains.py       what can be lost at once
        losses.py        the losses of a year, by seed
        timeline.py      what the controller sees of them: silent, lost and held brokers
        behaviour.py     what a partition does while brokers are absent, asked once
        shapes.py        partitions that behave alike
        repairs.py       where the replicas of lost brokers go
        topic_year.py    a year of a topic under one policy
        stops.py         how long a stop lasts that is too rare to come
        tally.py         what is counted
        traffic.py       bytes between regions and money, computed
        trials.py        a plan as work for any process
        runs.py          trials in processes or on Spark executors
        estimates.py     means with intervals
        results.py       all results as data
        wording.py       results in words
        report.py        plots and the HTML page
Source: decision 0053, docs/pipelines/plan.md."""
