import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** The steps of the Java client where brokers ask for a proof. */
final class JavaAccess {
    private JavaAccess() {
    }

    /** Writes idempotently until it is asked to stop; prints each record that was acknowledged. */
    static void writer(String bootstrap, String topic) throws Exception {
        var isAsked = new AtomicBoolean();
        Thread here = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            isAsked.set(true);
            try {
                here.join();
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
            }
            Runtime.getRuntime().halt(0); // else the JVM ends with the signal's number
        }));
        try (var producer = producer(bootstrap)) {
            for (int n = 0; !isAsked.get(); n++) {
                producer.send(JavaClient.record(topic, n)).get();
                System.out.println("acked\t" + n);
            }
        } catch (Exception error) {
            System.err.println(error);
            Runtime.getRuntime().halt(1);
        }
    }

    /** Prints the log's ends, the groups that are seen, and what a group has committed. */
    static void survey(String bootstrap, String topic, String group) throws Exception {
        try (Admin client = Admin.create(Settings.of(bootstrap))) {
            var wanted = IntStream.range(0, JavaClient.PARTITIONS).boxed().collect(
                Collectors.toMap(n -> new TopicPartition(topic, n), n -> OffsetSpec.latest()));
            client.listOffsets(wanted).all().get().forEach((at, found) ->
                System.out.println("end\t" + at.partition() + "\t" + found.offset()));
            client.listGroups().all().get().forEach(found ->
                System.out.println("group\t" + found.groupId()));
            client.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get()
                .forEach((at, found) ->
                    System.out.println("committed\t" + at.partition() + "\t" + found.offset()));
        }
    }

    /** Tries one thing; prints `done`, or `refused` with the class of the error. */
    static void attempt(String bootstrap, String name, String what) throws Exception {
        try {
            switch (what) {
                case "write" -> write(bootstrap, name);
                case "read" -> subscribe(bootstrap, name, "allowed-" + name);
                case "join" -> subscribe(bootstrap, "allowed-seen", name);
                case "create" -> ask(bootstrap, client -> client.createTopics(List.of(
                    new NewTopic(name, JavaClient.PARTITIONS, JavaClient.REPLICAS))).all());
                case "delete" -> ask(bootstrap, client -> client.deleteTopics(List.of(name)).all());
                case "operate" -> ask(bootstrap,
                    client -> client.describeAcls(AclBindingFilter.ANY).values());
                case "login" -> ask(bootstrap,
                    client -> client.describeTopics(List.of(name)).allTopicNames());
                default -> throw new IllegalArgumentException("no attempt " + what);
            }
        } catch (ExecutionException | KafkaException error) {
            Throwable cause = error instanceof ExecutionException ? error.getCause() : error;
            while (cause.getClass() == KafkaException.class && cause.getCause() != null) {
                cause = cause.getCause();
            }
            System.out.println("refused\t" + cause.getClass().getSimpleName());
            return;
        }
        System.out.println("done");
    }

    private static void write(String bootstrap, String topic) throws Exception {
        try (var producer = producer(bootstrap)) {
            producer.send(new ProducerRecord<>(topic, "x")).get();
        }
    }

    private static void subscribe(String bootstrap, String topic, String group) {
        Map<String, Object> configuration = Settings.of(
            bootstrap, "group.id", group, "auto.offset.reset", "earliest");
        try (var consumer = new KafkaConsumer<>(
                configuration, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(topic));
            while (consumer.poll(Duration.ofMillis(200)).isEmpty()) {
                Thread.onSpinWait();
            }
        }
    }

    private static void ask(
            String bootstrap, Function<Admin, org.apache.kafka.common.KafkaFuture<?>> question)
            throws Exception {
        try (Admin client = Admin.create(Settings.of(bootstrap))) {
            question.apply(client).get();
        }
    }

    private static KafkaProducer<String, String> producer(String bootstrap) {
        return new KafkaProducer<>(Settings.of(bootstrap, "enable.idempotence", true),
            new StringSerializer(), new StringSerializer());
    }
}
