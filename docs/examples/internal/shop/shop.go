// Package shop is the business of the examples of routers: a till that takes payments for orders.
package shop

import "sync"

// Payment is what a customer paid for an order.
type Payment struct {
	Order  string `json:"order"`
	Amount int    `json:"amount"`
	// Number counts the payments of the till, from 1: a payment that was made twice has two.
	Number int `json:"number"`
}

// Till takes payments. Its zero value is empty; it is safe for concurrent use.
type Till struct {
	mu    sync.Mutex
	taken int
}

// Pay takes a payment.
func (t *Till) Pay(order string, amount int) Payment {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.taken++
	return Payment{Order: order, Amount: amount, Number: t.taken}
}
