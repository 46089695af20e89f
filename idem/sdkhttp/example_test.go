package sdkhttp_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/idem-go/idem-aws/idem/sdkhttp"
)

// The clients that are made from this configuration send each request with its body in memory, and so with its length.
func ExampleBufferedBody() {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		fmt.Println("Content-Length:", r.ContentLength)
	}))
	defer server.Close()

	cfg := aws.Config{Region: "eu-central-1"} // from LoadDefaultConfig of the SDK's package config
	cfg.HTTPClient = sdkhttp.BufferedBody(cfg.HTTPClient)

	body := io.MultiReader(strings.NewReader(`{"TableName":`), strings.NewReader(`"orders"}`)) // a body of unknown length
	r, err := http.NewRequest(http.MethodPost, server.URL, body)
	if err != nil {
		log.Fatal(err)
	}
	response, err := cfg.HTTPClient.Do(r)
	if err != nil {
		log.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		log.Fatal(err)
	}
	// Output: Content-Length: 22
}
