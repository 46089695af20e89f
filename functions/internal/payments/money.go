package payments

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
)

// money is an amount in minor units of a currency, as the provider is asked for it.
type money struct {
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"`
}

// told is what the provider tells of money; nil is what it does not tell.
type told struct {
	Amount   *int64  `json:"amount"`
	Currency *string `json:"currency"`
}

// contradicts says that what is told is not what was asked for. What is not told contradicts nothing.
func (t told) contradicts(asked money) bool {
	return t.Amount != nil && *t.Amount != asked.Amount || t.Currency != nil && *t.Currency != asked.Currency
}

// String is for people.
func (t told) String() string {
	amount, currency := "an amount", "an unnamed currency"
	if t.Amount != nil {
		amount = fmt.Sprint(*t.Amount)
	}
	if t.Currency != nil {
		currency = *t.Currency
	}
	return amount + " " + currency
}

// askedFor is the money that a message asks the provider for. It returns an error for what this release can't read.
func askedFor(m storage.Message) (money, error) {
	i := slices.IndexFunc(effects(), func(e effect) bool { return e.topic == m.Topic })
	if i < 0 {
		return money{}, &outbox.TopicError{Topic: m.Topic}
	}
	order, err := effects()[i].order(m.Payload)
	if err != nil {
		return money{}, err
	}
	body, err := json.Marshal(order.body)
	if err != nil {
		return money{}, err
	}
	var asked money
	return asked, json.Unmarshal(body, &asked)
}

// agreed settles only what is about the money that was asked for. Evidence of another amount is kept, and the message stands
// before a person: whatever happened, it is not what the response would say.
func agreed(settle func(storage.Message, outbox.Outcome) (outbox.Settlement, error)) func(storage.Message, outbox.Outcome) (outbox.Settlement, error) {
	return func(m storage.Message, o outbox.Outcome) (outbox.Settlement, error) {
		about, err := moneyIn(o)
		if err != nil {
			return outbox.Settlement{}, err
		}
		if about == (told{}) {
			return settle(m, o)
		}
		asked, err := askedFor(m)
		if err != nil {
			return outbox.Settlement{}, err
		}
		if about.contradicts(asked) {
			return outbox.Settlement{}, fmt.Errorf("payments: the provider's object has %v, but %d %s was asked for", about, asked.Amount, asked.Currency)
		}
		return settle(m, o)
	}
}

// moneyIn is what evidence says of money: nothing, where it is a person's own words and no object of the provider's. An
// object whose money can't be read is an error: it may be other money than was asked for.
func moneyIn(o outbox.Outcome) (about told, err error) {
	var evidence []byte
	switch o := o.(type) {
	case outbox.Delivered:
		evidence = o.Evidence
	case outbox.Declined:
		evidence = o.Evidence
	}
	if !bytes.HasPrefix(bytes.TrimLeft(evidence, " \t\r\n"), []byte("{")) {
		return told{}, nil
	}
	if err := json.Unmarshal(evidence, &about); err != nil {
		return told{}, fmt.Errorf("payments: the money of the provider's object can't be read: %w", err)
	}
	return about, nil
}
