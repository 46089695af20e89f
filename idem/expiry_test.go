package idem_test

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/storage"
)

const (
	day = 24 * time.Hour
	// skew is the default of Config.ClockSkew: a key is free that much after its record's promise is over.
	skew = 2 * time.Second
	// late is how much longer than its key is held a record is kept: a request may be that late on the wire.
	late = 16 * time.Minute
)

// withPolicy is the IETF policy with a change.
func withPolicy(op idem.Operation, change func(*idem.Policy)) idem.Operation {
	op.Policy = idem.IETF()
	change(&op.Policy)
	return op
}

// eachKind runs the test for every kind that stores a final answer at once, in a bubble of its own.
func eachKind(t *testing.T, change func(*idem.Policy), run func(w *world, orders *idem.Registered)) {
	t.Helper()
	for _, op := range kinds {
		t.Run(fmt.Sprintf("%s read first %v", op.Kind, op.ReadFirst), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, nil)
				run(w, w.register(withPolicy(op, change)))
			})
		})
	}
}

// expired demands an ExpiredError, and that nothing ran.
func (w *world) expired(op *idem.Registered, req idem.Request, firstSent bool) {
	w.Helper()
	runs := w.runs
	_, err := op.Do(w.Context(), req, w.handler(201))
	var expired *idem.ExpiredError
	if !errors.As(err, &expired) || expired.FirstSent != firstSent || w.runs != runs {
		w.Errorf("%v after %d runs, want an ExpiredError with FirstSent %v and no run", err, w.runs-runs, firstSent)
	}
}

// refused demands a KeyTimeError with the reason, and that nothing ran.
func (w *world) refused(op *idem.Registered, req idem.Request, reason idem.KeyTimeReason) {
	w.Helper()
	runs := w.runs
	_, err := op.Do(w.Context(), req, w.handler(201))
	var refused *idem.KeyTimeError
	if !errors.As(err, &refused) || refused.Reason != reason || w.runs != runs {
		w.Errorf("%v after %d runs, want a KeyTimeError %q and no run", err, w.runs-runs, reason)
	}
}

func firstSent(req idem.Request, at time.Time) idem.Request {
	req.FirstSent = &at
	return req
}

func keyed(key string) idem.Request {
	req := request("{}")
	req.Key = key
	return req
}

// A tombstone answers 410 to the millisecond it was kept for, whether TTL is late or not (peers.md H12).
func TestTombstoneAnswersGoneAndThenTheKeyIsNew(t *testing.T) {
	gone := func(p *idem.Policy) { p.GoneAfterExpiry, p.KeepFor = true, 7*day }
	for _, ttl := range []bool{false, true} {
		eachKind(t, gone, func(w *world, orders *idem.Registered) {
			sweep := func() {
				if ttl {
					w.mem.Expire(time.Now().Add(late))
				}
			}
			first := w.do(orders, request("{}"), w.handler(201))
			for range 24 { // hour by hour
				w.want(w.do(orders, request("{}"), w.handler(201)), idem.OutcomeReplayed, 201, "1")
				time.Sleep(time.Hour)
				sweep()
			}
			for range 7 { // day by day
				w.expired(orders, request("{}"), false)
				w.expired(orders, request(`{"other":true}`), false)
				w.gone(first.OperationID)
				time.Sleep(day - time.Millisecond)
				sweep()
				w.expired(orders, request("{}"), false)
				time.Sleep(time.Millisecond)
			}
			time.Sleep(skew)
			sweep()
			if r, err := w.engine.Status(w.Context(), "t", first.OperationID); r != nil || err != nil {
				w.Errorf("status after the tombstone: %+v, %v; want nothing", r, err)
			}
			second := w.do(orders, request(`{"other":true}`), w.handler(201))
			w.want(second, idem.OutcomeExecuted, 201, "2")
			if second.OperationID == first.OperationID {
				w.Error("both incarnations have one operation id")
			}
			w.written(2)
		})
	}
}

// gone demands that the status endpoint can answer 410.
func (w *world) gone(id idem.OperationID) {
	w.Helper()
	var expired *idem.ExpiredError
	if r, err := w.engine.Status(w.Context(), "t", id); r != nil || !errors.As(err, &expired) || expired.OperationID != id {
		w.Errorf("status %+v, %v; want an ExpiredError", r, err)
	}
	if r, err := w.engine.Status(w.Context(), "other", id); r != nil || err != nil {
		w.Errorf("another tenant's status %+v, %v; want nothing", r, err)
	}
}

