"""A matrix of other people's clients and what each does here: `make clients`.

Why:    Kafka's protocol is what its clients make of it. A client works if it does here,
        unchanged but for the address, what its users do all day.
How:    each client has a small program in its own language, a real process against three brokers.
        The driver checks its work with another client: counts, keys, values, headers, order.
Map:    run.py        the command: starts the cluster, checks each client, prints the table
        catalogue.py  every client, in the order of the table
        client.py     a client as the table sees it: its cells, and what it needs on this machine
        cells.py      the cells of clients that have a program, or one course for all cells
        grouping.py   the cell `group`: two members share, one leaves, the next one resumes
        program.py    a client's program as a process: its steps and the lines that it prints
        records.py    the records that are written and read, and how they are judged
        observer.py   the other client that checks: reads, writes, looks at groups and topics
        toolbox.py    what clients need, fetched at first use into `.build/clients`
        table.py      the table, for people and for docs/reference/clients.md
        python.py     confluent-kafka, kafka-python, aiokafka: installed with the tests
        kcat.py       kcat, a shell script around it
        node.py       kafkajs and @platformatic/kafka
        golang.py     franz-go, kafka-go and sarama
        jvm.py        the Java client
        rust.py       rdkafka
        streams.py    Kafka Streams, at least once: a count of words with a state store
        connect.py    Kafka Connect: a file source and a file sink, a broker killed under them
        access/       the second matrix: logins, rules, certificates and tokens
        programs/     the programs, one folder for each language
Source: docs/reference/clients.md has the table of the last run."""
