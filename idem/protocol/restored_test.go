package protocol

import "testing"

// tableLoss is until when data was lost in these tests: a claim of the lost side may live until tableLoss + ClaimLease.
const tableLoss = tableNow - 500

// lossy is a topic after a loss of data.
func lossy(keyed, probed bool) *Config {
	c := topicConfig(keyed, probed)
	c.Topic.RefuseBefore = tableLoss
	return c
}

// restored is a message that a restore brought back as never claimed, and then changed.
func restored(change func(*Message)) Message {
	m := messages()[1].m
	change(&m)
	return m
}

// at is one errand to a message at an instant, where the topic has business writes for what was not executed.
func at(now Instant, e MessageErrand, m Message, c *Config) Action {
	d, _ := Delivery{Errand: e, Seed: tableSeed}.Next(Input{What: Begin, Now: now}, c)
	d, a := d.Next(Input{What: Replied, Now: now, Reply: Reply{Code: OK, Msg: m}}, c)
	switch a.Do {
	case Probe:
		_, a = d.Next(Input{What: Probed, Now: now, Outcome: OutAbsent}, c)
	case Ask:
		_, a = d.Next(Input{What: Answered, Now: now, Meant: Meant{Writes: true}}, c)
	}
	return a
}

// TestAbsenceOfWhatWasRestoredWaitsForClaimsThatWereLost: its row knows of no lease, and a call of the lost side may be under
// way. What was created, or proven absent, after the loss waits for its own lease alone.
func TestAbsenceOfWhatWasRestoredWaitsForClaimsThatWereLost(t *testing.T) {
	c := lossy(false, true)
	unknown := func(m *Message) { m.State, m.OpenSince = InDoubt, m.Created }
	proof := tableLoss + c.Topic.ClaimLease + c.Topic.AbsentAfter
	for name, m := range map[string]Message{
		"never claimed": restored(unknown),
		"claimed, and its lease over": restored(func(m *Message) {
			unknown(m)
			m.Epoch, m.Owner, m.Lease = 1, tableOther, m.Created+10
		}),
	} {
		if a := at(proof-1, Question, m, c); a.Write.Msg.State != InDoubt || a.Write.Msg.LookAt != proof {
			t.Errorf("%s, too early: %s", name, a.told())
		}
		if a := at(proof, Question, m, c); a.Write.Msg.State != Due {
			t.Errorf("%s, in time: %s", name, a.told())
		}
	}
	late := restored(func(m *Message) {
		unknown(m)
		m.Lease = tableLoss + 2*c.Topic.ClaimLease
	})
	if a := at(proof, Question, late, c); a.Write.Msg.LookAt != late.Lease+c.Topic.AbsentAfter {
		t.Errorf("claimed after the loss: %s", a.told())
	}
	for name, m := range map[string]Message{
		"created after": restored(func(m *Message) { m.Created = tableLoss; unknown(m) }),
		"cleared after": restored(func(m *Message) { unknown(m); m.Cleared = tableLoss }),
	} {
		if a := at(c.Topic.AbsentAfter, Question, m, c); a.Write.Msg.State != Due {
			t.Errorf("%s: %s", name, a.told())
		}
	}
}

// attemptsOver is a message that is restored with nothing open and no attempt left.
func attemptsOver(m *Message) { m.Attempts = 3 }

// TestWhatWasRestoredDiesWithItsCallOpen: RefuseBefore is taken away one day, the message stays.
func TestWhatWasRestoredDiesWithItsCallOpen(t *testing.T) {
	for name, m := range map[string]Message{
		"attempts over":               restored(attemptsOver),
		"its payload can't be opened": restored(func(m *Message) { m.Sealed = true }),
	} {
		a := at(tableNow, Wake, m, lossy(true, false))
		if a.Write.Msg.State != Dead || a.Write.Msg.OpenSince != m.Created {
			t.Errorf("%s: open since %d, want %d: %s", name, a.Write.Msg.OpenSince, m.Created, a.told())
		}
	}
}

// TestADeclineOfWhatWasRestoredIsWeak: where each call is executed, the attempt after the declined one may have been lost, also
// where later ones are on record.
func TestADeclineOfWhatWasRestoredIsWeak(t *testing.T) {
	once := func(m *Message) { m.Epoch, m.Owner = 1, tableOther }
	for name, c := range map[string]struct {
		m     Message
		keyed bool
		weak  bool
	}{
		"never claimed": {m: restored(func(*Message) {}), weak: true},
		"claimed once":  {m: restored(once), weak: true},
		"claimed once, its absence proven after the loss": {m: restored(func(m *Message) { once(m); m.Cleared = tableLoss + 1 }), weak: true},
		"claimed once, keys honoured":                     {m: restored(once), keyed: true},
		"created after":                                   {m: restored(func(m *Message) { once(m); m.Created = tableLoss })},
	} {
		d, a := come(Delivery{Errand: Tidings, Evidence: OutDeclined}, c.m, Meant{}, lossy(c.keyed, false))
		if weak := d.Alarms&AlarmWeak != 0; weak != c.weak || weak == (a.Write.Msg.State == Declined) {
			t.Errorf("%s: weak %v: %s", name, weak, a.told())
		}
	}
}

// TestWhatFollowsWhatAnOperatorStartedAnewIsAsYoung: the operation is older than AgeMax, and an operator has started its first message
// anew. What follows is called once its absence is proven. Until then it counts as called since the operation began.
func TestWhatFollowsWhatAnOperatorStartedAnewIsAsYoung(t *testing.T) {
	for name, keyed := range map[string]bool{"keys honoured": true, "keyless": false} {
		for _, anew := range []bool{true, false} {
			c := lossy(keyed, true)
			now := tableLoss + c.Topic.AgeMax
			first := restored(func(m *Message) {
				m.State, m.OpenSince = InDoubt, m.Created
				if anew {
					m.Redriven = now - 1
				}
			})
			second := first.next(false, now, c)
			if a := at(now, Wake, second, c); a.Write.Msg.State != InDoubt || a.Write.Msg.OpenSince != first.Created {
				t.Errorf("%s, its absence not proven: %s", name, a.told())
			}
			absent := at(now, Question, park(second, now, c), c).Write.Msg
			if a := at(now, Wake, absent, c); (a.Write.Msg.State == Claimed) != anew {
				t.Errorf("%s, its absence proven, started anew %v: %s", name, anew, a.told())
			}
		}
	}
}

// TestClosingWhatWasRestoredTellsTheApplicationOnce: what died with a call open was never told of, though its row was restored
// without that call; what was given up before the loss was, in the write that gave it up, and business writes don't go twice.
func TestClosingWhatWasRestoredTellsTheApplicationOnce(t *testing.T) {
	c := lossy(true, false)
	proof := tableLoss + c.Topic.ClaimLease + c.Topic.AbsentAfter
	died := at(tableNow, Wake, restored(func(m *Message) { attemptsOver(m); m.Detached = true }), c).Write.Msg
	given := restored(func(m *Message) { m.State, m.Detached = Dead, true })
	for name, m := range map[string]Message{"died after the loss": died, "given up before it": given} {
		if a := at(proof-1, Close, m, c); a.Say.Code != Inadmissible {
			t.Errorf("%s, too early: %s", name, a.told())
		}
		want := AskNotExecuted
		if m == given {
			want = NotAsked
		}
		if a := at(proof, Close, m, c); a.Write.Msg.State != Cancelled || a.Write.Said != want {
			t.Errorf("%s: it tells %d, want %d: %s", name, a.Write.Said, want, a.told())
		}
	}
}
