package function

import (
	"context"
	"net"
	"net/url"
	"strings"
)

// oneOff returns a key that nobody else has, and says aloud that it did.
func (f *Function) oneOff(ctx context.Context) (string, error) {
	f.cfg.Logger.ErrorContext(ctx, "IDEMPOTENCY IS DISABLED: every duplicate is executed; never in production",
		"operation", f.operation.Operation().Name)
	random, err := f.mint.Owner()
	return "disabled " + string(random), err
}

// onAWS says whether the process runs on AWS, and not in an emulator of it.
func onAWS(getenv func(string) string) bool {
	if getenv("AWS_LAMBDA_FUNCTION_NAME") == "" && !strings.HasPrefix(getenv("AWS_EXECUTION_ENV"), "AWS_") {
		return false
	}
	for _, name := range []string{"AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL"} {
		if endpoint := getenv(name); endpoint != "" { // the first that is set is the one that the SDK uses
			return !emulator(endpoint)
		}
	}
	return true
}

// emulator says whether nothing but an emulator can listen there. A private address with TLS may be an interface
// endpoint of the real service, so it is none.
func emulator(endpoint string) bool {
	parsed, err := url.Parse(endpoint)
	if err != nil {
		return false
	}
	host := strings.TrimSuffix(strings.ToLower(parsed.Hostname()), ".")
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
		return true
	}
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	amazon := strings.HasSuffix(host, ".amazonaws.com") || strings.HasSuffix(host, ".amazonaws.com.cn") || strings.HasSuffix(host, ".api.aws")
	return parsed.Scheme == "http" && host != "" && !amazon
}
