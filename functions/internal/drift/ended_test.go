package drift

import (
	"slices"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem/storage"
)

// A payout's debit is given back exactly where it was not made: a row that a person ended may say otherwise, and no total differs by that.
func TestThePayoutsFunds(t *testing.T) {
	for _, c := range []struct {
		status             payments.Status
		counted, givenBack bool
		drifts             bool
	}{
		{payments.StatusPending, true, false, false}, {payments.StatusPending, true, true, true},
		{payments.StatusSucceeded, true, false, false}, {payments.StatusSucceeded, true, true, true},
		{payments.StatusFailed, true, true, false}, {payments.StatusFailed, true, false, true},
		{payments.StatusDeclined, true, true, false}, {payments.StatusDeclined, true, false, true},
		// of a release without totals
		{payments.StatusSucceeded, false, false, false}, {payments.StatusFailed, false, false, false}, {payments.StatusDeclined, false, false, false},
		// its debit was torn off, and its end is a later release's
		{payments.StatusFailed, false, true, false},
	} {
		k := classification{rules: testRules, story: story{entry: payments.Entry{
			Kind: payments.EntryPayout, ID: "x_1", Status: c.status, Counted: c.counted, GivenBack: c.givenBack, Amount: 1999, Currency: "EUR",
		}}}
		k.funds()
		if got := len(k.drifts) == 1 && k.drifts[0].Kind == StateDiffers; got != c.drifts {
			t.Errorf("%+v: %+v", c, k.drifts)
		}
	}
}

// payoutOf is a payout that was not made, by the states of its messages, each ended by an operator an hour ago. Its screening is there.
func payoutOf(status payments.Status, states ...storage.MessageState) story {
	created := noon.Add(-time.Hour)
	s := story{
		entry: payments.Entry{
			Kind: payments.EntryPayout, Tenant: "tenant-a", ID: "x_1", Status: status, Amount: 1999, Currency: "EUR", Message: operation.Message(1),
			CreatedAt: created, Counted: true, GivenBack: status != payments.StatusPending,
		},
		operation: operation, messages: make([]*storage.Message, 3),
		record: &record{operation: operation, tenant: "tenant-a", state: storage.StateFailed, readable: true},
		objects: []object{{
			ID: "scr_1", Kind: string(screenings), Status: "succeeded", Key: string(operation.Message(1)), Amount: 1999, Currency: "EUR", CreatedAt: created,
		}},
	}
	for i, state := range states {
		s.messages[i] = &storage.Message{
			ID: operation.Message(i + 1), Index: i + 1, OperationID: operation, Tenant: "tenant-a", State: state, CreatedAt: created, DoneAt: created,
			Retention: 24 * time.Hour, SchemaVersion: storage.SchemaVersion, SettledBy: storage.SettledByOperator,
		}
	}
	return s
}

// drifting are the kinds of what a story comes to.
func drifting(s story) (kinds []Kind) {
	for _, d := range testRules.classify(s).drifts {
		kinds = append(kinds, d.Kind)
	}
	return kinds
}

// docs/recovery.md "Where the hold was released by hand": what a person says of the hold stands, unless the provider shows it as standing.
func TestAHoldThatAPersonSaysIsReleased(t *testing.T) {
	for hold, want := range map[string][]Kind{"": nil, "released": nil, holdStanding: {MissingThere}} {
		s := payoutOf(payments.StatusFailed, storage.MessageDelivered, storage.MessageCancelled, storage.MessageDelivered)
		s.objects[0].Hold = hold
		if got := drifting(s); !slices.Equal(got, want) {
			t.Errorf("the hold is %q: %v, want %v", hold, got, want)
		}
		s.messages[2].SettledBy = storage.SettledByWorker
		if got := drifting(s); !slices.Equal(got, []Kind{MissingThere}) {
			t.Errorf("the hold is %q, released by a worker: %v", hold, got)
		}
	}
}

// A release under another key ends the hold of one payout that was not made, once.
func TestAReleaseThatIsNotOurs(t *testing.T) {
	release := object{ID: "rel_1", Kind: string(releases), Status: "succeeded", Key: "", Amount: 1999, Currency: "EUR"}
	own, other, declined := release, release, release
	own.ID, own.Key, other.ID, other.Amount, declined.Status = "rel_own", string(operation.Message(3)), "rel_2", 1998, "declined"
	for name, c := range map[string]struct {
		objects []object
		by      storage.Settler
		want    []Kind
	}{
		"a person's":       {[]object{release}, storage.SettledByOperator, nil},
		"a second one":     {[]object{release, {ID: "rel_2", Kind: string(releases), Status: "succeeded", Amount: 1999, Currency: "EUR"}}, storage.SettledByOperator, []Kind{MissingHere}},
		"beside our own":   {[]object{own, release}, storage.SettledByOperator, []Kind{MissingHere}},
		"another amount's": {[]object{other}, storage.SettledByOperator, []Kind{MissingHere}},
		"declined":         {[]object{declined}, storage.SettledByOperator, []Kind{MissingHere}},
		"beside a worker":  {[]object{release}, storage.SettledByWorker, []Kind{MissingThere, MissingHere}},
	} {
		s := payoutOf(payments.StatusFailed, storage.MessageDelivered, storage.MessageCancelled, storage.MessageDelivered)
		s.objects, s.messages[2].SettledBy = append(s.objects, c.objects...), c.by
		if got := drifting(s); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// docs/recovery.md "End a row by hand": where nobody can open a message any more a person ends it, and nothing follows. The row waits for a
// person then.
func TestAnOperationThatWasCutShort(t *testing.T) {
	for name, c := range map[string]struct {
		status payments.Status
		states []storage.MessageState
		change func(*story)
		want   []Kind
	}{
		"at its screening":            {payments.StatusFailed, []storage.MessageState{storage.MessageDelivered}, func(*story) {}, nil},
		"at its payout":               {payments.StatusDeclined, []storage.MessageState{storage.MessageDelivered, storage.MessageDeclined}, func(*story) {}, nil},
		"while its row waits":         {payments.StatusPending, []storage.MessageState{storage.MessageDelivered}, func(*story) {}, []Kind{StateDiffers}},
		"for another reason":          {payments.StatusFailed, []storage.MessageState{storage.MessageDelivered}, func(s *story) { s.record.erased = false }, []Kind{RecordMessageDiffers}},
		"and its record is gone":      {payments.StatusFailed, []storage.MessageState{storage.MessageDelivered}, func(s *story) { s.record = nil }, []Kind{RecordMessageDiffers}},
		"and its record has expired":  {payments.StatusFailed, []storage.MessageState{storage.MessageDelivered}, expiredRecord, nil},
		"by a worker, and it expired": {payments.StatusFailed, []storage.MessageState{storage.MessageDelivered}, expiredRecordOfAWorkers, []Kind{RecordMessageDiffers}},
		"by a message that waits":     {payments.StatusPending, []storage.MessageState{storage.MessagePending}, func(*story) {}, []Kind{RecordMessageDiffers}},
	} {
		s := payoutOf(c.status, c.states...)
		s.record.erased = true
		if c.change(&s); !slices.Equal(drifting(s), c.want) {
			t.Errorf("%s: %v, want %v", name, drifting(s), c.want)
		}
	}
}

// expiredRecord lets native TTL have removed the record.
func expiredRecord(s *story) {
	s.record, s.messages[0].DoneAt, s.entry.CreatedAt = nil, noon.Add(-25*time.Hour), noon.Add(-25*time.Hour)
}

func expiredRecordOfAWorkers(s *story) {
	expiredRecord(s)
	s.messages[0].SettledBy = storage.SettledByWorker
}
