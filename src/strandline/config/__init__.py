"""Every key that can be set, what it may be and what it means: tables that code and pages read.

Map:    keys.py (what a key is, how its value is read and checked), broker.py (the broker's file),
        broker_life.py (what is wanted of a single broker while the cluster runs),
        topic.py (topics, with Kafka's names), cluster.py (the whole cluster, with Kafka's names),
        addresses.py (host:port, seeds, links), client_networks.py (where clients are, by their
        addresses), outage_marks.py (when which zone or region is down), load.py (file and
        environment -> BrokerConfig), relations.py (what must hold between keys), effective.py
        (which value is in force and where it comes from), reference.py (the generated pages).
Source: STYLE, "Configuration"; design section 3."""
