package awslambda

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
)

// A function whose time-out was shortened after its start was checked with another one executes nothing, and says so.
func TestAnInvocationWithLessTimeThanDeclaredIsLoggedAndRefused(t *testing.T) {
	for name, c := range map[string]struct {
		declared, left time.Duration
		status         int
	}{
		"as declared":           {28 * time.Second, 28 * time.Second, 200},
		"some milliseconds on":  {28 * time.Second, 27100 * time.Millisecond, 200},
		"a second less":         {28 * time.Second, 27 * time.Second, 503},
		"much less":             {28 * time.Second, 3 * time.Second, 503},
		"nothing declared":      {0, time.Second, 200},
		"longer than declared":  {28 * time.Second, time.Minute, 200},
		"without any deadline":  {28 * time.Second, 0, 200},
		"as short as time-outs": {time.Second, 900 * time.Millisecond, 200},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			ctx := t.Context()
			if c.left > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, c.left)
				defer cancel()
			}
			ran := false
			cfg := Config{FunctionTimeout: c.declared, Logger: slog.New(slog.NewJSONHandler(&log, nil))}
			payload, err := HTTP(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { ran = true }), cfg).Invoke(ctx, sample(t, "api-http-payment"))
			if err != nil {
				t.Fatal(err)
			}
			status, body := opened(t, payload)
			if refused := c.status == 503; status != c.status || ran == refused ||
				refused != strings.Contains(log.String(), `"msg":"function.timeout_short","alarm":true`) ||
				refused && (problemCode(t, body) != "idempotency_no_time" || !strings.Contains(string(payload), `"Retry-After":"1"`)) {
				t.Errorf("%d, ran %v, log %s: %s", status, ran, &log, payload)
			}
		})
	}
}

// A batch has nobody to answer: the first record is begun, and each has its own bound.
func TestABatchWithLessTimeThanDeclaredIsLogged(t *testing.T) {
	var log bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	h := SQS(func(context.Context, events.SQSMessage) error { return nil },
		Config{FunctionTimeout: time.Minute, Logger: slog.New(slog.NewJSONHandler(&log, nil))})
	if failed := failures(t, ctx, h, queueEvent(t, 2, "")); len(failed) > 0 || !strings.Contains(log.String(), "function.timeout_short") {
		t.Errorf("%q failed; log %s", failed, &log)
	}
}
