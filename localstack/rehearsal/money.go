package rehearsal

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"text/tabwriter"

	"github.com/idem-go/idem-aws/localstack/provider"
)

// row is what is counted of a payment or payout in the payments table.
type row struct {
	ID, Status, Provider string
	Amount               int64
	// Intent is what the client asked for, once: the payment's source or the payout's destination, each of which has one request.
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
	// Refused are the requests that were refused, with their old keys, because records may be lost; Final those that have their final
	// answer; Same the times that an answered one was sent again and told the same, status and body.
	Refused, Final, Same int
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
	// Unreadable are the encrypted records and messages that nobody can open at the end.
	Unreadable int
	// Wrapped are the charges of wrapped operations that were in progress.
	Wrapped int
}

// evidence is what money is counted by, after everything has come to its end.
type evidence struct {
	// asked are the amounts that clients asked for, by intent. They differ, so that one booked or moved for another is seen.
	asked   map[string]int64
	objects []provider.Object
	rows    []row
	// listed are the objects that the drift job says no row accounts for, by id.
	listed []string
}

// count compares the provider's objects with the rows, and both with what clients asked for, and returns what is wrong. It is pure.
func (m *Money) count(e evidence) (wrong []string) {
	moved := map[string]int{}
	for _, o := range e.objects {
		intent := o.Source + o.Destination
		if moved[intent]++; moved[intent] == 2 {
			m.Twice++
			wrong = append(wrong, fmt.Sprintf("money moved twice for %s", intent))
		}
		m.Objects, m.Amount = m.Objects+1, m.Amount+o.Amount
		if asked, ok := e.asked[intent]; !ok || asked != o.Amount {
			wrong = append(wrong, fmt.Sprintf("%s moved %d for %s, and the client asked for %d", o.ID, o.Amount, intent, asked))
		}
		of := rowsOf(e.rows, o.ID)
		for _, r := range of {
			if r.Status != string(provider.Succeeded) || r.Amount != o.Amount || r.Intent != intent {
				wrong = append(wrong, fmt.Sprintf("row %+v is about %+v", r, o))
			}
			m.Booked += r.Amount
		}
		if len(of) > 1 {
			wrong = append(wrong, fmt.Sprintf("%s of %d for %s is booked by %d rows", o.ID, o.Amount, intent, len(of)))
		}
		if len(of) > 0 {
			continue
		}
		m.Missing, m.MissingAmount = m.Missing+1, m.MissingAmount+o.Amount
		if slices.Contains(e.listed, o.ID) {
			m.Listed++
		} else {
			wrong = append(wrong, fmt.Sprintf("no row accounts for %s of %d for %s, and it is not listed", o.ID, o.Amount, intent))
		}
	}
	wrong = append(wrong, e.countRows()...)
	if m.Booked+m.MissingAmount != m.Amount {
		wrong = append(wrong, fmt.Sprintf("the provider moved %d, rows account for %d, and %d is listed as missing", m.Amount, m.Booked, m.MissingAmount))
	}
	return wrong
}

// rowsOf are the rows that name an object of the provider.
func rowsOf(rows []row, object string) (of []row) {
	for _, r := range rows {
		if r.Provider == object {
			of = append(of, r)
		}
	}
	return of
}

// countRows compares the rows with what clients asked for, each of which has one row at most, and with what moved money.
func (e evidence) countRows() (wrong []string) {
	perIntent := map[string]int{}
	for _, r := range e.rows {
		if perIntent[r.Intent]++; perIntent[r.Intent] == 2 {
			wrong = append(wrong, fmt.Sprintf("%s has more than one row", r.Intent))
		}
		if asked, ok := e.asked[r.Intent]; !ok || asked != r.Amount {
			wrong = append(wrong, fmt.Sprintf("row %+v is of %d, and the client asked for %d", r, r.Amount, asked))
		}
		if r.Status == string(provider.Succeeded) && !slices.ContainsFunc(e.objects, func(o provider.Object) bool { return o.ID == r.Provider }) {
			wrong = append(wrong, fmt.Sprintf("row %+v succeeded, and the provider has nothing", r))
		}
	}
	return wrong
}

// unbooked compares the answers of requests with the rows: each request has one row, and the row succeeded where the answer is 201.
func unbooked(stories []*story, rows []row) (wrong []string) {
	for _, s := range stories {
		var of []row
		for _, r := range rows {
			if r.Intent == s.intent {
				of = append(of, r)
			}
		}
		if len(of) != 1 {
			wrong = append(wrong, fmt.Sprintf("%s was answered %d %s, and has %d rows", s.intent, s.status, s.code, len(of)))
			continue
		}
		if (of[0].Status == string(provider.Succeeded)) != (s.status == http.StatusCreated) {
			wrong = append(wrong, fmt.Sprintf("%s was answered %d %s, and its row is %+v", s.intent, s.status, s.code, of[0]))
		}
	}
	return wrong
}

// WriteTable writes what rehearsals came to. It returns the writer's error.
func WriteTable(w io.Writer, all []Money) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "rehearsal\tpayments before\tprovider objects\tlost rows\trefused retries\tfinal answers\tanswered the same\tcharged twice\tmissing\tlisted as missing\tmoved\tbooked\tlisted\tmade again\tmissing then\tbooked then\tunreadable\twrapped\t")
	for _, m := range all {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t\n", m.Name, m.Requests, m.Objects, m.LostRows, m.Refused, m.Final, m.Same, m.Twice,
			m.Missing, m.Listed, m.Amount, m.Booked, m.MissingAmount, m.Again, m.MissingAfter, m.BookedAfter, m.Unreadable, m.Wrapped)
	}
	return t.Flush()
}
