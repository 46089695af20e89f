package lambdaapp

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/idem-go/idem-aws/idem/lambdaapp/environment"
)

// variables are what the deployment says.
type variables struct {
	function             string
	idempotency, outbox  string
	wakeUps, deadLetters string
	shards               int
	timeout              time.Duration
	namespace, service   string
}

var roles = []string{environment.API, environment.Worker, environment.Sweep, environment.Reconcile, environment.Relay}

// read reads all variables, and returns an error that names each that is missing or malformed.
func read(getenv func(string) string) (variables, error) {
	var wrong []error
	refuse := func(name, rule string) {
		wrong = append(wrong, fmt.Errorf("lambdaapp: %s = %q: must be %s", name, getenv(name), rule))
	}
	needed := func(name, rule string) string {
		value := getenv(name)
		if value == "" {
			refuse(name, rule)
		}
		return value
	}
	v := variables{
		function:    getenv(environment.Function),
		idempotency: needed(environment.IdempotencyTable, "the name of the idempotency table"),
		outbox:      needed(environment.OutboxTable, "the name of the outbox table"),
		wakeUps:     needed(environment.WakeUpQueueURL, "the URL of the queue of wake-ups"),
		deadLetters: needed(environment.DeadLetterQueueURL, "the URL of the dead-letter queue"),
		namespace:   getenv(environment.MetricsNamespace), service: getenv(environment.MetricsService),
	}
	operator := v.function == environment.Operator
	if !operator && !slices.Contains(roles, v.function) {
		refuse(environment.Function, "one of "+strings.Join(roles, ", "))
	}
	var err error
	if v.shards, err = strconv.Atoi(getenv(environment.OutboxShards)); err != nil {
		refuse(environment.OutboxShards, "a number, 1 to 256")
	}
	if operator {
		return v, errors.Join(wrong...)
	}
	if v.timeout, err = time.ParseDuration(getenv(environment.FunctionTimeout)); err != nil || v.timeout <= 0 {
		refuse(environment.FunctionTimeout, `the function's time-out, as "28s"`)
	}
	return v, errors.Join(wrong...)
}
