package main

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"net/http"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/idem-go/idem-aws/docs/examples/postgres/pgstore"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/middleware"
)

// order is what a customer ordered.
type order struct {
	ID       string `json:"id"`
	Item     string `json:"item"`
	Quantity int    `json:"quantity"`
}

const quantityMax = 1000

// fits says whether the columns can hold the order. What they can't hold would fail the transaction, with an error and not an
// answer; text can hold anything but a zero byte.
func (o order) fits() bool {
	return o.Item != "" && !strings.ContainsRune(o.Item, 0) && o.Quantity >= 1 && o.Quantity <= quantityMax
}

// placeOrder decides, and writes nothing itself. What it passes to tx is committed together with its answer, or not at all.
func placeOrder(_ context.Context, tx *idem.Tx, r *middleware.Request) (idem.Response, error) {
	placed := order{ID: string(tx.OperationID()), Quantity: 1}
	if err := json.Unmarshal(r.Body, &placed); err != nil || !placed.fits() || placed.ID != string(tx.OperationID()) {
		return idem.JSON(http.StatusBadRequest, map[string]string{"error": "an order names an item, and perhaps a quantity of at most 1000"})
	}
	soldOut := idem.NewProblem(http.StatusConflict, "sold_out", "Sold out", "There is not as much of it in stock.")
	tx.Write(
		pgstore.ExecIf("stock/"+placed.Item, idem.Reject(soldOut),
			"update stock set in_stock = in_stock - $2 where item = $1 and in_stock >= $2", placed.Item, placed.Quantity),
		pgstore.Exec("orders/"+placed.ID,
			"insert into orders (id, customer, item, quantity, placed_at) values ($1, $2, $3, $4, $5)",
			placed.ID, tx.Tenant(), placed.Item, placed.Quantity, tx.Now()),
	)
	return idem.JSON(http.StatusCreated, placed)
}

// showOrder answers with one of the customer's own orders.
func showOrder(pool *pgxpool.Pool, w http.ResponseWriter, r *http.Request) {
	who, err := identify(r)
	if err != nil {
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	found := order{ID: r.PathValue("id")}
	err = pool.QueryRow(r.Context(), "select item, quantity from orders where id = $1 and customer = $2", found.ID, who.Tenant).Scan(&found.Item, &found.Quantity)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		http.NotFound(w, r)
		return
	case err != nil:
		log.Printf("get order: %v", err)
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(found); err != nil {
		log.Printf("answer: %v", err)
	}
}
