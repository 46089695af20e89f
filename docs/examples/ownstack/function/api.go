package main

import (
	"context"
	"encoding/json"
	"log"
	"net/http"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/lambdaapp"
	"github.com/idem-go/idem-aws/idem/middleware"
)

// routes is the shop's API. POST /orders stores the order, the message that has it shipped, and the answer in one transaction.
func routes(app *lambdaapp.Application, orders orders) (http.Handler, error) {
	mw, err := middleware.New(app.Engine, middleware.Config{Identify: identify, Logger: app.Logger})
	if err != nil {
		return nil, err
	}
	create, err := mw.Handle(idem.Operation{Name: "orders.create", Kind: idem.KindAtomic, Policy: idem.IETF()}, middleware.Route{}, orders.create)
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
		found, err := orders.find(r.Context(), app.DynamoDB, who.Tenant, r.PathValue("id"))
		switch {
		case err != nil:
			log.Printf("get order: %v", err)
			http.Error(w, "internal error", http.StatusInternalServerError)
		case found == nil:
			http.NotFound(w, r)
		default:
			w.Header().Set("Content-Type", "application/json")
			if err := json.NewEncoder(w).Encode(found); err != nil {
				log.Printf("answer: %v", err)
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

func (o orders) create(_ context.Context, tx *idem.Tx, r *middleware.Request) (idem.Response, error) {
	var wanted struct {
		Item string `json:"item"`
	}
	if err := json.Unmarshal(r.Body, &wanted); err != nil || wanted.Item == "" {
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
