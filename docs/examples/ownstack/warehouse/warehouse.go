// Package warehouse is a stand-in for the service that ships orders. It honours idempotency keys, as a good provider does: each key
// is shipped once, and a call that is repeated gets the first answer. Tests and `make warehouse` use it.
package warehouse

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
)

// Warehouse is an http.Handler of POST /shipments. It forgets everything when the process ends.
type Warehouse struct {
	mu    sync.Mutex
	byKey map[string]string
}

// New returns a warehouse that has shipped nothing.
func New() *Warehouse { return &Warehouse{byKey: map[string]string{}} }

// Shipments is how many there were.
func (w *Warehouse) Shipments() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.byKey)
}

// ServeHTTP ships what the key of the request asks for.
func (w *Warehouse) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	key := r.Header.Get("Idempotency-Key")
	if r.Method != http.MethodPost || r.URL.Path != "/shipments" || key == "" {
		http.Error(out, "POST /shipments with an Idempotency-Key", http.StatusBadRequest)
		return
	}
	out.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(out).Encode(map[string]string{"id": w.ship(key)}); err != nil {
		return // the caller has gone, and will ask again
	}
}

// ship returns the name of the key's shipment.
func (w *Warehouse) ship(key string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byKey[key] == "" {
		w.byKey[key] = fmt.Sprintf("shipment-%d", len(w.byKey)+1)
	}
	return w.byKey[key]
}
