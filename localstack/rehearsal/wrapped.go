package rehearsal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/sdkhttp"
)

// wrapped is an application on the same tables whose handlers call the provider by themselves: a process that a rehearsal kills.
type wrapped struct {
	orders   *idem.Registered
	provider string
	dead     atomic.Bool
	// release lets handlers return that have charged; charged tells of each that has.
	release chan struct{}
	charged chan struct{}
}

// newWrapped starts the application on the tables that are deployed.
func (r *run) newWrapped() (*wrapped, error) {
	w := &wrapped{provider: r.variables["PROVIDER_URL"], release: make(chan struct{}), charged: make(chan struct{}, 8)}
	config := localConfig(r.variables)
	config.HTTPClient = sdkhttp.BufferedBody(&http.Client{Transport: w})
	shards := 8 // the stack's default
	store, err := dynamo.New(dynamodb.NewFromConfig(config), dynamo.Config{
		IdempotencyTable: r.variables["IDEMPOTENCY_TABLE"], OutboxTable: r.variables["OUTBOX_TABLE"], Shards: shards,
	})
	if err != nil {
		return nil, err
	}
	engine, err := idem.New(store, idem.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	w.orders, err = engine.Register(idem.Operation{Name: "rehearsal.wrapped", Kind: idem.KindWrapped, Policy: idem.IETF(), UnknownToOperator: true})
	return w, err
}

// errDead is what a process that was killed would not even see.
var errDead = errors.New("the process is dead")

// RoundTrip implements http.RoundTripper: a dead process sends nothing.
func (w *wrapped) RoundTrip(r *http.Request) (*http.Response, error) {
	if w.dead.Load() {
		return nil, errDead
	}
	return http.DefaultTransport.RoundTrip(r)
}

// kill ends the process in the middle of its handlers.
func (w *wrapped) kill() { w.dead.Store(true) }

// do is one request. Its handler charges under the execution's own key and returns when it is let.
func (w *wrapped) do(ctx context.Context, key string, firstSent time.Time, hold bool) (idem.Outcome, error) {
	req := idem.Request{Tenant: "tenant-a", Key: key, FirstSent: &firstSent, Input: canonical.Input{Method: http.MethodPost, Path: "/wrapped", Body: []byte("{}"), MediaType: "application/json"}}
	result, err := w.orders.Do(ctx, req, func(ctx context.Context, _ *idem.Tx) (idem.Response, error) {
		status, err := w.charge(ctx, key)
		if err != nil {
			return idem.Response{}, err
		}
		w.charged <- struct{}{}
		if hold {
			<-w.release
		}
		return idem.Response{Status: status}, nil
	})
	if err != nil {
		return "", err
	}
	return result.Outcome, nil
}

// charge charges under the execution's own key: one that executes a second time under another key charges a second time.
func (w *wrapped) charge(ctx context.Context, key string) (status int, err error) {
	execution, _ := idem.ExecutionFrom(ctx)
	body := fmt.Sprintf(`{"amount":%d,"currency":"EUR","source":%q,"reference":"wrapped"}`, amountLeast, key)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.provider+"/charges", strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", string(execution.OperationID))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	return res.StatusCode, res.Body.Close()
}

func localConfig(variables map[string]string) aws.Config {
	return aws.Config{
		Region: variables["AWS_REGION"], BaseEndpoint: aws.String(variables["AWS_ENDPOINT_URL"]),
		HTTPClient: sdkhttp.BufferedBody(nil), // without it the SDK loses replies and sends again: a table is restored twice
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
		}),
	}
}
