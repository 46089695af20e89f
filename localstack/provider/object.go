package provider

import (
	"crypto/rand"
	"fmt"
	"strings"
	"time"
)

// Kind is what a request is about, and what a Rule matches: making an object of one of seven kinds, or looking one up.
type Kind string

// The kinds of object, and the two kinds of look-up. What is legacy is made by POST under /legacy, where keys are never
// honoured.
const (
	Charge       Kind = "charge"
	LegacyCharge Kind = "legacy_charge"
	Refund       Kind = "refund"
	Screening    Kind = "screening"
	Release      Kind = "release"
	Payout       Kind = "payout"
	LegacyPayout Kind = "legacy_payout"
	List         Kind = "list" // GET of many
	Get          Kind = "get"  // GET by id
)

// Status is how an object ended. It never changes.
type Status string

// The statuses.
const (
	Succeeded Status = "succeeded"
	Declined  Status = "declined"
)

// Hold says what became of the hold that a screening placed.
type Hold string

// The states of a hold. A screening that was declined places none.
const (
	Standing Hold = "standing"
	Released Hold = "released"
)

// Object is a charge, refund, screening, release or payout, as every endpoint shows it.
type Object struct {
	// ID is opaque, with a prefix by kind: ch_, re_, scr_, rel_, po_.
	ID string `json:"id"`
	// Kind tells what is legacy from what is not.
	Kind   Kind   `json:"object"`
	Status Status `json:"status"`
	// Key is the Idempotency-Key it was made under, empty where there was none.
	Key string `json:"key"`
	// Amount in minor units.
	Amount      int64  `json:"amount"`
	Currency    string `json:"currency"`
	Source      string `json:"source"`
	Destination string `json:"destination,omitempty"`
	Reference   string `json:"reference"`
	// Charge is the id of the charge that a refund gives back.
	Charge string `json:"charge,omitempty"`
	// Screening is the id of the screening whose hold a release ends.
	Screening string `json:"screening,omitempty"`
	// Hold is a screening's: standing until it is released. Answers to POST tell what it was when the screening was made.
	// Empty for all other kinds, and where the screening was declined.
	Hold Hold `json:"hold,omitempty"`
	// Attempts counts the POST requests that arrived with the object's key since the key was new, whatever became of
	// them; 1 for an object without a key and for what is legacy. Absent from answers to POST and from webhooks, which
	// are the same bytes each time.
	Attempts int `json:"attempts,omitempty"`
	// Open is how many of those requests still wait for their answer. Absent where Attempts is.
	Open int `json:"open,omitempty"`
	// Traceparent is that of the request that made the object; absent where Attempts is, and where the request had none.
	Traceparent string `json:"traceparent,omitempty"`
	// CreatedAt in UTC with milliseconds.
	CreatedAt Time `json:"created_at"`
}

// Time is a time that is written in UTC with exactly three decimals.
type Time struct{ time.Time }

// MarshalJSON implements json.Marshaler.
func (t Time) MarshalJSON() ([]byte, error) {
	return []byte(t.UTC().Format(`"2006-01-02T15:04:05.000Z"`)), nil
}

// legacy says that keys are not honoured.
func (k Kind) legacy() bool { return k == LegacyCharge || k == LegacyPayout }

// prefix of the ids of a kind.
func (k Kind) prefix() string {
	switch k {
	case Charge, LegacyCharge:
		return "ch_"
	case Refund:
		return "re_"
	case Screening:
		return "scr_"
	case Release:
		return "rel_"
	case Payout, LegacyPayout:
		return "po_"
	case List, Get:
		return ""
	}
	return ""
}

// newID is random, not counted: after a reset nothing may look like what was there before it.
func newID(prefix string) string {
	return prefix + strings.ToLower(rand.Text())
}

// order is the body of a request that makes an object; two with one key must be equal.
type order struct {
	Amount      int64  `json:"amount"`
	Currency    string `json:"currency"`
	Source      string `json:"source"`
	Destination string `json:"destination"`
	Reference   string `json:"reference"`
}

// Bounds of an order, in bytes.
const (
	nameBytesMax = 255
	// textBytesMax takes what a payment's reference may hold: 140 characters of any script.
	textBytesMax = 1024
	keyBytesMax  = 255
)

// check returns what is wrong with an order for an object of the kind, and the member that it is wrong with; or "".
func (o order) check(k Kind) (param, wrong string) {
	switch {
	case o.Amount <= 0:
		return "amount", "amount must be an integer above 0, in minor units"
	case !isCurrency(o.Currency) && (k != Refund && k != Release || o.Currency != ""):
		return "currency", "currency must be three capitals"
	case o.Source == "" && (k == Charge || k == LegacyCharge):
		return "source", "source is missing"
	case o.Destination == "" && (k == Payout || k == LegacyPayout):
		return "destination", "destination is missing"
	case o.Destination == "" && o.Source == "" && k == Screening:
		return "destination", "destination or source is missing"
	case len(o.Source) > nameBytesMax:
		return "source", fmt.Sprintf("a source has at most %d bytes", nameBytesMax)
	case len(o.Destination) > nameBytesMax:
		return "destination", fmt.Sprintf("a destination has at most %d bytes", nameBytesMax)
	case len(o.Reference) > textBytesMax:
		return "reference", fmt.Sprintf("a reference has at most %d bytes", textBytesMax)
	}
	return "", ""
}

func isCurrency(s string) bool {
	return len(s) == 3 && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}
