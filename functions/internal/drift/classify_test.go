package drift

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/storage"
	"pgregory.net/rapid"
)

var noon = time.Date(2101, 2, 3, 12, 0, 0, 0, time.UTC)

// operation is one of tenant-a's.
var operation = func() idem.OperationID {
	id, err := storage.IDGenerator{Random: strings.NewReader("sixteen bytes it")}.OperationID(idem.Scope{Tenant: "tenant-a", Key: "k"}.RecordKey())
	if err != nil {
		panic(err)
	}
	return id
}()

var testRules = rules{now: noon, grace: time.Minute, retention: 24 * time.Hour, outlives: 24 * time.Hour, workMax: 25 * time.Hour}

// ending is how a chain may stand, and what row, record and provider have then.
type ending struct {
	message storage.MessageState
	row     payments.Status
	record  storage.State
	there   payments.Status // "": nothing
}

var endings = []ending{
	{storage.MessagePending, payments.StatusPending, storage.StatePending, ""},
	{storage.MessageClaimed, payments.StatusPending, storage.StatePending, ""},
	{storage.MessageClaimed, payments.StatusPending, storage.StatePending, payments.StatusSucceeded},
	{storage.MessageEvidenced, payments.StatusPending, storage.StatePending, payments.StatusSucceeded},
	{storage.MessageEvidenced, payments.StatusPending, storage.StatePending, payments.StatusDeclined},
	{storage.MessageUnknown, payments.StatusPending, storage.StatePending, ""},
	{storage.MessageUnknown, payments.StatusPending, storage.StatePending, payments.StatusSucceeded},
	{storage.MessageUnknown, payments.StatusPending, storage.StatePending, payments.StatusDeclined},
	{storage.MessageDead, payments.StatusPending, storage.StatePending, payments.StatusSucceeded},
	{storage.MessageDead, payments.StatusFailed, storage.StateFailed, ""},
	{storage.MessageDelivered, payments.StatusSucceeded, storage.StateCompleted, payments.StatusSucceeded},
	{storage.MessageDeclined, payments.StatusDeclined, storage.StateCompleted, payments.StatusDeclined},
	{storage.MessageCancelled, payments.StatusFailed, storage.StateFailed, ""},
}

// unmade is how the message that moves the money may end without having moved it, and its operation with it.
var unmade = []ending{
	{storage.MessageDeclined, payments.StatusDeclined, storage.StateFailed, payments.StatusDeclined},
	{storage.MessageCancelled, payments.StatusFailed, storage.StateFailed, ""},
}

// undoings are how a message may stand that undoes. One that is delivered ends its row by what was not made, and its operation has
// failed.
var undoings = []ending{
	{storage.MessagePending, payments.StatusPending, storage.StatePending, ""},
	{storage.MessageClaimed, payments.StatusPending, storage.StatePending, payments.StatusSucceeded},
	{storage.MessageEvidenced, payments.StatusPending, storage.StatePending, payments.StatusSucceeded},
	{storage.MessageUnknown, payments.StatusPending, storage.StatePending, ""},
	{storage.MessageUnknown, payments.StatusPending, storage.StatePending, payments.StatusSucceeded},
	{storage.MessageDead, payments.StatusPending, storage.StatePending, ""},
	{storage.MessageDead, payments.StatusPending, storage.StatePending, payments.StatusDeclined},
	{message: storage.MessageDelivered, there: payments.StatusSucceeded},
}

