// Command infra is the CDK app: it synthesizes the payments stack that CDK context describes. README.md lists the keys.
package main

import (
	"fmt"
	"os"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"

	"github.com/idem-go/idem-aws/infra/stack"
)

func main() {
	err := synthesize()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	jsii.Close() // after the error: it may have a word of its own to say about its Node process
	if err != nil {
		os.Exit(1)
	}
}

func synthesize() error {
	app := awscdk.NewApp(nil)
	config, err := stack.Read(func(key string) any { return app.Node().TryGetContext(jsii.String(key)) }, os.Getenv)
	if err != nil {
		return err
	}
	if _, err := stack.New(app, config); err != nil {
		return err
	}
	app.Synth(nil)
	return nil
}
