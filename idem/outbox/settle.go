package outbox

import (
	"encoding/json"
	"fmt"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/storage"
)

// ask calls Settle; a panic is an error like any other.
func (t Topic) ask(m storage.Message, o Outcome) (said Settlement, err error) {
	if m.Sealed {
		return Settlement{}, fmt.Errorf("outbox: settle of %s: the payload can't be opened any more", t.Name)
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("outbox: settle of %s panicked with a %T", t.Name, p)
		}
	}()
	return t.Settle(m, o)
}

// short is what is stored where the final response is too large: the topic's fallback, or if that is none or too large
// itself, the status with the operation and the provider's reference.
func (t Topic) short(m storage.Message, o Outcome, status int, checkSize func(idem.Response) error) idem.Response {
	if t.Fallback != nil {
		if r, ok := t.ownShort(m, o); ok && r.Status >= 200 && r.Status <= 599 && checkSize(r) == nil {
			return r
		}
	}
	body := struct {
		Operation idem.OperationID `json:"operation"`
		Reference string           `json:"reference,omitempty"`
		Code      string           `json:"code"`
	}{Operation: m.OperationID, Reference: referenceOf(o), Code: "response_too_large"}
	if len(body.Reference) > referenceBytesMax {
		body.Reference = ""
	}
	raw, err := json.Marshal(body)
	if err != nil { // strings always encode
		panic(err)
	}
	return idem.Response{Status: status, Header: []idem.Field{{Name: "Content-Type", Value: "application/json"}}, Body: raw}
}

// referenceBytesMax keeps the default fallback within fallbackBytes: JSON escapes make at most six bytes of one.
const referenceBytesMax = 512

func (t Topic) ownShort(m storage.Message, o Outcome) (r idem.Response, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	return t.Fallback(m, o), true
}
