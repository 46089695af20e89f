// Command infra is the CDK app: it synthesizes the payments stack that CDK context describes. README.md lists the keys.
// With the argument "stage" and the path of a stage's file it checks the file instead, and prints what to deploy as JSON.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"
	"github.com/go-json-experiment/json"

	"github.com/idem-go/idem-aws/infra/stack"
	"github.com/idem-go/idem-aws/infra/stage"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == "stage" { // before any CDK: no Node process is needed
		if err := printStage(os.Args[2], os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
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

func printStage(path string, out io.Writer) error {
	plan, err := stage.Read(path)
	if err != nil {
		return err
	}
	return json.MarshalWrite(out, plan)
}
