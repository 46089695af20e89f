package stack

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/jsii-runtime-go"

	"github.com/idem-go/idem-aws/infra/spec"
)

// Concurrency is how many executions of the account's concurrency each function has for itself, which is also the most that
// it can take; 0 reserves nothing, and the function shares what nobody has reserved.
type Concurrency struct {
	Authorizer, API, Webhook, Worker, Relay, Sweep, Reconcile int
}

// concurrencyDefault fits an account with Lambda's default quota, and leaves it 190 executions, or 174 with the most runs: a hanging
// provider holds the worker's and the api's, and the authorizer still answers. Sweep and reconciler run once a minute, each as often as
// the shards are shared out, and end before the next run.
func concurrencyDefault(runs int) Concurrency {
	return Concurrency{Authorizer: 100, API: 400, Webhook: 50, Worker: 200, Relay: 40, Sweep: runs + runsMargin, Reconcile: runs + runsMargin}
}

const (
	// accountConcurrency is the quota of an account that has asked for no other. A new account starts with 10.
	accountConcurrency = 1000
	// unreservedMin is what Lambda wants to stay unreserved.
	unreservedMin = 100
	// streamBatches is Lambda's most for one shard.
	streamBatches = spec.ShardBatches
	streamShards  = spec.StreamShards
	workerMargin  = spec.WorkerMargin
	runsMargin    = spec.RunsMargin
	mappingMax    = spec.MappingMax
)

// waitSeconds is for how long a request may wait for its final answer. A waiting request holds an execution of the api: with the
// default quota of 20 waits a second a tenant holds 100 of its 400, repetitions included. Where nobody else suffers, tests wait longer.
func waitSeconds(local bool) int {
	if local {
		return 20
	}
	return 5
}

// Stream bounds how many batches of the outbox stream run at once: Batches of each of its Shards. Lambda knows only the first
// bound; the second is the table's, which has a shard for each of its partitions.
type Stream struct{ Batches, Shards int }

func (s Stream) executions() int { return s.Batches * s.Shards }

// reservation is one function's part, by the name of its binary.
type reservation struct {
	name  string
	count *int
}

func (c *Concurrency) all() []reservation {
	return []reservation{
		{"authorizer", &c.Authorizer}, {"api", &c.API}, {"webhook", &c.Webhook}, {"worker", &c.Worker},
		{"relay", &c.Relay}, {"sweep", &c.Sweep}, {"reconcile", &c.Reconcile},
	}
}

// of is what a function has reserved; nil for nothing, because Lambda takes 0 for a function that never runs.
func (c Concurrency) of(name string) *float64 {
	for _, each := range c.all() {
		if each.name == name && *each.count != 0 {
			return jsii.Number(*each.count)
		}
	}
	return nil
}

const concurrencyForm = `none, or {"authorizer": N, "api": N, "webhook": N, "worker": N, "relay": N, "sweep": N, "reconcile": N}, each 0 to 100000`

// reservations reads the reservations: a map of cdk.json, or its JSON from the command line. Those that it does not name keep
// their defaults. A local stack has none, because emulators may refuse them.
func (r *reader) reservations(local bool, runs int) Concurrency {
	const key = "concurrency"
	given := r.lookup(key)
	text, isText := given.(string)
	switch {
	case given == nil && local, isText && text == "none":
		return Concurrency{}
	case given == nil:
		return concurrencyDefault(runs)
	case local:
		r.refuse(key, fmt.Sprint(given), "nothing or none, with local=true: emulators may refuse it")
		return Concurrency{}
	}
	counts, err := countsOf(given)
	if err != nil {
		r.refuse(key, fmt.Sprint(given), concurrencyForm)
		return Concurrency{}
	}
	reserved := concurrencyDefault(runs)
	for _, each := range reserved.all() {
		n, named := counts[each.name]
		if !named {
			continue
		}
		delete(counts, each.name)
		if n < 0 || n > 100_000 {
			r.refuse(key+"."+each.name, strconv.Itoa(n), "0 to 100000; 0 reserves nothing")
		}
		*each.count = n
	}
	for name, n := range counts {
		r.refuse(key+"."+name, strconv.Itoa(n), concurrencyForm)
	}
	return reserved
}

// countsOf reads whole numbers by name.
func countsOf(given any) (map[string]int, error) {
	text, isText := given.(string)
	if !isText {
		encoded, err := json.Marshal(given)
		if err != nil {
			return nil, err
		}
		text = string(encoded)
	}
	var counts map[string]int
	if err := json.Unmarshal([]byte(text), &counts); err != nil {
		return nil, err
	}
	if counts == nil {
		return nil, errors.New("null")
	}
	return counts, nil
}

