package stack

import (
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/idem-go/idem-aws/internal/localtool"
)

// Region and credentials of every local stack; emulators accept any.
const (
	localRegion      = "us-east-1"
	localCredentials = "test"
)

// endpointPrefix starts the names of the variables that redirect the AWS SDKs.
const endpointPrefix = "AWS_ENDPOINT_URL"

// NotLocalError says that a local command was about to talk to something beyond this machine.
type NotLocalError struct {
	// Endpoint that was refused.
	Endpoint string
}

// Error names the endpoint.
func (e *NotLocalError) Error() string {
	return fmt.Sprintf("endpoint %q is not on this machine: local commands talk to 127.0.0.1 only", e.Endpoint)
}

// LocalEnvironment returns the environment for a child of a local command: inherited without anything that concerns AWS,
// plus what makes the SDKs and the CDK talk to endpoint and to nothing else. So a child that forgets its endpoint finds
// neither credentials nor a profile, and none from the instance metadata. It returns a *NotLocalError where the endpoint
// is not plain http on a loopback address.
func LocalEnvironment(inherited []string, endpoint string) ([]string, error) {
	if !isLoopback(endpoint) {
		return nil, &NotLocalError{Endpoint: endpoint}
	}
	environment := localtool.WithoutAWS(inherited)
	return append(environment,
		"AWS_ENDPOINT_URL="+endpoint,
		"AWS_ENDPOINT_URL_S3="+endpoint,
		"AWS_ACCESS_KEY_ID="+localCredentials,
		"AWS_SECRET_ACCESS_KEY="+localCredentials,
		"AWS_REGION="+localRegion,
		"AWS_DEFAULT_REGION="+localRegion,
		"AWS_EC2_METADATA_DISABLED=true",
		"AWS_CONFIG_FILE=/dev/null",
		"AWS_SHARED_CREDENTIALS_FILE=/dev/null",
	), nil
}

func isLoopback(endpoint string) bool {
	parsed, err := url.Parse(endpoint)
	if err != nil || parsed.Scheme != "http" || parsed.User != nil {
		return false
	}
	address := net.ParseIP(parsed.Hostname())
	return address != nil && address.IsLoopback() && parsed.Port() != ""
}

// RefuseEndpoints returns an error where the environment redirects the AWS SDKs: a command about a stage in AWS
// would go to an emulator in part.
func RefuseEndpoints(environment []string) error {
	for _, variable := range environment {
		name, value, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(name, endpointPrefix) && value != "" {
			return fmt.Errorf("%s is set (%s): unset it before you work on a stage in AWS", name, value)
		}
	}
	return nil
}
