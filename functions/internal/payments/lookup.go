package payments

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/telemetry/trace"
)

// lookUpBytesMax bounds the provider's answer to a look-up.
const lookUpBytesMax = 1 << 20

// object is what is read of a charge, refund, screening, release or payout at the provider.
type object struct {
	ID string `json:"id"`
	// Status and Key are nil where the provider tells none. Key is the one that the object was asked for under.
	Status *Status         `json:"status"`
	Key    *idem.MessageID `json:"key"`
}

var errAnotherKey = errors.New("payments: the provider's object was made under another key")

// under returns an error for an object that another message's call made. What is not told contradicts nothing.
func (o object) under(key idem.MessageID) error {
	if o.Key != nil && *o.Key != key {
		return errAnotherKey
	}
	return nil
}

// outcome is what the object, whose bytes are the evidence, says of the call that made it; nil while it decides nothing.
func (o object) outcome(evidence []byte) outbox.Outcome {
	if o.Status == nil {
		return nil
	}
	switch *o.Status {
	case StatusSucceeded:
		return outbox.Delivered{Reference: o.ID, Evidence: evidence}
	case StatusDeclined:
		return outbox.Declined{Reference: o.ID, Evidence: evidence}
	case StatusPending, StatusUnknown, StatusFailed: // as any other that is no end
	}
	return nil
}

var (
	errNoID   = errors.New("payments: the provider's answer has no id")
	errLongID = errors.New("payments: the provider's answer has an id that is too long for one")
	errLarge  = errors.New("payments: the provider's object is larger than what a message keeps of it")
)

// idBytesMax bounds the provider's ids: those of screenings and declines go into the payloads of what follows.
const idBytesMax = 255

// tells returns an error for an object that can't be what an outcome under the key is about. A list is not asked so: other objects may
// be on it.
func (o object) tells(status Status, key idem.MessageID) error {
	if o.Status != nil && *o.Status != status {
		return fmt.Errorf("payments: an object with status %q", *o.Status)
	}
	return o.under(key)
}

// agrees holds the provider's answer to a call against the object in it: a 201 with an object that is still being processed, or was
// declined, is no success.
func agrees(key idem.MessageID) func(declined bool, body []byte) error {
	return func(declined bool, body []byte) error {
		o, err := objectIn(body)
		switch {
		case err != nil:
			return err
		case declined:
			return o.tells(StatusDeclined, key)
		}
		return o.tells(StatusSucceeded, key)
	}
}

// objectIn reads an object. One of which a message could keep the first part only is none: it could not be settled later.
func objectIn(body []byte) (object, error) {
	var o object
	if len(body) > outbox.EvidenceBytesMax {
		return o, errLarge
	}
	if err := json.Unmarshal(body, &o); err != nil {
		return o, err
	}
	switch {
	case o.ID == "":
		return o, errNoID
	case len(o.ID) > idBytesMax:
		return o, errLongID
	}
	return o, nil
}

func referenceIn(body []byte) (string, error) {
	o, err := objectIn(body)
	return o.ID, err
}

// find looks up what a call made by its downstream key. Nothing found is no proof yet: its caller knows when it is.
func (p *Provider) find(ctx context.Context, path string, m storage.Message) outbox.Finding {
	body, err := p.listed(ctx, path, m.ID)
	if err != nil {
		return outbox.Unclear{Cause: err}
	}
	return findingOf(body, m.ID)
}

// Made is what the provider shows under a message's key, as it shows it; nil for a topic that is not the application's.
func (p *Provider) Made(ctx context.Context, topic string, id idem.MessageID) ([]byte, error) {
	for _, e := range effects() {
		if e.topic == topic {
			body, err := p.listed(ctx, e.listed, id)
			if err == nil && !jsontext.Value(body).IsValid() {
				err = errors.New("payments: malformed look-up")
			}
			return body, err
		}
	}
	return nil, nil
}

