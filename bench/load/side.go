package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/idem-go/idem-aws/bench/hand"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
)

// powertoolsShape is the table of Powertools' records as its documentation has it.
var powertoolsShape = schema.Table{Key: "id"}

const powertoolsTable = "load-powertools"

// side is one way to serve a first request and its replay, over HTTP.
type side struct {
	name string
	// promises is what its caller gets, and does not get.
	promises string
	client   client
	// first and replay are the paths of the requests.
	first, replay string
	known         []string
}

// kind is a kind of idem's operations that is measured, with the calls that it makes.
type kind struct {
	name, promises string
	first, replay  hand.Template
}

// learn finds out which calls idem makes for a first request and a replay of each kind.
func learn(ctx context.Context, url string, t tables, options ...func(*dynamodb.Options)) ([]kind, error) {
	kinds := []kind{
		{name: "atomic", promises: "record, row and answer in one transaction, fenced by owner and epoch; status, headers and body are replayed"},
		{name: "wrapped", promises: "record fenced by owner and epoch, the lease renewed while the handler runs; the handler's row is written beside it, " +
			"and a crash between the two leaves the record unknown, not executed again"},
	}
	var recorded hand.Recorder
	app, err := newApp(ctx, newClient(url, append(options, recorded.Option)...), t)
	if err != nil {
		return nil, err
	}
	for i, k := range kinds {
		key := newKey()
		for _, template := range []*hand.Template{&kinds[i].first, &kinds[i].replay} {
			recorded.Take()
			if err := post(ctx, inProcessClient(app), "/"+k.name, key); err != nil {
				return nil, err
			}
			if *template, err = hand.NewTemplate(recorded.Take(), key); err != nil {
				return nil, fmt.Errorf("%s: %w", k.name, err)
			}
		}
	}
	return kinds, nil
}

// openSides starts all sides over an endpoint. stop ends them.
func openSides(
	ctx context.Context, url string, t tables, kinds []kind, powertools string, options ...func(*dynamodb.Options),
) ([]*side, func(), error) {
	dynamo := newClient(url, options...)
	app, err := newApp(ctx, dynamo, t)
	if err != nil {
		return nil, nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/", app)
	server := httptest.NewServer(mux)
	pool := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connectionsMax}}
	base := client{base: server.URL, http: pool}
	var all []*side
	for _, k := range kinds {
		path := "/" + k.name
		mux.Handle("POST "+path+"/hand/first", byHand(dynamo, k.first))
		mux.Handle("POST "+path+"/hand/replay", byHand(dynamo, k.replay))
		all = append(all,
			&side{name: "idem, " + k.name, promises: k.promises, client: base, first: path, replay: path},
			&side{name: k.name + "'s calls by hand", client: base, first: path + "/hand/first", replay: path + "/hand/replay",
				promises: "idem's calls alone, learnt from it: no fingerprint, no decision about what is found, no answer read back"})
	}
	stop := func() { pool.CloseIdleConnections(); server.Close() }
	if powertools == "" {
		return all, stop, nil
	}
	p, err := startPowertools(ctx, powertools, url, t.Rows)
	if err != nil {
		stop()
		return nil, nil, err
	}
	all = append(all, &side{name: "Powertools", client: client{base: p.url, http: pool}, first: "/", replay: "/",
		promises: "the function's JSON is replayed; no fence: completing overwrites whatever the record says by then; the row is written " +
			"beside the record, and after a crash between the two a retry executes again once the lease is over; no status, no headers"})
	return all, func() { stop(); p.stop() }, nil
}

// byHand is a service that makes the calls itself.
func byHand(c *dynamodb.Client, t hand.Template) http.Handler {
	h := hand.Hand{Client: c, Template: t}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		if err = errors.Join(err, h.Send(r.Context(), r.Header.Get(keyHeader))); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		respond(w)
	})
}

// prepare sends what replays need, which warms the side up too.
func (s *side) prepare(ctx context.Context, requests int) (err error) {
	s.known, err = known(ctx, s.client, s.first, requests)
	if err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	return nil
}

// sender sends first requests or replays.
func (s *side) sender(replay bool) sender {
	if replay {
		return replays(s.client, s.replay, s.known)
	}
	return firsts(s.client, s.first)
}

// createSideTables makes the tables of all sides.
func createSideTables(ctx context.Context, url string) (tables, map[string]schema.Table, error) {
	t, err := createTables(ctx, url, "load-beside")
	if err != nil {
		return t, nil, err
	}
	shapes := t.shapes()
	shapes[powertoolsTable] = powertoolsShape
	return t, shapes, dynamotest.CreateTable(ctx, dynamotest.Client(url), powertoolsTable, powertoolsShape)
}