// drawStory draws a story as the application leaves it: of any kind, at any point of its chain, at any age.
func drawStory(t *rapid.T) story {
	kind := rapid.SampledFrom([]payments.EntryKind{payments.EntryPayment, payments.EntryRefund, payments.EntryPayout}).Draw(t, "kind")
	chain := effects(kind)
	at := rapid.IntRange(1, len(chain)).Draw(t, "position")
	before := ending{storage.MessageDelivered, payments.StatusSucceeded, storage.StateCompleted, payments.StatusSucceeded}
	end := rapid.SampledFrom(endings).Filter(func(e ending) bool {
		m := &storage.Message{State: e.message}
		compensated := kind == payments.EntryPayout && at == 2 && e.row == payments.StatusFailed
		return !(story{entry: payments.Entry{Kind: kind}, messages: make([]*storage.Message, len(chain))}).continues(m, at) && !compensated
	}).Draw(t, "end")
	if at > money(kind).position {
		before = rapid.SampledFrom(unmade).Draw(t, "not made")
		end = rapid.SampledFrom(undoings).Draw(t, "undoing")
		if end.message == storage.MessageDelivered {
			end.row, end.record = before.row, before.record
		}
	}
	age := time.Duration(rapid.IntRange(2, 20*60).Draw(t, "minutes")) * time.Minute
	if end.message.Final() {
		age = time.Duration(rapid.IntRange(2, 100*60).Draw(t, "minutes of what is final")) * time.Minute
	}
	created := noon.Add(-age)
	s := story{
		entry: payments.Entry{
			Kind: kind, Tenant: "tenant-a", ID: "x_1", Status: end.row, Amount: 1999, Currency: "EUR", Message: operation.Message(1), CreatedAt: created,
		},
		operation: operation, messages: make([]*storage.Message, len(chain)),
		record: &record{operation: operation, tenant: "tenant-a", state: end.record, readable: true},
	}
	for n := 1; n <= at; n++ {
		state, there := storage.MessageDelivered, payments.StatusSucceeded
		switch {
		case n == at:
			state, there = end.message, end.there
		case n == money(kind).position:
			state, there = before.message, before.there
		}
		m := &storage.Message{
			ID: operation.Message(n), Index: n, OperationID: operation, Tenant: "tenant-a", State: state, CreatedAt: created,
			Retention: 24 * time.Hour, SchemaVersion: storage.SchemaVersion,
		}
		if there != "" {
			o := object{
				ID: fmt.Sprint("obj_", n), Kind: string(chain[n-1].family), Status: string(there), Key: string(m.ID), Amount: 1999, Currency: "EUR", CreatedAt: created,
			}
			s.objects = append(s.objects, o)
			m.Reference = o.ID
		}
		if state.Final() {
			m.DoneAt = created
		}
		s.messages[n-1] = m
	}
	if n := money(kind).position; at >= n && end.row != payments.StatusPending {
		s.entry.ProviderReference = s.messages[n-1].Reference
	}
	if end.record.Final() {
		s.record.doneAt = created
	}
	if kind == payments.EntryPayout && !rapid.Bool().Draw(t, "of a release without totals") { // as InsertPayout and FinishPayout mark it
		s.entry.Counted = true
		s.entry.GivenBack = end.row == payments.StatusFailed || end.row == payments.StatusDeclined
	}
	s.expire(t, age)
	return s
}

// expire lets TTL remove what it may, in any order.
func (s *story) expire(t *rapid.T, age time.Duration) {
	if s.entry.Status == payments.StatusPending {
		return
	}
	if age >= 24*time.Hour && rapid.Bool().Draw(t, "record removed") {
		s.record = nil
	}
	for n, m := range s.messages {
		if m != nil && m.State.Final() && age >= 48*time.Hour && rapid.Bool().Draw(t, fmt.Sprint("message removed ", n)) {
			s.messages[n] = nil
		}
	}
}

// Whatever the application leaves is no drift, and what one accident makes of it is, of the right kind.
func TestClassification(t *testing.T) {
	for _, accident := range accidents {
		t.Run(accident.what, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				s := drawStory(t)
				for tries := 1; ; tries++ { // until it is one to which the accident can happen
					if v := testRules.classify(s); len(v.drifts) > 0 {
						t.Fatalf("%+v is no drift: %+v", s, v.drifts)
					}
					if accident.happens(&s) {
						break
					}
					if tries == 5000 {
						t.Fatal("it can happen to no story")
					}
					s = drawStory(t)
				}
				v := testRules.classify(s)
				if !slices.ContainsFunc(v.drifts, func(d Drift) bool { return d.Kind == accident.want }) {
					t.Fatalf("%+v: %+v, want %s", s, v.drifts, accident.want)
				}
				for _, d := range v.drifts {
					if d.Tenant != "tenant-a" || d.Entry != "x_1" || len(d.Sides) < 2 {
						t.Fatalf("%+v does not say what differs", d)
					}
				}
			})
		})
	}
}

// money is the effect that moves it.
func (s *story) money() effect { return money(s.entry.Kind) }

// find is the first object that fits.
func (s *story) find(fits func(object) bool) (int, bool) {
	n := slices.IndexFunc(s.objects, fits)
	return n, n >= 0
}

