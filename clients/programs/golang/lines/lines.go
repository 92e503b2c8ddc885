// Package lines has what every Go program of the matrix shares: its records, the lines that it
// prints, and its steps.
package lines

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
)

const (
	Partitions  = 4
	Replicas    = 3
	RetentionMs = "7200000"
	Idempotent  = "idempotent"
)

// Header is one header of a record.
type Header struct {
	Name  string
	Value []byte
}

// Record gives the key, the value (nil for none) and the headers of record n.
func Record(n int) (key, value []byte, headers []Header) {
	if n%20 != 19 {
		value = []byte(fmt.Sprintf("value-%d-%s", n, strings.Repeat("x", 60)))
	}
	headers = []Header{{"n", []byte(strconv.Itoa(n))}, {"empty", []byte{}}}
	return []byte(fmt.Sprintf("key-%d", n%7)), value, headers
}

var printing sync.Mutex

// Show prints a record that was read.
func Show(partition int32, offset int64, key, value []byte, headers []Header) {
	pairs := make([]string, 0, len(headers))
	for _, header := range headers {
		pairs = append(pairs, header.Name+"="+string(header.Value))
	}
	length := len(value)
	if value == nil {
		length = -1
	}
	printing.Lock()
	defer printing.Unlock()
	fmt.Printf("record\t%d\t%d\t%s\t%d\t%s\t%s\n",
		partition, offset, key, length, value, strings.Join(pairs, ","))
}

// Must ends the program with the reason if there is an error.
func Must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Steps are the four steps of a program.
type Steps struct {
	Admin   func(servers []string, topic string)
	Produce func(servers []string, topic string, count int, kinds []string)
	Consume func(servers []string, topic string, count int)
	Member  func(servers []string, topic, group string)
}

// Main runs the step that the command line names.
func Main(steps Steps) {
	step, servers, topic, rest := os.Args[1], strings.Split(os.Args[2], ","), os.Args[3], os.Args[4:]
	number := func() int {
		count, err := strconv.Atoi(rest[0])
		Must(err)
		return count
	}
	switch step {
	case "admin":
		steps.Admin(servers, topic)
	case "produce":
		steps.Produce(servers, topic, number(), rest[1:])
	case "consume":
		steps.Consume(servers, topic, number())
	case "member":
		steps.Member(servers, topic, rest[0])
	default:
		Must(fmt.Errorf("no step %s", step))
	}
}
