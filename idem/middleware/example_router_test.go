package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/middleware"
)

// newMiddleware is a middleware on the reference store, for one tenant.
func newMiddleware(report func(context.Context, middleware.Observation)) *middleware.Middleware {
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		log.Fatal(err)
	}
	engine, err := idem.New(store, idem.Config{})
	if err != nil {
		log.Fatal(err)
	}
	mw, err := middleware.New(engine, middleware.Config{
		Identify: func(*http.Request) (middleware.Identity, error) { return middleware.Identity{Tenant: "tenant-a"}, nil },
		Report:   report,
	})
	if err != nil {
		log.Fatal(err)
	}
	return mw
}

// A router knows every route, so start-up fails for one that admits POST or PATCH and has no policy.
func ExampleRouter() {
	existing := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	router := newMiddleware(nil).NewRouter()
	// An operation that was renamed keeps the keys of its clients.
	router.Wrap("POST /orders", idem.Operation{Name: "purchases.create", RenamedFrom: "orders.create", ReleaseOn: []int{503}, Policy: idem.IETF()}, middleware.Route{}, existing)
	router.Exempt("POST /hooks", "the provider's events have ids of their own", existing)
	router.Idempotent("PATCH /orders/{id}", existing) // PATCH is not

	_, err := router.Handler()
	var refused *idem.ConfigError
	fmt.Println(errors.As(err, &refused), refused.Field, refused.Value)
	for _, route := range router.Routes() {
		fmt.Println(route.Pattern, route.Operation, route.Policy.Name)
	}
	// Output:
	// true pattern PATCH /orders/{id}
	// POST /orders purchases.create ietf
	// POST /hooks  exempt
}

// One registration protects handlers in any router that takes a func(http.Handler) http.Handler:
//
//	r.With(protect).Post("/orders", create)                           // github.com/go-chi/chi
//	e.POST("/orders", create, echo.WrapMiddleware(protect), answered) // github.com/labstack/echo
//
// echo's handlers return errors, and echo answers them outside of all middlewares, when the protection has stored an empty
// 200. So a middleware of yours answers them inside:
//
//	func answered(next echo.HandlerFunc) echo.HandlerFunc {
//		return func(c echo.Context) error {
//			if err := next(c); err != nil {
//				c.Error(err)
//			}
//			return nil
//		}
//	}
//
// A router that has its own writer, such as gin, stands behind the protection: protect(router). What is protected then needs
// a router of its own that is mounted nowhere else, because two routers do not read every path alike
// (/orders/17%2Fpay).
func ExampleMiddleware_Middleware() {
	protect, err := newMiddleware(nil).Middleware(idem.Operation{Name: "orders.pay", ReleaseOn: []int{503}, Policy: idem.IETF()}, middleware.Route{})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("POST /orders/{id}/pay", protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println("pays order", r.PathValue("id"))
		w.WriteHeader(http.StatusCreated)
	})))
	for _, path := range []string{"/orders/1/pay", "/orders/1/pay", "/orders/2/pay"} {
		r := httptest.NewRequest("POST", path, strings.NewReader("{}"))
		r.Header.Set("Idempotency-Key", `"attempt-17"`)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Header().Get("Idempotency-Status"))
	}
	// Output:
	// pays order 1
	// 201 executed
	// 201 replayed
	// 422 mismatch
}

// In observe mode a policy acts on nothing: a team sees what enforcing it would change before it does.
func ExampleObservation() {
	mw := newMiddleware(func(_ context.Context, o middleware.Observation) {
		fmt.Printf("would have been: %d %q %q\n", o.Status, o.Outcome, o.Code)
	})
	runs := 0
	existing := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		runs++
		w.WriteHeader(http.StatusCreated)
	})
	observed, err := mw.Wrap(idem.Operation{Name: "orders.create", ReleaseOn: []int{503}, Policy: idem.Observe(idem.IETF())}, middleware.Route{}, existing)
	if err != nil {
		log.Fatal(err)
	}
	for _, key := range []string{`"order-17"`, `"order-17"`, `order-18, order-19`} {
		r := httptest.NewRequest("POST", "/orders", strings.NewReader("{}"))
		r.Header.Set("Idempotency-Key", key)
		w := httptest.NewRecorder()
		observed.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Header().Get("Idempotency-Status"))
	}
	fmt.Println("runs:", runs)
	// Output:
	// 201 unprotected
	// would have been: 201 "replayed" ""
	// 201 unprotected
	// would have been: 400 "" "idempotency_key_invalid"
	// 201 unprotected
	// runs: 3
}
