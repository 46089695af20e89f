// Command cdk is the CDK app of command function: everything that idem needs, a table of orders, and an API. EMULATED=true says
// that the stack goes to an emulator.
package main

import (
	"os"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigateway"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/jsii-runtime-go"

	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/infra/idemconstruct"
)

func main() {
	defer jsii.Close()
	app := awscdk.NewApp(nil)
	emulated := os.Getenv("EMULATED") == "true"
	stack := awscdk.NewStack(app, jsii.String("orders"), &awscdk.StackProps{Env: idemconstruct.StackEnv(emulated)})
	orders := idemconstruct.NewApplication(stack, "Idem", idemconstruct.ApplicationProps{
		Code:       awslambda.Code_FromAsset(jsii.String("build"), nil), // holds the binary, bootstrap
		AlarmTopic: idemconstruct.NoTopic,                               // in production: the ARN of an SNS topic
		Emulated:   emulated,
	})
	orders.NewTable("Orders", schema.Table{Key: "id"}, "ORDERS_TABLE")
	api := awsapigateway.NewLambdaRestApi(stack, jsii.String("Api"), &awsapigateway.LambdaRestApiProps{
		Handler: orders.API, CloudWatchRole: jsii.Bool(false), BinaryMediaTypes: jsii.Strings("*/*"),
	})
	awscdk.NewCfnOutput(stack, jsii.String("ApiUrl"), &awscdk.CfnOutputProps{Value: api.Url()})
	app.Synth(nil)
}
