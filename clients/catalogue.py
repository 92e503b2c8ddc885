"""Every client, in the order of the table."""

from clients.client import Client
from clients.connect import CONNECT
from clients.golang import FRANZ_GO, KAFKA_GO, SARAMA
from clients.jvm import JAVA
from clients.kcat import KCAT
from clients.node import KAFKAJS, PLATFORMATIC
from clients.python import AIOKAFKA, CONFLUENT_KAFKA, KAFKA_PYTHON
from clients.rust import RDKAFKA
from clients.streams import STREAMS

CLIENTS: tuple[Client, ...] = (
    CONFLUENT_KAFKA,
    KAFKA_PYTHON,
    AIOKAFKA,
    JAVA,
    KCAT,
    STREAMS,
    CONNECT,
    KAFKAJS,
    PLATFORMATIC,
    FRANZ_GO,
    KAFKA_GO,
    SARAMA,
    RDKAFKA,
)
