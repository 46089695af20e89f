package check_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/docs/examples/internal/check"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest/wirefault"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/lambdaapp/environment"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/memqueue"
	"github.com/idem-go/idem-aws/idem/scaffold"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/internal/outside"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

// shop is what `idemctl new` writes, built outside of this repository, with its tables on an emulator.
type shop struct {
	*testing.T
	folder, outputs string
	variables       []string
	tables          dynamotest.Tables
}

func (s *shop) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// unused is the address of a queue, and of the warehouse, that nobody asks here.
const unused = "http://127.0.0.1:1/unused"

func newShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{T: t, folder: t.TempDir()}
	root, err := filepath.Abs("../../../..")
	s.must(err)
	_, err = scaffold.Service{Module: "example.org/team/zebra", Library: root}.Write(s.folder)
	s.must(err)
	module := outside.At(s.folder)
	for _, pkg := range []string{"./function", "./cmd/idemctl"} {
		s.must(module.Build(t.Context(), pkg, s.program(pkg)))
	}
	url := dynamotest.Endpoint(t, dynamotest.Names()[0])
	client := dynamotest.Client(url)
	tables, err := dynamotest.CreateTables(t.Context(), client, "zebra")
	s.must(err)
	s.tables = tables
	s.must(dynamotest.CreateTable(t.Context(), client, "zebra-orders", schema.Table{Key: "id"}))
	s.must(dynamotest.CreateTable(t.Context(), client, "zebra-audit", schema.Audit()))
	s.variables = append(check.DynamoVariables(url), "IDEMCTL_ACTOR=ada")
	text, err := json.Marshal(map[string]any{"zebra": map[string]string{ // as the stack of the service outputs them
		"IdempotencyTable": tables.Idempotency, "OutboxTable": tables.Outbox, "OutboxShards": "2", "AuditTable": "zebra-audit", "OrdersTable": "zebra-orders",
		"WakeUpQueueUrl": unused, "DeadLetterQueueUrl": unused, "WarehouseUrl": unused,
	}})
	s.must(err)
	s.outputs = filepath.Join(t.TempDir(), "outputs.json")
	s.must(os.WriteFile(s.outputs, text, 0o600))
	return s
}

// program is where a command of the service is built.
func (s *shop) program(pkg string) string {
	return filepath.Join(s.folder, "build", filepath.Base(pkg))
}

// api starts the service's API function.
func (s *shop) api() *check.Function {
	s.Helper()
	return check.StartFunction(s.T, s.program("function"), append(slices.Clone(s.variables),
		environment.Function+"="+environment.API, environment.FunctionTimeout+"=28s", environment.IdempotencyTable+"="+s.tables.Idempotency,
		environment.OutboxTable+"="+s.tables.Outbox, environment.OutboxShards+"=2", environment.WakeUpQueueURL+"="+unused,
		environment.DeadLetterQueueURL+"="+unused, "ORDERS_TABLE=zebra-orders", "WAREHOUSE_URL="+unused,
	)...)
}

// idemctl runs the service's own command, as a shell does, and returns what it prints.
func (s *shop) idemctl(want int, arguments ...string) string {
	s.Helper()
	command := exec.CommandContext(s.Context(), s.program("idemctl"), append([]string{"--env-file", s.outputs}, arguments...)...)
	command.Env = append([]string{"HOME=" + s.TempDir(), "PATH=" + os.Getenv("PATH")}, s.variables...)
	said, err := command.CombinedOutput()
	if command.ProcessState == nil || command.ProcessState.ExitCode() != want {
		s.Fatalf("idemctl %q: %v, want exit code %d\n%s", arguments, err, want, said)
	}
	return string(said)
}

// misread has a worker deliver the message as one of a broken release would: the warehouse ships it, and what that means to the order
// can't be settled. The message is dead, and keeps the warehouse's answer.
func (s *shop) misread(message string) {
	s.Helper()
	store, err := dynamo.New(dynamotest.Client(dynamotest.Endpoint(s.T, dynamotest.Names()[0]), wirefault.Patiently), dynamo.Config{
		IdempotencyTable: s.tables.Idempotency, OutboxTable: s.tables.Outbox, Shards: 2,
	})
	s.must(err)
	topics, err := outbox.NewTopics(outbox.Config{Logger: slog.New(slog.DiscardHandler)}, outbox.Topic{
		Name: "orders.ship", Keys: outbox.Keys{Honoured: true, Retention: 7 * 24 * time.Hour},
		Call: func(context.Context, storage.Message) outbox.Outcome {
			return outbox.Delivered{Reference: "shipment-7"}
		},
		Settle: func(storage.Message, outbox.Outcome) (outbox.Settlement, error) {
			return outbox.Settlement{}, errors.New("the order can't be read")
		},
	})
	s.must(err)
	queue := memqueue.New(time.Now)
	worker, err := outbox.NewWorker(store, topics, queue, queue)
	s.must(err)
	s.must(worker.Deliver(s.Context(), idem.MessageID(message)))
}

