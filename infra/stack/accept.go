package stack

import (
	"fmt"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigateway"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigatewayv2"
	"github.com/aws/constructs-go/constructs/v10"

	"github.com/idem-go/idem-aws/infra/lint"
)

// Why some routes and methods need no authorizer of the gateway's.
const (
	webhookIsSigned   = "The provider's webhooks are signed, and their function refuses what is not."
	preflightIsOpen   = "A preflight carries no credentials; the application answers it and executes nothing."
	functionChecks    = "auth=function: the application authenticates every request itself."
	keysAreOwn        = "Callers are tenants with API keys of this application, not users of a Cognito pool."
	noTracing         = "X-Ray is off: it is billed by request. Lines of the gateway and of the functions share request ids."
	accessLogsAreOff  = "accessLogs=off was chosen."
	throttleIsOff     = "apiThrottle=off was chosen: what the account lets through is the bound."
	alarmsMissedRuns  = "A run that was not made is the next run's work, and an alarm rings where runs are missing."
	listStreamsOfOne  = "ListStreams names no one stream; all streams of this one table are the narrowest there is."
	restoredAreNew    = "A restored table has the name of the one it is of and a suffix that the operator chooses, and a backup an id that DynamoDB makes."
	listBackupsOfAll  = "ListBackups names no table: it shows the names of backups, and changes none."
	roleBeforeItsUser = "CDK adds the dependency whether or not a reference says the same; it changes nothing."
)

// missedRuns is for rules of a schedule.
var missedRuns = map[string]string{"Serverless-EventBusDLQ": alarmsMissedRuns}

// streamReader is for the role of who reads the outbox stream.
func (c Config) streamReader() map[string]string {
	return map[string]string{wildcard(c.linted("TablesOutbox", c.Import.Outbox) + "/stream/*"): listStreamsOfOne}
}

// acceptRecovery is for the policy of those who restore tables.
func (p parts) acceptRecovery(policy constructs.IConstruct) {
	c := p.config
	accepted := map[string]string{wildcard("*"): listBackupsOfAll}
	for _, table := range []string{
		c.linted("TablesIdempotency", c.Import.Idempotency), c.linted("TablesOutbox", c.Import.Outbox), c.linted("Payments", c.Import.Payments),
	} {
		accepted[wildcard(table+ofRestored)], accepted[wildcard(table+ofBackups)] = restoredAreNew, restoredAreNew
	}
	lint.Accept(policy, accepted)
}

// wildcard is the finding of cdk-nag about a resource that is a pattern.
func wildcard(resource string) string { return "AwsSolutions-IAM5[Resource::" + resource + "]" }

// linted is a table as cdk-nag writes it: by its id where the stack makes it, and by its ARN where it is imported.
func (c Config) linted(id, imported string) string {
	if imported == "" {
		return "<" + id + ".Arn>"
	}
	return fmt.Sprintf("arn:%s:dynamodb:%s:%s:table/%s", partition(c.Region), c.Region, c.Account, imported)
}

// acceptOpenRoutes says of each route without an authorizer why it has none.
func acceptOpenRoutes(api constructs.IConstruct) {
	for _, each := range *api.Node().FindAll(constructs.ConstructOrder_PREORDER) {
		switch r := each.(type) {
		case awsapigatewayv2.CfnRoute:
			if kind := r.AuthorizationType(); kind == nil || *kind == "NONE" {
				lint.Accept(r, map[string]string{"AwsSolutions-APIG4": openBecause(*r.RouteKey(), strings.HasPrefix(*r.RouteKey(), "OPTIONS "))})
			}
		case awsapigateway.CfnMethod:
			preflight := *r.HttpMethod() == "OPTIONS"
			if kind := r.AuthorizationType(); kind != nil && *kind == "NONE" {
				lint.Accept(r, map[string]string{"AwsSolutions-APIG4": openBecause(*r.Node().Path(), preflight)})
			}
			if !preflight {
				lint.Accept(r, map[string]string{"AwsSolutions-COG4": keysAreOwn})
			}
		}
	}
}

// openBecause is why a route has no authorizer, by its key or its construct's path.
func openBecause(path string, preflight bool) string {
	switch {
	case strings.Contains(strings.ReplaceAll(path, "/Default/", "/"), webhookPath):
		return webhookIsSigned
	case preflight:
		return preflightIsOpen
	}
	return functionChecks
}

// acceptStage says of a stage what was chosen.
func acceptStage(stage constructs.IConstruct, config Config) {
	if !config.AccessLogs {
		lint.Accept(stage, map[string]string{"AwsSolutions-APIG1": accessLogsAreOff, "Serverless-APIGWAccessLogging": accessLogsAreOff})
	}
	if config.APIThrottle.off() {
		lint.Accept(stage, map[string]string{"Serverless-APIGWDefaultThrottling": throttleIsOff})
	}
}

// acceptREST says of a REST API what it leaves to the application.
func acceptREST(api awsapigateway.RestApi, config Config) {
	lint.Accept(api, map[string]string{
		"AwsSolutions-APIG2": "The application validates every request, and answers with its own problem documents.",
	})
	stage := api.DeploymentStage()
	acceptStage(stage, config)
	if !config.WAF {
		lint.Accept(stage, map[string]string{"AwsSolutions-APIG3": "waf=off was chosen."})
	}
	lint.Accept(stage, map[string]string{
		"AwsSolutions-APIG6":          "Execution logs repeat what the access log and the functions' lines say, at a price for each request.",
		"Serverless-APIGWXrayEnabled": noTracing,
	})
}
