package payments

import (
	"testing"

	"github.com/idem-go/idem-aws/idem/outbox"
)

// Evidence of other money than was asked for settles nothing, wherever it comes from: call, probe, webhook or person.
func TestEvidenceOfOtherMoneySettlesNothing(t *testing.T) {
	for _, e := range effects() {
		m := contractedMessage(t, e.topic)
		asked, err := askedFor(m)
		if err != nil {
			t.Fatal(err)
		}
		if asked.Amount == 0 || asked.Currency == "" {
			t.Fatalf("%s asks for %+v", e.topic, asked)
		}
		for evidence, settles := range map[string]bool{
			`{"id":"x_1","amount":1,"currency":"EUR"}`: false,
			`{"id":"x_1","currency":"USD"}`:            false,
			`{"id":"x_1","currency":"EUR"}`:            true,
			`{"id":"x_1","amount":0,"currency":"EUR"}`: false, // zero is told, and is not what was asked for
			`{"id":"x_1","amount":0}`:                  false,
			`{"id":"x_1","currency":""}`:               false,
			`{"id":"x_1","amount":"1"}`:                false, // money that can't be read may be any
			`{"id":"x_1","amount":1.5}`:                false,
			`{"id":"x_1","amount":`:                    false,
			`{"id":"x_1"}`:                             true,
			`"seen in the provider's dashboard"`:       true,
			`seen in the provider's dashboard`:         true,
			"":                                         true,
		} {
			for _, o := range []outbox.Outcome{
				outbox.Delivered{Reference: "x_1", Evidence: []byte(evidence)}, outbox.Declined{Reference: "x_1", Evidence: []byte(evidence)},
			} {
				if _, declined := o.(outbox.Declined); declined && e.topic == TopicReleases {
					continue // it settles by nothing but a release
				}
				if _, err := settleOf(e.topic)(m, o); (err == nil) != settles {
					t.Errorf("%s, %T of %s: %v, want it settled: %t", e.topic, o, evidence, err, settles)
				}
			}
		}
	}
}
