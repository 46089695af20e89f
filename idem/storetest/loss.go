package storetest

import (
	"context"
	"sync"
	"time"

	"github.com/idem-go/idem-aws/idem/storage"
)

// lossTests: the instant before which data may have been lost is the table's, moves to later ones only, and is no record.
// Harnesses may share it, so each test goes on from where it stands.
var lossTests = []test{
	{"RefuseBefore is read as it was set, in milliseconds, rounded up", func(e *env) {
		at := e.laterLoss()
		e.wantSet(at.Add(time.Nanosecond), at.Add(time.Millisecond))
		e.wantLoss(at.Add(time.Millisecond))
		e.wantSet(at.Add(time.Hour).In(time.FixedZone("east", 3600)), at.Add(time.Hour))
		e.wantLoss(at.Add(time.Hour))
	}},
	{"RefuseBefore moves to a later instant only", func(e *env) {
		at := e.laterLoss()
		e.wantSet(at, at)
		e.wantSet(at, at)
		e.wantSet(at.Add(-time.Millisecond), at)
		e.wantSet(time.UnixMilli(1), at)
		e.wantLoss(at)
	}},
	{"of many who set RefuseBefore at once the latest stands", func(e *env) {
		at := e.laterLoss()
		var group sync.WaitGroup
		for n := range 8 {
			group.Go(func() {
				own := at.Add(time.Duration(n) * time.Second)
				if kept, err := e.Store.SetRefuseBefore(e.ctx, own); err != nil || kept.Before(own) {
					e.Errorf("set %v: kept %v, %v", own, kept, err)
				}
			})
		}
		group.Wait()
		e.wantLoss(at.Add(7 * time.Second))
	}},
	{"an instant that is none can't be set", func(e *env) {
		at := e.laterLoss()
		e.wantSet(at, at)
		for _, none := range []time.Time{{}, time.UnixMilli(0), time.Unix(-1, 0)} {
			if kept, err := e.Store.SetRefuseBefore(e.ctx, none); err == nil {
				e.Errorf("%v was set: kept %v", none, kept)
			}
		}
		e.wantLoss(at)
	}},
	{"no record is RefuseBefore, and none moves it", func(e *env) {
		at := e.laterLoss()
		e.wantSet(at, at)
		r := e.insert(e.reserved())
		e.wantSet(at.Add(time.Second), at.Add(time.Second))
		e.wantRecord(r.Key, &r)
		e.ok(e.Store.Update(e.ctx, completed(r, "done"), storage.FenceOf(r)))
		e.wantLoss(at.Add(time.Second))
	}},
	{"an ended context reads and sets nothing", func(e *env) {
		at := e.laterLoss()
		e.wantSet(at, at)
		ended, cancel := context.WithCancel(e.ctx)
		cancel()
		if _, err := e.Store.RefuseBefore(ended); err == nil {
			e.Error("it was read")
		}
		if _, err := e.Store.SetRefuseBefore(ended, at.Add(time.Hour)); err == nil {
			e.Error("it was set")
		}
		e.wantLoss(at)
	}},
}

// laterLoss is an instant that is later than the one that stands.
func (e *env) laterLoss() time.Time {
	e.Helper()
	at, err := e.Store.RefuseBefore(e.ctx)
	e.ok(err)
	if at.Before(base) {
		return base
	}
	return at.Add(time.Minute)
}

func (e *env) wantLoss(want time.Time) {
	e.Helper()
	at, err := e.Store.RefuseBefore(e.ctx)
	e.ok(err)
	if !at.Equal(want) {
		e.Errorf("RefuseBefore is %v, want %v", at, want)
	}
}

func (e *env) wantSet(at, want time.Time) {
	e.Helper()
	kept, err := e.Store.SetRefuseBefore(e.ctx, at)
	e.ok(err)
	if !kept.Equal(want) {
		e.Errorf("set %v: kept %v, want %v", at, kept, want)
	}
}
