// Package lines has what every Go program of the matrix shares: its records, the lines that it
// prints, and its steps.
package lines

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
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

// Access tells how to come in: the lines KEY=VALUE of the file that CLIENT_ACCESS names; else empty.
func Access() map[string]string {
	told := map[string]string{}
	path := os.Getenv("CLIENT_ACCESS")
	if path == "" {
		return told
	}
	text, err := os.ReadFile(path)
	Must(err)
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		key, value, _ := strings.Cut(line, "=")
		told[key] = value
	}
	return told
}

// TLS trusts the authority, and shows the client's certificate if it has one.
func TLS(told map[string]string) *tls.Config {
	pem, err := os.ReadFile(told["ca"])
	Must(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	config := &tls.Config{RootCAs: roots}
	if told["certificate"] != "" {
		own, err := tls.LoadX509KeyPair(told["certificate"], told["key"])
		Must(err)
		config.Certificates = []tls.Certificate{own}
	}
	return config
}

// Token gets a token by the client's credentials (RFC 6749, 4.4).
func Token(told map[string]string) (string, error) {
	form := url.Values{"grant_type": {"client_credentials"}}
	request, err := http.NewRequest("POST", told["token_url"], strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.SetBasicAuth(told["client_id"], told["client_secret"])
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: TLS(told)}}
	answer, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("HTTP %d", answer.StatusCode)
	}
	var found struct {
		AccessToken string `json:"access_token"`
	}
	err = json.NewDecoder(answer.Body).Decode(&found)
	return found.AccessToken, err
}

// Must ends the program with the reason if there is an error.
func Must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Steps are the steps of a program; the last four may be missing.
type Steps struct {
	Admin   func(servers []string, topic string)
	Produce func(servers []string, topic string, count int, kinds []string)
	Consume func(servers []string, topic string, count int)
	Member  func(servers []string, topic, group string)
	Writer  func(servers []string, topic string)
	Survey  func(servers []string, topic, group string)
	Govern  func(servers []string, name string)
	Attempt func(servers []string, name, what string)
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
	case "writer":
		steps.Writer(servers, topic)
	case "survey":
		steps.Survey(servers, topic, rest[0])
	case "govern":
		steps.Govern(servers, topic)
	case "attempt":
		steps.Attempt(servers, topic, rest[0])
	default:
		Must(fmt.Errorf("no step %s", step))
	}
}