// within is the value of a key that has a number between two bounds.
func (r *reader) within(key string, otherwise, low, high int) int {
	value := r.text(key, strconv.Itoa(otherwise))
	n, err := strconv.Atoi(value)
	if err != nil || n < low || n > high {
		r.refuse(key, value, fmt.Sprintf("%d to %d", low, high))
	}
	return n
}

// readConcurrency fills in who may run how often at once, and holds the parts to the whole.
func (r *reader) readConcurrency(config *Config) {
	before := len(r.refused)
	config.Concurrency = r.reservations(config.Local, config.sweepRuns())
	account := r.within("accountConcurrency", accountConcurrency, 1, 10_000_000)
	config.Stream = Stream{Batches: r.within("streamBatches", streamBatches, 1, streamBatches), Shards: r.within("streamShards", streamShards, 1, 100_000)}
	given := r.lookup("workerConcurrency") != nil
	config.WorkerConcurrency = r.concurrency("workerConcurrency")
	if len(r.refused) > before {
		return // the sums would be of numbers that are refused
	}
	r.fitsAccount(*config, account)
	r.fitsStream(*config)
	r.fitsRuns(*config)
	if config.Concurrency.Worker != 0 {
		config.WorkerConcurrency = r.fitsWorker(*config, given)
	}
}

// fitsAccount refuses reservations that the deployment would fail with.
func (r *reader) fitsAccount(config Config, account int) {
	sum, parts := 0, []string(nil)
	names := config.functions()
	for _, each := range config.Concurrency.all() {
		if *each.count != 0 && slices.Contains(names, each.name) {
			sum, parts = sum+*each.count, append(parts, fmt.Sprintf("%s %d", each.name, *each.count))
		}
	}
	if sum > 0 && sum > account-unreservedMin {
		r.refuse("concurrency", fmt.Sprintf("%s: %d in all", strings.Join(parts, ", "), sum), fmt.Sprintf(
			"at most %d in all, which is accountConcurrency (%d) less the %d that must stay unreserved; none, where nothing is reserved",
			max(0, account-unreservedMin), account, unreservedMin))
	}
}

// fitsStream refuses a relay that has less than the stream would have of it at once.
func (r *reader) fitsStream(config Config) {
	if relay := config.Concurrency.Relay; config.Outbox == SQS && relay != 0 && relay < config.Stream.executions() {
		r.refuse("concurrency.relay", strconv.Itoa(relay), fmt.Sprintf("at least streamBatches × streamShards = %d, or 0", config.Stream.executions()))
	}
}

// fitsRuns refuses a sweep or a reconciler that has less than the runs of a minute take.
func (r *reader) fitsRuns(config Config) {
	for _, each := range config.Concurrency.all() {
		if scheduled := each.name == "sweep" || each.name == "reconcile"; scheduled && *each.count != 0 && *each.count < config.sweepRuns() {
			r.refuse("concurrency."+each.name, strconv.Itoa(*each.count), fmt.Sprintf(
				"at least %d, the runs of a minute with outboxShards (%d), or 0", config.sweepRuns(), config.OutboxShards))
		}
	}
}

// fitsWorker returns how many workers the wake-ups may have at once: what its executions leave after the margin and, where it
// reads the stream itself, after the stream's batches.
func (r *reader) fitsWorker(config Config, given bool) int {
	free, rule := config.Concurrency.Worker-workerMargin, fmt.Sprintf("concurrency.worker (%d) less %d", config.Concurrency.Worker, workerMargin)
	if config.Outbox == Streams {
		free -= config.Stream.executions()
		rule += fmt.Sprintf(" and less streamBatches × streamShards (%d)", config.Stream.executions())
	}
	switch wanted := config.WorkerConcurrency; {
	case free < 2:
		r.refuse("concurrency.worker", strconv.Itoa(config.Concurrency.Worker), fmt.Sprintf("what leaves 2 or more to the wake-ups: %s is %d", rule, free))
	case !given:
		return min(free, mappingMax)
	case wanted == 0 || wanted > free:
		r.refuse("workerConcurrency", strconv.Itoa(wanted), fmt.Sprintf("2 to %d: %s", min(free, mappingMax), rule))
	}
	return config.WorkerConcurrency
}
