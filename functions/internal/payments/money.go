package payments

import (
	"cmp"
	stdjson "encoding/json"
	"fmt"
	"slices"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
)

// money is an amount in minor units of a currency, as the provider is asked for it and tells of it.
type money struct {
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"`
}

// contradicts says that what is told is not what was asked for. What is not told contradicts nothing.
func (told money) contradicts(asked money) bool {
	return cmp.Or(told.Amount, asked.Amount) != asked.Amount || cmp.Or(told.Currency, asked.Currency) != asked.Currency
}

// askedFor is the money that a message asks the provider for. It returns an error for what this release can't read.
func askedFor(m idem.Message) (money, error) {
	i := slices.IndexFunc(effects(), func(e effect) bool { return e.topic == m.Topic })
	if i < 0 {
		return money{}, &outbox.TopicError{Topic: m.Topic}
	}
	order, err := effects()[i].order(m.Payload)
	if err != nil {
		return money{}, err
	}
	body, err := stdjson.Marshal(order.body)
	if err != nil {
		return money{}, err
	}
	var asked money
	return asked, stdjson.Unmarshal(body, &asked)
}

// agreed settles only what is about the money that was asked for. Evidence of another amount is kept, and the message stands
// before a person: whatever happened, it is not what the response would say.
func agreed(settle func(idem.Message, outbox.Outcome) (outbox.Settlement, error)) func(idem.Message, outbox.Outcome) (outbox.Settlement, error) {
	return func(m idem.Message, o outbox.Outcome) (outbox.Settlement, error) {
		told := moneyIn(o)
		if told == (money{}) {
			return settle(m, o)
		}
		asked, err := askedFor(m)
		if err != nil {
			return outbox.Settlement{}, err
		}
		if told.contradicts(asked) {
			return outbox.Settlement{}, fmt.Errorf("payments: the provider tells of %d %s, %d %s was asked for", told.Amount, told.Currency, asked.Amount, asked.Currency)
		}
		return settle(m, o)
	}
}

// moneyIn is what evidence says of money: nothing, where it is a person's own words.
func moneyIn(o outbox.Outcome) (told money) {
	var evidence []byte
	switch o := o.(type) {
	case outbox.Delivered:
		evidence = o.Evidence
	case outbox.Declined:
		evidence = o.Evidence
	}
	if stdjson.Unmarshal(evidence, &told) != nil {
		return money{}
	}
	return told
}
