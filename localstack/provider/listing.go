package provider

import (
	"fmt"
	"net/url"
	"strconv"
	"time"
)

// pageMax is the most objects of one page; who names no limit gets everything.
const pageMax = 100

// listing is which of the objects of a kind a GET asks for. The zero value is all of them.
type listing struct {
	// key is nil where objects of any key are meant.
	key *string
	// from and to bound when the objects were made, from inclusive and to not, in the milliseconds that objects show.
	from, to time.Time
	// after is the id of the last object of the page before.
	after string
	// limit is the most objects; 0 = all.
	limit int
}

// readListing reads the query, or returns what is wrong with it.
func readListing(query url.Values) (l listing, wrong string) {
	if query.Has("key") {
		l.key = new(query.Get("key"))
	}
	for name, bound := range map[string]*time.Time{"created_from": &l.from, "created_to": &l.to} {
		if !query.Has(name) {
			continue
		}
		at, err := time.Parse(time.RFC3339, query.Get(name))
		if err != nil {
			return l, name + " must be a time by RFC 3339"
		}
		*bound = at
	}
	if query.Has("limit") {
		n, err := strconv.Atoi(query.Get("limit"))
		if err != nil || n < 1 || n > pageMax {
			return l, fmt.Sprintf("limit must be 1 to %d", pageMax)
		}
		l.limit = n
	}
	l.after = query.Get("starting_after")
	return l, ""
}

// holds says whether an object is within the listing's times.
func (l listing) holds(o *Object) bool {
	made := o.CreatedAt.Truncate(time.Millisecond)
	return !made.Before(l.from) && (l.to.IsZero() || made.Before(l.to))
}
