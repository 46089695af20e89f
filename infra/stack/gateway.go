package stack

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigateway"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigatewayv2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigatewayv2authorizers"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigatewayv2integrations"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/idem-go/idem-aws/functions/route"
)

// restStage is the first segment of every path of a REST API; an HTTP API has none.
const restStage = "prod"

// authorizationCacheSeconds is how long a gateway may reuse an authorizer's answer: not at all. It would come on top of what
// the authorizer's processes hold, and a revoked API key works for the sum of both.
const authorizationCacheSeconds = 0

// httpAPI routes everything to the application, so that 404 and 405 are the application's own, but for the provider's
// webhooks, which no authorizer knows: they are signed. Each path has a route of its own, because an HTTP API hands paths on
// unescaped, and what comes by the catch-all is no path that the application could trust: it answers 404. The URL is without a
// trailing slash.
func httpAPI(scope constructs.Construct, config Config, served behind) front {
	props := &awsapigatewayv2.HttpApiProps{
		DisableExecuteApiEndpoint: config.ownName(),
		ApiName:                   jsii.String(config.Stack),
		DefaultIntegration: awsapigatewayv2integrations.NewHttpLambdaIntegration(
			jsii.String("Application"), served.application, nil),
	}
	if served.authorizer != nil {
		props.DefaultAuthorizer = awsapigatewayv2authorizers.NewHttpLambdaAuthorizer(
			jsii.String("Authorizer"), served.authorizer, &awsapigatewayv2authorizers.HttpLambdaAuthorizerProps{
				IdentitySource: jsii.Strings("$request.header.Authorization"),
				ResponseTypes: &[]awsapigatewayv2authorizers.HttpLambdaResponseType{
					awsapigatewayv2authorizers.HttpLambdaResponseType_SIMPLE,
				},
				ResultsCacheTtl: awscdk.Duration_Seconds(jsii.Number(authorizationCacheSeconds)),
			})
	}
	api := awsapigatewayv2.NewHttpApi(scope, jsii.String("HttpApi"), props)
	if served.webhook != nil {
		api.AddRoutes(&awsapigatewayv2.AddRoutesOptions{
			Path: jsii.String(webhookPath), Methods: &[]awsapigatewayv2.HttpMethod{awsapigatewayv2.HttpMethod_ANY},
			Integration: awsapigatewayv2integrations.NewHttpLambdaIntegration(jsii.String("Webhook"), served.webhook, nil),
			Authorizer:  awsapigatewayv2.NewHttpNoneAuthorizer(),
		})
	}
	var paying []awsapigatewayv2.HttpRoute
	for _, path := range route.Paths {
		routes := api.AddRoutes(&awsapigatewayv2.AddRoutesOptions{
			Path: jsii.String(path), Methods: &[]awsapigatewayv2.HttpMethod{awsapigatewayv2.HttpMethod_ANY},
			Integration: props.DefaultIntegration,
		})
		if slices.Contains(route.Paying, path) {
			paying = append(paying, *routes...)
		}
		if served.authorizer != nil && config.CORSOrigins != "" {
			// A preflight carries no credentials: the application answers it, and nothing else, to anybody.
			api.AddRoutes(&awsapigatewayv2.AddRoutesOptions{
				Path: jsii.String(path), Methods: &[]awsapigatewayv2.HttpMethod{awsapigatewayv2.HttpMethod_OPTIONS},
				Integration: props.DefaultIntegration, Authorizer: awsapigatewayv2.NewHttpNoneAuthorizer(),
			})
		}
	}
	throttleHTTP(api, config, paying)
	logHTTP(api, accessLog(scope, config))
	acceptOpenRoutes(api)
	acceptStage(api.DefaultStage(), config)
	if config.DomainName != "" {
		// CDK takes the endpoint's own name away where it is switched off.
		return front{url: named(awscdk.Stack_Of(scope), config, api.ApiId(), api.DefaultStage().StageName()), api: api}
	}
	return front{url: api.ApiEndpoint(), api: api}
}

// restAPI is httpAPI for a REST API.
func restAPI(scope constructs.Construct, config Config, served behind) front {
	options := &awsapigateway.StageOptions{StageName: jsii.String(restStage)}
	throttleREST(options, config, restPayments(served))
	logREST(options, accessLog(scope, config))
	api := awsapigateway.NewRestApi(scope, jsii.String("RestApi"), &awsapigateway.RestApiProps{
		RestApiName: jsii.String(config.Stack),
		EndpointConfiguration: &awsapigateway.EndpointConfiguration{
			Types: &[]awsapigateway.EndpointType{awsapigateway.EndpointType_REGIONAL},
		},
		// Without it a REST API reads and writes every body as text, and what is not UTF-8 comes out as other bytes.
		BinaryMediaTypes: jsii.Strings("*/*"),
		CloudWatchRole:   jsii.Bool(false),

		DisableExecuteApiEndpoint: config.ownName(),
		DeployOptions:             options,
	})
	// CDK's own output of the URL, with a name nobody asked for and a trailing slash.
	api.Node().TryRemoveChild(jsii.String("Endpoint"))
	integration := awsapigateway.NewLambdaIntegration(served.application, &awsapigateway.LambdaIntegrationOptions{
		AllowTestInvoke: jsii.Bool(false),
	})
	method := restAuthorization(api, served.authorizer)
	if !config.APIThrottle.off() || !config.PaymentThrottle.off() {
		problemResponse(api, "Throttled", awsapigateway.ResponseType_THROTTLED(), http.StatusTooManyRequests,
			"too_many_requests", "There are too many requests at the moment. Nothing was executed; send this one again later.")
	}
	resources := []awsapigateway.IResource{api.Root(), proxyBelow(api.Root())}
	if served.webhook != nil {
		resources = append(resources, restWebhook(api.Root(), served.webhook)...)
	}
	for _, resource := range resources {
		resource.AddMethod(jsii.String("ANY"), integration, method)
		if !config.PaymentThrottle.off() && *resource.Path() == restPayments(served) {
			resource.AddMethod(jsii.String("POST"), integration, method) // for the throttle of its own
		}
		if served.authorizer != nil && config.CORSOrigins != "" {
			resource.AddMethod(jsii.String("OPTIONS"), integration, &awsapigateway.MethodOptions{
				AuthorizationType: awsapigateway.AuthorizationType_NONE,
			})
		}
	}
	acceptOpenRoutes(api)
	acceptREST(api, config)
	protect(scope, api, config)
	if config.WAF {
		problemResponse(api, "Filtered", awsapigateway.ResponseType_WAF_FILTERED(), http.StatusForbidden,
			"forbidden", "The request was blocked. Nothing was executed.")
	}
	if config.DomainName != "" {
		return front{api: api, url: named(awscdk.Stack_Of(scope), config, api.RestApiId(), api.DeploymentStage().StageName())}
	}
	return front{api: api, url: awscdk.Fn_Join(jsii.String(""), &[]*string{
		jsii.String("https://"), api.RestApiId(), jsii.String(".execute-api."), awscdk.Aws_REGION(),
		jsii.String("."), awscdk.Aws_URL_SUFFIX(), jsii.String("/" + restStage),
	})}
}

