package secret_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/lambdaapp/secret"
)

// A function reads the secret that its deployment names, before lambdaapp.New.
func ExampleScope() {
	manager := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { // in a function AWS's own
		fmt.Fprint(w, `{"SecretString":"c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2U=\n"}`)
	}))
	defer manager.Close()
	cfg := aws.Config{BaseEndpoint: &manager.URL, Region: "eu-west-1", Credentials: credentials.NewStaticCredentialsProvider("id", "key", "")}

	scope, err := secret.Scope(context.Background(), cfg, "shop/scope") // in a function os.Getenv(environment.ScopeSecretID)
	if err != nil {
		fmt.Println(err)
		return
	}
	engine := idem.Config{ScopeSecret: scope}
	fmt.Println(len(engine.ScopeSecret), "bytes")
	// Output: 32 bytes
}
