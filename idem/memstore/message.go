package memstore

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/idem-go/idem-aws/idem"
)

// Message implements outbox.Store.
func (s *Store) Message(ctx context.Context, id idem.MessageID) (*idem.Message, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.message(id), nil
}

// message is a copy of the stored message. The lock is held.
func (s *Store) message(id idem.MessageID) *idem.Message {
	stored, ok := s.messages[id]
	if !ok {
		return nil
	}
	m := copyMessage(stored)
	return &m
}

// UpdateMessage implements outbox.Store.
func (s *Store) UpdateMessage(ctx context.Context, m idem.Message, fence idem.MessageFence) error {
	return s.write(ctx, putMessage{Message: m, Fence: &fence})
}

// Shards implements outbox.Store.
func (s *Store) Shards() int { return s.cfg.Shards }

// QueuedMessages implements outbox.Store. It refuses a shard that does not exist, a limit below 1 and a cursor that it
// did not return.
func (s *Store) QueuedMessages(ctx context.Context, queue string, shard int, until time.Time, limit int, cursor string) (refs []idem.MessageRef, next string, err error) {
	if err := ctx.Err(); err != nil {
		return nil, "", err
	}
	if shard < 0 || shard >= s.cfg.Shards || limit < 1 {
		return nil, "", fmt.Errorf("memstore: shard %d of %d, limit %d", shard, s.cfg.Shards, limit)
	}
	after, err := parseCursor(cursor)
	if err != nil {
		return nil, "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, m := range s.messages {
		stands, at, ok := m.Queue()
		ref := idem.MessageRef{ID: id, Tenant: m.Tenant, Topic: m.Topic, At: at}
		if ok && stands == queue && s.shard(id) == shard && !at.After(until) && (after == nil || older(*after, ref) < 0) {
			refs = append(refs, ref)
		}
	}
	slices.SortFunc(refs, older)
	if len(refs) > limit {
		refs = refs[:limit]
		next = formatCursor(refs[limit-1])
	}
	return refs, next, nil
}

// shard spreads messages by their ids.
func (s *Store) shard(id idem.MessageID) int {
	h := fnv.New32a()
	h.Write([]byte(id))
	return int(h.Sum32() % uint32(s.cfg.Shards))
}

// older orders a queue: by time, then by id.
func older(a, b idem.MessageRef) int {
	return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID))
}

// A cursor names the last message of a page: "<epoch ms> <message id>".
func formatCursor(last idem.MessageRef) string {
	return strconv.FormatInt(last.At.UnixMilli(), 10) + " " + string(last.ID)
}

func parseCursor(cursor string) (*idem.MessageRef, error) {
	if cursor == "" {
		return nil, nil
	}
	at, id, _ := strings.Cut(cursor, " ")
	ms, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("memstore: cursor %q: %w", cursor, err)
	}
	return &idem.MessageRef{ID: idem.MessageID(id), At: time.UnixMilli(ms)}, nil
}