func (p *Provider) listed(ctx context.Context, path string, key idem.MessageID) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+path+"?key="+url.QueryEscape(string(key)), nil)
	if err != nil {
		return nil, err
	}
	trace.Inject(ctx, req.Header)
	res, err := p.lookUp.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("payments: look-up answered with status %d", res.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, lookUpBytesMax))
	if err != nil {
		return nil, fmt.Errorf("payments: look-up: %w", err)
	}
	return body, nil
}

// Judged is one of the objects that the provider lists under a message's key, and what it proves of the message.
type Judged struct {
	// Bytes are the object as the provider shows it: they are the evidence.
	Bytes []byte
	// Outcome is what a probe takes the object for; nil where it takes it for nothing, and Doubt says why.
	Outcome outbox.Outcome
	Doubt   error
}

// Why an object that says how it ended is no evidence.
var (
	errUnreadable = errors.New("payments: the object can't be read")
	errNoKey      = errors.New("payments: the object tells no key, and the list has objects that are not the key's")
	errNotAlone   = errors.New("payments: a decline is no end while the list has objects that are none")
)

// Judge reads what the provider lists under a key, and returns its objects in order. There is at most one where all went well; if there are
// more, money that moved has moved, and a decline is an end only where nothing else is open. Where one of another key is among them, or one
// that can't be read, the list was not made by the key: then only what tells the key is evidence. It returns an error for what is no list.
func Judge(list []byte, key idem.MessageID) ([]Judged, error) {
	var objects []jsontext.Value
	if err := json.Unmarshal(list, &objects); err != nil {
		return nil, fmt.Errorf("payments: malformed look-up: %w", err)
	}
	if objects == nil {
		return nil, errors.New("payments: look-up answered null")
	}
	byKey := !slices.ContainsFunc(objects, func(raw jsontext.Value) bool {
		o, err := objectIn(raw)
		return err != nil || o.under(key) != nil
	})
	judged := make([]Judged, len(objects))
	for i, raw := range objects {
		judged[i] = judge(raw, key, byKey)
	}
	alone := !slices.ContainsFunc(judged, func(j Judged) bool { return !j.declined() })
	for i := range judged {
		if judged[i].declined() && !alone {
			judged[i].Outcome, judged[i].Doubt = nil, errNotAlone
		}
	}
	return judged, nil
}

func (j Judged) declined() bool {
	_, is := j.Outcome.(outbox.Declined)
	return is
}

// judge is Judge of one object by itself. byKey says that the whole list was made by the key.
func judge(raw jsontext.Value, key idem.MessageID, byKey bool) Judged {
	j := Judged{Bytes: raw}
	o, err := objectIn(raw)
	switch {
	case errors.Is(err, errNoID), errors.Is(err, errLongID), errors.Is(err, errLarge):
		j.Doubt = err
	case err != nil: // its text may have some of the object's
		j.Doubt = errUnreadable
	case o.under(key) != nil:
		j.Doubt = o.under(key)
	case !byKey && o.Key == nil:
		j.Doubt = errNoKey
	default:
		if j.Outcome = o.outcome(raw); j.Outcome == nil {
			status := Status("none")
			if o.Status != nil {
				status = *o.Status
			}
			j.Doubt = fmt.Errorf("payments: an object with status %q", status)
		}
	}
	return j
}

// findingOf is what the list of a key proves of its message: nothing at all is on a list that proves absence.
func findingOf(list []byte, key idem.MessageID) outbox.Finding {
	objects, err := Judge(list, key)
	if err != nil {
		return outbox.Unclear{Cause: err}
	}
	var finding outbox.Finding = outbox.Absent{}
	for _, o := range objects {
		switch outcome := o.Outcome.(type) {
		case outbox.Delivered:
			return outbox.Found{Outcome: outcome}
		case outbox.Declined:
			finding = outbox.Found{Outcome: outcome}
		default:
			finding = outbox.Unclear{Cause: o.Doubt}
		}
	}
	return finding
}
