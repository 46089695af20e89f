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
		logged, err := logOfGroup(ctx, group)
		if absent := (*types.ResourceNotFoundException)(nil); errors.As(err, &absent) {
			continue // nothing was logged there
		}
		if err != nil {
			return nil, fmt.Errorf("log of %s: %w", function, err)
		}
		messages = append(messages, logged...)
	}
	return messages, nil
}

// logPage is how many lines one answer has at most (FilterLogEvents, limit).
const logPage = 10_000

// logOfGroup reads a log group whole. ministack answers with the oldest lines and without a token for the rest, so that a full answer is
// followed by one from its last line on.
func logOfGroup(ctx context.Context, group string) (messages []string, err error) {
	type line struct {
		stream, message string
		at              int64
	}
	seen, from := map[line]bool{}, int64(0)
	for {
		read, last := 0, from
		pages := cloudwatchlogs.NewFilterLogEventsPaginator(deployed.logs, &cloudwatchlogs.FilterLogEventsInput{
			LogGroupName: aws.String(group), StartTime: aws.Int64(from),
		})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return nil, err
			}
			read += len(page.Events)
			for _, event := range page.Events {
				l := line{aws.ToString(event.LogStreamName), aws.ToString(event.Message), aws.ToInt64(event.Timestamp)}
				if !seen[l] {
					seen[l], messages = true, append(messages, l.message)
				}
				last = max(last, l.at)
			}
		}
		switch {
		case read < logPage:
			return messages, nil
		case last == from:
			return nil, fmt.Errorf("%s: more than %d lines in one millisecond", group, logPage)
		}
		from = last
	}
}
