package drift

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/internal/plaintext"
)

// Kind is what is wrong. The codes are stable.
type Kind string

// The kinds of drift.
const (
	// MissingHere: the provider has an object that no row here accounts for.
	MissingHere Kind = "missing_here"
	// MissingThere: a row here ended by an object that the provider does not have.
	MissingThere Kind = "missing_there"
	// AmountDiffers: amount or currency.
	AmountDiffers Kind = "amount_differs"
	// StateDiffers: one says that money moved and the other that it did not, or that it moved otherwise; or a message is
	// worked on for longer than may be.
	StateDiffers Kind = "state_differs"
	// Duplicate: two objects that succeeded for one key or one intent, or more refunded than paid.
	Duplicate Kind = "duplicate"
	// RecordMessageDiffers: the record is final and its chain of messages is not, or the other way; or one of them is
	// missing although nothing may have removed it yet.
	RecordMessageDiffers Kind = "record_message_differs"
)

// Kinds lists them, as reports do.
func Kinds() []Kind {
	return []Kind{MissingHere, MissingThere, AmountDiffers, StateDiffers, Duplicate, RecordMessageDiffers}
}

// Side is one of what was compared, as it stands where it is.
type Side struct {
	// What it is: payment, refund, payout, message, record, the funds of a payout, a row's status, or the provider's charge, legacy_charge, refund, screening,
	// release, payout, legacy_payout, which are marked by "provider ".
	What string `json:"what"`
	// ID is a row's, a message's, an operation's (of a record) or an object's.
	ID string `json:"id,omitempty"`
	// State is "absent" where there is none.
	State string `json:"state"`
	// Amount in minor units; 0 where the side has none.
	Amount   int64  `json:"amount,omitempty"`
	Currency string `json:"currency,omitempty"`
}

const absent = "absent"

func (s Side) String() string {
	text := s.What
	if s.ID != "" {
		text += " " + s.ID
	}
	text += " " + s.State
	if s.Amount != 0 {
		text = strings.TrimRight(fmt.Sprintf("%s %d %s", text, s.Amount, s.Currency), " ")
	}
	return text
}

// Drift is one finding.
type Drift struct {
	Kind Kind `json:"kind"`
	// Tenant is empty where the provider's object is nobody's.
	Tenant string `json:"tenant,omitempty"`
	// Entry is the id of the payment, refund or payout; empty where there is none.
	Entry string `json:"entry,omitempty"`
	// Sides are what differs, ours first.
	Sides []Side `json:"sides"`
}

// ID is the same for the same finding, however it was come by: a hash.
func (d Drift) ID() string {
	sum := sha256.Sum256([]byte(fmt.Sprintf("%q", fmt.Sprint(d))))
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}

// Parked is a message that stands before an operator, or before the reconciler: unknown or dead. It is no drift.
type Parked struct {
	Tenant  string               `json:"tenant"`
	Entry   string               `json:"entry"`
	Message idem.MessageID       `json:"message"`
	State   storage.MessageState `json:"state"`
}

// Counts are how many were compared.
type Counts struct {
	Rows     int `json:"rows"`
	Messages int `json:"messages"`
	Records  int `json:"records"`
	// Objects are those that the provider has made within the window, and those that were looked up by key besides.
	Objects int `json:"objects"`
}

// Cost is what a run took.
type Cost struct {
	DynamoDBCalls int     `json:"dynamodb_calls"`
	ReadUnits     float64 `json:"read_units"`
	ProviderCalls int     `json:"provider_calls"`
}

// ListedMax is the most drifts, and the most parked messages, that a report lists; it counts all.
const ListedMax = 1000