// A record that is kept for an audit stays to be read, and stands in nobody's way.
func TestSoftExpiryKeepsTheRecordAndFreesTheKey(t *testing.T) {
	eachKind(t, func(p *idem.Policy) { p.KeepFor = 30 * day }, func(w *world, orders *idem.Registered) {
		first := w.do(orders, request("{}"), w.handler(201))
		time.Sleep(31*day - time.Millisecond)
		w.mem.Expire(time.Now().Add(late))
		if kept := w.mem.Records(); len(kept) != 1 || string(kept[0].Response.Body) != "1" {
			w.Errorf("kept %+v, want the record with its answer", kept)
		}
		if r, err := w.engine.Status(w.Context(), "t", first.OperationID); r != nil || err != nil {
			w.Errorf("status %+v, %v; want nothing", r, err)
		}
		w.want(w.do(orders, request("{}"), w.handler(201)), idem.OutcomeExecuted, 201, "2")
	})
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.do(w.register(withPolicy(kinds[0], func(p *idem.Policy) { p.KeepFor = 30 * day })), request("{}"), w.handler(201))
		time.Sleep(31 * day)
		if records, _ := w.mem.Expire(time.Now().Add(late)); records != 1 {
			t.Errorf("TTL removed %d records after they were kept, want 1", records)
		}
	})
}

// peers.md H12: a retry of days ago never runs again, whatever TTL has done, and is never refused while there is an answer.
func TestH12FirstSentProtectsAndNeverRejectsALiveRecord(t *testing.T) {
	eachKind(t, func(*idem.Policy) {}, func(w *world, orders *idem.Registered) {
		req := firstSent(request("{}"), time.Now())
		w.want(w.do(orders, req, w.handler(201)), idem.OutcomeExecuted, 201, "1")
		longer, err := w.engine.Extend(w.Context(), "t", w.mem.Records()[0].OperationID, time.Now().Add(3*day))
		if err != nil || !longer.Equal(time.Now().Add(3*day)) {
			w.Fatalf("extended to %v, %v", longer, err)
		}
		time.Sleep(2 * day) // older than the retention, and live
		w.want(w.do(orders, req, w.handler(201)), idem.OutcomeReplayed, 201, "1")
		w.want(w.do(orders, firstSent(req, time.Now().Add(day)), w.handler(201)), idem.OutcomeReplayed, 201, "1")
		time.Sleep(day)
		time.Sleep(skew)
		w.expired(orders, req, true) // expired, not removed
		w.mem.Expire(time.Now().Add(late))
		w.expired(orders, req, true) // removed
		if n := len(w.mem.Records()); n != 0 {
			w.Errorf("%d records were made by requests that were refused", n)
		}
		w.expired(orders, firstSent(req, time.Time{}), true) // the zero time is one, and long ago
		w.refused(orders, firstSent(req, time.Now().Add(3*time.Minute)), idem.ReasonFirstSentFuture)
		w.want(w.do(orders, firstSent(req, time.Now().Add(idem.FirstSentSkew)), w.handler(201)), idem.OutcomeExecuted, 201, "2")
	})
}

// A clock that is ahead by no more than the tolerance does not open a gap between the record's end and the refusal.
func TestFirstSentLeavesNoGapForAClockThatIsAhead(t *testing.T) {
	eachKind(t, func(*idem.Policy) {}, func(w *world, orders *idem.Registered) {
		req := firstSent(request("{}"), time.Now().Add(idem.FirstSentSkew-time.Millisecond))
		w.do(orders, req, w.handler(201))
		for range 5 * 60 {
			time.Sleep(24 * time.Hour / 300)
			if time.Since(w.mem.Records()[0].CreatedAt) < day {
				w.want(w.do(orders, req, w.handler(201)), idem.OutcomeReplayed, 201, "1")
			}
		}
		time.Sleep(skew)
		w.expired(orders, req, true)
		w.mem.Expire(time.Now().Add(late))
		w.expired(orders, req, true)
	})
}

// A record in any state but expired is live: a retry of yesterday takes over what provably did not happen.
func TestH12FirstSentLeavesUnfinishedRecordsAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		orders := w.register(idem.Operation{Kind: idem.KindAtomic})
		req := firstSent(request("{}"), time.Now().Add(-20*time.Hour))
		failing := func(context.Context, *idem.Tx) (idem.Response, error) { return idem.Response{}, errors.New("down") }
		if _, err := orders.Do(t.Context(), req, failing); err == nil {
			t.Fatal("the handler's error is not passed on")
		}
		time.Sleep(20 * time.Hour) // the record of what did not happen lives for a retention
		w.want(w.do(orders, req, w.handler(201)), idem.OutcomeExecuted, 201, "1")
	})
}