// restAuthorization is what each method asks for: a bearer token where an authorizer reads them, which answers as the application does.
func restAuthorization(api awsapigateway.RestApi, authorizer awslambda.IFunction) *awsapigateway.MethodOptions {
	method := &awsapigateway.MethodOptions{}
	if authorizer == nil {
		return method
	}
	method.AuthorizationType = awsapigateway.AuthorizationType_CUSTOM
	method.Authorizer = awsapigateway.NewTokenAuthorizer(api, jsii.String("Authorizer"),
		&awsapigateway.TokenAuthorizerProps{
			Handler:         authorizer,
			ResultsCacheTtl: awscdk.Duration_Seconds(jsii.Number(authorizationCacheSeconds)),
			ValidationRegex: jsii.String(route.BearerForm),
		})
	problemResponse(api, "Unauthorized", awsapigateway.ResponseType_UNAUTHORIZED(), http.StatusUnauthorized,
		"unauthorized", "The Authorization header is missing or is not a bearer token.")
	problemResponse(api, "Forbidden", awsapigateway.ResponseType_ACCESS_DENIED(), http.StatusForbidden,
		"forbidden", "The token is not valid.")
	problemResponse(api, "AuthorizerFailed", awsapigateway.ResponseType_AUTHORIZER_FAILURE(), http.StatusServiceUnavailable,
		"idempotency_store_unavailable", "The caller could not be authenticated now.")
	return method
}

// restPayments is the path of the resource that payments are made at: the nearest proxy above them.
func restPayments(served behind) string {
	if served.webhook != nil {
		return "/v1/{proxy+}" // the webhooks' path has made a resource of /v1
	}
	return "/{proxy+}"
}

func proxyBelow(resource awsapigateway.IResource) awsapigateway.IResource {
	return resource.AddProxy(&awsapigateway.ProxyResourceOptions{AnyMethod: jsii.Bool(false)})
}

// restWebhook gives the provider's webhooks their function, and returns what stands beside their path: a resource's siblings
// are none of the root's proxy any more, and stay the application's.
func restWebhook(root awsapigateway.IResource, webhook awslambda.IFunction) []awsapigateway.IResource {
	var beside []awsapigateway.IResource
	resource, segments := root, strings.Split(strings.Trim(webhookPath, "/"), "/")
	for i, segment := range segments {
		resource = resource.AddResource(jsii.String(segment), nil)
		if i < len(segments)-1 {
			beside = append(beside, resource, proxyBelow(resource))
		}
	}
	resource.AddMethod(jsii.String("ANY"), awsapigateway.NewLambdaIntegration(webhook, &awsapigateway.LambdaIntegrationOptions{
		AllowTestInvoke: jsii.Bool(false),
	}), &awsapigateway.MethodOptions{AuthorizationType: awsapigateway.AuthorizationType_NONE})
	return beside
}

// problem is RFC 9457's document with the stable code of this application's errors.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Code   string `json:"code"`
}

// problemResponse makes a gateway's own refusal look like the application's. Header values are single-quoted literals
// in API Gateway's mapping syntax.
func problemResponse(
	api awsapigateway.RestApi, id string, kind awsapigateway.ResponseType, status int, code, detail string,
) {
	body, err := json.Marshal(problem{"about:blank", http.StatusText(status), status, detail, code})
	if err != nil {
		panic("stack: problem document: " + err.Error())
	}
	headers := map[string]*string{"Content-Type": jsii.String("'application/problem+json'")}
	if status == http.StatusUnauthorized {
		headers["WWW-Authenticate"] = jsii.String("'Bearer'") // RFC 9110 section 15.5.2: a 401 must carry a challenge
	}
	if status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests {
		headers["Retry-After"] = jsii.String("'1'") // clients that are told nothing choose by themselves
	}
	api.AddGatewayResponse(jsii.String(id), &awsapigateway.GatewayResponseOptions{
		Type:            kind,
		StatusCode:      jsii.String(strconv.Itoa(status)),
		ResponseHeaders: &headers,
		Templates:       &map[string]*string{"application/json": jsii.String(string(body))},
	})
}
