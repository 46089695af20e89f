package rehearsal

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/idem-go/idem-aws/localstack/provider"
)

// row is what is counted of a payment or payout in the payments table.
type row struct {
	ID, Status, Provider string
	Amount               int64
	// Intent is what the client meant, once: the payment's source or the payout's destination, each of which has one request.
	Intent string
}

// Money is what a rehearsal comes to. Amounts are in minor units.
type Money struct {
	Name string
	// Requests are the payments and payouts that clients asked for before the loss.
	Requests int
	// Objects are the provider's that moved money, and Amount what they moved.
	Objects int
	Amount  int64
	// LostRows were in the payments table before the loss, and are not any more.
	LostRows int
	// Refused are the retries with old keys that were refused, Final those that got their final answer.
	Refused, Final int
	// Twice are intents for which the provider moved money more than once.
	Twice int
	// Missing are the objects that no row accounts for, MissingAmount what they moved, and Listed those of them that the drift
	// job lists. Booked is what the rows account for.
	Missing, Listed       int
	MissingAmount, Booked int64
	// Again are the operations that were made again from what the provider has; after that MissingAfter objects had no row, and rows
	// accounted for BookedAfter.
	Again, MissingAfter int
	BookedAfter         int64
	// Wrapped are the charges of wrapped operations that were in progress.
	Wrapped int
}

// evidence is what money is counted by, after everything has come to its end.
type evidence struct {
	objects []provider.Object
	rows    []row
	// listed are the objects that the drift job says no row accounts for, by id.
	listed []string
}

// count compares the provider's objects with the rows, and returns what is wrong. It is pure.
func (m *Money) count(e evidence) (wrong []string) {
	moved := map[string]int{}
	for _, o := range e.objects {
		intent := o.Source + o.Destination
		if moved[intent]++; moved[intent] == 2 {
			m.Twice++
			wrong = append(wrong, fmt.Sprintf("money moved twice for %s", intent))
		}
		m.Objects, m.Amount = m.Objects+1, m.Amount+o.Amount
		if n := slices.IndexFunc(e.rows, func(r row) bool { return r.Provider == o.ID }); n >= 0 {
			if r := e.rows[n]; r.Status != string(provider.Succeeded) || r.Amount != o.Amount || r.Intent != intent {
				wrong = append(wrong, fmt.Sprintf("row %+v is about %+v", r, o))
			}
			m.Booked += e.rows[n].Amount
			continue
		}
		m.Missing, m.MissingAmount = m.Missing+1, m.MissingAmount+o.Amount
		if slices.Contains(e.listed, o.ID) {
			m.Listed++
		} else {
			wrong = append(wrong, fmt.Sprintf("no row accounts for %s of %d for %s, and it is not listed", o.ID, o.Amount, intent))
		}
	}
	for _, r := range e.rows {
		if r.Status == string(provider.Succeeded) && !slices.ContainsFunc(e.objects, func(o provider.Object) bool { return o.ID == r.Provider }) {
			wrong = append(wrong, fmt.Sprintf("row %+v succeeded, and the provider has nothing", r))
		}
	}
	if m.Booked+m.MissingAmount != m.Amount {
		wrong = append(wrong, fmt.Sprintf("the provider moved %d, rows account for %d, and %d is listed as missing", m.Amount, m.Booked, m.MissingAmount))
	}
	return wrong
}

// WriteTable writes what rehearsals came to. It returns the writer's error.
func WriteTable(w io.Writer, all []Money) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "rehearsal\tpayments before\tprovider objects\tlost rows\trefused retries\tfinal answers\tcharged twice\tmissing\tlisted as missing\tmoved\tbooked\tlisted\tmade again\tmissing then\tbooked then\twrapped\t")
	for _, m := range all {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t\n", m.Name, m.Requests, m.Objects, m.LostRows, m.Refused, m.Final, m.Twice,
			m.Missing, m.Listed, m.Amount, m.Booked, m.MissingAmount, m.Again, m.MissingAfter, m.BookedAfter, m.Wrapped)
	}
	return t.Flush()
}