// uuidv7 and ulid are keys made at the time.
func uuidv7(at time.Time) string {
	ms := fmt.Sprintf("%012x", at.UnixMilli())
	return ms[:8] + "-" + ms[8:] + "-7abc-8def-0123456789ab"
}

func ulid(at time.Time) string {
	const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	digits, ms := make([]byte, 10), at.UnixMilli()
	for i := range digits {
		digits[9-i] = alphabet[ms&31]
		ms >>= 5
	}
	return string(digits) + "0123456789ABCDEF"
}

// The time in a key is its first-sent time: under 410 the record may be gone for good, and the key is still not new.
func TestTimeInTheKey(t *testing.T) {
	for name, c := range map[string]struct {
		kind idem.KeyTime
		key  func(time.Time) string
	}{"UUIDv7": {idem.KeyTimeUUIDv7, uuidv7}, "ULID": {idem.KeyTimeULID, ulid}, "either, UUIDv7": {idem.KeyTimeEither, uuidv7}, "either, ULID": {idem.KeyTimeEither, ulid}} {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, gone %v", name, after), func(t *testing.T) {
				eachKind(t, func(p *idem.Policy) {
					p.GoneAfterExpiry, p.KeyTime, p.KeyTimeRequired = after, c.kind, true
				}, func(w *world, orders *idem.Registered) {
					req := keyed(c.key(time.Now()))
					w.want(w.do(orders, req, w.handler(201)), idem.OutcomeExecuted, 201, "1")
					time.Sleep(day - time.Millisecond)
					w.want(w.do(orders, req, w.handler(201)), idem.OutcomeReplayed, 201, "1")
					time.Sleep(time.Millisecond + skew)
					w.expired(orders, req, !after)
					w.mem.Expire(time.Now().Add(late))
					for range 30 {
						time.Sleep(day)
						w.expired(orders, req, !after)
					}
					w.expired(orders, firstSent(req, time.Now().Add(-2*day)), true) // the client's own word
					w.refused(orders, keyed(c.key(time.Now().Add(3*time.Minute))), idem.ReasonKeyFuture)
					w.refused(orders, keyed("order-17"), idem.ReasonKeyWithoutTime)
				})
			})
		}
	}
}

// What only looks like a key with a time has none (RFC 9562 section 5.7, github.com/ulid/spec).
func TestKeysThatCarryNoTime(t *testing.T) {
	eachKind(t, func(p *idem.Policy) { p.KeyTime, p.KeyTimeRequired = idem.KeyTimeEither, true }, func(w *world, orders *idem.Registered) {
		v7, id := uuidv7(time.Now()), ulid(time.Now())
		raw := []byte(v7)
		for name, key := range map[string]string{
			"version 4":           string(raw[:14]) + "4" + string(raw[15:]),
			"another variant":     string(raw[:19]) + "0" + string(raw[20:]),
			"braces":              "{" + v7 + "}",
			"urn":                 "urn:uuid:" + v7,
			"no dashes":           hex.EncodeToString([]byte(v7))[:32],
			"dash elsewhere":      v7[:7] + "-" + v7[7:8] + v7[9:],
			"not hexadecimal":     "g" + v7[1:],
			"ULID too large":      "8" + id[1:],
			"ULID with a U":       id[:25] + "U",
			"ULID with an I":      id[:25] + "I",
			"ULID of 25":          id[:25],
			"ULID not ASCII":      id[:24] + "ä",
			"another request's":   "order-17",
			"a time and nothing":  fmt.Sprint(time.Now().UnixMilli()),
			"two keys in one":     id + v7,
			"a ULID's time alone": id[:10],
		} {
			if _, err := orders.Do(w.Context(), keyed(key), w.handler(201)); err == nil {
				w.Errorf("%s: %s was taken for a key with a time", name, key)
			}
			w.refused(orders, keyed(key), idem.ReasonKeyWithoutTime)
		}
		w.want(w.do(orders, keyed(v7), w.handler(201)), idem.OutcomeExecuted, 201, "1")
		lower := []byte(id)
		for i, c := range lower {
			if c >= 'A' {
				lower[i] = c + 'a' - 'A'
			}
		}
		w.want(w.do(orders, keyed(string(lower)), w.handler(201)), idem.OutcomeExecuted, 201, "2")
	})
}

