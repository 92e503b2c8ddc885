package main

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"time"

	"clients/lines"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	iterations = 5000
	pause      = 20 * time.Millisecond
)

// govern makes, shows and deletes rules and a user.
func govern(servers []string, name string) {
	ctx := context.Background()
	adm := kadm.NewClient(client(servers))
	defer adm.Close()
	rules := kadm.NewACLs().Topics(name).ResourcePatternType(kadm.ACLPatternPrefixed).
		Operations(kadm.OpRead, kadm.OpWrite).Allow("User:" + name).AllowHosts("*")
	made, err := adm.CreateACLs(ctx, rules)
	lines.Must(err)
	for _, one := range made {
		lines.Must(one.Err)
	}
	wanted := kadm.NewACLs().AnyResource().ResourcePatternType(kadm.ACLPatternAny).
		Operations().Allow("User:" + name).AllowHosts().Deny("User:" + name).DenyHosts()
	print(described(ctx, adm, "rule", wanted, 2))
	gone, err := adm.DeleteACLs(ctx, wanted)
	lines.Must(err)
	shown := []string{}
	for _, one := range gone {
		lines.Must(one.Err)
		for _, rule := range one.Deleted {
			shown = append(shown, row("deleted", rule.Type, rule.Name, rule.Pattern, rule.Principal,
				rule.Host, rule.Operation, rule.Permission))
		}
	}
	print(shown)
	print(described(ctx, adm, "left", wanted, 0))
	user(ctx, adm, name)
}

func user(ctx context.Context, adm *kadm.Client, name string) {
	mechanisms := []kadm.ScramMechanism{kadm.ScramSha256, kadm.ScramSha512}
	for _, mechanism := range mechanisms {
		altered, err := adm.AlterUserSCRAMs(ctx, nil, []kadm.UpsertSCRAM{
			{User: name, Mechanism: mechanism, Iterations: iterations, Password: "secret"}})
		lines.Must(err)
		lines.Must(altered.Error())
	}
	for _, info := range describedUser(ctx, adm, name, len(mechanisms)).CredInfos {
		fmt.Printf("user\t%s\t%d\n", info.Mechanism, info.Iterations)
	}
	for _, mechanism := range mechanisms {
		altered, err := adm.AlterUserSCRAMs(ctx, []kadm.DeleteSCRAM{
			{User: name, Mechanism: mechanism}}, nil)
		lines.Must(err)
		lines.Must(altered.Error())
	}
	fmt.Printf("gone\t%v\n", describedUser(ctx, adm, name, 0).Err)
}

// describedUser has count mechanisms: a broker may hear of a change a moment later.
func describedUser(ctx context.Context, adm *kadm.Client, name string, count int) kadm.DescribedUserSCRAM {
	for ; ; time.Sleep(pause) {
		found, err := adm.DescribeUserSCRAMs(ctx, name)
		lines.Must(err)
		if len(found[name].CredInfos) == count {
			return found[name]
		}
	}
}

// described shows count rules: a broker may hear of a change a moment later.
func described(ctx context.Context, adm *kadm.Client, word string, wanted *kadm.ACLBuilder, count int) []string {
	for ; ; time.Sleep(pause) {
		found, err := adm.DescribeACLs(ctx, wanted)
		lines.Must(err)
		shown := []string{}
		for _, one := range found {
			lines.Must(one.Err)
			for _, rule := range one.Described {
				shown = append(shown, row(word, rule.Type, rule.Name, rule.Pattern, rule.Principal,
					rule.Host, rule.Operation, rule.Permission))
			}
		}
		if len(shown) == count {
			return shown
		}
	}
}

func row(word string, kind kmsg.ACLResourceType, name string, pattern kadm.ACLPattern,
	principal, host string, operation kadm.ACLOperation, permission kmsg.ACLPermissionType,
) string {
	return strings.Join([]string{word, kind.String(), name, pattern.String(), principal, host,
		operation.String(), permission.String()}, "\t")
}

func print(shown []string) {
	sort.Strings(shown)
	for _, line := range shown {
		fmt.Println(line)
	}
}
