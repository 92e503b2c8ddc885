package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"clients/lines"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const timeout = 20 * time.Second

// writer writes idempotently until it is asked to stop; it prints each record that was acknowledged.
func writer(servers []string, topic string) {
	asked, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	cl := client(servers, kgo.DefaultProduceTopic(topic))
	defer cl.Close()
	for n := 0; asked.Err() == nil; n++ {
		key, value, headers := lines.Record(n)
		record := &kgo.Record{Key: key, Value: value}
		for _, header := range headers {
			record.Headers = append(record.Headers, kgo.RecordHeader{Key: header.Name, Value: header.Value})
		}
		lines.Must(cl.ProduceSync(context.Background(), record).FirstErr())
		fmt.Printf("acked\t%d\n", n)
	}
}

// survey prints the log's ends, the groups that are seen, and what a group has committed.
func survey(servers []string, topic, group string) {
	ctx := context.Background()
	adm := kadm.NewClient(client(servers))
	defer adm.Close()
	ends, err := adm.ListEndOffsets(ctx, topic)
	lines.Must(err)
	ends.Each(func(at kadm.ListedOffset) {
		lines.Must(at.Err)
		fmt.Printf("end\t%d\t%d\n", at.Partition, at.Offset)
	})
	groups, err := adm.ListGroups(ctx)
	lines.Must(err)
	for _, name := range groups.Groups() {
		fmt.Printf("group\t%s\n", name)
	}
	committed, err := adm.FetchOffsets(ctx, group)
	lines.Must(err)
	committed.Each(func(at kadm.OffsetResponse) {
		fmt.Printf("committed\t%d\t%d\n", at.Partition, at.At)
	})
}

// attempt tries one thing; it prints `done`, or `refused` with the name of the error.
func attempt(servers []string, name, what string) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	err := try(ctx, servers, name, what)
	var known *kerr.Error
	var foreign *tls.CertificateVerificationError
	switch {
	case err == nil:
		fmt.Println("done")
	case errors.As(err, &known):
		fmt.Printf("refused\t%s\n", known.Message)
	case errors.As(err, &foreign):
		fmt.Printf("refused\t%T\n", foreign)
	default:
		fmt.Printf("refused\t%s\n", strings.ReplaceAll(err.Error(), "\n", " "))
	}
}

func try(ctx context.Context, servers []string, name, what string) error {
	switch what {
	case "write":
		cl := client(servers, kgo.DefaultProduceTopic(name))
		defer cl.Close()
		return cl.ProduceSync(ctx, &kgo.Record{Value: []byte("x")}).FirstErr()
	case "read":
		return subscribe(ctx, servers, name, "allowed-"+name)
	case "join":
		return subscribe(ctx, servers, "allowed-seen", name)
	}
	adm := kadm.NewClient(client(servers))
	defer adm.Close()
	switch what {
	case "create":
		_, err := adm.CreateTopic(ctx, lines.Partitions, lines.Replicas, nil, name)
		return err
	case "delete":
		_, err := adm.DeleteTopic(ctx, name)
		return err
	case "operate":
		everything := kadm.NewACLs().AnyResource().Allow().AllowHosts().Deny().DenyHosts().
			Operations().ResourcePatternType(kadm.ACLPatternAny)
		found, err := adm.DescribeACLs(ctx, everything)
		if err == nil && len(found) > 0 {
			err = found[0].Err
		}
		return err
	default:
		found, err := adm.ListTopics(ctx, name)
		if err == nil {
			err = found[name].Err
		}
		return err
	}
}

func subscribe(ctx context.Context, servers []string, topic, group string) error {
	cl := client(servers, kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	defer cl.Close()
	for {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil || fetches.NumRecords() > 0 {
			return err
		}
	}
}