// A release that begins to require times in keys rejects none that has an answer (peers.md H8, H12).
func TestRequiringATimeLeavesLiveRecordsAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		before := w.register(idem.Operation{Kind: idem.KindAtomic})
		w.do(before, request("{}"), w.handler(201))
		next, err := idem.New(w.mem, idem.Config{})
		if err != nil {
			t.Fatal(err)
		}
		after, err := next.Register(withPolicy(idem.Operation{Name: "orders.create", Kind: idem.KindAtomic}, func(p *idem.Policy) {
			p.KeyTime, p.KeyTimeRequired = idem.KeyTimeULID, true
		}))
		if err != nil {
			t.Fatal(err)
		}
		w.want(w.do(after, request("{}"), w.handler(201)), idem.OutcomeReplayed, 201, "1")
		time.Sleep(day + skew)
		w.refused(after, request("{}"), idem.ReasonKeyWithoutTime)
	})
}

// A key that was made for one request is judged by no time and kept for nobody.
func TestOneOffKeysHaveNoAfterlife(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		orders := w.register(withPolicy(idem.Operation{Kind: idem.KindAtomic}, func(p *idem.Policy) {
			p.KeyTime, p.KeyTimeRequired, p.KeepFor, p.ResourceBacked = idem.KeyTimeULID, true, 7*day, true
		}))
		req := request("{}")
		req.OneOff = true
		w.want(w.do(orders, req, w.handler(201)), idem.OutcomeExecuted, 201, "1")
		time.Sleep(day + skew)
		if records, _ := w.mem.Expire(time.Now().Add(late)); records != 1 {
			t.Errorf("TTL removed %d records, want 1", records)
		}
	})
}

// peers.md H6: the key was reserved again, owner and epoch beginning anew; nothing of the first incarnation touches the
// second: neither its holder's late writes, nor a message of it.
func TestH6NothingOfAnExpiredIncarnationTouchesTheNext(t *testing.T) {
	for _, removed := range []bool{false, true} {
		t.Run(fmt.Sprintf("removed by TTL %v", removed), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, nil)
				orders := w.register(idem.Operation{Kind: idem.KindDeferred})
				first := w.do(orders, request("{}"), w.handler(202))
				held := w.mem.Records()[0]
				w.settle(first.OperationID)
				time.Sleep(day + skew)
				if removed {
					w.mem.Expire(time.Now().Add(late))
				}
				second := w.do(orders, request("{}"), w.handler(202))
				if second.Outcome != idem.OutcomeExecuted || second.OperationID == first.OperationID {
					t.Fatalf("%+v, want a new incarnation", second)
				}
				var conflict *storage.RecordConflictError
				if err := w.mem.Update(t.Context(), held, storage.FenceOf(held)); !errors.As(err, &conflict) {
					t.Errorf("the first holder's write: %v, want a conflict", err)
				}
				if err := w.settling(first.OperationID, second.OperationID.Message(1)); !errors.As(err, &conflict) {
					t.Errorf("an old incarnation's settlement: %v, want a conflict", err)
				}
				if err := w.engine.End(t.Context(), "t", first.OperationID); !errors.Is(err, idem.ErrNotLive) {
					t.Errorf("ending the first incarnation: %v, want ErrNotLive", err)
				}
				w.want(w.do(orders, request("{}"), w.handler(202)), idem.OutcomeReplayed, 202, "2")
			})
		})
	}
}

// settling ends the record of an operation through any message.
func (w *world) settling(id idem.OperationID, m idem.MessageID) error {
	w.Helper()
	key, err := id.RecordKey()
	if err != nil {
		w.Fatal(err)
	}
	now := time.Now()
	send, err := w.mem.PrepareSettle(storage.Settlement{
		Message: storage.MessageEnd{ID: m, State: storage.MessageDelivered, DoneAt: now}, Fence: storage.MessageFence{Open: true},
		Record: &storage.RecordEnd{Key: key, OperationID: id, State: storage.StateCompleted, Response: idem.Response{Status: 201}, DoneAt: now, ExpiresAt: now.Add(day), FreeAt: now.Add(day)},
		Token:  string(m[len(m)-30:]),
	})
	if err != nil {
		w.Fatal(err)
	}
	return send(w.Context())
}

// A message carries what its settlement has to know of the record's end.
func TestMessagesCarryTheExpiryOfTheirRecord(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.do(w.register(withPolicy(idem.Operation{Kind: idem.KindDeferred}, func(p *idem.Policy) {
			p.GoneAfterExpiry, p.KeepFor, p.ResourceBacked = true, 3*day, true
		})), request("{}"), w.handler(202))
		want := storage.Expiry{KeepFor: 3 * day, Gone: true, ResourceBacked: true}
		if r, m := w.mem.Records()[0], w.mem.Messages()[0]; r.Expiry != want || m.Expiry != want {
			t.Errorf("record %+v, message %+v, want %+v", r.Expiry, m.Expiry, want)
		}
	})
}
