package protocol

import "testing"

// messages are those that somebody can come to.
func messages() []struct {
	name string
	m    Message
} {
	due := Message{
		State: Due, Index: 1, Op: tableOp, Revision: ID{1}, Created: tableNow - 1_000, NextAttempt: tableNow - 1_000, LookAt: tableNow,
	}
	with := func(change func(*Message)) Message { m := due; change(&m); return m }
	open := func(m *Message) {
		m.Epoch, m.Owner, m.Attempts, m.OpenSince, m.FirstClaimed = 1, tableOther, 1, tableNow-5_000, tableNow-5_000
		m.Lease = tableNow - 1_000
	}
	return []struct {
		name string
		m    Message
	}{
		{"nothing", Message{}},
		{"pending, never claimed", due},
		{"pending, not due", with(func(m *Message) { m.NextAttempt = tableNow + 1 })},
		{"pending, never claimed, for too long", with(func(m *Message) { m.Created = tableNow - 400_000 })},
		{"pending, tried, nothing open", with(func(m *Message) { open(m); m.OpenSince = 0 })},
		{"pending, a call open", with(open)},
		{"pending, a call open for too long", with(func(m *Message) { open(m); m.OpenSince = tableNow - 80_000 })},
		{"pending, attempts over, nothing open", with(func(m *Message) { open(m); m.Attempts, m.OpenSince = 3, 0 })},
		{"pending, attempts over, a call open", with(func(m *Message) { open(m); m.Attempts = 3 })},
		{"pending, phase 2, attempts over, nothing open", with(func(m *Message) { open(m); m.Index, m.Attempts, m.OpenSince = 2, 3, 0 })},
		{"pending, an undoing, attempts over", with(func(m *Message) { open(m); m.Index, m.Undoes, m.Attempts, m.OpenSince = 3, true, 3, 0 })},
		{"pending, its payload can't be opened", with(func(m *Message) { m.Sealed = true })},
		{"claimed, its lease alive", with(func(m *Message) { open(m); m.State, m.Lease = Claimed, tableNow+5_000 })},
		{"claimed, its lease over", with(func(m *Message) { open(m); m.State = Claimed })},
		{"unknown, absence not provable yet", with(func(m *Message) { open(m); m.State = InDoubt })},
		{"unknown", with(func(m *Message) { open(m); m.State, m.Lease = InDoubt, tableNow-60_000 })},
		{"evidenced: delivered", with(func(m *Message) { open(m); m.State, m.Kept = Evidenced, KeptDelivered })},
		{"dead, a call open", with(func(m *Message) { open(m); m.State, m.Lease = Dead, tableNow-60_000 })},
		{"dead, nothing open", with(func(m *Message) { open(m); m.State, m.Lease, m.OpenSince = Dead, tableNow-60_000, 0 })},
		{"dead, with evidence: delivered", with(func(m *Message) { open(m); m.State, m.Lease, m.Kept = Dead, tableNow-60_000, KeptDelivered })},
		{"delivered", with(func(m *Message) { m.State = Delivered })},
		{"declined", with(func(m *Message) { m.State = Declined })},
		{"cancelled", with(func(m *Message) { m.State = Cancelled })},
		{"pending, of another release", with(func(m *Message) { m.Foreign = true })},
	}
}

// topics are the promises that a provider can make.
var topics = []struct {
	name          string
	keyed, probed bool
}{{"keys honoured", true, false}, {"no keys, can be probed", false, true}, {"no keys, no probe", false, false}}

func topicConfig(keyed, probed bool) *Config {
	c := tableConfig(Deferred)
	c.Topic.KeysHonoured, c.Topic.Probed = keyed, probed
	return c
}

// come is one errand to one message, up to the first action that is more than reading and asking.
func come(d Delivery, m Message, meant Meant, c *Config) (Delivery, Action) {
	d.Seed = tableSeed
	d, a := d.Next(Input{What: Begin, Now: tableNow}, c)
	if a.Do == Read {
		d, a = d.Next(Input{What: Replied, Now: tableNow, Reply: Reply{Code: OK, Msg: m}}, c)
	}
	if a.Do == Ask {
		d, a = d.Next(Input{What: Answered, Now: tableNow, Meant: meant}, c)
	}
	return d, a
}

