package faultproxy

import (
	"cmp"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// Write is what one request wrote, or may have written, to one row. A transaction has one for each row. The journal has every write
// that DynamoDB has accepted and every one that it has not answered; it has none that DynamoDB, or the proxy in its name, refused.
type Write struct {
	// Table is the row's.
	Table string `json:"table"`
	// Began and Ended are positions in one order of all sendings and answers: a write whose Ended is below another's Began was
	// made before it. Of two that overlap nobody knows. Ended is 0 where there was no answer yet.
	Began int `json:"began"`
	Ended int `json:"ended"`
	// At is when the answer came, or when the request was sent on where none came.
	At time.Time `json:"at"`
	// Accepted is false where there was no answer: the row may have been written.
	Accepted bool `json:"accepted"`
	// Whole says that the row was replaced; else only Values were changed.
	Whole bool `json:"whole,omitempty"`
	// Deleted says that the row was removed.
	Deleted bool `json:"deleted,omitempty"`
	// Values are the attributes that were written, and those of the key, as far as Config.Journal names them and they are scalars.
	// Binary values are in base64, as DynamoDB writes them.
	Values map[string]string `json:"values,omitempty"`
	// Given are the values that the write's condition demanded of the row before it, as far as it names each outright and once.
	Given map[string]string `json:"given,omitempty"`

	refused bool
}

// Journal is what was written since the proxy started, as far as a page of it goes. No reset clears it.
type Journal struct {
	Writes []Write `json:"writes"`
	// Next is where the next page begins; 0 where this one is the last.
	Next int `json:"next,omitempty"`
	// Dropped counts the writes that came when the journal was full.
	Dropped int `json:"dropped"`
}

// journalMax is how many writes the journal holds: some 200 MB. A page has journalPage of them.
const (
	journalMax  = 1 << 18
	journalPage = 4000
)

// journal keeps writes in the order in which they were sent on. Its zero value keeps none.
type journal struct {
	attributes []string

	mu      sync.Mutex
	clock   int
	writes  []*Write
	dropped int
}

// sent notes that a request is sent on to DynamoDB now. What it returns is told the answer's status, 0 where there was none.
func (j *journal) sent(q request, now func() time.Time) (answered func(status int)) {
	if len(j.attributes) == 0 {
		return func(int) {}
	}
	made := q.writes(j.attributes)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.clock++
	for _, w := range made {
		w.Began, w.At = j.clock, now().UTC()
	}
	room := min(len(made), journalMax-len(j.writes))
	j.dropped += len(made) - room
	j.writes = append(j.writes, made[:room]...)
	return func(status int) {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.clock++
		for _, w := range made {
			switch {
			case status == http.StatusOK:
				w.Ended, w.At, w.Accepted = j.clock, now().UTC(), true
			case status > 0:
				w.refused = true
			}
		}
	}
}

// read returns a page of copies of what was not refused.
func (j *journal) read(from int) Journal {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := Journal{Writes: []Write{}, Dropped: j.dropped}
	to := min(from+journalPage, len(j.writes))
	if to < len(j.writes) {
		out.Next = to
	}
	for _, w := range j.writes[min(from, to):to] {
		if !w.refused {
			out.Writes = append(out.Writes, *w)
		}
	}
	return out
}

// attributeValue is a scalar of DynamoDB's JSON.
type attributeValue struct {
	S, N, B string
}

func (v attributeValue) text() string { return cmp.Or(v.S, v.N, v.B) }

// write is one action on one row, as requests have it.
type write struct {
	TableName                 string
	Item, Key                 map[string]attributeValue
	UpdateExpression          string
	ConditionExpression       string
	ExpressionAttributeNames  map[string]string
	ExpressionAttributeValues map[string]attributeValue
}

// writes are what a request does to rows, by the attributes that are kept.
func (q request) writes(attributes []string) (made []*Write) {
	if !slices.Contains(journaled, q.operation) {
		return nil
	}
	var content struct {
		write
		TransactItems []struct{ Put, Update, Delete *write }
	}
	if json.Unmarshal(q.body, &content) != nil {
		return nil
	}
	add := func(w *write, whole, deleted bool) {
		if w == nil {
			return
		}
		one := &Write{Table: w.TableName, Whole: whole, Deleted: deleted, Values: map[string]string{}, Given: map[string]string{}}
		for _, values := range []map[string]attributeValue{w.Key, w.Item, w.equal(w.UpdateExpression)} {
			keep(one.Values, attributes, values)
		}
		keep(one.Given, attributes, w.equal(w.ConditionExpression))
		made = append(made, one)
	}
	switch q.operation {
	case "PutItem":
		add(&content.write, true, false)
	case "UpdateItem":
		add(&content.write, false, false)
	case "DeleteItem":
		add(&content.write, false, true)
	}
	for _, item := range content.TransactItems {
		add(item.Put, true, false)
		add(item.Update, false, false)
		add(item.Delete, false, true)
	}
	return made
}

// journaled are the operations that the journal can read. A store makes no BatchWriteItem.
var journaled = []string{"PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems"}

func keep(kept map[string]string, attributes []string, values map[string]attributeValue) {
	for name, value := range values {
		if text := value.text(); text != "" && slices.Contains(attributes, name) {
			kept[name] = text
		}
	}
}

// equality is a part of an expression that gives an attribute a value, or demands it of one.
var equality = regexp.MustCompile(`([#\w]+) = (:\w+)`)

// equal are the values that an expression says of attributes which it names once.
func (w *write) equal(expression string) map[string]attributeValue {
	values, times := map[string]attributeValue{}, map[string]int{}
	for _, part := range equality.FindAllStringSubmatch(expression, -1) {
		name := part[1]
		if strings.HasPrefix(name, "#") {
			name = w.ExpressionAttributeNames[name]
		}
		times[name]++
		if value, ok := w.ExpressionAttributeValues[part[2]]; ok && times[name] == 1 {
			values[name] = value
		} else {
			delete(values, name)
		}
	}
	return values
}
