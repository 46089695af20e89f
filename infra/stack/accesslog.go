package stack

import (
	"encoding/json"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigateway"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigatewayv2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// accessLogFields are what the gateway writes of each request, one JSON object a line. The function's own lines have functionRequestId as
// request_id, and requestId as gateway_request_id, as the authorizer's have. No header, query or body is among them, so neither keys nor tokens are in this log.
var accessLogFields = map[string]string{
	"requestId":         "$context.requestId",
	"extendedRequestId": "$context.extendedRequestId",
	"functionRequestId": "$context.integration.requestId",
	"requestTime":       "$context.requestTime",
	"ip":                "$context.identity.sourceIp",
	"protocol":          "$context.protocol",
	"httpMethod":        "$context.httpMethod",
	"path":              "$context.path",
	"status":            "$context.status",
	"responseLength":    "$context.responseLength",
	"responseLatency":   "$context.responseLatency",
	"tenant":            "$context.authorizer.tenant",
	"error":             "$context.error.message",
	"functionStatus":    "$context.integration.status",
	"functionError":     "$context.integration.error",
}

// accessLogFormat is the fields as API Gateway wants them.
func accessLogFormat() *string {
	format, err := json.Marshal(accessLogFields)
	if err != nil { // a map of strings
		panic("stack: format of the access log: " + err.Error())
	}
	return jsii.String(string(format))
}

// accessLog is where the gateway writes its lines; nil without access logs. It is kept as long as the functions' logs.
func accessLog(scope constructs.Construct, config Config) awslogs.LogGroup {
	if !config.AccessLogs {
		return nil
	}
	return awslogs.NewLogGroup(scope, jsii.String("AccessLogs"), logGroup(config))
}

// logHTTP has the default stage of an HTTP API write the access log.
func logHTTP(api awsapigatewayv2.HttpApi, log awslogs.LogGroup) {
	if log == nil {
		return
	}
	stage := api.DefaultStage().Node().DefaultChild().(awsapigatewayv2.CfnStage)
	stage.SetAccessLogSettings(&awsapigatewayv2.CfnStage_AccessLogSettingsProperty{
		DestinationArn: log.LogGroupArn(), Format: accessLogFormat(),
	})
}

// logREST is logHTTP for a REST API. API Gateway writes it as the role that the account's settings in the Region name.
func logREST(options *awsapigateway.StageOptions, log awslogs.LogGroup) {
	if log == nil {
		return
	}
	options.AccessLogDestination = awsapigateway.NewLogGroupLogDestination(log)
	options.AccessLogFormat = awsapigateway.AccessLogFormat_Custom(accessLogFormat())
}
