package stack_test

import (
	"regexp"
	"strconv"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/jsii-runtime-go"

	"github.com/idem-go/idem-aws/functions/route"
)

// An HTTP API hands paths on unescaped: only a route of its own tells the application which path the gateway's rules were
// applied to.
func TestEveryPathHasARouteOfItsOwn(t *testing.T) {
	for variant, authorization := range map[string]string{"http-gateway": "CUSTOM", "http-origins-gateway": "CUSTOM", "http-function": "NONE"} {
		template := synthesize(t, variant)
		for _, path := range route.Paths {
			template.has(t, "AWS::ApiGatewayV2::Route", map[string]any{"RouteKey": "ANY " + path, "AuthorizationType": authorization})
		}
	}
}

func TestHTTPAPIRoutesEverythingToTheApplication(t *testing.T) {
	for variant, routes := range map[string]int{
		"http-gateway": 1 + len(route.Paths), "http-origins-gateway": 2 + 2*len(route.Paths), "http-function": 2 + len(route.Paths),
	} {
		t.Run(variant, func(t *testing.T) {
			template := synthesize(t, variant)
			template.counts(t, "AWS::ApiGatewayV2::Route", routes)
			template.counts(t, "AWS::ApiGatewayV2::Integration", map[bool]int{false: 1, true: 2}[webhooks(variant)])
			template.counts(t, "AWS::ApiGateway::RestApi", 0)
			template.has(t, "AWS::ApiGatewayV2::Integration", map[string]any{
				"IntegrationType": "AWS_PROXY", "PayloadFormatVersion": "2.0",
			})
			if variant == "http-function" {
				template.counts(t, "AWS::ApiGatewayV2::Authorizer", 0)
				template.has(t, "AWS::ApiGatewayV2::Route", map[string]any{
					"RouteKey": "$default", "AuthorizationType": "NONE",
				})
				return
			}
			template.has(t, "AWS::ApiGatewayV2::Route", map[string]any{
				"RouteKey": "$default", "AuthorizationType": "CUSTOM", "AuthorizerId": assertions.Match_AnyValue(),
			})
			template.has(t, "AWS::ApiGatewayV2::Authorizer", map[string]any{
				"AuthorizerType":                 "REQUEST",
				"AuthorizerPayloadFormatVersion": "2.0",
				"EnableSimpleResponses":          true,
				"IdentitySource":                 []string{"$request.header.Authorization"},
				"AuthorizerResultTtlInSeconds":   0,
			})
		})
	}
}

func TestRESTAPIRoutesEverythingToTheApplication(t *testing.T) {
	for _, variant := range []string{"rest-gateway", "rest-function"} {
		t.Run(variant, func(t *testing.T) {
			template := synthesize(t, variant)
			template.counts(t, "AWS::ApiGatewayV2::Api", 0)
			template.counts(t, "AWS::ApiGateway::Method", map[string]int{"rest-gateway": 14, "rest-function": 7}[variant])
			template.has(t, "AWS::ApiGateway::RestApi", map[string]any{"BinaryMediaTypes": []string{"*/*"}})
			template.has(t, "AWS::ApiGateway::Stage", map[string]any{"StageName": "prod"})
			template.has(t, "AWS::ApiGateway::Resource", map[string]any{"PathPart": "{proxy+}"})
			authorization := map[string]string{"rest-gateway": "CUSTOM", "rest-function": "NONE"}[variant]
			holds(t, func() {
				template.AllResourcesProperties(jsii.String("AWS::ApiGateway::Method"), map[string]any{
					"Integration": assertions.Match_ObjectLike(&map[string]any{"Type": "AWS_PROXY"}),
				})
				template.ResourcePropertiesCountIs(jsii.String("AWS::ApiGateway::Method"), map[string]any{
					"HttpMethod": "ANY", "AuthorizationType": authorization,
				}, jsii.Number(map[string]int{"rest-gateway": 6, "rest-function": 7}[variant]))
			})
			if variant == "rest-function" {
				template.counts(t, "AWS::ApiGateway::Authorizer", 0)
				template.counts(t, "AWS::ApiGateway::GatewayResponse", 0)
				return
			}
			template.has(t, "AWS::ApiGateway::Authorizer", map[string]any{
				"Type":                         "TOKEN",
				"IdentitySource":               "method.request.header.Authorization",
				"AuthorizerResultTtlInSeconds": 0,
				"IdentityValidationExpression": assertions.Match_AnyValue(),
			})
		})
	}
}

