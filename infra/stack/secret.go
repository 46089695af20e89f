package stack

import (
	"regexp"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/jsii-runtime-go"

	"github.com/idem-go/idem-aws/infra/idemconstruct"
)

// secretForm is what names a secret.
var secretForm = form{
	regexp.MustCompile(`^(arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:[A-Za-z0-9/_+=.@-]{1,256}-[A-Za-z0-9]{6}|[A-Za-z0-9/_+=.@-]{1,256})?$`),
	"the name or the whole ARN of a secret in AWS Secrets Manager",
}

// readSecret allows a function to read a secret by its name or ARN. An ARN ends with six characters that are not in the name.
func (c Config) readSecret(id string) awsiam.PolicyStatement {
	arn := id
	if !strings.HasPrefix(id, "arn:") {
		arn = "arn:" + *awscdk.Aws_PARTITION() + ":secretsmanager:" + c.Region + ":" + c.Account + ":secret:" + id + "-??????"
	}
	return idemconstruct.Allow([]string{"secretsmanager:GetSecretValue"}, jsii.String(arn))
}
