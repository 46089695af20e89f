package control_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/localstack/internal/control"
)

type shape struct {
	Name string `json:"name"`
}

func server(t *testing.T) string {
	t.Helper()
	srv := httptest.NewServer(control.Methods{
		http.MethodPut: func(w http.ResponseWriter, r *http.Request) {
			var s shape
			if control.Read(w, r, &s) {
				control.JSON(w, http.StatusOK, s)
			}
		},
		http.MethodGet: func(w http.ResponseWriter, _ *http.Request) {
			control.JSON(w, http.StatusOK, func() {})
		},
	})
	t.Cleanup(srv.Close)
	return srv.URL
}

func TestReadRefusesWhatItDoesNotKnow(t *testing.T) {
	url := server(t)
	for name, c := range map[string]struct {
		body   string
		status int
	}{
		"known":          {`{"name":"a"}`, 200},
		"unknown member": {`{"nam":"a"}`, 400},
		"wrong type":     {`{"name":1}`, 400},
		"two values":     {`{"name":"a"} {}`, 400},
		"nothing":        {``, 400},
		"too large":      {`{"name":"` + strings.Repeat("a", control.BodyBytesMax) + `"}`, 413},
	} {
		t.Run(name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, url, strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = res.Body.Close() }()
			if res.StatusCode != c.status {
				t.Errorf("status %d, want %d", res.StatusCode, c.status)
			}
			if ct := res.Header.Get("Content-Type"); ct != "application/json" {
				t.Errorf("content type %q", ct)
			}
		})
	}
}

func TestCall(t *testing.T) {
	url := server(t)
	var got shape
	if err := control.Call(t.Context(), nil, http.MethodPut, url, shape{Name: "a"}, &got); err != nil || got.Name != "a" {
		t.Errorf("got %+v, %v", got, err)
	}
	for name, c := range map[string]struct {
		method, url string
		in, out     any
		want        string
	}{
		"status":          {http.MethodDelete, url, nil, nil, "405"},
		"unencodable":     {http.MethodGet, url, nil, nil, "500"},
		"bad input":       {http.MethodPut, url, func() {}, nil, "unsupported type"},
		"bad method":      {"BAD METHOD", url, nil, nil, "invalid method"},
		"answer mismatch": {http.MethodPut, url, shape{Name: "a"}, new([]int), "decoding"},
		"no server":       {http.MethodGet, "http://127.0.0.1:1", nil, nil, "refused"},
	} {
		err := control.Call(t.Context(), nil, c.method, c.url, c.in, c.out)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want one with %q", name, err, c.want)
		}
	}
}
