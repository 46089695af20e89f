package spec

import (
	"slices"
	"strings"
	"time"

	"github.com/idem-go/idem-aws/idem/lambdaapp/environment"
)

// Function is one Lambda function of an application.
type Function struct {
	// Role is the value of the variable environment.Function.
	Role string
	// Description is what the Lambda console shows.
	Description string
	// MemoryMiB is its memory in MiB, which decides its share of a processor, too.
	MemoryMiB int
	// Timeout is after how long Lambda ends a call.
	Timeout time.Duration
	// Permissions are all that it may do with tables and queues.
	Permissions []Permission
	// Scheduled says that a schedule calls it, and that a call that failed is not made again: the next minute's is.
	Scheduled bool
}

// ConstructID is the role as a part of a name: "Worker".
func (f Function) ConstructID() string { return strings.ToUpper(f.Role[:1]) + f.Role[1:] }

// ReadsStream tells whether the outbox stream is mapped to the function.
func (f Function) ReadsStream() bool {
	return slices.ContainsFunc(f.Permissions, func(p Permission) bool { return slices.Contains(p.On, OutboxStream) })
}

// The time-outs. The API's is below what API Gateway waits (30 s for an HTTP API, 29 s for a REST API), so a client never sees a
// gateway time-out for a request that goes on; the worker's holds a full batch of calls; those of sweep and reconciler end
// before the next run starts; a relay makes one request to SQS.
const (
	APITimeout       = 28 * time.Second
	WorkerTimeout    = time.Minute
	ScheduledTimeout = 55 * time.Second
	RelayTimeout     = 30 * time.Second
)

// Choices are what differs between applications.
type Choices struct {
	// Relay has new messages go through the queue of wake-ups: a function puts them there, and the worker reads no stream.
	Relay bool
	// Inline has the API function settle messages: it delivers its own first, or takes a provider's webhooks.
	Inline bool
}

// Functions are those of an application.
func Functions(c Choices) []Function {
	api := Execute()
	if c.Inline {
		api = slices.Concat(Execute(), Inline(), Send())
	}
	worker, relay := slices.Concat(Deliver(), Send(), Consume()), slices.Concat(ReadStream(), Send())
	if !c.Relay {
		worker = append(worker, ReadStream()...)
	}
	reconcile := slices.Concat(Deliver(), Send(), List())
	sweep := slices.Concat(reconcile, Offer())
	functions := []Function{
		{Role: environment.API, Description: "Executes operations", MemoryMiB: 512, Timeout: APITimeout, Permissions: api},
		{Role: environment.Worker, Description: "Delivers messages of the outbox", MemoryMiB: 512, Timeout: WorkerTimeout, Permissions: worker},
		{Role: environment.Sweep, Description: "Offers due and abandoned messages again", MemoryMiB: 256, Timeout: ScheduledTimeout, Permissions: sweep, Scheduled: true},
		{Role: environment.Reconcile, Description: "Asks what became of unknown messages", MemoryMiB: 256, Timeout: ScheduledTimeout, Permissions: reconcile, Scheduled: true},
	}
	if c.Relay {
		functions = append(functions, Function{Role: environment.Relay, Description: "A wake-up for each new message of the outbox", MemoryMiB: 256, Timeout: RelayTimeout, Permissions: relay})
	}
	return functions
}