// Report is what a run has found.
type Report struct {
	Window Window `json:"window"`
	// Unfinished says that not all of the window was compared: only what is at or after Reached, and not all of that the
	// other way. It is never clean.
	Unfinished bool      `json:"unfinished"`
	Reached    time.Time `json:"reached"`
	Compared   Counts    `json:"compared"`
	// Open are rows whose message is being worked on, or whose end is so young that the provider need not show it yet.
	Open int `json:"open"`
	// WithOperator are rows whose message is unknown or dead.
	WithOperator int `json:"with_operator"`
	// Removed are rows whose record or messages native TTL has removed in time, and were compared without them. They are objects, too,
	// of which nothing but the index tells any more whose they are, and that were not looked for there: those of one tenant's window, and
	// those that an earlier comparison of the same window has met ([Job.CheckLast]).
	Removed int `json:"removed"`
	// Unreadable are rows with anything of a release that this one does not know. With any, a run fails.
	Unreadable int `json:"unreadable"`
	// Unanswered are rows that did not fit and that the provider would not be asked about a second time: its answer failed.
	// They are not classified. With any, a run is not clean, and no error: the next one asks again.
	Unanswered int `json:"unanswered"`
	// Late are rows from before the window to which the provider has made something within it.
	Late  int          `json:"late"`
	Drift map[Kind]int `json:"drift"`
	// Drifts and Parked hold at most [ListedMax] each.
	Drifts []Drift  `json:"drifts"`
	Parked []Parked `json:"parked"`
	Cost   Cost     `json:"cost"`
}

// newReport is the report of a window of which nothing was compared yet. JSON has no null for it.
func newReport(w Window) Report {
	return Report{Window: w, Reached: w.To, Drift: map[Kind]int{}, Drifts: []Drift{}, Parked: []Parked{}}
}

// Clean says that all of the window was compared, and that nothing drifts.
func (r Report) Clean() bool { return !r.Unfinished && r.Unreadable+r.Unanswered+r.DriftCount() == 0 }

// DriftCount sums up over the kinds.
func (r Report) DriftCount() int {
	n := 0
	for _, count := range r.Drift {
		n += count
	}
	return n
}

// sort orders what is listed: drifts by kind, tenant and entry, parked messages by id.
func (r *Report) sort() {
	kinds := Kinds()
	slices.SortFunc(r.Drifts, func(a, b Drift) int {
		if c := slices.Index(kinds, a.Kind) - slices.Index(kinds, b.Kind); c != 0 {
			return c
		}
		return strings.Compare(a.Tenant+" "+a.Entry+" "+a.ID(), b.Tenant+" "+b.Entry+" "+b.ID())
	})
	slices.SortFunc(r.Parked, func(a, b Parked) int { return strings.Compare(string(a.Message), string(b.Message)) })
}

// Join returns the report of two windows, one of which ends where the other begins, in any order. A finding that both list counts
// once; of what is not listed nobody can tell. It lists at most so many drifts and parked messages.
func (r Report) Join(other Report, listedMax int) Report {
	joined := r
	if other.Window.From.Before(r.Window.From) {
		joined.Window.From, joined.Reached = other.Window.From, other.Reached
	}
	if other.Window.To.After(r.Window.To) {
		joined.Window.To = other.Window.To
	}
	joined.Unfinished = r.Unfinished || other.Unfinished
	joined.Compared = Counts{
		Rows: r.Compared.Rows + other.Compared.Rows, Messages: r.Compared.Messages + other.Compared.Messages,
		Records: r.Compared.Records + other.Compared.Records, Objects: r.Compared.Objects + other.Compared.Objects,
	}
	joined.Open, joined.WithOperator = r.Open+other.Open, r.WithOperator+other.WithOperator
	joined.Removed, joined.Late = r.Removed+other.Removed, r.Late+other.Late
	joined.Unreadable, joined.Unanswered = r.Unreadable+other.Unreadable, r.Unanswered+other.Unanswered
	joined.Cost = Cost{
		DynamoDBCalls: r.Cost.DynamoDBCalls + other.Cost.DynamoDBCalls, ReadUnits: r.Cost.ReadUnits + other.Cost.ReadUnits,
		ProviderCalls: r.Cost.ProviderCalls + other.Cost.ProviderCalls,
	}
	joined.joinDrifts(r, other)
	joined.Parked = slices.Compact(sortedParked(append(slices.Clone(r.Parked), other.Parked...)))
	joined.sort()
	joined.Drifts = joined.Drifts[:min(len(joined.Drifts), listedMax)]
	joined.Parked = joined.Parked[:min(len(joined.Parked), listedMax)]
	return joined
}

