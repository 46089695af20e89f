package faultproxy

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/idem-go/idem-aws/internal/refusal"
)

// batch is the RequestItems of a BatchGetItem or a BatchWriteItem, or what an answer says was not processed of them.
type batch map[string]*portion

// portion is what a batch has of one table.
type portion struct {
	// entries are keys to get, or writes.
	entries []json.RawMessage
	// fields are what a get has beside its keys, such as ConsistentRead; nil of writes.
	fields map[string]json.RawMessage
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *portion) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, &p.entries) == nil {
		return nil
	}
	if err := json.Unmarshal(data, &p.fields); err != nil {
		return err
	}
	return json.Unmarshal(p.fields["Keys"], &p.entries)
}

// MarshalJSON implements json.Marshaler.
func (p *portion) MarshalJSON() ([]byte, error) {
	if p.fields == nil {
		return json.Marshal(p.entries)
	}
	keys, err := json.Marshal(p.entries)
	if err != nil {
		return nil, err
	}
	fields := maps.Clone(p.fields)
	fields["Keys"] = keys
	return json.Marshal(fields)
}

func (b batch) size() (n int) {
	for _, p := range b {
		n += len(p.entries)
	}
	return n
}

// split returns the first half of the batch, table by table in the order of their names, and the rest.
func (b batch) split() (half, rest batch) {
	half, rest = batch{}, batch{}
	left := b.size() / 2
	for _, table := range slices.Sorted(maps.Keys(b)) {
		p := b[table]
		n := min(left, len(p.entries))
		left -= n
		if n > 0 {
			half[table] = &portion{p.entries[:n], p.fields}
		}
		if n < len(p.entries) {
			rest[table] = &portion{p.entries[n:], p.fields}
		}
	}
	return half, rest
}

// add adds what another batch has.
func (b batch) add(other batch) {
	for table, p := range other {
		if mine := b[table]; mine != nil {
			mine.entries = append(mine.entries, p.entries...)
			continue
		}
		b[table] = p
	}
}

// halved is the request with the first half of its batch, and the rest of it.
func (q request) halved() (half request, rest batch, err error) {
	content := map[string]json.RawMessage{}
	if err := json.Unmarshal(q.body, &content); err != nil {
		return q, nil, fmt.Errorf("faultproxy: a batch that is no JSON: %w", err)
	}
	var all batch
	if err := json.Unmarshal(content["RequestItems"], &all); err != nil {
		return q, nil, fmt.Errorf("faultproxy: a batch without RequestItems: %w", err)
	}
	first, rest := all.split()
	if content["RequestItems"], err = json.Marshal(first); err != nil {
		return q, nil, fmt.Errorf("faultproxy: %w", err)
	}
	half = q
	if half.body, err = json.Marshal(content); err != nil {
		return q, nil, fmt.Errorf("faultproxy: %w", err)
	}
	half.header = q.header.Clone()
	half.header.Del("Content-Length") // the transport sets its own
	return half, rest, nil
}

// withUnprocessed is the answer to a batch with the rest added to what was not processed. A refusal stays as it is.
func (a reply) withUnprocessed(operation string, rest batch) (reply, error) {
	if a.status >= 300 {
		return a, nil
	}
	name := "UnprocessedItems"
	if operation == "BatchGetItem" {
		name = "UnprocessedKeys"
	}
	content := map[string]json.RawMessage{}
	if err := json.Unmarshal(a.body, &content); err != nil {
		return a, fmt.Errorf("faultproxy: the answer to a batch: %w", err)
	}
	unprocessed := batch{}
	if raw, ok := content[name]; ok {
		if err := json.Unmarshal(raw, &unprocessed); err != nil {
			return a, fmt.Errorf("faultproxy: %s: %w", name, err)
		}
	}
	unprocessed.add(rest)
	var err error
	if content[name], err = json.Marshal(unprocessed); err != nil {
		return a, fmt.Errorf("faultproxy: %w", err)
	}
	if a.body, err = json.Marshal(content); err != nil {
		return a, fmt.Errorf("faultproxy: %w", err)
	}
	a.header = a.header.Clone()
	maps.Copy(a.header, refusal.Header(a.body))
	return a, nil
}
