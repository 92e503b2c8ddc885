"""Metrics, JSON API and console of a broker, over HTTP.

Map:    metric_table.py (every metric: the one table), metric.py (what one is), tiered_metrics.py
        (metrics of uploads), remote_reads.py (metrics of reading from buckets),
        read_replica_metrics.py (metrics of read replicas and exports), happenings.py (counts
        events), partitions.py (metrics of the partitions led here), figures.py (all other
        metrics), exposition.py (the text of a scrape), facts.py (brokers, topics and outages),
        api.py (these as JSON), console/ (these as pages), last_page.py (one page at a time),
        pace.py (long work in slices), http_server.py (the server), http_access.py
        (which client may see what), http_credentials.py (what a request shows of its client),
        endpoint.py (composes these for a broker), machine_metrics.py (merges the metrics of a
        machine's brokers), metrics_page.py (the reference page).
Source: design section 3; decisions 0023 and 0036."""
