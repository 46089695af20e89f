//go:build e2e

package e2e

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/localstack/audit"
)

// readsAtOnce is how many records are read at once when all tests are over.
const readsAtOnce = 16

// audited holds all that clients heard, and all that functions wrote, against I4, I5, I7 and I8, and prints how much that was.
// What each of them cannot see stands with it in localstack/audit.
func audited(ctx context.Context, left leftovers) (broken []string, err error) {
	heard := allHeard()
	stored, err := storedAnswers(ctx, heard)
	if err != nil {
		return nil, err
	}
	answers, ofAnswers := audit.Answers(heard, stored)
	tenants, ofTenants := audit.Tenants(heard, left.owners(), left.messagesOf())
	journal, err := deployed.dynamodb.Writes(ctx)
	if err != nil {
		return nil, err
	}
	writes, ofWrites := audit.Writes(journal, audit.Tables{
		Records: deployed.table("IDEMPOTENCY"), Messages: deployed.table("OUTBOX"), IgnoresKeys: topicIgnoresKeys,
	})
	seen := audit.Seen{Answers: ofAnswers, Tenants: ofTenants, Writes: ofWrites, Messages: len(left.messages), Whole: all()}
	fmt.Printf("audit: %d answers heard\n    I4 %+v\n    I5 %+v\n    I7, I8 %+v\nrequests by suite:\n%s\n",
		len(heard), ofAnswers, ofTenants, ofWrites, &witnessed.ledger)
	return slices.Concat(answers, tenants, writes, seen.Nothing(), witnessed.ledger.Broken()), nil
}

// all says that no test was chosen before others.
func all() bool {
	chosen := flag.Lookup("test.run").Value.String()
	return chosen == "" || chosen == "."
}

// allHeard are the answers so far.
func allHeard() []audit.Exchange {
	witnessed.mu.Lock()
	defer witnessed.mu.Unlock()
	return slices.Clone(witnessed.heard)
}

// storedAnswers reads the answers that the records of this run hold.
func storedAnswers(ctx context.Context, heard []audit.Exchange) (map[audit.Scope]audit.Stored, error) {
	store, err := dynamo.New(deployed.tables, dynamo.Config{IdempotencyTable: deployed.table("IDEMPOTENCY"), OutboxTable: deployed.table("OUTBOX")})
	if err != nil {
		return nil, err
	}
	scopes := map[audit.Scope]bool{}
	for _, e := range heard {
		if e.Operation != "" && e.Key != "" && e.Tenant != "" {
			scopes[audit.Scope{Tenant: e.Tenant, Operation: e.Operation, Key: e.Key}] = true
		}
	}
	var mu sync.Mutex
	stored := map[audit.Scope]audit.Stored{}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readsAtOnce)
	for scope := range maps.Keys(scopes) {
		group.Go(func() error {
			r, err := store.Get(ctx, idem.Scope{Tenant: scope.Tenant, Operation: scope.Operation, Key: scope.Key}.RecordKey())
			if err != nil || r == nil {
				return err
			}
			s := audit.Stored{Final: r.State.Final(), Status: r.Response.Status}
			if !r.Sealed {
				whole, err := store.LoadResponse(ctx, *r)
				if err != nil {
					return err
				}
				s.Header, s.Body = http.Header{}, append([]byte{}, whole.Response.Body...)
				for _, field := range whole.Response.Header {
					s.Header.Add(field.Name, field.Value)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			stored[scope] = s
			return nil
		})
	}
	return stored, group.Wait()
}

// owners are whose everything is that has an id: operations, the application's rows, and what the provider made for them.
func (l leftovers) owners() audit.Owners {
	owners := audit.Owners{}
	for _, r := range l.records {
		owners.Add(string(operationOf(r)), text(r, schema.Tenant))
	}
	for _, it := range l.rows {
		owners.Add(text(it, attributeID), text(it, attributeTenant))
	}
	messages := by(l.messages, schema.MessageID)
	for _, object := range l.objects {
		if m, known := messages[object.Key]; known {
			owners.Add(object.ID, text(m, schema.Tenant))
		}
	}
	return owners
}

// messagesOf says of each message whose it is, and whose its record is.
func (l leftovers) messagesOf() (rows []audit.Row) {
	messages := by(l.messages, schema.MessageID)
	for _, r := range l.records {
		for _, m := range chain(messages, operationOf(r)) {
			rows = append(rows, audit.Row{ID: text(m, schema.MessageID), Tenant: text(m, schema.Tenant), RecordTenant: text(r, schema.Tenant)})
		}
	}
	return rows
}
