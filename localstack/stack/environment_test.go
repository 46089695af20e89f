package stack

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestLocalEnvironmentCannotReachAWS(t *testing.T) {
	inherited := []string{
		"PATH=/bin", "HOME=/home/somebody",
		"AWS_PROFILE=production", "AWS_SESSION_TOKEN=real", "AWS_ACCESS_KEY_ID=AKIAREAL", "AWS_SECRET_ACCESS_KEY=real",
		"AWS_ENDPOINT_URL_DYNAMODB=https://dynamodb.eu-central-1.amazonaws.com", "AWS_REGION=eu-central-1",
		"AWS_ROLE_ARN=arn:aws:iam::1:role/x", "AWS_WEB_IDENTITY_TOKEN_FILE=/token", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS=true",
		"AWS_CONTAINER_CREDENTIALS_FULL_URI=http://169.254.170.2/x", "CDK_DEFAULT_ACCOUNT=123456789012",
	}
	got, err := LocalEnvironment(inherited, "http://127.0.0.1:4566")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"PATH=/bin", "HOME=/home/somebody",
		"AWS_ENDPOINT_URL=http://127.0.0.1:4566", "AWS_ENDPOINT_URL_S3=http://127.0.0.1:4566",
		"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_REGION=us-east-1", "AWS_DEFAULT_REGION=us-east-1",
		"AWS_EC2_METADATA_DISABLED=true", "AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null",
	}
	if !slices.Equal(got, want) {
		t.Errorf("environment:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestLocalEnvironmentRefusesOtherEndpoints(t *testing.T) {
	refused := []string{
		"", "127.0.0.1:4566", "https://dynamodb.us-east-1.amazonaws.com", "http://10.0.0.1:4566", "http://0.0.0.0:4566",
		"http://127.0.0.1.example.com:4566", "http://user@127.0.0.1:4566", "http://127.0.0.1", "https://127.0.0.1:4566",
		"http://localhost:4566", // a name: what it resolves to is somebody else's decision
	}
	for _, endpoint := range refused {
		_, err := LocalEnvironment(nil, endpoint)
		var notLocal *NotLocalError
		if !errors.As(err, &notLocal) || notLocal.Endpoint != endpoint {
			t.Errorf("endpoint %q: error = %v, want *NotLocalError", endpoint, err)
		}
	}
	if _, err := LocalEnvironment(nil, "http://[::1]:4566"); err != nil {
		t.Errorf("loopback of IPv6 is refused: %v", err)
	}
}

func TestDeploymentToAWSRefusesEndpoints(t *testing.T) {
	for _, name := range []string{"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL_DYNAMODB"} {
		if err := RefuseEndpoints([]string{"PATH=/bin", name + "=http://127.0.0.1:4566"}); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	if err := RefuseEndpoints([]string{"PATH=/bin", "AWS_PROFILE=production", "AWS_ENDPOINT_URL="}); err != nil {
		t.Errorf("a clean environment is refused: %v", err)
	}
}
