"""Every configuration key, its bounds and its meaning, as tables that code and pages read.

Map:    keys.py             what a key is, how its value is read and checked
        broker.py           the broker's file
        listener_section.py the broker's file: listeners for Kafka clients
        other_ports.py      the broker's file: ports for brokers and for monitoring
        tls_keys.py         keys for files of TLS that several ports have
        security_section.py the broker's file: what may be open
        tiered_section.py   the broker's file: object stores
        access_section.py   the broker's file: what clients may do
        oauthbearer_section.py  the broker's file: the tokens that clients log in with
        cores_section.py    the broker's file: several brokers on one machine
        cores.py            the brokers of one machine, from one file
        broker_life.py      keys set on a single broker at run time
        kafka/              Kafka's other broker keys
        topic.py            topics, with Kafka's names
        topic_placement.py  topics: where replicas and leaders are
        topic_tiering.py    topics: what goes to object stores
        topic_read_replica.py  topics that another cluster's bucket serves
        stored_topic_keys.py  topic keys of Kafka's that change nothing here
        cluster.py          the whole cluster, with Kafka's names
        addresses.py        host:port, seeds, links
        webhook_hosts.py    hosts that alarms may be posted to
        bucket_urls.py      URLs of buckets
        client_networks.py  regions of clients by their addresses
        outage_marks.py     when a zone or region is down
        load.py             file and environment -> BrokerConfig
        relations.py        rules between keys
        shared_keys.py      keys of the broker's file that are the same on all brokers
        access_rules.py     relations between the keys about a broker's ports
        principal_rules.py  names in certificates -> principals
        effective.py        the value in force and its source
        reference.py        generates the reference pages
Source: STYLE, "Configuration"; design section 3."""
