package payments_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/sim"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// simRow is what the rows of all kinds have in common.
type simRow struct {
	Tenant, ID, From, To, Payment, Destination string
	Status                                     payments.Status
	Amount, Balance, Refunded                  int64
	Partition, Partitions                      int
	Message                                    idem.MessageID
	ProviderReference                          string
}

// seenRow is a row, and its bytes.
type seenRow struct {
	kind string
	raw  []byte
	row  simRow
}

// all are the application's rows.
func (s *simulated) all() map[string]seenRow {
	rows := s.Rows().Rows()
	for key, raw := range rows {
		if bytes.Equal(s.decoded[key].raw, raw) {
			continue
		}
		seen := seenRow{raw: raw}
		seen.kind, _, _ = strings.Cut(key, "#")
		if err := json.Unmarshal(raw, &seen.row); err != nil {
			panic(err)
		}
		if !strings.HasPrefix(key, seen.kind+"#"+seen.row.Tenant+"/") {
			s.Broken("I5: the row %s is of tenant %s", key, seen.row.Tenant)
		}
		s.decoded[key] = seen
	}
	return s.decoded
}

// Judge implements sim.App: after each write the money of each tenant is all there, and each record says what its row says.
func (s *simulated) Judge(landed sim.Landed) {
	switch {
	case landed.Record != nil:
		s.judgeRecord(*landed.Record)
	case landed.Message == nil:
		s.judgeMoney()
	}
}

// judgeMoney holds I6: what the accounts hold, what waits for a collecting one, and what has left or will, is what there was.
func (s *simulated) judgeMoney() {
	sums, refunded := map[string]int64{}, map[string]int64{}
	for _, seen := range s.all() {
		row := seen.row
		switch stands := row.Status == payments.StatusPending || row.Status == payments.StatusSucceeded; {
		case seen.kind == "account":
			if sums[row.Tenant] += row.Balance; row.Balance < 0 {
				s.Broken("I6: account %s of %s holds %d", row.ID, row.Tenant, row.Balance)
			}
		case seen.kind == "payout" && stands, seen.kind == "transfer" && row.Partition > 0:
			sums[row.Tenant] += row.Amount
		case seen.kind == "refund" && stands:
			refunded[row.Tenant+"/"+row.Payment] += row.Amount
		}
	}
	for tenant, sum := range sums {
		if sum != simulatedFunds {
			s.Broken("I6: tenant %s had %d, and has %d", tenant, simulatedFunds, sum)
		}
	}
	for _, seen := range s.all() {
		if row := seen.row; seen.kind == "payment" && (row.Refunded != refunded[row.Tenant+"/"+row.ID] || row.Refunded > row.Amount) {
			s.Broken("I6: payment %s of %s has %d refunded of %d, and its refunds are %d", row.ID, row.Tenant, row.Refunded, row.Amount, refunded[row.Tenant+"/"+row.ID])
		}
	}
}

// judgeRecord holds a record to the row of its operation.
func (s *simulated) judgeRecord(r storage.Record) {
	name, ok := s.names[r.Key]
	if !ok {
		if r.Tenant != "provider" || r.Operation != "webhooks.provider" {
			s.Broken("I5: a record of %s of tenant %s, and nobody asked for it", r.Operation, r.Tenant)
		}
		return
	}
	row, made := s.madeBy(r)
	want := map[int]payments.Status{201: payments.StatusSucceeded, 402: payments.StatusDeclined, 408: payments.StatusFailed, 502: payments.StatusFailed}[r.Response.Status]
	if r.Response.Status == 402 && !strings.Contains(string(r.Response.Body), "_declined") { // the application's own refusal
		want = ""
	}
	switch status := r.Response.Status; {
	case r.State == storage.StatePending:
		if !made || row.Status != payments.StatusPending {
			s.Broken("I1: %s is pending, and its row is %q", name, row.Status)
		}
	case !r.State.Final():
		if made {
			s.Broken("I1: %s is %s, and has a row", name, r.State)
		}
	case want == "" && made:
		s.Broken("I1: %s is answered %d, and has a row", name, status)
	case want != "" && !made:
		s.Broken("I1: %s is answered %d, and has no row", name, status)
	case made && r.Operation != "transfers.create" && row.Status != want:
		s.Broken("I1: %s is answered %d, and its row is %s", name, status, row.Status)
	case made && row.Tenant != r.Tenant:
		s.Broken("I5: %s has the row of tenant %s", name, row.Tenant)
	}
	if made && !slices.ContainsFunc(s.asks[name].variants, func(v variant) bool { return v.asksFor(row) }) {
		s.Broken("I1: the row of %s is of %d, which nobody asked for", name, row.Amount)
	}
}

