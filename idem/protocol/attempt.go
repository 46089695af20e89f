package protocol

// Attempt is one write and its tries: the one place where replies are judged.
type Attempt struct {
	// W is the write, the same in every try.
	W Write
	// Until is when the last try may leave.
	Until Instant
	// Tries counts what was sent, Contended the tries that met another transaction.
	Tries, Contended uint8
	// Tainted says that a try had no reply: its bytes may land, now or later.
	Tainted bool
	// Refused says that the last try that was sent can't be done, though nothing was in its way.
	Refused bool
	// Persists says that nothing but the store's decision and Until ends it: nobody else can say what these bytes say.
	Persists bool
}

// Verdict is what the tries so far mean.
type Verdict uint8

// The verdicts.
const (
	Again    Verdict = iota + 1 // send the same bytes
	Done                        // it is stored
	Conflict                    // conditions failed: the reply says which
	Nothing                     // it has not happened and never will
	Unclear                     // it may have happened, or may happen yet
)

// Judge is the one judge of replies. A try without a reply taints its bytes: from then on only "done" and the row's old
// image are answers, and everything else means: send again.
func (a Attempt) Judge(r Reply, now Instant, c *Config) (Attempt, Verdict) {
	a.Tries = min(a.Tries+1, 250)
	tainted := a.Tainted && !c.off(NoTaint)
	code := r.judged(c)
	if code != NotSent {
		a.Refused = code == Broken
	}
	switch code {
	case OK:
		return a, Done
	case Refused:
		return a, Conflict
	case Contention, Throttled:
		a.Contended = min(a.Contended+1, 250)
		if !a.Persists && !tainted && a.Contended >= c.ContentionMax {
			return a, Nothing
		}
	case Broken, NotSent:
		if !a.Persists && !tainted {
			return a, Nothing
		}
	case Lost:
		a.Tainted = true
	}
	if now < a.Until && (a.Persists || c.TriesMax == 0 || a.Tries < c.TriesMax) {
		return a, Again
	}
	if a.Tainted && !c.off(NoTaint) || r.Code == Lost {
		return a, Unclear
	}
	return a, Nothing
}

// judged is the reply's code, after this: where any item of a transaction was not judged, none of the application's
// conditions counts. The old image of the record or of the message does, for it is true whatever the others say. A lost
// optimistic lock, or one that was not judged, makes the handler run again; anything else is sent again.
func (r Reply) judged(c *Config) Code {
	if r.Code != Refused || r.Conds&Unjudged == 0 || r.Conds&(CondRecord|CondMessage|CondNextMessage) != 0 || c.off(NoConflictWins) {
		return r.Code
	}
	if r.Conds&(CondRetry|UnjudgedRetry) != 0 {
		return Refused
	}
	return Contention
}

// lockLost says that an optimistic lock was lost, or was not judged: whatever else failed was judged on old data.
func (r Reply) lockLost(c *Config) bool {
	if r.Conds&CondRetry != 0 {
		return true
	}
	return r.Conds&Unjudged != 0 && r.Conds&UnjudgedRetry != 0 && !c.off(NoConflictWins)
}
