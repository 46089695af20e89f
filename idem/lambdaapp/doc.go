// Package lambdaapp makes the Lambda functions of an application: the API, the worker, the sweep, the reconciler and,
// where new messages go through a queue, the relay. All of them can be one binary, whose process learns from its
// environment which of them it is:
//
//	app, err := lambdaapp.New(lambdaapp.Config{AWS: aws, Topics: topics})
//	…
//	handler, err := app.Handler(ctx, api)
//	…
//	lambda.Start(handler)
//
// Use it to deploy an application on Lambda with DynamoDB and SQS. idemconstruct.NewApplication, of the module infra,
// deploys such a binary with the CDK; infra/sam and infra/terraform deploy it with AWS SAM and Terraform. In a
// container use outbox.Runner.Run and package middleware instead, without this package.
//
// An application with several binaries, other variables or a store of its own takes only the handlers: [Worker],
// [Sweep], [Reconcile] and [Relay].
package lambdaapp
