package recording_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/internal/recording"
)

func add(r *recording.Recording, name, id, expires, retryAfter string) {
	request, _ := http.NewRequest(http.MethodPost, "https://example.com/orders?x=1", nil)
	request.Header = http.Header{"Idempotency-Key": {`"run7-a"`}, "Authorization": {"Bearer secret"}}
	r.Add(name, request, []byte(`{"n":1.50}`), &http.Response{StatusCode: 202, Header: http.Header{
		"Date": {"today"}, "Location": {"/v1/operations/" + id}, "Idempotency-Expires": {expires}, "Retry-After": {retryAfter},
	}}, []byte(`{"operation":"`+id+`","at":"2026-01-02T03:04:05Z"}`))
}

const first = `POST /orders?x=1 HTTP/1.1
Idempotency-Key: "a"

{
  "n": 1.50
}

HTTP/1.1 202 Accepted
Idempotency-Expires: 2026-11-24T12:00:00.000Z
Retry-After: 1
Location: /v1/operations/op_1

{
  "operation": "op_1",
  "at": "2026-11-23T12:00:00.000Z"
}
`

// What differs from run to run gets a name that stays, the same for the same id; secrets and a gateway's headers are left out.
func TestTwoRunsAreRecordedAlike(t *testing.T) {
	for _, run := range []struct{ one, other, expires, retryAfter string }{
		{"op_aaaaaaaaaaaaaaaaaaaa", "op_bbbbbbbbbbbbbbbbbbbb", "2026-01-03T03:04:05.678Z", "5"},
		{"op_cccccccccccccccccccc", "op_dddddddddddddddddddd", "2027-01-03T03:04:05.678Z", "3"},
	} {
		r := recording.Recording{Stable: strings.NewReplacer("run7-", ""), Live: true}
		add(&r, "page first", run.one, run.expires, run.retryAfter)
		add(&r, "page again", run.one, run.expires, run.retryAfter)
		add(&r, "page other", run.other, run.expires, run.retryAfter)
		want := "=== page first ===\n" + first + "\n=== page again ===\n" + first + "\n=== page other ===\n" + strings.ReplaceAll(first, "op_1", "op_2") + "\n"
		if got := r.String(); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

func TestAnotherAnswerThanTheFilesIsFound(t *testing.T) {
	file := filepath.Join(t.TempDir(), "recorded.http")
	kept := recording.Recording{Live: true}
	add(&kept, "first", "op_aaaaaaaaaaaaaaaaaaaa", "2026-01-03T03:04:05.678Z", "1")
	add(&kept, "gone", "op_aaaaaaaaaaaaaaaaaaaa", "2026-01-03T03:04:05.678Z", "1")
	if err := kept.Compare(file, true); err != nil {
		t.Fatal(err)
	}
	if err := kept.Compare(file, false); err != nil {
		t.Errorf("the same answers: %v", err)
	}
	now := recording.Recording{Live: true}
	add(&now, "first", "no-id", "2026-01-03T03:04:05.678Z", "1")
	add(&now, "new", "op_aaaaaaaaaaaaaaaaaaaa", "2026-01-03T03:04:05.678Z", "1")
	err := now.Compare(file, false)
	for _, want := range []string{`"first" is otherwise`, `has no exchange "new"`, `has the exchange "gone"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	add(&now, "new", "no-id", "", "")
	if err := now.Compare(file, true); err == nil {
		t.Error("a name is used twice")
	}
	if err := os.WriteFile(file, []byte("HTTP/1.1 200 OK\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := recording.Read(file); err == nil {
		t.Error("a file without names is read")
	}
}
