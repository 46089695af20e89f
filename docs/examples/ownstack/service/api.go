package service

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/middleware"
)

// placing is the operation of POST /orders.
var placing = idem.Operation{Name: "orders.create", Kind: idem.KindAtomic, Policy: idem.IETF()}

// routes is the service's API. POST /orders stores the order, the message that has it shipped, and the answer in one transaction.
func routes(engine *idem.Engine, logger *slog.Logger, orders orders) (http.Handler, error) {
	mw, err := middleware.New(engine, middleware.Config{Identify: identify, Logger: logger})
	if err != nil {
		return nil, err
	}
	create, err := mw.Handle(placing, middleware.Route{}, func(_ context.Context, tx *idem.Tx, r *middleware.Request) (idem.Response, error) {
		return orders.place(tx, r.Body)
	})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /orders", create)
	mux.HandleFunc("GET /orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		who, err := identify(r)
		if err != nil {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		found, err := orders.find(r.Context(), who.Tenant, r.PathValue("id"))
		switch {
		case err != nil:
			logger.ErrorContext(r.Context(), "read an order", "error", err)
			http.Error(w, "internal error", http.StatusInternalServerError)
		case found == nil:
			http.NotFound(w, r)
		default:
			w.Header().Set("Content-Type", "application/json")
			if err := json.NewEncoder(w).Encode(found); err != nil {
				logger.WarnContext(r.Context(), "answer", "error", err)
			}
		}
	})
	return mux, nil
}

// identify knows customers by their name in HTTP's basic authentication. A service would check the password.
func identify(r *http.Request) (middleware.Identity, error) {
	name, _, ok := r.BasicAuth()
	if !ok || name == "" {
		return middleware.Identity{}, middleware.ErrUnauthenticated
	}
	return middleware.Identity{Tenant: name}, nil
}

// place is the handler of an atomic operation. It reads the request and decides. What it gives to tx is committed together with its
// answer, or not at all.
func (o orders) place(tx *idem.Tx, body []byte) (idem.Response, error) {
	var wanted struct {
		Item string `json:"item"`
	}
	if err := json.Unmarshal(body, &wanted); err != nil || wanted.Item == "" {
		return idem.JSON(http.StatusBadRequest, map[string]string{"error": "an order names an item"})
	}
	placed := order{ID: string(tx.OperationID()), Customer: tx.Tenant(), Item: wanted.Item, State: statePlaced}
	payload, err := json.Marshal(placed)
	if err != nil {
		return idem.Response{}, err
	}
	tx.Write(o.insert(placed))
	tx.Send(topicShipments, payload)
	return idem.JSON(http.StatusCreated, placed)
}
