package stack

import "testing"

func TestLocalAPI(t *testing.T) {
	tests := []struct{ name, output, want string }{
		{"HTTP API", "https://a1b2c3.execute-api.us-east-1.amazonaws.com/", "http://127.0.0.1:4566/_aws/execute-api/a1b2c3/%24default"},
		{"HTTP API without slash", "https://a1b2c3.execute-api.us-east-1.amazonaws.com", "http://127.0.0.1:4566/_aws/execute-api/a1b2c3/%24default"},
		{"REST API", "https://a1b2c3.execute-api.us-east-1.amazonaws.com/prod/", "http://127.0.0.1:4566/_aws/execute-api/a1b2c3/prod"},
		{"LocalStack's own domain", "https://x9.execute-api.localhost.localstack.cloud:4566/prod/", "http://127.0.0.1:4566/_aws/execute-api/x9/prod"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := localAPI("http://127.0.0.1:4566", test.output)
			if err != nil || got != test.want {
				t.Errorf("localAPI = %q, %v; want %q", got, err, test.want)
			}
		})
	}
	for _, output := range []string{"", "https://example.com/", "http://127.0.0.1:4566/"} {
		if got, err := localAPI("http://127.0.0.1:4566", output); err == nil {
			t.Errorf("localAPI of %q = %q, want an error", output, got)
		}
	}
}
