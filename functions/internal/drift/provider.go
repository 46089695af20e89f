package drift

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox/call"
)

// endpoints are where the provider lists objects, and of which family (docs/payments-api.md).
var endpoints = []struct {
	path   string
	family family
}{
	{"/charges", charges}, {"/legacy/charges", charges}, {"/refunds", refunds},
	{"/screenings", screenings}, {"/releases", releases}, {"/payouts", payouts}, {"/legacy/payouts", payouts},
}

const (
	// pageObjects is the most that the provider lists at once, and answerBytesMax bounds such an answer.
	pageObjects    = 100
	answerBytesMax = 4 << 20
)

// provider lists what there is; it makes nothing.
type provider struct {
	url    string
	client *http.Client
	pause  func(context.Context, time.Duration) error
	meter  *meter
}

// askMax is how often the provider is asked for one answer.
const askMax = 3

func newProvider(
	url string, timeout time.Duration, authorize func(http.RoundTripper) http.RoundTripper, pause func(context.Context, time.Duration) error,
) provider {
	client := &http.Client{Timeout: timeout, CheckRedirect: call.NoRedirects}
	if authorize != nil {
		client.Transport = authorize(http.DefaultTransport)
	}
	return provider{url: url, client: client, pause: pause}
}

// list asks again where there is no answer: it changes nothing there.
func (p provider) list(ctx context.Context, path string, query url.Values) ([]object, error) {
	for try := 1; ; try++ {
		objects, err := p.get(ctx, path+"?"+query.Encode())
		if err == nil {
			return objects, nil
		}
		if try == askMax || p.pause(ctx, pauseMin<<try) != nil {
			return nil, fmt.Errorf("drift: list %s: %w", path, err)
		}
	}
}

func (p provider) get(ctx context.Context, target string) ([]object, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+target, nil)
	if err != nil {
		return nil, err
	}
	p.meter.asked()
	res, err := p.client.Do(req)
	if err != nil {
		return nil, withoutQuery(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the provider answers %s", res.Status)
	}
	var objects []object
	if err := json.UnmarshalRead(io.LimitReader(res.Body, answerBytesMax), &objects); err != nil {
		return nil, err
	}
	if objects == nil {
		return nil, errors.New("the provider answers null")
	}
	for _, o := range objects {
		if o.ID == "" || o.Kind == "" || o.CreatedAt.IsZero() {
			return nil, errors.New("the provider lists an object without id, kind or time")
		}
	}
	return objects, nil
}

// withoutQuery leaves the URL out of an error: it names keys.
func withoutQuery(err error) error {
	if failed := (*url.Error)(nil); errors.As(err, &failed) {
		return failed.Err
	}
	return err
}

// under returns what there is of a family under a key.
func (p provider) under(ctx context.Context, f family, key idem.MessageID) ([]object, error) {
	var all []object
	for _, e := range endpoints {
		if e.family != f {
			continue
		}
		objects, err := p.list(ctx, e.path, url.Values{"key": {string(key)}})
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	return all, nil
}

// feed walks the listings of a span, newest first. Of each one page is held.
type feed struct{ listings []*listing }

func newFeed(p provider, from, to time.Time) *feed {
	f := &feed{}
	for _, e := range endpoints {
		f.listings = append(f.listings, &listing{provider: p, path: e.path, query: url.Values{
			"created_from": {from.UTC().Format(time.RFC3339Nano)}, "created_to": {to.UTC().Format(time.RFC3339Nano)}, "limit": {strconv.Itoa(pageObjects)},
		}})
	}
	return f
}

// until calls take with each object that was made at or after the time, and that it was not called with before, until take
// says that there is no room for another. It says whether that was all of them.
func (f *feed) until(ctx context.Context, at time.Time, take func(object) (room bool)) (over bool, err error) {
	for _, l := range f.listings {
		for {
			if len(l.page) == 0 && !l.over {
				if err := l.fill(ctx); err != nil {
					return false, err
				}
			}
			if len(l.page) == 0 || l.page[0].CreatedAt.Before(at) {
				break
			}
			o := l.page[0]
			if l.page = l.page[1:]; !take(o) {
				return false, nil
			}
		}
	}
	return true, nil
}

// listing is one endpoint's.
type listing struct {
	provider provider
	path     string
	query    url.Values
	page     []object
	over     bool
}

func (l *listing) fill(ctx context.Context) error {
	page, err := l.provider.list(ctx, l.path, l.query)
	if err != nil {
		return err
	}
	l.page, l.over = page, len(page) < pageObjects
	if !l.over {
		l.query.Set("starting_after", page[len(page)-1].ID)
	}
	return nil
}

// pool holds objects whose row has not come yet.
type pool struct {
	byOwner map[string][]object
	size    int
}

// owner is by what an object is found from its row: the operation of its key, else the reference, which for refunds and
// payouts is the row's id.
func owner(o object) string {
	if operation := o.operation(); operation != "" {
		return string(operation)
	}
	return o.Reference
}

func (p *pool) add(o object) {
	if p.byOwner == nil {
		p.byOwner = map[string][]object{}
	}
	p.byOwner[owner(o)] = append(p.byOwner[owner(o)], o)
	p.size++
}

// take removes and returns the objects of an entry.
func (p *pool) take(s story) []object {
	var taken []object
	for _, name := range []string{string(s.operation), s.entry.ID} {
		of := p.byOwner[name]
		rest := slices.DeleteFunc(slices.Clone(of), func(o object) bool { return ofEntry(o, s) })
		taken = append(taken, only(of, func(o object) bool { return ofEntry(o, s) })...)
		p.size -= len(of) - len(rest)
		if delete(p.byOwner, name); len(rest) > 0 {
			p.byOwner[name] = rest
		}
	}
	return taken
}

// ofEntry: a client chooses the reference of a payment, so that proves nothing; those of refunds and payouts are ours.
func ofEntry(o object, s story) bool {
	if o.operation() != "" {
		return o.operation() == s.operation
	}
	kind, ok := o.family().entryKind()
	return ok && kind == s.entry.Kind && o.family() != charges
}

// flush empties the pool of what was made within the window; the rest is another window's.
func (p *pool) flush(w Window) []object {
	var all []object
	for _, of := range p.byOwner {
		for _, o := range of {
			if !o.CreatedAt.Before(w.From) && o.CreatedAt.Before(w.To) {
				all = append(all, o)
			}
		}
	}
	*p = pool{}
	slices.SortFunc(all, func(a, b object) int {
		if c := b.CreatedAt.Compare(a.CreatedAt); c != 0 {
			return c
		}
		return slices.Compare([]string{a.ID}, []string{b.ID})
	})
	return all
}
