// Command ginrouter is a service on gin, protected by idem. What protects it stands between the markers.
//
// gin's handlers write to a writer of its own, so the protection stands in front of the router: at a pattern of
// http.ServeMux, whose wildcards count. Everything else goes to the router as before.
//
// What is protected has a router of its own, which is mounted there and nowhere else. Two routers don't read every path
// alike: for http.ServeMux /orders/17%2Fpay has two segments, for gin it is /orders/17/pay. With the handler in the
// other router, too, that path would pay without a key, and for anybody.
package main

import (
	"log"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

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
	mux, router, protected := http.NewServeMux(), gin.New(), gin.New()
	protected.POST("/orders/:id/pay", func(c *gin.Context) {
		var body struct{ Amount int }
		if err := c.BindJSON(&body); err != nil {
			return
		}
		c.JSON(http.StatusCreated, till.Pay(c.Param("id"), body.Amount))
	})
	mux.Handle("/", router)
	// idem: begin
	op := idem.Operation{Name: "orders.pay", Policy: idem.IETF(), UnknownToOperator: true}
	byID := middleware.Route{PathParams: func(r *http.Request) map[string]string { return map[string]string{"id": r.PathValue("id")} }}
	protect := protection.Must(mw.Middleware(op, byID))
	mux.Handle("POST /orders/{id}/pay", protect(protected))
	// idem: end
	return mux
}
