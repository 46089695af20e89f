package operator

import (
	"encoding/base64"
	"encoding/json"
	"slices"
)

// position is where a list goes on: behind the row that it looked at last. Rows leave the list between two calls, above all
// those that the operator has dealt with, so that it is no count of rows.
type position struct {
	Queue Queue `json:"q"`
	// Records says that the list is through with messages.
	Records bool `json:"r,omitempty"`
	Shard   int  `json:"s,omitempty"`
	// Page is the store's cursor of the page.
	Page string `json:"p,omitempty"`
	// At is the time of the last row, in Unix milliseconds, and IDs are the rows of that time that were looked at: a page has the
	// oldest first, and says nothing of the order of those alike. With no IDs the page is at its begin.
	At  int64    `json:"t,omitempty"`
	IDs []string `json:"i,omitempty"`
}

// positionIn reads a list's Next; an empty one is the begin.
func positionIn(text string, queue Queue, shards int) (position, error) {
	if text == "" {
		return position{Queue: queue}, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	var p position
	if err == nil {
		err = json.Unmarshal(raw, &p)
	}
	if err != nil || p.Queue != queue || p.Shard < 0 || p.Shard >= shards {
		return position{}, &InvalidError{"after", "must be what a list of the same queue has as next"}
	}
	return p, nil
}

// String is what positionIn reads.
func (p position) String() string {
	raw, err := json.Marshal(p)
	if err != nil {
		panic(err) // strings and numbers
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

func (p position) passed(e entrant) bool {
	at := e.at.UnixMilli()
	return len(p.IDs) > 0 && (at < p.At || at == p.At && slices.Contains(p.IDs, e.id))
}

func (p *position) pass(e entrant) {
	if at := e.at.UnixMilli(); len(p.IDs) == 0 || at != p.At {
		p.At, p.IDs = at, nil
	}
	p.IDs = append(p.IDs, e.id)
}

// turn turns to the next page, or where there is none to the next shard.
func (p *position) turn(page string) {
	shard := p.Shard
	if page == "" {
		shard++
	}
	*p = position{Queue: p.Queue, Records: p.Records, Shard: shard, Page: page}
}
