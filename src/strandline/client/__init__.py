"""A small blocking Kafka client for the command line and for pipelines.

Map:    wire/            Connections to brokers.
        operations/      One file for each subject that operators ask about.
        buckets/         Buckets that a client reads itself.
        restore/         A lost cluster, out of its buckets.
        cluster.py       Client: finds the controller and partition leaders
        brokers.py       connections to brokers, retries until a deadline
        views.py         a cluster as metadata describes it
        admin.py         topics, groups, offsets
        producer.py      produces records
        consumer.py      consumes records
        group_member.py  a consumer group of one
        partitioner.py   key -> partition, as Kafka does
        client_config.py a client's configuration file: TLS and logins
        tls_files.py     the files of TLS that it names
        access.py        the same on each machine that a client runs on
        command_line.py  --client-config
        rights.py        what a client may not do, named
        errors.py        errors of this client
Why:    blocking, because the command line does one thing at a time and must start at once; requests
        to many brokers still run in parallel.
Source: Design section 3.
"""
