package lambdatest

import (
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest/wirefault"
)

// Wire lays a wire between a client and its endpoint. When the test is over it demands that all that was read since the wire's last
// Inject was read strongly: no emulator shows what an eventual read would miss.
func Wire(t *testing.T, wire *wirefault.Transport) func(*dynamodb.Options) {
	t.Helper()
	t.Cleanup(func() {
		if weak := wire.Weak(); len(weak) > 0 {
			t.Errorf("read without ConsistentRead, so perhaps as it was before a write that has ended: %v", weak[0])
		}
	})
	return func(o *dynamodb.Options) { o.HTTPClient = &http.Client{Transport: wire} }
}
