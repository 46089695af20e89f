package cors_test

import (
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/middleware/cors"
)

const shop = "https://shop.example"

// guarded refuses whoever sends no credentials, as an API does.
var guarded = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") == "" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	w.WriteHeader(http.StatusCreated)
})

func serve(t *testing.T, cfg cors.Config, method string, header http.Header) *http.Response {
	t.Helper()
	allow, err := cors.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(method, "/orders", nil)
	r.Header = header
	w := httptest.NewRecorder()
	allow(guarded).ServeHTTP(w, r)
	return w.Result()
}

func preflight(origin, method string, names ...string) http.Header {
	return http.Header{
		"Origin": {origin}, "Access-Control-Request-Method": {method}, "Access-Control-Request-Headers": {strings.Join(names, ",")},
	}
}

// semantics.md "On the wire": Idempotency-Key and what goes with it is allowed. A preflight carries no credentials
// (Fetch section 3.2.2), so nobody asks it for any.
func TestPreflight(t *testing.T) {
	sent := []string{"authorization", "content-type", "idempotency-first-sent", "idempotency-key", "prefer"} // as browsers sort them
	response := serve(t, cors.Config{Origins: []string{shop}}, "OPTIONS", preflight(shop, "POST", sent...))
	if response.StatusCode != 204 || response.Header.Get("Access-Control-Allow-Origin") != shop || response.Header.Get("Access-Control-Allow-Methods") != "POST" ||
		response.Header.Get("Access-Control-Max-Age") != "600" || response.Header.Get("Access-Control-Allow-Credentials") != "" {
		t.Errorf("%d %v", response.StatusCode, response.Header)
	}
	if got := response.Header.Get("Access-Control-Allow-Headers"); got != strings.Join(sent, ",") {
		t.Errorf("allowed headers %q", got)
	}
	for name, header := range map[string]http.Header{
		"another origin":       preflight("https://evil.example", "POST", "idempotency-key"),
		"another scheme":       preflight("http://shop.example", "POST", "idempotency-key"),
		"a header of its own":  preflight(shop, "POST", "x-evil"),
		"a method of its own":  preflight(shop, "TRACE"),
		"an origin like ours":  preflight(shop+".evil.example", "POST"),
		"an origin that opens": preflight("null", "POST"),
	} {
		if response := serve(t, cors.Config{Origins: []string{shop}}, "OPTIONS", header); response.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s is allowed: %v", name, response.Header)
		}
	}
	own := cors.Config{Origins: []string{shop}, Headers: []string{"X-Trace"}, Methods: []string{"PUT"}, MaxAge: time.Hour}
	response = serve(t, own, "OPTIONS", preflight(shop, "PUT", "idempotency-key", "x-trace"))
	if response.Header.Get("Access-Control-Allow-Headers") != "idempotency-key,x-trace" || response.Header.Get("Access-Control-Max-Age") != "3600" {
		t.Errorf("configured: %v", response.Header)
	}
	if response := serve(t, own, "OPTIONS", preflight(shop, "POST")); response.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("a method that is not configured: %v", response.Header)
	}
}

// The response headers of semantics.md are exposed, on refusals too: a page must be able to read why.
func TestAnswersAreReadable(t *testing.T) {
	for status, header := range map[int]http.Header{201: {"Origin": {shop}, "Authorization": {"Bearer t"}}, 401: {"Origin": {shop}}} {
		response := serve(t, cors.Config{Origins: []string{shop}, Exposed: []string{"X-Order"}}, "POST", header)
		exposed := strings.Split(response.Header.Get("Access-Control-Expose-Headers"), ", ")
		want := "[Idempotency-Expires Idempotency-Status Idempotent-Replayed Link Location Retry-After X-Order]"
		if response.StatusCode != status || response.Header.Get("Access-Control-Allow-Origin") != shop || fmt.Sprint(exposed) != want || response.Header.Get("Vary") == "" {
			t.Errorf("%d %v", response.StatusCode, response.Header)
		}
	}
	response := serve(t, cors.Config{Origins: []string{"*"}}, "POST", http.Header{"Origin": {"https://any.example"}})
	if response.Header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("every origin: %v", response.Header)
	}
}

func TestNewRefuses(t *testing.T) {
	for field, cfgs := range map[string][]cors.Config{
		"Config.Origins": {
			{}, {Origins: []string{""}}, {Origins: []string{"shop.example"}}, {Origins: []string{shop + "/"}}, {Origins: []string{shop, "*"}},
			{Origins: []string{"https://*.example"}}, {Origins: []string{"https://user@shop.example"}}, {Origins: []string{"null"}},
		},
		"Config.Headers, Config.Exposed": {{Origins: []string{shop}, Headers: []string{"*"}}, {Origins: []string{shop}, Exposed: []string{""}}},
		"Config.MaxAge":                  {{Origins: []string{shop}, MaxAge: -1}, {Origins: []string{shop}, MaxAge: time.Millisecond}},
	} {
		for _, cfg := range cfgs {
			var refused *idem.ConfigError
			if _, err := cors.New(cfg); !errors.As(err, &refused) || refused.Field != field {
				t.Errorf("%+v: %v, want %s rejected", cfg, err, field)
			}
		}
	}
}

func Example() {
	allow, err := cors.New(cors.Config{Origins: []string{"https://shop.example"}})
	if err != nil {
		log.Fatal(err)
	}
	r := httptest.NewRequest("OPTIONS", "/orders", nil)
	r.Header = http.Header{
		"Origin": {"https://shop.example"}, "Access-Control-Request-Method": {"POST"},
		"Access-Control-Request-Headers": {"authorization,content-type,idempotency-key"},
	}
	w := httptest.NewRecorder()
	allow(guarded).ServeHTTP(w, r)
	fmt.Println(w.Code, w.Header().Get("Access-Control-Allow-Headers"))
	// Output: 204 authorization,content-type,idempotency-key
}
