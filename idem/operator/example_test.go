package operator_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/operator/memlog"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/memqueue"
)

// An import did not say whether it had finished. An operator looks at it, and records what it turned out to have done.
func Example() {
	ctx := context.Background()
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		log.Fatal(err)
	}
	engine, err := idem.New(store, idem.Config{})
	if err != nil {
		log.Fatal(err)
	}
	topics, err := outbox.NewTopics(outbox.Config{})
	if err != nil {
		log.Fatal(err)
	}
	queue := memqueue.New(time.Now)
	desk, err := operator.New(operator.Config{
		Store: store, Engine: engine, Topics: topics, WakeUps: queue, DeadLetters: queue, Audit: memlog.New(),
	})
	if err != nil {
		log.Fatal(err)
	}

	imports, err := engine.Register(idem.Operation{
		Name: "orders.import", Kind: idem.KindWrapped, Policy: idem.IETF(), UnknownToOperator: true,
	})
	if err != nil {
		log.Fatal(err)
	}
	request := idem.Request{Tenant: "tenant-a", Key: "key-1", Input: canonical.Input{MediaType: "application/json", Body: []byte(`{}`)}}
	_, err = imports.Do(ctx, request, func(context.Context, *idem.Tx) (idem.Response, error) {
		return idem.Response{}, errors.New("the connection broke")
	})
	fmt.Println(err)

	unknown, err := desk.List(ctx, operator.QueueUnknown, "tenant-a", 10, "")
	if err != nil {
		log.Fatal(err)
	}
	for _, row := range unknown.Rows {
		response, err := idem.JSON(http.StatusCreated, "imported")
		if err != nil {
			log.Fatal(err)
		}
		change := operator.Change{Actor: "ada", Reason: "the import is complete in the warehouse", Seen: row.Record.Seen}
		result, err := desk.ResolveRecord(ctx, row.Operation, response, change)
		if err != nil {
			log.Fatal(err)
		}
		story, err := desk.Inspect(ctx, string(row.Operation))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(result.State, "- the record is", story.Record.State, "- changes in the audit log:", len(story.Audit))
	}
	// Output:
	// idem: handler: the connection broke
	// done - the record is completed - changes in the audit log: 1
}
