import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** The program of the Java client. */
public final class JavaClient {
    static final int PARTITIONS = 4;
    static final short REPLICAS = 3;
    private static final String RETENTION_MS = "7200000";

    public static void main(String[] told) throws Exception {
        String[] rest = Arrays.copyOfRange(told, 3, told.length);
        switch (told[0]) {
            case "admin" -> admin(told[1], told[2]);
            case "produce" -> produce(told[1], told[2], rest);
            case "consume" -> consume(told[1], told[2], Integer.parseInt(rest[0]));
            case "session" -> session(told[1], told[2], Integer.parseInt(rest[0]));
            case "member" -> member(told[1], told[2], rest[0]);
            case "writer" -> JavaAccess.writer(told[1], told[2]);
            case "survey" -> JavaAccess.survey(told[1], told[2], rest[0]);
            case "govern" -> JavaGoverning.govern(told[1], told[2]);
            case "attempt" -> JavaAccess.attempt(told[1], told[2], rest[0]);
            default -> throw new IllegalArgumentException("no step " + told[0]);
        }
    }

    private static void admin(String bootstrap, String topic) throws Exception {
        try (Admin client = Admin.create(Settings.of(bootstrap))) {
            client.createTopics(List.of(
                new NewTopic(topic, PARTITIONS, REPLICAS),
                new NewTopic(topic + "-gone", PARTITIONS, REPLICAS))).all().get();
            var resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
            var entry = new ConfigEntry("retention.ms", RETENTION_MS);
            client.incrementalAlterConfigs(Map.of(
                resource, List.of(new AlterConfigOp(entry, AlterConfigOp.OpType.SET)))).all().get();
            String retention = "";
            while (!retention.equals(RETENTION_MS)) { // a broker may hear of the change a moment later
                var described = client.describeConfigs(List.of(resource)).all().get();
                retention = described.get(resource).get("retention.ms").value();
            }
            var topics = client.describeTopics(List.of(topic)).allTopicNames().get();
            System.out.println("partitions\t" + topics.get(topic).partitions().size());
            System.out.println("retention.ms\t" + retention);
            client.deleteTopics(List.of(topic + "-gone")).all().get();
        }
    }

    private static void produce(String bootstrap, String topic, String[] rest) throws Exception {
        int count = Integer.parseInt(rest[0]);
        for (String kind : Arrays.copyOfRange(rest, 1, rest.length)) {
            boolean isIdempotent = kind.equals("idempotent");
            Map<String, Object> configuration = Settings.of(bootstrap,
                "enable.idempotence", isIdempotent,
                "compression.type", isIdempotent ? "none" : kind);
            try (var producer = new KafkaProducer<>(
                    configuration, new StringSerializer(), new StringSerializer())) {
                List<Future<?>> sent = new ArrayList<>();
                for (int n = 0; n < count; n++) {
                    sent.add(producer.send(record(topic + "-" + kind, n)));
                }
                for (Future<?> future : sent) {
                    future.get();
                }
            }
        }
    }

    static ProducerRecord<String, String> record(String topic, int n) {
        String value = n % 20 == 19 ? null : "value-" + n + "-" + "x".repeat(60);
        var record = new ProducerRecord<>(topic, "key-" + n % 7, value);
        record.headers().add("n", Integer.toString(n).getBytes());
        record.headers().add("empty", new byte[0]);
        return record;
    }

    private static void consume(String bootstrap, String topic, int count) {
        try (var consumer = consumer(bootstrap, topic)) {
            var partitions = IntStream.range(0, PARTITIONS)
                .mapToObj(number -> new TopicPartition(topic, number)).toList();
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            int left = count;
            while (left > 0) {
                left -= show(consumer.poll(Duration.ofMillis(200)));
            }
        }
    }

    /** Reads many partitions, of which one at a time has a new record. The log has the answers. */
    private static void session(String bootstrap, String topic, int count) throws Exception {
        try (Admin client = Admin.create(Settings.of(bootstrap))) {
            client.createTopics(List.of(new NewTopic(topic, count, REPLICAS))).all().get();
        }
        var partitions = IntStream.range(0, count)
            .mapToObj(number -> new TopicPartition(topic, number)).toList();
        Map<String, Object> configuration = Settings.of(bootstrap);
        try (var consumer = consumer(bootstrap, "alone");
             var producer = new KafkaProducer<>(
                configuration, new StringSerializer(), new StringSerializer())) {
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            for (int n = 0; n < count; n++) {
                producer.send(new ProducerRecord<>(topic, n, "key-" + n % 7, "value")).get();
                int left = 1;
                while (left > 0) {
                    left -= show(consumer.poll(Duration.ofMillis(200)));
                }
            }
        }
    }

    private static void member(String bootstrap, String topic, String group) {
        var consumer = consumer(bootstrap, group);
        Thread here = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            consumer.wakeup();
            try {
                here.join();
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
            }
            Runtime.getRuntime().halt(0); // else the JVM ends with the signal's number
        }));
        consumer.subscribe(List.of(topic));
        try {
            while (true) {
                if (show(consumer.poll(Duration.ofMillis(100))) > 0) {
                    consumer.commitSync();
                }
            }
        } catch (WakeupException asked) {
            consumer.close();
        }
    }

    private static KafkaConsumer<String, String> consumer(String bootstrap, String group) {
        Map<String, Object> configuration = Settings.of(bootstrap,
            "group.id", group,
            "enable.auto.commit", false,
            "auto.offset.reset", "earliest",
            "heartbeat.interval.ms", 500);
        return new KafkaConsumer<>(configuration, new StringDeserializer(), new StringDeserializer());
    }

    private static int show(ConsumerRecords<String, String> records) {
        for (ConsumerRecord<String, String> record : records) {
            List<String> pairs = new ArrayList<>();
            for (Header header : record.headers()) {
                pairs.add(header.key() + "=" + new String(header.value()));
            }
            String value = record.value();
            System.out.println(String.join("\t", "record",
                Integer.toString(record.partition()), Long.toString(record.offset()), record.key(),
                Integer.toString(value == null ? -1 : value.length()), value == null ? "" : value,
                String.join(",", pairs)));
        }
        return records.count();
    }
}
