package payments_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/idem"
)

// answer is what a client got.
type answer struct {
	t      *testing.T
	status int
	header http.Header
	body   string
}

// post sends a request with a key; a key of "" sends none. Headers are "Name: value".
func (w *world) post(tenant, path, key, body string, headers ...string) answer {
	w.Helper()
	if key != "" {
		headers = append(headers, `Idempotency-Key: "`+key+`"`)
	}
	return w.send(http.MethodPost, tenant, path, body, append([]string{"Content-Type: application/json"}, headers...)...)
}

func (w *world) get(tenant, path string) answer {
	w.Helper()
	return w.send(http.MethodGet, tenant, path, "")
}

func (w *world) send(method, tenant, path, body string, headers ...string) answer {
	w.Helper()
	req, err := http.NewRequestWithContext(w.Context(), method, w.api.URL+path, strings.NewReader(body))
	w.ok(err)
	if tenant != "" {
		req.Header.Set("Authorization", "Bearer "+tenant)
	}
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Set(name, value)
	}
	res, err := w.api.Client().Do(req)
	w.ok(err)
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	w.ok(err)
	w.documented(req, body, res, raw)
	return answer{t: w.T, status: res.StatusCode, header: res.Header, body: string(raw)}
}

// want demands a status and headers, each "Name: value", or "Name" for one that must be there, or "-Name" for one that
// must not.
func (a answer) want(status int, headers ...string) answer {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("status %d, want %d: %s", a.status, status, a.body)
	}
	for _, line := range headers {
		name, value, exact := strings.Cut(line, ": ")
		got := a.header.Values(strings.TrimPrefix(name, "-"))
		switch {
		case strings.HasPrefix(name, "-") && len(got) > 0,
			!strings.HasPrefix(name, "-") && len(got) != 1,
			exact && !slices.Equal(got, []string{value}):
			a.t.Errorf("%s is %q, want %s", name, got, line)
		}
	}
	return a
}

// problem demands a problem document with the code.
func (a answer) problem(status int, code string) answer {
	a.t.Helper()
	a.want(status, "Content-Type: application/problem+json")
	var problem idem.Problem
	a.decode(&problem)
	if problem.Code != code || problem.Status != status || problem.Type == "" || problem.Title == "" || problem.Detail == "" {
		a.t.Errorf("problem %s, want a whole one with code %s", a.body, code)
	}
	return a
}

// pointers demands where the errors of a validation problem are.
func (a answer) pointers(want ...string) {
	a.t.Helper()
	var problem idem.Problem
	a.problem(http.StatusBadRequest, "request_invalid").decode(&problem)
	var got []string
	for _, e := range problem.Errors {
		got = append(got, e.Pointer)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		a.t.Errorf("errors at %q, want %q", got, want)
	}
}

func (a answer) decode(into any) {
	a.t.Helper()
	decode(a.t, []byte(a.body), into)
}

// same demands that both answers have the same status and the same bytes.
func (a answer) same(other answer) {
	a.t.Helper()
	if a.status != other.status || a.body != other.body || a.header.Get("Content-Type") != other.header.Get("Content-Type") {
		a.t.Errorf("answers differ:\n%d %s\n%d %s", a.status, a.body, other.status, other.body)
	}
}

// payment is a payment on the wire.
type payment struct {
	ID                string
	Status            string
	Amount            int64
	Currency          string
	Source            string
	Reference         string
	ProviderReference *string `json:"provider_reference"`
	Refunded          int64
	CreatedAt         string `json:"created_at"`
}

// refund is a refund on the wire.
type refund struct {
	ID                string
	Payment           string
	Status            string
	Amount            int64
	Currency          string
	ProviderReference *string `json:"provider_reference"`
	CreatedAt         string  `json:"created_at"`
}

// payout is a payout on the wire.
type payout struct {
	ID                string
	Status            string
	From              string
	Amount            int64
	Currency          string
	Destination       string
	ProviderReference *string `json:"provider_reference"`
	CreatedAt         string  `json:"created_at"`
}

// accepted is the body of a 202; one of the entities is there.
type accepted struct {
	Operation idem.OperationID
	State     string
	Payment   payment
	Refund    refund
	Payout    payout
}

// order is the body of a payment from the source.
func order(source string) string {
	return `{"amount":1999,"currency":"EUR","source":"` + source + `","reference":"order-17"}`
}

// pay asks for a payment by tenant-a under the key, which must be accepted.
func (w *world) pay(key, source string) accepted {
	w.Helper()
	var body accepted
	w.post(tenantA, "/v1/payments", key, order(source)).want(http.StatusAccepted).decode(&body)
	return body
}

// again sends the same request once more.
func (w *world) again(key, source string) answer {
	w.Helper()
	return w.post(tenantA, "/v1/payments", key, order(source))
}

// status demands what tenant-a sees of the payment and of the operation behind it.
func (w *world) status(a accepted, payment, operation string) {
	w.Helper()
	if got := w.payment(a.Payment.ID).Status; got != payment {
		w.Errorf("payment is %s, want %s", got, payment)
	}
	if got := w.operation(a.Operation).State; got != operation {
		w.Errorf("operation is %s, want %s", got, operation)
	}
}

func (w *world) payment(id string) payment {
	w.Helper()
	var p payment
	w.get(tenantA, "/v1/payments/"+id).want(http.StatusOK).decode(&p)
	return p
}

// operation is the status of an operation on the wire.
type operation struct {
	ID          idem.OperationID
	State       string
	CreatedAt   string  `json:"created_at"`
	CompletedAt *string `json:"completed_at"`
	Response    *struct {
		Status       int
		Headers      map[string]string
		Body         string
		BodyEncoding string `json:"body_encoding"`
	}
}

func (w *world) operation(id idem.OperationID) operation {
	w.Helper()
	var o operation
	a := w.get(tenantA, "/v1/operations/"+string(id)).want(http.StatusOK)
	a.decode(&o)
	if final := o.Response != nil; final == (a.header.Get("Retry-After") != "") || final != (o.CompletedAt != nil) {
		w.Errorf("Retry-After is %q while the response is %v and completed_at %v", a.header.Get("Retry-After"), o.Response, o.CompletedAt)
	}
	return o
}
