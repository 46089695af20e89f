// Command chirouter is a service on chi, protected by idem. What protects it stands between the markers.
//
// The middleware belongs to the route (With), not to the router (Use), because the path's parameters are known after the
// routing only.
package main

import (
	"encoding/json"
	"log"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/idem-go/idem-aws/docs/examples/internal/protection"
	"github.com/idem-go/idem-aws/docs/examples/internal/shop"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/middleware"
)

func main() {
	server := http.Server{Addr: ":8080", Handler: newService(protection.New(), new(shop.Till)), ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.ListenAndServe())
}

// newService is the service's routes.
func newService(mw *middleware.Middleware, till *shop.Till) http.Handler {
	pay := func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Amount int }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			http.Error(w, "a payment has an amount", http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		if err := json.NewEncoder(w).Encode(till.Pay(chi.URLParam(r, "id"), body.Amount)); err != nil {
			log.Printf("answer: %v", err)
		}
	}
	router := chi.NewRouter()
	// idem: begin
	byID := func(r *http.Request) map[string]string { return map[string]string{"id": chi.URLParam(r, "id")} }
	op := idem.Operation{Name: "orders.pay", Policy: idem.IETF(), UnknownToOperator: true}
	protect := protection.Must(mw.Middleware(op, middleware.Route{PathParams: byID}))
	router.With(protect).Post("/orders/{id}/pay", pay)
	// idem: end
	return router
}