func (s *story) moved(o object) bool { return o.family() == s.money().family && o.succeeded() }

// accidents change a story, unless they can't happen to it.
var accidents = []struct {
	what    string
	want    Kind
	happens func(*story) bool
}{
	{"another amount", AmountDiffers, func(s *story) bool {
		if len(s.objects) > 0 {
			s.objects[0].Amount--
		}
		return len(s.objects) > 0
	}},
	{"another currency", AmountDiffers, func(s *story) bool {
		if len(s.objects) > 0 {
			s.objects[len(s.objects)-1].Currency = "USD"
		}
		return len(s.objects) > 0
	}},
	{"a second object of the key", Duplicate, func(s *story) bool {
		n, ok := s.find(object.succeeded)
		if ok {
			again := s.objects[n]
			again.ID = "obj_again"
			s.objects = append(s.objects, again)
		}
		return ok
	}},
	{"a second object of the intent", Duplicate, func(s *story) bool {
		n, ok := s.find(s.moved)
		if ok {
			again := s.objects[n]
			again.ID, again.Key = "obj_again", string(operation.Message(7))
			s.objects = append(s.objects, again)
		}
		return ok
	}},
	{"an object of another kind", MissingHere, func(s *story) bool {
		kind := charges
		if s.entry.Kind == payments.EntryPayment {
			kind = payouts
		}
		s.objects = append(s.objects, object{ID: "obj_other", Kind: string(kind), Status: "succeeded", Key: string(operation.Message(1)), Amount: 1, Currency: "EUR"})
		return true
	}},
	{"the provider forgets", MissingThere, func(s *story) bool {
		if s.entry.Status != payments.StatusSucceeded {
			return false
		}
		s.objects = slices.DeleteFunc(s.objects, s.moved)
		return true
	}},
	{"it moved there, and ended here", StateDiffers, func(s *story) bool {
		if s.entry.Status != payments.StatusFailed && s.entry.Status != payments.StatusDeclined {
			return false
		}
		s.objects = []object{{
			ID: "obj_x", Kind: string(s.money().family), Status: "succeeded", Key: string(operation.Message(s.money().position)), Amount: 1999, Currency: "EUR",
		}}
		return true
	}},
	{"it was declined there, and moved here", StateDiffers, func(s *story) bool {
		n, ok := s.find(s.moved)
		if ok = ok && s.entry.Status == payments.StatusSucceeded; ok {
			s.objects[n].Status = "declined"
		}
		return ok
	}},
	{"the provider forgets the undoing", MissingThere, func(s *story) bool {
		m, n := s.last()
		if m == nil || !s.undoes(n) || m.State != storage.MessageDelivered {
			return false
		}
		s.objects = slices.DeleteFunc(s.objects, func(o object) bool { return o.family() == releases })
		return true
	}},
	{"undone although it moved", StateDiffers, func(s *story) bool {
		if s.entry.Kind != payments.EntryPayout || s.entry.Status != payments.StatusSucceeded {
			return false
		}
		s.objects = append(s.objects, object{
			ID: "obj_x", Kind: string(releases), Status: "succeeded", Key: string(operation.Message(3)), Amount: 1999, Currency: "EUR",
		})
		return true
	}},
	{"not undone", RecordMessageDiffers, func(s *story) bool {
		m, n := s.last()
		if m == nil || !s.undoes(n) || s.messages[n-2] == nil {
			return false
		}
		s.messages[n-1] = nil
		return s.entry.Status == payments.StatusPending || noon.Before(s.entry.CreatedAt.Add(48*time.Hour))
	}},
	{"another reference", StateDiffers, func(s *story) bool {
		s.entry.ProviderReference = "obj_other"
		return s.entry.Status == payments.StatusSucceeded
	}},
	{"no reference", StateDiffers, func(s *story) bool {
		s.entry.ProviderReference = ""
		return s.entry.Status == payments.StatusSucceeded
	}},
	{"funds that are not given back", StateDiffers, func(s *story) bool {
		unmade := s.entry.GivenBack
		s.entry.GivenBack = false
		return unmade
	}},
	{"funds that are given back beside what is paid out", StateDiffers, func(s *story) bool {
		if s.entry.Kind != payments.EntryPayout || s.entry.Status != payments.StatusSucceeded && s.entry.Status != payments.StatusPending {
			return false
		}
		s.entry.GivenBack = true
		return true
	}},
	{"the row stays behind", StateDiffers, func(s *story) bool {
		m, _ := s.last()
		if m == nil || s.entry.Status == payments.StatusPending || !s.ended() {
			return false
		}
		s.entry.Status = payments.StatusPending
		return true
	}},
	{"the row runs ahead", StateDiffers, func(s *story) bool {
		if s.entry.Status != payments.StatusPending {
			return false
		}
		s.entry.Status = payments.StatusSucceeded
		return true
	}},
	{"worked on for ever", StateDiffers, func(s *story) bool {
		m, _ := s.last()
		if m == nil || m.State != storage.MessagePending && m.State != storage.MessageClaimed && m.State != storage.MessageEvidenced {
			return false
		}
		m.CreatedAt = noon.Add(-testRules.workMax - time.Millisecond)
		return true
	}},
	{"a final record of what goes on", RecordMessageDiffers, func(s *story) bool {
		if s.record == nil || s.record.state != storage.StatePending {
			return false
		}
		s.record.state = storage.StateCompleted
		return true
	}},
	{"a pending record of what has ended", RecordMessageDiffers, func(s *story) bool {
		if s.record == nil || !s.ended() {
			return false
		}
		s.record.state = storage.StatePending
		return true
	}},
	{"no record too early", RecordMessageDiffers, func(s *story) bool {
		s.record = nil
		m, _ := s.last()
		return m != nil && (!s.ended() && s.entry.Status == payments.StatusPending || noon.Before(s.entry.CreatedAt.Add(24*time.Hour)))
	}},
	{"no message too early", RecordMessageDiffers, func(s *story) bool {
		s.messages[0] = nil
		return s.entry.Status == payments.StatusPending || noon.Before(s.entry.CreatedAt.Add(48*time.Hour))
	}},
	{"no second message", RecordMessageDiffers, func(s *story) bool {
		if len(s.messages) < 2 || s.messages[0] == nil || s.messages[1] == nil {
			return false
		}
		s.messages[1] = nil
		return s.entry.Status == payments.StatusPending || noon.Before(s.entry.CreatedAt.Add(48*time.Hour))
	}},
	{"more refunded than paid", Duplicate, func(s *story) bool {
		s.entry.Refunded = s.entry.Amount + 1
		return true
	}},
}

