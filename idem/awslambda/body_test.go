package awslambda

import (
	"testing"

	"github.com/aws/aws-lambda-go/events"
)

func TestTheBodyOfAMessageIsItsInput(t *testing.T) {
	for _, body := range []string{`{"id":"a"}`, "", "\xff not JSON"} {
		if got, err := Body(events.SQSMessage{MessageId: "m", Body: body}); string(got) != body || err != nil {
			t.Errorf("of %q it is %q (%v)", body, got, err)
		}
	}
}
