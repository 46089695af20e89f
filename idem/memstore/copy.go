package memstore

import (
	"bytes"
	"slices"
	"time"

	"github.com/idem-go/idem-aws/idem/storage"
)

// What goes in and what comes out shares nothing with its caller (peers.md P7). On the way, times become what a table
// keeps of them: UTC, in milliseconds.

func copyRecord(r storage.Record) storage.Record {
	r.Response = copyResponse(r.Response)
	stamp(&r.LeaseUntil, &r.LookAt, &r.CreatedAt, &r.DoneAt, &r.ExpiresAt, &r.FreeAt)
	if r.LookAt.Equal(r.LeaseUntil) {
		r.LookAt = time.Time{}
	}
	r.Retention, r.Expiry = r.Retention.Truncate(time.Millisecond), copyExpiry(r.Expiry)
	return r
}

func copyExpiry(e storage.Expiry) storage.Expiry {
	e.KeepFor = e.KeepFor.Truncate(time.Millisecond)
	return e
}

func copyRecordEnd(e storage.RecordEnd) storage.RecordEnd {
	e.Response = copyResponse(e.Response)
	stamp(&e.DoneAt, &e.ExpiresAt, &e.FreeAt)
	return e
}

func copyMessage(m storage.Message) storage.Message {
	m.Payload, m.KeptDelivered, m.KeptDeclined = bytes.Clone(m.Payload), copyKept(m.KeptDelivered), copyKept(m.KeptDeclined)
	stamp(&m.LeaseUntil, &m.CreatedAt, &m.FirstClaimedAt, &m.NextAttemptAt, &m.SweepAt, &m.OpenSince, &m.DoneAt, &m.RedrivenAt, &m.ClearedAt)
	m.RemoveAt = seconds(m.RemoveAt)
	m.Retention, m.Expiry = m.Retention.Truncate(time.Millisecond), copyExpiry(m.Expiry)
	return m
}

func copyMessageEnd(e storage.MessageEnd) storage.MessageEnd {
	e.KeptDelivered, e.KeptDeclined = copyKept(e.KeptDelivered), copyKept(e.KeptDeclined)
	stamp(&e.DoneAt, &e.SweepAt)
	e.RemoveAt = seconds(e.RemoveAt)
	return e
}

func copyKept(k *storage.Kept) *storage.Kept {
	if k = copyPointer(k); k != nil {
		k.Evidence = bytes.Clone(k.Evidence)
	}
	return k
}

func copyMessageFence(f storage.MessageFence) storage.MessageFence {
	f.States = slices.Clone(f.States)
	return f
}

// seconds is native TTL's resolution, rounded up.
func seconds(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC().Add(time.Second - 1).Truncate(time.Second)
}

func copyResponse(r storage.Response) storage.Response {
	r.Header, r.Body = slices.Clone(r.Header), bytes.Clone(r.Body)
	return r
}

func copyFence(f storage.Fence) storage.Fence {
	f.States = slices.Clone(f.States)
	stamp(&f.FreeAt, &f.LeaseBefore)
	return f
}

func copyPointer[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}

func stamp(times ...*time.Time) {
	for _, t := range times {
		if !t.IsZero() {
			*t = t.UTC().Truncate(time.Millisecond)
		}
	}
}
