// Command authorizer is the gateway's Lambda authorizer: bearer API key → tenant and scopes. It answers HTTP APIs with the simple
// response and REST APIs with a policy; both get them into the context that the API function reads.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/idem-go/idem-aws/functions/internal/apikey"
	"github.com/idem-go/idem-aws/functions/internal/config"
	"github.com/idem-go/idem-aws/idem/awslambda"
	"github.com/idem-go/idem-aws/idem/dynamo"
)

func main() {
	cfg := config.Must(config.Read[config.Authorizer]())
	aws := config.Must(config.AWS(context.Background()))
	log := config.Must(cfg.Logger())
	a := authorizer{
		keys: config.Must(apikey.New(keysOf(cfg, dynamodb.NewFromConfig(aws, dynamo.LogRefused(log)), log))),
		log:  log,
	}
	lambda.Start(a.authorize)
}

// keysOf says how keys are read, and which are taken.
func keysOf(cfg config.Authorizer, client *dynamodb.Client, log *slog.Logger) apikey.Config {
	return apikey.Config{
		Table:    apikey.Table{Client: client, Name: cfg.APIKeysTable},
		CacheAge: cfg.APIKeyCacheAge, RefuseTest: cfg.TestKeys == config.TestKeysRefuse, Logger: log,
	}
}

type authorizer struct {
	keys *apikey.Keys
	log  *slog.Logger
}

// request is what HTTP and REST API authorizer events have in common, and what tells them apart.
type request struct {
	Version            string            `json:"version"`
	Headers            map[string]string `json:"headers"`
	AuthorizationToken string            `json:"authorizationToken"`
	MethodARN          string            `json:"methodArn"`
	RequestContext     struct {
		RequestID string `json:"requestId"`
	} `json:"requestContext"`
}

func (r request) authorization() string {
	if r.AuthorizationToken != "" {
		return r.AuthorizationToken
	}
	for name, value := range r.Headers {
		if strings.EqualFold(name, "Authorization") {
			return value
		}
	}
	return ""
}

// errUnauthorized is the one error that a REST API answers with 401.
var errUnauthorized = errors.New("Unauthorized") //nolint:staticcheck // API Gateway matches this exact text

func (a authorizer) authorize(ctx context.Context, event json.RawMessage) (any, error) {
	var req request
	if err := json.Unmarshal(event, &req); err != nil {
		return nil, fmt.Errorf("authorizer: malformed event: %w", err)
	}
	ctx = awslambda.WithGatewayRequest(ctx, req.RequestContext.RequestID)
	key, err := a.keys.Caller(ctx, req.authorization())
	switch {
	case apikey.Refused(err):
		a.log.InfoContext(ctx, "auth.denied", "reason", err.Error())
	case err != nil: // fails closed: the gateway answers 500, or what it is configured to
		return nil, err
	}
	verdict := deny()
	if err == nil {
		verdict = allow(key)
	}
	switch {
	case req.Version == "2.0":
		return events.APIGatewayV2CustomAuthorizerSimpleResponse{IsAuthorized: err == nil, Context: verdict.context}, nil
	case errors.Is(err, apikey.ErrMissing):
		return nil, errUnauthorized
	}
	return verdict.policy(req.MethodARN), nil
}

// contextTenant, contextScopes and contextLimits are where the api function finds them: identity.ContextTenant and so on, without
// what else comes with that package.
const (
	contextTenant = "tenant"
	contextScopes = "scopes"
	contextLimits = "limits"
)

// verdict is what either form of answer says.
type verdict struct {
	effect, principal string
	context           map[string]any
}

func allow(key apikey.Key) verdict {
	v := verdict{effect: "Allow", principal: key.Tenant, context: map[string]any{
		contextTenant: key.Tenant, contextScopes: apikey.JoinScopes(key.Scopes),
	}}
	if limits := key.Limits.String(); limits != "" {
		v.context[contextLimits] = limits
	}
	return v
}

// deny names a principal all the same, because the form of a policy requires one; nothing of it says a tenant.
func deny() verdict {
	return verdict{effect: "Deny", principal: "unknown"}
}

func (v verdict) policy(method string) events.APIGatewayCustomAuthorizerResponse {
	return events.APIGatewayCustomAuthorizerResponse{
		PrincipalID: v.principal,
		PolicyDocument: events.APIGatewayCustomAuthorizerPolicy{
			Version:   "2012-10-17",
			Statement: []events.IAMPolicyStatement{{Action: []string{"execute-api:Invoke"}, Effect: v.effect, Resource: []string{everyMethod(method)}}},
		},
		Context: v.context,
	}
}

// everyMethod widens arn:…:api/stage/METHOD/path to the stage: the gateway may cache the policy and use it for the
// caller's other requests.
func everyMethod(arn string) string {
	parts := strings.SplitN(arn, "/", 3)
	if len(parts) < 3 {
		return arn
	}
	return parts[0] + "/" + parts[1] + "/*"
}
