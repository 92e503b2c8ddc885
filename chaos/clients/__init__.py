"""The client programs, each a process on a host of clients, each with a ledger.

Map:    command_line.py (what they are told, and when they are to end), pace.py (when which record
        is due), topics.py (makes the topics, once all brokers serve); producers
        librdkafka_producer.py, kafka_python_producer.py; members of groups librdkafka_consumer.py,
        aiokafka_consumer.py, with positions.py (how far they are); watcher.py (asks leaders where
        partitions end); voters.py (waits until those vote who should)."""
