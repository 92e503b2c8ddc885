//! The program of the Rust client `rdkafka`, without an asynchronous runtime.

use std::env;
use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::message::{BorrowedMessage, Header, Headers, Message, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, DefaultProducerContext, Producer};
use rdkafka::{Offset, TopicPartitionList};

type Done = Result<(), Box<dyn Error>>;

const PARTITIONS: i32 = 4;
const TIMEOUT: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(100);

fn produce(bootstrap: &str, topic: &str, count: usize, kinds: &[String]) -> Done {
    for kind in kinds {
        let is_idempotent = kind == "idempotent";
        let producer: BaseProducer<DefaultProducerContext> = ClientConfig::new()
            .set("bootstrap.servers", bootstrap)
            .set("enable.idempotence", is_idempotent.to_string())
            .set("compression.type", if is_idempotent { "none" } else { kind })
            .create()?;
        let to = format!("{topic}-{kind}");
        for n in 0..count {
            let (key, number) = (format!("key-{}", n % 7), n.to_string());
            let value = format!("value-{n}-{}", "x".repeat(60));
            let headers = OwnedHeaders::new()
                .insert(Header { key: "n", value: Some(&number) })
                .insert(Header { key: "empty", value: Some("") });
            let mut record = BaseRecord::to(&to).key(&key).headers(headers);
            if n % 20 != 19 {
                record = record.payload(&value);
            }
            producer.send(record).map_err(|(error, _)| error)?;
            producer.poll(Duration::ZERO);
        }
        producer.flush(TIMEOUT)?;
    }
    Ok(())
}

fn show(message: &BorrowedMessage) -> Result<(), Box<dyn Error>> {
    let mut pairs = Vec::new();
    if let Some(headers) = message.headers() {
        for header in headers.iter() {
            let text = std::str::from_utf8(header.value.unwrap_or_default())?;
            pairs.push(format!("{}={text}", header.key));
        }
    }
    let key = std::str::from_utf8(message.key().unwrap_or_default())?;
    let length = message.payload().map_or(-1, |value| value.len() as i64);
    let value = std::str::from_utf8(message.payload().unwrap_or_default())?;
    let (partition, offset) = (message.partition(), message.offset());
    println!("record\t{partition}\t{offset}\t{key}\t{length}\t{value}\t{}", pairs.join(","));
    Ok(())
}

fn consumer(bootstrap: &str, group: &str) -> Result<BaseConsumer, Box<dyn Error>> {
    Ok(ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        .set("group.id", group)
        .set("enable.auto.commit", "false")
        .set("auto.offset.reset", "earliest")
        .set("heartbeat.interval.ms", "500")
        .create()?)
}

fn consume(bootstrap: &str, topic: &str, count: usize) -> Done {
    let reading = consumer(bootstrap, "alone")?;
    let mut partitions = TopicPartitionList::new();
    for number in 0..PARTITIONS {
        partitions.add_partition_offset(topic, number, Offset::Beginning)?;
    }
    reading.assign(&partitions)?;
    let mut left = count;
    while left > 0 {
        if let Some(message) = reading.poll(POLL) {
            show(&message?)?;
            left -= 1;
        }
    }
    Ok(())
}

fn member(bootstrap: &str, topic: &str, group: &str) -> Done {
    let is_asked = Arc::new(AtomicBool::new(false));
    let asked = is_asked.clone();
    ctrlc::set_handler(move || asked.store(true, Ordering::SeqCst))?;
    let reading = consumer(bootstrap, group)?;
    reading.subscribe(&[topic])?;
    while !is_asked.load(Ordering::SeqCst) {
        if let Some(message) = reading.poll(POLL) {
            let message = message?;
            show(&message)?;
            reading.commit_message(&message, CommitMode::Sync)?;
        }
    }
    Ok(())
}

fn main() -> Done {
    let told: Vec<String> = env::args().collect();
    let (bootstrap, topic, rest) = (&told[2], &told[3], &told[4..]);
    match told[1].as_str() {
        "produce" => produce(bootstrap, topic, rest[0].parse()?, &rest[1..]),
        "consume" => consume(bootstrap, topic, rest[0].parse()?),
        "member" => member(bootstrap, topic, &rest[0]),
        step => Err(format!("no step {step}").into()),
    }
}
