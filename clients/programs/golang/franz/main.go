// The program of franz-go.
package main

import (
	"context"
	"fmt"
	"os/signal"
	"syscall"
	"time"

	"clients/lines"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

var codecs = map[string]kgo.CompressionCodec{
	"none":   kgo.NoCompression(),
	"gzip":   kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(),
	"lz4":    kgo.Lz4Compression(),
	"zstd":   kgo.ZstdCompression(),
}

func client(servers []string, options ...kgo.Opt) *kgo.Client {
	options = append(options, access()...)
	made, err := kgo.NewClient(append(options, kgo.SeedBrokers(servers...))...)
	lines.Must(err)
	return made
}

func access() []kgo.Opt {
	told := lines.Access()
	if len(told) == 0 {
		return nil
	}
	options := []kgo.Opt{kgo.DialTLSConfig(lines.TLS(told))}
	login := scram.Auth{User: told["user"], Pass: told["password"]}
	switch told["mechanism"] {
	case "SCRAM-SHA-256":
		options = append(options, kgo.SASL(login.AsSha256Mechanism()))
	case "SCRAM-SHA-512":
		options = append(options, kgo.SASL(login.AsSha512Mechanism()))
	case "OAUTHBEARER":
		options = append(options, kgo.SASL(oauth.Oauth(func(context.Context) (oauth.Auth, error) {
			token, err := lines.Token(told)
			return oauth.Auth{Token: token}, err
		})))
	}
	return options
}

func admin(servers []string, topic string) {
	ctx := context.Background()
	adm := kadm.NewClient(client(servers))
	defer adm.Close()
	for _, name := range []string{topic, topic + "-gone"} {
		_, err := adm.CreateTopic(ctx, lines.Partitions, lines.Replicas, nil, name)
		lines.Must(err)
	}
	value := lines.RetentionMs
	altered, err := adm.AlterTopicConfigs(ctx, []kadm.AlterConfig{
		{Op: kadm.SetConfig, Name: "retention.ms", Value: &value},
	}, topic)
	lines.Must(err)
	for _, one := range altered {
		lines.Must(one.Err)
	}
	retention := ""
	for retention != lines.RetentionMs { // a broker may hear of the change a moment later
		described, err := adm.DescribeTopicConfigs(ctx, topic)
		lines.Must(err)
		for _, config := range described[0].Configs {
			if config.Key == "retention.ms" {
				retention = config.MaybeValue()
			}
		}
	}
	topics, err := adm.ListTopics(ctx, topic)
	lines.Must(err)
	fmt.Printf("partitions\t%d\nretention.ms\t%s\n", len(topics[topic].Partitions), retention)
	_, err = adm.DeleteTopic(ctx, topic+"-gone")
	lines.Must(err)
}

func produce(servers []string, topic string, count int, kinds []string) {
	ctx := context.Background()
	for _, kind := range kinds {
		options := []kgo.Opt{kgo.DefaultProduceTopic(topic + "-" + kind)}
		if kind != lines.Idempotent {
			options = append(options, kgo.DisableIdempotentWrite(),
				kgo.MaxProduceRequestsInflightPerBroker(1), kgo.ProducerBatchCompression(codecs[kind]))
		}
		cl := client(servers, options...)
		records := make([]*kgo.Record, 0, count)
		for n := 0; n < count; n++ {
			key, value, headers := lines.Record(n)
			record := &kgo.Record{Key: key, Value: value}
			for _, header := range headers {
				record.Headers = append(record.Headers, kgo.RecordHeader{Key: header.Name, Value: header.Value})
			}
			records = append(records, record)
		}
		lines.Must(cl.ProduceSync(ctx, records...).FirstErr())
		cl.Close()
	}
}

func show(record *kgo.Record) {
	headers := make([]lines.Header, 0, len(record.Headers))
	for _, header := range record.Headers {
		headers = append(headers, lines.Header{Name: header.Key, Value: header.Value})
	}
	lines.Show(record.Partition, record.Offset, record.Key, record.Value, headers)
}

func consume(servers []string, topic string, count int) {
	partitions := map[int32]kgo.Offset{}
	for number := int32(0); number < lines.Partitions; number++ {
		partitions[number] = kgo.NewOffset().AtStart()
	}
	cl := client(servers, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: partitions}))
	defer cl.Close()
	for count > 0 {
		fetches := cl.PollFetches(context.Background())
		lines.Must(fetches.Err())
		fetches.EachRecord(show)
		count -= fetches.NumRecords()
	}
}

func member(servers []string, topic, group string) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	cl := client(servers, kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(),
		kgo.HeartbeatInterval(500*time.Millisecond))
	for ctx.Err() == nil {
		fetches := cl.PollFetches(ctx)
		if ctx.Err() == nil {
			lines.Must(fetches.Err())
		}
		if fetches.NumRecords() > 0 {
			fetches.EachRecord(show)
			lines.Must(cl.CommitUncommittedOffsets(context.Background()))
		}
	}
	cl.Close()
}

func main() {
	lines.Main(lines.Steps{
		Admin: admin, Produce: produce, Consume: consume, Member: member,
		Writer: writer, Survey: survey, Govern: govern, Attempt: attempt,
	})
}
