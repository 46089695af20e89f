package memlog_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/operator/memlog"
)

// A desk writes an entry before a change and ends it afterwards. A test reads what was written.
func Example() {
	ctx := context.Background()
	entries := memlog.New()
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	change := operator.Entry{
		ID: "au_1", At: at, Actor: "ada", Action: "redrive", Subject: "op_1.1", Reason: "the provider is back", State: operator.EntryIntended,
	}
	if err := entries.Begin(ctx, change); err != nil {
		log.Fatal(err)
	}
	change.State, change.Outcome, change.DoneAt = operator.EntryDone, "pending", at.Add(time.Second)
	if err := entries.End(ctx, change); err != nil {
		log.Fatal(err)
	}
	found, err := entries.Entries(ctx, at.Add(-time.Hour), at.Add(time.Hour), "op_1", 10)
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range found {
		fmt.Println(e.Actor, e.Action, e.Subject, e.State)
	}
	// Output: ada redrive op_1.1 done
}
