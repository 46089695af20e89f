package stack

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/idem-go/idem-aws/internal/stageplan"
)

// caller is whose the credentials are.
type caller struct {
	account, arn string
	// region is the one that environment or profile name; empty where they name none.
	region string
}

// identify asks AWS. It asks in the stage's Region, which answers only where the account has it enabled.
func identify(ctx context.Context, region string) (caller, error) {
	settings, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return caller{}, err
	}
	named := settings.Region
	settings.Region = region
	identity, err := sts.NewFromConfig(settings).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return caller{}, err
	}
	return caller{account: aws.ToString(identity.Account), arn: aws.ToString(identity.Arn), region: named}, nil
}

// check returns an error where the credentials do not lead to where the plan is.
func (c caller) check(plan stageplan.Plan) error {
	file := fmt.Sprintf("infra/stages/%s.json", plan.Stage)
	if c.account != plan.Account {
		return fmt.Errorf("%s: account=%q is refused: the credentials are of account %s (%s); "+
			"choose others, as by AWS_PROFILE, or correct the file", file, plan.Account, c.account, c.arn)
	}
	if partition := partitionOf(plan.Region); !strings.HasPrefix(c.arn, "arn:"+partition+":") {
		return fmt.Errorf("%s: region=%q is refused: it is in partition %s, and the credentials are of %s", file, plan.Region, partition, c.arn)
	}
	if c.region != "" && c.region != plan.Region {
		return fmt.Errorf("%s: region=%q is refused: your environment or profile names %s; set AWS_REGION=%s, or correct the file",
			file, plan.Region, c.region, plan.Region)
	}
	return nil
}

func partitionOf(region string) string {
	switch {
	case strings.HasPrefix(region, "cn-"):
		return "aws-cn"
	case strings.HasPrefix(region, "us-gov-"):
		return "aws-us-gov"
	}
	return "aws"
}
