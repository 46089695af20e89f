package console

import (
	"time"

	"github.com/idem-go/idem-aws/idem"
)

// Factual is what [operator.Config.Application] may return, so that the console shows more than the library knows. What is
// returned without it is not shown: the console cannot tell what may be.
type Factual interface {
	// Facts returns what the console may show.
	Facts() Facts
}

// Facts are what an application and its provider know of an operation. Everything in them is shown: no body, no secret, and
// nothing of a person that an operator need not see.
type Facts struct {
	// Name is what the operation made: "payment pay_…". Default: it made nothing.
	Name string
	// Fields are what the application knows, in the order in which they are shown.
	Fields []Field
	// Objects are what the provider has under the keys of the operation's messages.
	Objects []Object
	// Unasked says of each message that the provider could not be asked about why not.
	Unasked map[idem.MessageID]string
}

// Field is one thing that is known.
type Field struct {
	// Name is the label, and Value what is shown beside it.
	Name, Value string
}

// Object is something that the provider has made.
type Object struct {
	// Message is whose key it was made under.
	Message idem.MessageID
	// Reference is the provider's name of it.
	Reference string
	// Outcome is what it proves of its message: "delivered", "declined", or "" for neither. Give one only where a worker or a probe would
	// take the object for that: of an object that was made under another message's key it is "".
	Outcome string
	// Evidence is the object as the provider shows it, byte for byte, at most outbox.EvidenceBytesMax: what the message is settled by where
	// a person says that the object is its outcome. The topic's Settle compares it with what was asked for. It stays in the console's process,
	// and is shown nowhere. Default: the object is shown, and settles nothing.
	Evidence []byte
	// Doubt says why the object proves nothing, or not what it seems to prove; it settles nothing then. Default: nothing is doubted.
	Doubt string
	// At is when it was made; zero where the provider does not tell.
	At time.Time
	// Fields are what else is known of it, in the order in which they are shown.
	Fields []Field
}

// Drift is what a comparison of the application's books with its provider's has found.
type Drift struct {
	// Clean says that everything was compared, and that nothing drifts.
	Clean bool
	// Fields sum it up.
	Fields []Field
	// Findings are the single differences.
	Findings []Finding
}

// Finding is one drift.
type Finding struct {
	// Kind is the application's name for this sort of difference, and Tenant whose books differ.
	Kind, Tenant string
	// Entry is the application's name of what drifts, which Config.Find knows; empty where there is none.
	Entry string
	// Sides are what differs.
	Sides []string
}