// A REST API has no other 401 than an error of the authorizer, which Lambda counts as a failure: a header that is no bearer token rang
// FunctionErrors and took deployments back. So the gateway answers it by itself, and nobody who has no key causes an error.
func TestOnlyBearerTokensReachTheAuthorizer(t *testing.T) {
	for _, r := range synthesize(t, "rest-gateway").of("AWS::ApiGateway::Authorizer") {
		bearer := regexp.MustCompile(r.Properties["IdentityValidationExpression"].(string))
		for header, passes := range map[string]bool{
			"Bearer idem_live_x": true, "bearer x": true, "BEARER   x": true, " Bearer x ": true, "Bearer x y": true, "Bearer \tx": true,
			"": false, " ": false, "Basic x": false, "foo": false, "Bearer": false, "Bearer ": false, "Bearer  ": false, "Bearerx": false, "Bearer\tx": false, "Bearer \u00a0": false, "Bearer \u0085": false, "Bearer \u3000": false, "x Bearer y": false,
		} {
			if bearer.MatchString(header) != passes {
				t.Errorf("%q reaches the authorizer: %v", header, !passes)
			}
		}
	}
}

// A preflight carries no credentials, so an authorizer would refuse it: it goes to the application by itself.
func TestPreflightsPassTheAuthorizer(t *testing.T) {
	for _, path := range route.Paths {
		synthesize(t, "http-origins-gateway").has(t, "AWS::ApiGatewayV2::Route", map[string]any{
			"RouteKey": "OPTIONS " + path, "AuthorizationType": "NONE", "AuthorizerId": assertions.Match_Absent(),
		})
	}
	holds(t, func() {
		synthesize(t, "rest-gateway").ResourcePropertiesCountIs(jsii.String("AWS::ApiGateway::Method"), map[string]any{
			"HttpMethod": "OPTIONS", "AuthorizationType": "NONE", "AuthorizerId": assertions.Match_Absent(),
		}, jsii.Number(6))
	})
}

func TestGatewayRefusesWithAProblemDocument(t *testing.T) {
	template := synthesize(t, "rest-gateway")
	template.counts(t, "AWS::ApiGateway::GatewayResponse", 4)
	for kind, want := range map[string]struct {
		status int
		code   string
	}{
		"UNAUTHORIZED": {401, "unauthorized"}, "ACCESS_DENIED": {403, "forbidden"}, "THROTTLED": {429, "too_many_requests"},
		"AUTHORIZER_FAILURE": {503, "idempotency_store_unavailable"},
	} {
		retryAfter := assertions.Match_Absent()
		if want.status == 429 || want.status == 503 { // docs/semantics.md "On the wire"
			retryAfter = assertions.Match_Exact("'1'")
		}
		template.has(t, "AWS::ApiGateway::GatewayResponse", map[string]any{
			"ResponseType": kind, "StatusCode": strconv.Itoa(want.status),
			"ResponseParameters": map[string]any{
				"gatewayresponse.header.Content-Type": "'application/problem+json'", "gatewayresponse.header.Retry-After": retryAfter,
			},
			"ResponseTemplates": map[string]any{"application/json": assertions.Match_SerializedJson(map[string]any{
				"type": "about:blank", "title": assertions.Match_AnyValue(), "detail": assertions.Match_AnyValue(),
				"status": want.status, "code": want.code,
			})},
		})
	}
}
