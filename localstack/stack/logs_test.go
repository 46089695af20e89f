package stack

import (
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"

	"github.com/idem-go/idem-aws/localstack/logview"
)

func TestRawLinesAreAsTheyWereLogged(t *testing.T) {
	texts := []string{`{"msg":"a","z":1,"b":"\u001b"}`, "panic: b\n\ngoroutine 1 [running]:", `{"msg":"a","z":1,"b":"\u001b"}`}
	var entries []logview.Entry
	for _, text := range texts {
		entries = append(entries, logview.Entry{Function: "api", Text: text})
	}
	if got := rawLines(entries); !slices.Equal(got, texts) {
		t.Errorf("got %q, want %q", got, texts)
	}
}

// Readings overlap, and an emulator gives equal lines of one time no id.
func TestEachEventIsShownOnceAndLambdasOwnLinesNever(t *testing.T) {
	event := func(at int64, message string) types.FilteredLogEvent {
		return types.FilteredLogEvent{LogStreamName: aws.String("s"), Timestamp: aws.Int64(at), Message: aws.String(message)}
	}
	reader := logReader{seen: map[string]bool{}}
	reading := func(events ...types.FilteredLogEvent) (shown []string) {
		repeated := map[string]int{}
		for _, e := range events {
			if text := reader.unseen(e, repeated); text != "" {
				shown = append(shown, text)
			}
		}
		return shown
	}
	twice := []types.FilteredLogEvent{event(1, "a\n"), event(1, "a\n"), event(1, "START RequestId: 1"), event(1, "END RequestId: 1"), event(1, "REPORT RequestId: 1"), event(1, "\n")}
	if got := reading(twice...); !slices.Equal(got, []string{"a", "a"}) {
		t.Errorf("first reading: %q", got)
	}
	if got := reading(append(twice, event(2, "a"), event(1, "a"))...); !slices.Equal(got, []string{"a", "a"}) {
		t.Errorf("second reading: %q", got)
	}
}
