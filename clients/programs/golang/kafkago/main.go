// The program of kafka-go.
package main

import (
	"context"
	"fmt"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"clients/lines"

	"github.com/segmentio/kafka-go"
)

var codecs = map[string]kafka.Compression{
	"gzip": kafka.Gzip, "snappy": kafka.Snappy, "lz4": kafka.Lz4, "zstd": kafka.Zstd,
}

func admin(servers []string, topic string) {
	ctx := context.Background()
	client := &kafka.Client{Addr: kafka.TCP(servers...)}
	created, err := client.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{
		{Topic: topic, NumPartitions: lines.Partitions, ReplicationFactor: lines.Replicas},
		{Topic: topic + "-gone", NumPartitions: lines.Partitions, ReplicationFactor: lines.Replicas},
	}})
	lines.Must(err)
	for _, err := range created.Errors {
		lines.Must(err)
	}
	altered, err := client.IncrementalAlterConfigs(ctx, &kafka.IncrementalAlterConfigsRequest{
		Resources: []kafka.IncrementalAlterConfigsRequestResource{{
			ResourceType: kafka.ResourceTypeTopic, ResourceName: topic,
			Configs: []kafka.IncrementalAlterConfigsRequestConfig{{
				Name: "retention.ms", Value: lines.RetentionMs, ConfigOperation: kafka.ConfigOperationSet,
			}},
		}},
	})
	lines.Must(err)
	lines.Must(altered.Resources[0].Error)
	retention := ""
	for retention != lines.RetentionMs { // a broker may hear of the change a moment later
		described, err := client.DescribeConfigs(ctx, &kafka.DescribeConfigsRequest{
			Resources: []kafka.DescribeConfigRequestResource{{
				ResourceType: kafka.ResourceTypeTopic, ResourceName: topic, ConfigNames: []string{"retention.ms"},
			}},
		})
		lines.Must(err)
		lines.Must(described.Resources[0].Error)
		retention = described.Resources[0].ConfigEntries[0].ConfigValue
	}
	found, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{topic}})
	lines.Must(err)
	fmt.Printf("partitions\t%d\nretention.ms\t%s\n", len(found.Topics[0].Partitions), retention)
	deleted, err := client.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{topic + "-gone"}})
	lines.Must(err)
	lines.Must(deleted.Errors[topic+"-gone"])
}

func produce(servers []string, topic string, count int, kinds []string) {
	for _, kind := range kinds {
		writer := &kafka.Writer{
			Addr: kafka.TCP(servers...), Topic: topic + "-" + kind, Balancer: &kafka.Hash{},
			Compression: codecs[kind], RequiredAcks: kafka.RequireAll, BatchTimeout: 20 * time.Millisecond,
		}
		messages := make([]kafka.Message, 0, count)
		for n := 0; n < count; n++ {
			key, value, headers := lines.Record(n)
			message := kafka.Message{Key: key, Value: value}
			for _, header := range headers {
				message.Headers = append(message.Headers, kafka.Header{Key: header.Name, Value: header.Value})
			}
			messages = append(messages, message)
		}
		lines.Must(writer.WriteMessages(context.Background(), messages...))
		lines.Must(writer.Close())
	}
}

func show(message kafka.Message) {
	headers := make([]lines.Header, 0, len(message.Headers))
	for _, header := range message.Headers {
		headers = append(headers, lines.Header{Name: header.Key, Value: header.Value})
	}
	lines.Show(int32(message.Partition), message.Offset, message.Key, message.Value, headers)
}

func consume(servers []string, topic string, count int) {
	ctx, stop := context.WithCancel(context.Background())
	messages := make(chan kafka.Message)
	var readers sync.WaitGroup
	for number := 0; number < lines.Partitions; number++ {
		reader := kafka.NewReader(kafka.ReaderConfig{
			Brokers: servers, Topic: topic, Partition: number, MaxWait: 200 * time.Millisecond,
		})
		readers.Add(1)
		go func() {
			defer readers.Done()
			defer reader.Close()
			for {
				message, err := reader.ReadMessage(ctx)
				if ctx.Err() != nil {
					return
				}
				lines.Must(err)
				select {
				case messages <- message:
				case <-ctx.Done():
					return
				}
			}
		}()
	}
	for ; count > 0; count-- {
		show(<-messages)
	}
	stop()
	readers.Wait()
}

func member(servers []string, topic, group string) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers: servers, Topic: topic, GroupID: group, StartOffset: kafka.FirstOffset,
		MaxWait: 200 * time.Millisecond, HeartbeatInterval: 500 * time.Millisecond,
	})
	for {
		message, err := reader.FetchMessage(ctx)
		if ctx.Err() != nil {
			break
		}
		lines.Must(err)
		show(message)
		lines.Must(reader.CommitMessages(context.Background(), message))
	}
	lines.Must(reader.Close())
}

func main() {
	lines.Main(lines.Steps{Admin: admin, Produce: produce, Consume: consume, Member: member})
}
