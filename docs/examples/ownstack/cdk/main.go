// Command cdk is the CDK app of the service. It reads from the environment what differs between stages: BUILD is the folder of the
// binary of command function, ALARM_TOPIC the ARN of an SNS topic or "none", WAREHOUSE_URL where shipments are asked for,
// SCOPE_SECRET_ID the name of the secret that records are named with, or nothing, and EMULATED=true says that the stack goes to an emulator.
package main

import (
	"cmp"
	"os"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigateway"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/jsii-runtime-go"

	"github.com/idem-go/idem-aws/infra/idemconstruct"

	"example.com/shop/service"
)

func main() {
	defer jsii.Close()
	app := awscdk.NewApp(nil)
	emulated := os.Getenv("EMULATED") == "true"
	stack := awscdk.NewStack(app, jsii.String("shop"), &awscdk.StackProps{Env: idemconstruct.StackEnv(emulated)})
	// idem: begin
	idem := idemconstruct.NewApplication(stack, "Idem", idemconstruct.ApplicationProps{
		Code:        awslambda.Code_FromAsset(jsii.String(cmp.Or(os.Getenv("BUILD"), "build")), nil),
		AlarmTopic:  os.Getenv("ALARM_TOPIC"),
		Environment: map[string]string{"WAREHOUSE_URL": os.Getenv("WAREHOUSE_URL")},
		ScopeSecret: os.Getenv("SCOPE_SECRET_ID"),
		Emulated:    emulated,
		Operators:   true,
	})
	idem.NewTable("Orders", service.Orders(), service.OrdersTable)
	api := awsapigateway.NewLambdaRestApi(stack, jsii.String("Api"), &awsapigateway.LambdaRestApiProps{
		Handler: idem.API, CloudWatchRole: jsii.Bool(false), BinaryMediaTypes: jsii.Strings("*/*"),
	})
	awscdk.NewCfnOutput(stack, jsii.String("ApiUrl"), &awscdk.CfnOutputProps{Value: api.Url()})
	// idem: end
	app.Synth(nil)
}
