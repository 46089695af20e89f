package stack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/idem-go/idem-aws/localstack/logview"
)

// logsPoll is how often the log groups are asked; logsOverlap is how far back, because an emulator writes the lines of an
// invocation when it is over, with the time at which it began.
const (
	logsPoll    = time.Second
	logsOverlap = 90 * time.Second
)

// source is one function's log.
type source struct {
	name   string
	groups []string
}

// Logs prints what the functions log, from now on and what they logged in the last minute and a half, until ctx ends: for a
// person, or raw, as it was logged and nothing else. The stack has to be up. Lambda's own START, END and REPORT lines are left
// out.
func (s *Stack) Logs(ctx context.Context, raw bool) error {
	variables, err := ReadVariables(s.options.EnvFile)
	if err != nil {
		return err
	}
	config, err := localConfig(variables[variableEndpoint])
	if err != nil {
		return fmt.Errorf("logs: the stack is not up: %w", err)
	}
	sources, err := logSources(ctx, lambda.NewFromConfig(config), variables)
	if err != nil {
		return err
	}
	show := rawLines
	if !raw {
		s.out.Line("Logs of the functions; Ctrl-C ends this, and the stack stays up. RAW=1 shows every field.")
		show = (&logview.View{Colour: s.out.Terminal(), Location: time.Local}).Round
	}
	reader := logReader{client: cloudwatchlogs.NewFromConfig(config), seen: map[string]bool{}}
	ticker := time.NewTicker(logsPoll)
	defer ticker.Stop()
	for {
		var round []logview.Entry
		for _, from := range sources {
			entries, err := reader.read(ctx, from)
			if ctx.Err() != nil {
				return nil
			}
			if err != nil {
				return err
			}
			round = append(round, entries...)
		}
		for _, line := range show(round) {
			s.out.Line("%s", line)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// rawLines are entries as they were logged.
func rawLines(entries []logview.Entry) []string {
	lines := make([]string, len(entries))
	for i, entry := range entries {
		lines[i] = entry.Text
	}
	return lines
}

// logSources finds each function's log group: the one that its configuration names, and Lambda's default, which LocalStack
// uses whatever the configuration says.
func logSources(ctx context.Context, client *lambda.Client, variables Variables) ([]source, error) {
	var sources []source
	for name, function := range variables {
		short, isFunction := strings.CutPrefix(name, functionPrefix)
		if !isFunction {
			continue
		}
		configuration, err := client.GetFunctionConfiguration(ctx, &lambda.GetFunctionConfigurationInput{FunctionName: aws.String(function)})
		if err != nil {
			return nil, fmt.Errorf("logs of %s: %w", function, err)
		}
		groups := []string{"/aws/lambda/" + function}
		if logging := configuration.LoggingConfig; logging != nil && logging.LogGroup != nil && *logging.LogGroup != groups[0] {
			groups = append(groups, *logging.LogGroup)
		}
		sources = append(sources, source{name: strings.ToLower(short), groups: groups})
	}
	slices.SortFunc(sources, func(a, b source) int { return strings.Compare(a.name, b.name) })
	return sources, nil
}

// logReader reads log events, each once.
type logReader struct {
	client *cloudwatchlogs.Client
	seen   map[string]bool
}

func (r *logReader) read(ctx context.Context, from source) ([]logview.Entry, error) {
	since := time.Now().Add(-logsOverlap).UnixMilli()
	var entries []logview.Entry
	for _, group := range from.groups {
		pages := cloudwatchlogs.NewFilterLogEventsPaginator(r.client, &cloudwatchlogs.FilterLogEventsInput{
			LogGroupName: aws.String(group), StartTime: aws.Int64(since),
		})
		repeated := map[string]int{}
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if absent := (*types.ResourceNotFoundException)(nil); errors.As(err, &absent) {
				break // a function that was never called has no log yet
			}
			if err != nil {
				return nil, fmt.Errorf("read log group %s: %w", group, err)
			}
			for _, event := range page.Events {
				if message := r.unseen(event, repeated); message != "" {
					at := time.UnixMilli(aws.ToInt64(event.Timestamp))
					entries = append(entries, logview.Entry{Function: from.name, At: at, Text: message})
				}
			}
		}
	}
	return entries, nil
}

// unseen is the event's text, "" unless it is new and the function's own. An emulator gives events no id of their own, so equal
// lines of one stream and time are told apart by how often they occurred in this reading.
func (r *logReader) unseen(event types.FilteredLogEvent, repeated map[string]int) string {
	message := strings.TrimRight(aws.ToString(event.Message), "\n")
	identity := fmt.Sprintf("%s %d %s", aws.ToString(event.LogStreamName), aws.ToInt64(event.Timestamp), message)
	repeated[identity]++
	identity = fmt.Sprintf("%s %d", identity, repeated[identity])
	if r.seen[identity] || isPlatformLine(message) {
		return ""
	}
	r.seen[identity] = true
	return message
}

// isPlatformLine tells the lines that Lambda writes around each invocation.
func isPlatformLine(message string) bool {
	for _, prefix := range []string{"START RequestId:", "END RequestId:", "REPORT RequestId:"} {
		if strings.HasPrefix(message, prefix) {
			return true
		}
	}
	return message == ""
}
