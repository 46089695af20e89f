package lambdatest

import (
	"net/http"
	"strings"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"

	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest/wirefault"
	"github.com/idem-go/idem-aws/idem/sdkhttp"
)

// patient waits for an emulator of DynamoDB as [wirefault.Patient] does, and sends anything else with next.
type patient struct{ dynamodb, next sdkhttp.Doer }

func patiently(next sdkhttp.Doer) sdkhttp.Doer {
	// As many connections are kept as in the SDK's own client: the functions of a test may be many.
	emulator := wirefault.Patient{Next: awshttp.NewBuildableClient().GetTransport()}
	return patient{dynamodb: sdkhttp.BufferedBody(&http.Client{Transport: emulator}), next: next}
}

// Do implements sdkhttp.Doer.
func (p patient) Do(r *http.Request) (*http.Response, error) {
	if strings.HasPrefix(r.Header.Get("X-Amz-Target"), "DynamoDB_") {
		return p.dynamodb.Do(r)
	}
	return p.next.Do(r)
}
