package payments

import (
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/idem-go/idem-aws/idem/outbox"
)

// refusal is what is read of an error of the provider's: which member of the request it is about, if it is about one.
type refusal struct {
	Error struct {
		Param string `json:"param"`
	} `json:"error"`
}

// refusedParam is the member that an error of the provider's is about; "" for anything else.
func refusedParam(body []byte) string {
	var r refusal
	if json.Unmarshal(body, &r) != nil {
		return ""
	}
	return r.Error.Param
}

// Members of the provider's requests that the client's own data are sent in. A release has none: what is wrong with it is ours.
var (
	paymentData = []string{"amount", "currency", "source", "reference"}
	refundData  = []string{"amount"}
	payoutData  = []string{"amount", "currency", "destination", "source"} // a screening is of either
)

// rejects says whether an error of the provider's is about one of the members.
func rejects(data []string) func([]byte) bool {
	return func(body []byte) bool { return slices.Contains(data, refusedParam(body)) }
}

// refusedData says whether a decline is the provider's refusal of the client's data: it made no object.
func refusedData(o outbox.Outcome) bool {
	declined, ok := o.(outbox.Declined)
	return ok && declined.Reference == "" && refusedParam(declined.Evidence) != ""
}