// TestErrandMeetsMessage is what each errand does about each message.
func TestErrandMeetsMessage(t *testing.T) {
	errands := []struct {
		name string
		d    Delivery
	}{
		{"a wake-up (worker)", Delivery{Errand: Wake}},
		{"a sweep", Delivery{Errand: Offer}},
		{"a sweep of what is dead", Delivery{Errand: Remind}},
		{"a reconciler", Delivery{Errand: Question, OnlyDue: true}},
		{"a webhook: delivered", Delivery{Errand: Tidings, Evidence: OutDelivered}},
		{"a webhook: declined", Delivery{Errand: Tidings, Evidence: OutDeclined}},
		{"an operator closes", Delivery{Errand: Close, Seen: ID{1}}},
		{"an operator redrives", Delivery{Errand: Redrive, Seen: ID{1}}},
	}
	table(t, "errand_meets_message.txt", `
		What whoever comes to a message does about it (Delivery.judge). The topic's Settle answers with a final response,
		except for phase 2 of a chain: there it undoes phase 1 where nothing was executed.
	`, func(row func(string, ...any)) {
		for _, errand := range errands {
			for _, topic := range topics {
				row("\n%s; %s", errand.name, topic.name)
				for _, m := range messages() {
					_, a := come(errand.d, m.m, Meant{Continues: m.m.Index == 2}, topicConfig(topic.keyed, topic.probed))
					row("  %-46s → %s", m.name, a.told())
				}
			}
		}
	})
}

// TestCallEnds is what follows from what a call ended with.
func TestCallEnds(t *testing.T) {
	table(t, "call_ends.txt", `
		What is written when a call has ended (Delivery.called), for a first call and for one that follows an open one.
	`, func(row func(string, ...any)) {
		for _, topic := range topics {
			for _, open := range []bool{false, true} {
				c := topicConfig(topic.keyed, topic.probed)
				m := messages()[1].m
				if open {
					if m = messages()[5].m; !topic.keyed {
						continue
					}
				}
				row("\n%s%s", topic.name, map[bool]string{true: "; another call is open"}[open])
				for o := OutDelivered; o <= OutRefusedOpen; o++ {
					d, _ := come(Delivery{Errand: Wake}, m, Meant{}, c)
					d, _ = d.Next(Input{What: Replied, Now: tableNow, Reply: Reply{Code: OK}}, c)
					d, a := d.Next(Input{What: Called, Now: tableNow + 100, Outcome: o, Backoff: 1_000}, c)
					if a.Do == Ask {
						_, a = d.Next(Input{What: Answered, Now: tableNow + 100}, c)
					}
					row("  %-20s → %s", outcomeNames[o], a.told())
				}
			}
		}
	})
}

// TestSettlementEnds is what follows from the reply to a settlement.
func TestSettlementEnds(t *testing.T) {
	settled := messages()[20].m
	refused := func(conds Conds, m Message) Reply { return Reply{Code: Refused, Conds: conds, Msg: m} }
	dead := messages()[18].m
	table(t, "settlement_ends.txt", `
		What follows from the reply to the transaction that settles evidence (Delivery.settleDecided), at the end of its time.
	`, func(row func(string, ...any)) {
		for _, evidence := range []Outcome{OutDelivered, OutDeclined} {
			for _, continues := range []bool{false, true} {
				row("\n%s%s", outcomeNames[evidence], map[bool]string{true: "; another phase follows"}[continues])
				for _, reply := range []struct {
					name string
					r    Reply
				}{
					{"ok", Reply{Code: OK}},
					{"the message is delivered", refused(CondMessage, settled)},
					{"the message is cancelled", refused(CondMessage, messages()[22].m)},
					{"the message is dead", refused(CondMessage, dead)},
					{"the message is gone", refused(CondMessage, Message{})},
					{"the record is not pending", refused(CondRecord, Message{})},
					{"a business write refused", refused(CondUndeclared, Message{})},
					{"contention", Reply{Code: Contention}},
					{"no reply", Reply{Code: Lost}},
					{"it can't be done", Reply{Code: Broken}},
					{"it can't be done, again", Reply{Code: Broken}},
				} {
					c := topicConfig(true, true)
					m := messages()[15].m
					if reply.name == "it can't be done, again" {
						m.State, m.Kept = Evidenced, evidence.kept()
					}
					d, _ := come(Delivery{Errand: Tidings, Evidence: evidence}, m, Meant{Continues: continues}, c)
					late, meant := d.At.Until, d.Meant
					d, a := d.Next(Input{What: Replied, Now: late, Reply: reply.r}, c)
					row("  %-26s → %s", reply.name, a.told())
					if a.Do == Ask {
						_, a = d.Next(Input{What: Answered, Now: late, Meant: meant}, c)
						row("  %-26s → %s", "    which says the same", a.told())
					}
				}
			}
		}
	})
}
