//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
)

// logOf returns everything that a function has logged: in the log group that its configuration names, and in Lambda's
// default one, which LocalStack uses whatever the configuration says.
func logOf(ctx context.Context, function string) ([]string, error) {
	configuration, err := deployed.functions.GetFunctionConfiguration(ctx, &lambda.GetFunctionConfigurationInput{FunctionName: aws.String(function)})
	if err != nil {
		return nil, fmt.Errorf("log of %s: %w", function, err)
	}
	groups := []string{"/aws/lambda/" + function}
	if logging := configuration.LoggingConfig; logging != nil && logging.LogGroup != nil && *logging.LogGroup != groups[0] {
		groups = append(groups, *logging.LogGroup)
	}
	var messages []string
	for _, group := range groups {
		pages := cloudwatchlogs.NewFilterLogEventsPaginator(deployed.logs, &cloudwatchlogs.FilterLogEventsInput{LogGroupName: aws.String(group)})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if absent := (*types.ResourceNotFoundException)(nil); errors.As(err, &absent) {
				break // nothing was logged there
			}
			if err != nil {
				return nil, fmt.Errorf("log of %s: %w", function, err)
			}
			for _, event := range page.Events {
				messages = append(messages, aws.ToString(event.Message))
			}
		}
	}
	return messages, nil
}