// listed is the one message of a queue.
func (s *shop) listed(queue string) (id, seen string) {
	s.Helper()
	var list struct {
		Rows []struct{ Message struct{ ID, Seen string } }
	}
	said := s.idemctl(0, "list", queue, "--output", "json")
	if err := json.Unmarshal([]byte(said), &list); err != nil || len(list.Rows) != 1 {
		s.Fatalf("%v: %s", err, said)
	}
	return list.Rows[0].Message.ID, list.Rows[0].Message.Seen
}

// A service that `idemctl new` writes has its operator's command on its own tables: a message that a broken release
// left dead is found and inspected by the service's own command. Redriven, it is settled as the service's topic says: the order is shipped.
func TestANewServiceHasItsOperatorsCommand(t *testing.T) {
	s := newShop(t)
	findsAndRedrives(s)
	s.must(os.WriteFile(s.outputs, []byte(`{"zebra":{"OrdersTable":"zebra-orders","WarehouseUrl":"http://127.0.0.1:1"}}`), 0o600))
	said := s.idemctl(2, "list", "dead") // what it needs and does not find is named, and nothing is asked
	for _, name := range []string{"AUDIT_TABLE", "IDEMPOTENCY_TABLE", "OUTBOX_TABLE"} {
		if !strings.Contains(said, name+" is not set") {
			t.Errorf("%s is not named: %s", name, said)
		}
	}
}

func findsAndRedrives(s *shop) {
	s.Helper()
	placed := order(s.T, s.api())
	if said := s.idemctl(0, "list", "dead"); strings.TrimSpace(said) != "nothing" {
		s.Errorf("nothing is dead yet: %s", said)
	}
	if said := s.idemctl(0, "inspect", placed); !strings.Contains(said, "orders.ship") || !strings.Contains(said, `"item": "book"`) {
		s.Errorf("inspect does not show the message and the order: %s", said)
	}
	s.misread(placed + ".1")
	id, seen := s.listed("dead")
	if id != placed+".1" {
		s.Fatalf("%s is dead", id)
	}
	redrive := []string{"redrive", id, "--seen", seen, "--reason", "ticket 17"}
	if said := s.idemctl(0, redrive...); !strings.Contains(said, "dry run: would redrive") {
		s.Error(said)
	}
	s.idemctl(0, append(redrive, "--write")...)
	s.idemctl(1, append(redrive, "--write")...) // what was seen is no more
	if said := s.idemctl(0, "inspect", placed); !strings.Contains(said, `"state": "shipped"`) || !strings.Contains(said, `"shipment": "shipment-7"`) {
		s.Errorf("the order: %s", said)
	}
	if said := s.idemctl(0, "audit"); !strings.Contains(said, "ada") || !strings.Contains(said, "redrive") {
		s.Errorf("the audit log: %s", said)
	}
	if said := s.idemctl(0, "tables", "check"); strings.Count(said, "as it must be") != 3 || !strings.Contains(said, `"orders":"zebra-orders"`) {
		s.Errorf("the tables: %s", said)
	}
}

// order places an order, and returns its operation. The request is sent again where the emulator did not answer the function in time, on a
// machine that stood.
func order(t *testing.T, api *check.Function) string {
	t.Helper()
	const request = `{"version":"2.0","rawPath":"/orders","headers":{"content-type":"application/json","idempotency-key":"\"order-17\"",` +
		`"authorization":"Basic YWxpY2U6c2VjcmV0"},"requestContext":{"http":{"method":"POST","path":"/orders"}},"body":"{\"item\":\"book\"}"}`
	var answer struct {
		StatusCode int
		Body       string
	}
	for range 3 {
		began := time.Now()
		end, lived := api.Invoke(t, request)
		if err := json.Unmarshal([]byte(end.Body), &answer); err != nil || !lived {
			t.Fatalf("%v %+v", err, end)
		}
		if answer.StatusCode != http.StatusServiceUnavailable || time.Since(began) < check.StallMin {
			break
		}
	}
	var placed struct{ ID string }
	if answer.StatusCode != http.StatusCreated {
		t.Fatalf("%+v", answer)
	}
	if err := json.Unmarshal([]byte(answer.Body), &placed); err != nil {
		t.Fatal(err)
	}
	return placed.ID
}
