package function_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/function"
)

func TestDisabledForTests(t *testing.T) {
	t.Setenv("AWS_LAMBDA_FUNCTION_NAME", "")
	t.Setenv("AWS_EXECUTION_ENV", "")
	var log bytes.Buffer
	w := newWorld(t, idem.Config{})
	fn := w.function(idem.Operation{Kind: idem.KindAtomic}, function.Config{
		DisabledForTests: true, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	for _, input := range []string{`{"id":"a"}`, `{"id":"a"}`, `{}`} {
		w.want(fn, input, w.returning(idem.KindAtomic, "done"), "done", false)
	}
	if row := string(w.mem.Row("business")); row != "111" {
		t.Errorf("committed %s", row)
	}
	if shouts := strings.Count(log.String(), "level=ERROR msg=\"IDEMPOTENCY IS DISABLED"); shouts != 3 {
		t.Errorf("%d shouts in\n%s", shouts, &log)
	}
}

func TestDisabledIsRefusedOnAWS(t *testing.T) {
	for _, test := range []struct {
		function, execution, dynamodb, all string
		refused                            bool
	}{
		{"", "", "", "", false},
		{"", "CloudShell", "", "", false},
		{"charges", "", "", "", true},
		{"", "AWS_Lambda_provided.al2023", "", "", true},
		{"", "AWS_ECS_FARGATE", "", "", true},
		{"charges", "AWS_Lambda_provided.al2023", "", "http://localhost:4566", false},
		{"charges", "", "", "https://localhost.localstack.cloud:4566", true}, // a name that anybody could resolve anywhere
		{"charges", "", "https://dynamodb.localhost:4566", "", false},
		{"charges", "", "http://172.17.0.2:8000", "", false},
		{"charges", "", "http://dynamodb-local:8000", "", false},
		{"charges", "", "https://127.0.0.1:8000", "", false},
		{"charges", "", "https://[::1]:8000", "", false},
		{"charges", "", "https://10.0.0.7", "", true},
		{"charges", "", "https://vpce-1.dynamodb.us-east-1.vpce.amazonaws.com", "http://localhost:4566", true},
		{"charges", "", "http://dynamodb.us-east-1.amazonaws.com.", "", true},
		{"charges", "", "http://dynamodb.us-east-1.API.AWS", "", true},
		{"charges", "", "localhost:4566", "", true},
		{"charges", "", "http://%", "", true},
	} {
		t.Setenv("AWS_LAMBDA_FUNCTION_NAME", test.function)
		t.Setenv("AWS_EXECUTION_ENV", test.execution)
		t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", test.dynamodb)
		t.Setenv("AWS_ENDPOINT_URL", test.all)
		op := idem.Operation{Name: "charges.create", Kind: idem.KindAtomic, Policy: idem.IETF()}
		_, err := function.New(newWorld(t, idem.Config{}).engine, op, function.Config{
			Tenant: "shop", Key: function.JSONPointer("/id"), DisabledForTests: true,
		})
		var refused *idem.ConfigError
		if errors.As(err, &refused) != test.refused || test.refused && refused.Field != "Config.DisabledForTests" {
			t.Errorf("%+v: got %v", test, err)
		}
	}
}
