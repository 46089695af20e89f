package apikey_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/idem-go/idem-aws/functions/internal/apikey"
	"github.com/idem-go/idem-aws/functions/internal/lambdatest"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest/wirefault"
	"github.com/idem-go/idem-aws/internal/token"
	"github.com/idem-go/idem-aws/internal/twoclocks"
)

// after runs something once, between the table's first answer to the operation and its arrival.
type after struct {
	operation string
	once      func()
}

// RoundTrip implements http.RoundTripper.
func (a *after) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := wirefault.Patient{}.RoundTrip(r)
	if once := a.once; once != nil && strings.HasSuffix(r.Header.Get("X-Amz-Target"), "."+a.operation) {
		a.once = nil
		once()
	}
	return res, err
}

func revoke(t *testing.T, s *lambdatest.Stage) {
	t.Helper()
	if _, err := s.KeyTable().Revoke(t.Context(), token.ID(lambdatest.Token), "ada", time.Now()); err != nil {
		t.Error(err)
	}
}

// docs/payments-api.md "API keys": a key that was revoked while a process was frozen in the middle of a reading is refused after it.
func TestAReadingFromBeforeAFreezeIsNotUsed(t *testing.T) {
	for _, age := range []time.Duration{0, apikey.CacheAgeMax} {
		s, now := lambdatest.New(t), time.Now()
		frozen := &after{operation: "GetItem", once: func() {
			now = twoclocks.Set(now, time.Hour)
			revoke(t, s)
		}}
		client := dynamotest.Client(dynamotest.Endpoint(t, dynamotest.Names()[0]), func(o *dynamodb.Options) { o.HTTPClient = &http.Client{Transport: frozen} })
		keys, err := apikey.New(apikey.Config{
			Table: apikey.Table{Client: client, Name: s.APIKeys}, CacheAge: age, Now: func() time.Time { return now },
		})
		if err != nil {
			t.Fatal(err)
		}
		wants(t, keys, lambdatest.Token, apikey.ErrRevoked)
	}
}

// docs/payments-api.md "API keys": no clock that is set back within the age has a revoked key work for longer, also not a little.
func TestNoClockHidesARevocation(t *testing.T) {
	s, now := lambdatest.New(t), time.Now()
	keys, err := apikey.New(apikey.Config{Table: s.KeyTable(), CacheAge: 5 * time.Minute, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	wants(t, keys, lambdatest.Token, nil)
	revoke(t, s)
	now = twoclocks.Set(now.Add(4*time.Minute), -3*time.Minute)
	wants(t, keys, lambdatest.Token, nil)
	now = now.Add(time.Minute)
	wants(t, keys, lambdatest.Token, apikey.ErrRevoked)
}

// The same where the process is frozen once the key is read and held, while it notes that the key is used: whoever asks after the freeze shares
// that reading.
func TestAReadingThatIsStillUnderWayAfterAFreezeIsNotShared(t *testing.T) {
	s, now := lambdatest.New(t), time.Now()
	frozen := &after{operation: "UpdateItem", once: func() {
		now = twoclocks.Set(now, time.Hour)
		revoke(t, s)
	}}
	client := dynamotest.Client(dynamotest.Endpoint(t, dynamotest.Names()[0]), func(o *dynamodb.Options) { o.HTTPClient = &http.Client{Transport: frozen} })
	keys, err := apikey.New(apikey.Config{Table: apikey.Table{Client: client, Name: s.APIKeys}, CacheAge: time.Minute, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	wants(t, keys, lambdatest.Token, apikey.ErrRevoked)
}