// joinDrifts adds up the findings of two reports.
func (r *Report) joinDrifts(a, b Report) {
	r.Drift, r.Drifts = map[Kind]int{}, []Drift{}
	for _, kind := range Kinds() {
		if n := a.Drift[kind] + b.Drift[kind]; n > 0 {
			r.Drift[kind] = n
		}
	}
	seen := map[string]bool{}
	for _, d := range slices.Concat(a.Drifts, b.Drifts) {
		if id := d.ID(); !seen[id] {
			seen[id] = true
			r.Drifts = append(r.Drifts, d)
			continue
		}
		r.Drift[d.Kind]--
	}
}

// sortedParked puts the same message beside itself.
func sortedParked(all []Parked) []Parked {
	slices.SortFunc(all, func(a, b Parked) int {
		return strings.Compare(string(a.Message)+" "+string(a.State), string(b.Message)+" "+string(b.State))
	})
	return all
}

// WriteJSON writes the report as one indented JSON object. It returns the writer's error.
func (r Report) WriteJSON(w io.Writer) error {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(r); err != nil {
		return err
	}
	_, err := io.WriteString(w, plaintext.JSON(text.String()))
	return err
}

// WriteTable writes the report for a person. It returns the writer's error.
func (r Report) WriteTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "window\t%s to %s%s\n", r.Window.From.Format(time.RFC3339Nano), r.Window.To.Format(time.RFC3339Nano), ofTenant(r.Window.Tenant))
	fmt.Fprintf(t, "compared\t%d rows, %d messages, %d records, %d provider objects\n",
		r.Compared.Rows, r.Compared.Messages, r.Compared.Records, r.Compared.Objects)
	fmt.Fprintf(t, "open\t%d\n", r.Open)
	fmt.Fprintf(t, "with operator\t%d\n", r.WithOperator)
	fmt.Fprintf(t, "removed by TTL\t%d\n", r.Removed)
	fmt.Fprintf(t, "late\t%d\n", r.Late)
	fmt.Fprintf(t, "cost\t%d DynamoDB calls, %g read units, %d provider calls\n", r.Cost.DynamoDBCalls, r.Cost.ReadUnits, r.Cost.ProviderCalls)
	fmt.Fprintf(t, "drift\t%s\n", r.summary())
	if r.Unfinished {
		fmt.Fprintf(t, "unfinished\tcompared down to %s\n", r.Reached.Format(time.RFC3339Nano))
	}
	if r.Unreadable > 0 {
		fmt.Fprintf(t, "unreadable\t%d\n", r.Unreadable)
	}
	if r.Unanswered > 0 {
		fmt.Fprintf(t, "unanswered\t%d, not classified\n", r.Unanswered)
	}
	if len(r.Drifts) > 0 {
		fmt.Fprint(t, "\nKIND\tTENANT\tENTRY\tSIDES\n")
	}
	for _, d := range r.Drifts {
		sides := make([]string, len(d.Sides))
		for i, side := range d.Sides {
			sides[i] = side.String()
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", d.Kind, plaintext.Line(d.Tenant), plaintext.Line(d.Entry), plaintext.Line(strings.Join(sides, " | ")))
	}
	if len(r.Parked) > 0 {
		fmt.Fprint(t, "\nWITH OPERATOR\tTENANT\tENTRY\tMESSAGE\n")
	}
	for _, p := range r.Parked {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", p.State, plaintext.Line(p.Tenant), plaintext.Line(p.Entry), p.Message)
	}
	return t.Flush()
}

func ofTenant(tenant string) string {
	if tenant == "" {
		return ""
	}
	return " of " + plaintext.Line(tenant)
}

func (r Report) summary() string {
	if r.DriftCount() == 0 {
		return "0"
	}
	var parts []string
	for _, kind := range Kinds() {
		if n := r.Drift[kind]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", kind, n))
		}
	}
	return fmt.Sprintf("%d: %s", r.DriftCount(), strings.Join(parts, ", "))
}
