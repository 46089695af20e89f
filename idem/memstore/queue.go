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

	"github.com/idem-go/idem-aws/idem/storage"
)

// Shards implements outbox.Store.
func (s *Store) Shards() int { return s.cfg.Shards }

// QueuedMessages implements outbox.Store. It refuses a shard that does not exist, a limit below 1 and a cursor that it
// did not return.
func (s *Store) QueuedMessages(ctx context.Context, queue string, shard int, until time.Time, limit int, cursor string) (refs []storage.MessageRef, next string, err error) {
	page, err := s.newPage(ctx, queue, shard, until, limit, cursor)
	if err != nil {
		return nil, "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, m := range s.messages {
		stands, at, ok := m.Queue()
		page.add(string(id), stands, at, ok)
	}
	places, next := page.cut(limit)
	for _, p := range places {
		m := s.messages[storage.MessageID(p.id)]
		refs = append(refs, storage.MessageRef{ID: m.ID, Tenant: m.Tenant, Topic: m.Topic, At: p.at})
	}
	return refs, next, nil
}

// QueuedRecords implements outbox.Store. It refuses what QueuedMessages does.
func (s *Store) QueuedRecords(ctx context.Context, queue string, shard int, until time.Time, limit int, cursor string) (refs []storage.RecordRef, next string, err error) {
	page, err := s.newPage(ctx, queue, shard, until, limit, cursor)
	if err != nil {
		return nil, "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, r := range s.records {
		stands, at, ok := r.Queue()
		page.add(string(key), stands, at, ok)
	}
	places, next := page.cut(limit)
	for _, p := range places {
		r := s.records[storage.RecordKey(p.id)]
		refs = append(refs, storage.RecordRef{Key: r.Key, OperationID: r.OperationID, Tenant: r.Tenant, At: p.at})
	}
	return refs, next, nil
}

// place is where something stands in a queue: by time, then by id.
type place struct {
	at time.Time
	id string
}

func (p place) compare(q place) int { return cmp.Or(p.at.Compare(q.at), cmp.Compare(p.id, q.id)) }

// page is what of one shard of a queue is due, after the cursor.
type page struct {
	queue         string
	shard, shards int
	until         time.Time
	after         *place
	places        []place
}

func (s *Store) newPage(ctx context.Context, queue string, shard int, until time.Time, limit int, cursor string) (*page, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if shard < 0 || shard >= s.cfg.Shards || limit < 1 {
		return nil, fmt.Errorf("memstore: shard %d of %d, limit %d", shard, s.cfg.Shards, limit)
	}
	after, err := parseCursor(cursor)
	if err != nil {
		return nil, err
	}
	return &page{queue: queue, shard: shard, shards: s.cfg.Shards, until: until, after: after}, nil
}

// add takes what stands in the page's queue and shard, is due, and lies after its cursor.
func (p *page) add(id, queue string, at time.Time, queued bool) {
	here := place{at, id}
	if !queued || queue != p.queue || shardOf(id, p.shards) != p.shard || at.After(p.until) {
		return
	}
	if p.after == nil || p.after.compare(here) < 0 {
		p.places = append(p.places, here)
	}
}

// cut returns the oldest places, at most limit of them, and the cursor of the rest.
func (p *page) cut(limit int) (places []place, next string) {
	slices.SortFunc(p.places, place.compare)
	if len(p.places) <= limit {
		return p.places, ""
	}
	last := p.places[limit-1]
	return p.places[:limit], strconv.FormatInt(last.at.UnixMilli(), 10) + " " + last.id
}

// shardOf spreads a queue by the ids of what stands in it.
func shardOf(id string, shards int) int {
	h := fnv.New32a()
	h.Write([]byte(id))
	return int(h.Sum32() % uint32(shards))
}

// parseCursor reads a cursor, which names the last place of a page: "<epoch ms> <id>".
func parseCursor(cursor string) (*place, error) {
	if cursor == "" {
		return nil, nil
	}
	at, id, _ := strings.Cut(cursor, " ")
	ms, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("memstore: cursor %q: %w", cursor, err)
	}
	return &place{at: time.UnixMilli(ms), id: id}, nil
}
