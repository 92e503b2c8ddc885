// The program of sarama.
package main

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"syscall"
	"time"

	"clients/lines"

	"github.com/IBM/sarama"
)

var codecs = map[string]sarama.CompressionCodec{
	"none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP, "snappy": sarama.CompressionSnappy,
	"lz4": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD,
}

func config() *sarama.Config {
	made := sarama.NewConfig()
	made.Version = sarama.V4_0_0_0
	made.Producer.RequiredAcks = sarama.WaitForAll
	made.Producer.Return.Successes = true
	made.Consumer.Offsets.Initial = sarama.OffsetOldest
	made.Consumer.Group.Heartbeat.Interval = 500 * time.Millisecond
	return made
}

func admin(servers []string, topic string) {
	client, err := sarama.NewClusterAdmin(servers, config())
	lines.Must(err)
	defer client.Close()
	detail := &sarama.TopicDetail{NumPartitions: lines.Partitions, ReplicationFactor: lines.Replicas}
	for _, name := range []string{topic, topic + "-gone"} {
		lines.Must(client.CreateTopic(name, detail, false))
	}
	value := lines.RetentionMs
	lines.Must(client.IncrementalAlterConfig(sarama.TopicResource, topic,
		map[string]sarama.IncrementalAlterConfigsEntry{
			"retention.ms": {Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &value},
		}, false))
	retention := ""
	for retention != lines.RetentionMs { // a broker may hear of the change a moment later
		described, err := client.DescribeConfig(sarama.ConfigResource{
			Type: sarama.TopicResource, Name: topic, ConfigNames: []string{"retention.ms"},
		})
		lines.Must(err)
		retention = described[0].Value
	}
	topics, err := client.DescribeTopics([]string{topic})
	lines.Must(err)
	fmt.Printf("partitions\t%d\nretention.ms\t%s\n", len(topics[0].Partitions), retention)
	lines.Must(client.DeleteTopic(topic + "-gone"))
}

func produce(servers []string, topic string, count int, kinds []string) {
	for _, kind := range kinds {
		made := config()
		made.Net.MaxOpenRequests = 1
		if kind == lines.Idempotent {
			made.Producer.Idempotent = true
		} else {
			made.Producer.Compression = codecs[kind]
		}
		producer, err := sarama.NewSyncProducer(servers, made)
		lines.Must(err)
		messages := make([]*sarama.ProducerMessage, 0, count)
		for n := 0; n < count; n++ {
			key, value, headers := lines.Record(n)
			message := &sarama.ProducerMessage{Topic: topic + "-" + kind, Key: sarama.ByteEncoder(key)}
			if value != nil {
				message.Value = sarama.ByteEncoder(value)
			}
			for _, header := range headers {
				message.Headers = append(message.Headers,
					sarama.RecordHeader{Key: []byte(header.Name), Value: header.Value})
			}
			messages = append(messages, message)
		}
		lines.Must(producer.SendMessages(messages))
		lines.Must(producer.Close())
	}
}

func show(message *sarama.ConsumerMessage) {
	headers := make([]lines.Header, 0, len(message.Headers))
	for _, header := range message.Headers {
		headers = append(headers, lines.Header{Name: string(header.Key), Value: header.Value})
	}
	lines.Show(message.Partition, message.Offset, message.Key, message.Value, headers)
}

func consume(servers []string, topic string, count int) {
	consumer, err := sarama.NewConsumer(servers, config())
	lines.Must(err)
	messages := make(chan *sarama.ConsumerMessage)
	for number := int32(0); number < lines.Partitions; number++ {
		partition, err := consumer.ConsumePartition(topic, number, sarama.OffsetOldest)
		lines.Must(err)
		go func() {
			for message := range partition.Messages() {
				messages <- message
			}
		}()
	}
	for ; count > 0; count-- {
		show(<-messages)
	}
}

type handler struct{}

func (handler) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (handler) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (handler) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message, isOpen := <-claim.Messages():
			if !isOpen {
				return nil
			}
			show(message)
			session.MarkMessage(message, "")
			session.Commit()
		case <-session.Context().Done():
			return nil
		}
	}
}

func member(servers []string, topic, group string) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	made := config()
	made.Consumer.Offsets.AutoCommit.Enable = false
	consumer, err := sarama.NewConsumerGroup(servers, group, made)
	lines.Must(err)
	for ctx.Err() == nil {
		if err := consumer.Consume(ctx, []string{topic}, handler{}); err != nil && !errors.Is(err, context.Canceled) {
			lines.Must(err)
		}
	}
	lines.Must(consumer.Close())
}

func main() {
	lines.Main(lines.Steps{Admin: admin, Produce: produce, Consume: consume, Member: member})
}
