package faultproxy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// root is the user whose requests an emulator denies nothing: a request that was changed can't keep its sender's signature.
var root = aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}

// signedAnew is a request whose body was changed, signed by the root user for the Region and service that its sender meant. One that
// nobody had signed stays so.
func (q request) signedAnew() (request, error) {
	_, scope, signed := strings.Cut(q.header.Get("Authorization"), "Credential=")
	if !signed {
		return q, nil
	}
	scope, _, _ = strings.Cut(scope, ",")
	of := strings.Split(scope, "/") // key, day, Region, service, "aws4_request"
	if len(of) != 5 {
		return q, fmt.Errorf("faultproxy: a signature of the scope %q", scope)
	}
	request, err := http.NewRequest(q.method, "http://"+q.host+q.url.RequestURI(), nil)
	if err != nil {
		return q, fmt.Errorf("faultproxy: %w", err)
	}
	request.Header, request.ContentLength = q.header.Clone(), int64(len(q.body))
	for _, name := range []string{"Authorization", "X-Amz-Date", "X-Amz-Security-Token"} {
		request.Header.Del(name)
	}
	hash := sha256.Sum256(q.body)
	if err := v4.NewSigner().SignHTTP(context.Background(), root, request, hex.EncodeToString(hash[:]), of[3], of[2], time.Now()); err != nil {
		return q, fmt.Errorf("faultproxy: %w", err)
	}
	q.header = request.Header
	return q, nil
}
