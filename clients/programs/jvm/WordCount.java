import java.time.Duration;
import java.util.Arrays;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.state.KeyValueStore;

/** A count of words at least once: a repartition topic, a state store, its changelog. */
public final class WordCount {
    public static void main(String[] told) throws Exception {
        String bootstrap = told[1], input = told[2], output = told[3], application = told[4];
        var configuration = new Properties();
        configuration.put("bootstrap.servers", bootstrap);
        configuration.put("application.id", application);
        configuration.put("state.dir", told[5]);
        configuration.put("replication.factor", 3);
        configuration.put("commit.interval.ms", 200);
        configuration.put("heartbeat.interval.ms", 500);
        configuration.put("auto.offset.reset", "earliest");
        configuration.put("default.key.serde", Serdes.StringSerde.class);
        configuration.put("default.value.serde", Serdes.StringSerde.class);
        var builder = new StreamsBuilder();
        builder.<String, String>stream(input)
            .flatMapValues(line -> Arrays.asList(line.split(" ")))
            .groupBy((key, word) -> word, Grouped.with(Serdes.String(), Serdes.String()))
            .count(Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("counts"))
            .toStream()
            .mapValues(count -> Long.toString(count))
            .to(output);
        var streams = new KafkaStreams(builder.build(), configuration);
        streams.setUncaughtExceptionHandler(error -> {
            System.err.println(error);
            Runtime.getRuntime().halt(1);
            return null;
        });
        var asked = new CountDownLatch(1);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            boolean isClosed = streams.close(Duration.ofSeconds(20));
            Runtime.getRuntime().halt(isClosed ? 0 : 1);
        }));
        streams.start();
        asked.await();
    }
}