// Where an entry stands is told by the furthest of its messages.
func TestStandings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawStory(t)
		want := compared
		if m, _ := s.last(); m != nil {
			switch m.State {
			case storage.MessagePending, storage.MessageClaimed, storage.MessageEvidenced:
				want = open
			case storage.MessageUnknown, storage.MessageDead:
				want = parked
			case storage.MessageDelivered, storage.MessageDeclined, storage.MessageCancelled:
			}
		}
		if got := testRules.classify(s).standing; got != want {
			t.Fatalf("%+v stands %d, want %d", s, got, want)
		}
	})
}

func TestSumsOfRefunds(t *testing.T) {
	paid := payments.Entry{Kind: payments.EntryPayment, Tenant: "tenant-a", ID: "pay_1", Status: payments.StatusSucceeded, Amount: 100, Refunded: 60, ProviderReference: "ch_1", Currency: "EUR"}
	for name, c := range map[string]struct {
		sum  refundSum
		want []Kind
	}{
		"all of it":                    {refundSum{here: 60, there: 60, charges: []string{"ch_1"}}, nil},
		"a part, by the window":        {refundSum{here: 10, there: 10, charges: []string{"ch_1"}}, nil},
		"none that succeeded":          {refundSum{}, nil},
		"more here than is reserved":   {refundSum{here: 61, there: 61, charges: []string{"ch_1"}}, []Kind{AmountDiffers}},
		"more there than was paid":     {refundSum{here: 60, there: 101, charges: []string{"ch_1"}}, []Kind{Duplicate}},
		"more here than was paid":      {refundSum{here: 101, there: 101, charges: []string{"ch_1"}}, []Kind{Duplicate, AmountDiffers}},
		"refunded of another's charge": {refundSum{here: 60, there: 60, charges: []string{"ch_1", "ch_2"}}, []Kind{StateDiffers}},
	} {
		var got []Kind
		for _, d := range c.sum.classify(paid) {
			got = append(got, d.Kind)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
