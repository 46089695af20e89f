// Package chain is the program of docs/guides/chains.md: a trip is a room and then a flight. Without the flight the room is given
// back.
package chain

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/idem-go/idem-aws/docs/examples/internal/protection"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/middleware"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
)

// The messages of a trip's chain.
const (
	reserveRoom = "rooms.reserve"
	bookFlight  = "flights.book"
	releaseRoom = "rooms.release"
)

// Call asks a provider for one step.
type Call func(ctx context.Context, m storage.Message) outbox.Outcome

// Topics are the steps of a trip: the two that make it, and the one that undoes the first.
func Topics(reserve, book, release Call) []outbox.Topic {
	keys := outbox.Keys{Honoured: true, Retention: 24 * time.Hour}
	return []outbox.Topic{
		{Name: reserveRoom, Keys: keys, Call: reserve, Settle: roomReserved},
		{Name: bookFlight, Keys: keys, Call: book, Settle: flightBooked},
		{Name: releaseRoom, Keys: keys, Call: release, Settle: roomReleased},
	}
}

// roomReserved goes on with the flight. Without a room there is no trip, and nothing to undo.
func roomReserved(m storage.Message, o outbox.Outcome) (outbox.Settlement, error) {
	if _, ok := o.(outbox.Delivered); !ok {
		return ended(m, http.StatusConflict, "no room")
	}
	return outbox.Settlement{Writes: []idem.Write{row(m, "room reserved")}, Next: &outbox.Next{Topic: bookFlight, Payload: m.Payload}}, nil
}

// flightBooked ends the trip. Where the flight was declined or given up, it undoes the room.
func flightBooked(m storage.Message, o outbox.Outcome) (outbox.Settlement, error) {
	if _, ok := o.(outbox.Delivered); ok {
		return ended(m, http.StatusCreated, "booked")
	}
	return outbox.Settlement{Writes: []idem.Write{row(m, "no flight")}, Next: &outbox.Next{Topic: releaseRoom, Payload: m.Payload, Undoes: true}}, nil
}

// roomReleased ends a trip that did not come about. While the room may be held nobody is told that it is free: an error keeps
// the trip pending, and an operator decides.
func roomReleased(m storage.Message, o outbox.Outcome) (outbox.Settlement, error) {
	if _, ok := o.(outbox.Delivered); !ok {
		return outbox.Settlement{}, errors.New("the room was not given back")
	}
	return ended(m, http.StatusConflict, "no flight, the room was given back")
}

func ended(m storage.Message, status int, state string) (outbox.Settlement, error) {
	response, err := idem.JSON(status, map[string]string{"trip": string(m.OperationID), "state": state})
	return outbox.Settlement{Writes: []idem.Write{row(m, state)}, Response: response}, err
}

// row is the trip's row. On DynamoDB it would be a dynamo.Update.
func row(m storage.Message, state string) idem.Write {
	return memstore.Write{Key: "trip/" + string(m.OperationID), Apply: func([]byte) []byte { return []byte(state) }}
}

// NewService serves POST /trips, and the status of trips.
func NewService(engine *idem.Engine, messages middleware.Messages) (http.Handler, error) {
	mw, err := middleware.New(engine, middleware.Config{Identify: protection.Identify})
	if err != nil {
		return nil, err
	}
	operation := idem.Operation{Name: "trips.create", Kind: idem.KindDeferred, Policy: idem.IETF()}
	create, err := mw.Handle(operation, middleware.Route{}, func(_ context.Context, tx *idem.Tx, r *middleware.Request) (idem.Response, error) {
		tx.Send(reserveRoom, r.Body) // the first step; each Settle sends the next one
		return idem.JSON(http.StatusAccepted, map[string]string{"trip": string(tx.OperationID()), "state": "pending"})
	})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /trips", create)
	mux.Handle("GET /v1/operations/{id}", mw.Status(messages))
	return mux, nil
}
