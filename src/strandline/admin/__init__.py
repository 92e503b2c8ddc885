"""What people, consoles and monitors are told of a broker, over HTTP.

Map:    metric_table.py (every metric: the one table), happenings.py (what is counted as it
        happens), partitions.py (the partitions that are led here), figures.py (everything else),
        exposition.py (the text of a scrape), facts.py (what is known of brokers, topics and
        outages), api.py (that as JSON), console/ (that as pages for people), last_page.py (one page
        at a time), pace.py (long work, a slice at a time), http_server.py (a small one),
        endpoint.py (puts these together beside a broker), metrics_page.py (the reference page).
Source: design section 3; decisions 0023 and 0036."""
