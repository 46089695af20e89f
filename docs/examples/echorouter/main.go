// Command echorouter is a service on echo, protected by idem. What protects it stands between the markers.
//
// echo keeps the path's parameters in a context of its own, out of the request. So they count in the way that needs no
// parameters: the whole path does.
//
// echo's handlers return their refusals, and echo answers them last of all, outside of every middleware. So the answer is
// written inside of the protection: what the client is told is what is stored.
package main

import (
	"log"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

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
	pay := func(c echo.Context) error {
		var body struct{ Amount int }
		if err := c.Bind(&body); err != nil {
			return err
		}
		return c.JSON(http.StatusCreated, till.Pay(c.Param("id"), body.Amount))
	}
	router := echo.New()
	// idem: begin
	op := idem.Operation{Name: "orders.pay", Policy: idem.IETF(), UnknownToOperator: true}
	protect := protection.Must(mw.Middleware(op, middleware.Route{}))
	router.POST("/orders/:id/pay", pay, echo.WrapMiddleware(protect), answered)
	// idem: end
	return router
}

// idem: begin

// answered writes the answer to a handler's error at once. echo would write it only when the protection has ended, and has
// taken the silence for an empty 200.
func answered(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if err := next(c); err != nil {
			c.Error(err)
		}
		return nil
	}
}

// idem: end
