package stack

import (
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/jsii-runtime-go"

	"github.com/idem-go/idem-aws/infra/idemconstruct"
	"github.com/idem-go/idem-aws/infra/spec"
)

// secretForm is what names a secret.
var secretForm = form{spec.SecretForm, spec.SecretRule}

// readSecret allows a function to read a secret by its name or ARN. An ARN ends with six characters that are not in the name.
func (c Config) readSecret(id string) awsiam.PolicyStatement {
	arn := id
	if !strings.HasPrefix(id, "arn:") {
		arn = "arn:" + *awscdk.Aws_PARTITION() + ":secretsmanager:" + c.Region + ":" + c.Account + ":secret:" + id + "-??????"
	}
	return idemconstruct.Allow([]string{"secretsmanager:GetSecretValue"}, jsii.String(arn))
}
