"""What Apache Kafka answers to a client with or without a right: a table, recorded once, and
replayed against Strandline by every test run.

Why:    each API asks for rights in its own way, and what a refusal shows of a name is different
        everywhere. Only Kafka's answers say which way is right.
Map:    subjects.py       the clients, each with its rules
        requests.py       what producers, consumers and groups ask
        admin_requests.py what administrators ask
        summary.py        an answer as one line: names, errors, what is shown
        walk.py           every request by every client; what the cluster holds before
        steps.py          a script: requests in turn, whose whole answers count
        rule_script.py    rules and filters
        user_script.py    passwords of users
        login_script.py   logins: conversations, each on a connection of its own
        scripts.py        the scripts by name
        tables.py         what was recorded, as files
        kafka.py          an Apache Kafka with logins and rules
        record.py         the command that records
        recorded/         what Kafka has answered
Source: Kafka's StandardAuthorizer, KafkaApis and ControllerApis; KIP-11, KIP-430."""
