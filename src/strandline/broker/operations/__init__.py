"""What a broker does for the cluster beside serving requests.

Map:    balancing.py            runs the balancer's rounds on the active controller
        outages.py              watches zones and regions on the active controller
        broker_last_seen.py     how long each broker has been silent
        copy_budget.py          the rate that all copies of the cluster share
        labelling.py            this broker's own labels
        broker_registration.py  registers this broker with the controller
        remembered_addresses.py the controller's voters, from this broker's own log
        leaving.py              tells the other brokers that this one stops
        maintenance_loop.py     periodic work on every log
        compaction_loop.py      looks for logs to compact
        log_levels.py           levels of this broker's loggers
        digesting.py            runs digests of logs beside the event loop, a few at a time
        isolation.py            cuts the broker off during a drill
        reporting.py            questions that the controller asks every broker
        certificate_watch.py    reads certificates again, warns before they end
        log_budget.py           how many lines of the log clients can cause
        ticker.py               repeats a task at an interval
        single_flight.py        runs at most one background task at a time
"""