// asksFor says whether a row is what the variant asks for.
func (v variant) asksFor(row simRow) bool {
	refunds := row.Payment == "" || strings.HasPrefix(v.target, refundsOf(row.Payment))
	return refunds && strings.Contains(v.body, fmt.Sprintf(`"amount":%d`, row.Amount))
}

// madeBy is the row that the operation of a record has made.
func (s *simulated) madeBy(r storage.Record) (simRow, bool) {
	for _, seen := range s.all() {
		if seen.kind == "account" || seen.kind == "payment" && slices.Contains(seeded, seen.row.ID) {
			continue
		}
		if operation, _, err := seen.row.Message.Operation(); err == nil && operation == r.OperationID {
			return seen.row, true
		}
		if seen.kind == "transfer" && strings.Contains(string(r.Response.Body), seen.row.ID) {
			return seen.row, true
		}
	}
	return simRow{}, false
}

// judgeMade holds I2 at the provider, when it has made something: one object for each effect.
func (s *simulated) judgeMade(key string, made provider.Object, n int) {
	if times, _ := s.Made(key); times > 1 {
		s.Broken("I2: %s of %s was made %d times", made.Kind, s.nameOf(key), times)
	}
}

// JudgeEnd implements sim.App: what the rows say is what stands in the provider's books, and the other way around.
func (s *simulated) JudgeEnd() {
	s.judgeMoney()
	asked := map[idem.OperationID]simRow{}
	for _, seen := range s.all() {
		if operation, _, err := seen.row.Message.Operation(); err == nil {
			asked[operation] = seen.row
			s.judgeBooks(seen.kind, seen.row, operation)
		}
	}
	for key, objects := range s.bank.objects {
		operation, _, err := idem.MessageID(key).Operation()
		for _, o := range objects {
			switch row, ok := asked[operation]; {
			case err != nil:
			case !ok:
				s.Broken("I1: the provider has a %s that no row asks for: %s", o.Kind, s.nameOf(key))
			case o.Amount != row.Amount:
				s.Broken("I6: the provider has a %s of %d, and %s asked for %d", o.Kind, o.Amount, s.nameOf(key), row.Amount)
			}
		}
	}
}

// judgeBooks holds a row that has ended to the books.
func (s *simulated) judgeBooks(kind string, row simRow, operation idem.OperationID) {
	count := func(n int) int { times, _ := s.Made(string(operation.Message(n))); return times }
	first, second, third := count(1), count(2), count(3)
	name := s.nameOf(string(operation.Message(1)))
	switch {
	case row.Status == payments.StatusPending:
	case kind == "payment" || kind == "refund":
		if paid := row.Status == payments.StatusSucceeded; !slices.Contains(seeded, row.ID) && (first == 1) != paid {
			s.Broken("I6: the %s of %s is %s, and was made %d times", kind, name, row.Status, first)
		}
	case kind == "payout" && row.Status == payments.StatusSucceeded:
		if first != 1 || second != 1 || third != 0 {
			s.Broken("I6: the payout of %s has succeeded with %d screened, %d paid out and %d released", name, first, second, third)
		}
	case kind == "payout" && (second != 0 || first != third):
		s.Broken("I6: the payout of %s is %s with %d screened, %d paid out and %d released", name, row.Status, first, second, third)
	}
}

// Idle implements sim.App.
func (s *simulated) Idle() bool {
	for key, raw := range s.Rows().Rows() {
		if strings.HasPrefix(key, "transfer#") && !bytes.Contains(raw, []byte(`"Partition":0`)) {
			return false
		}
	}
	return true
}
