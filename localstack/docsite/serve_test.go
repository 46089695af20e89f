package docsite

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The server shows a page as it is now, tells what is wrong with it, and lets it load nothing from elsewhere.
func TestSiteIsServedAsItIsNow(t *testing.T) {
	t.Parallel()
	copied := copyOf(t, checkout(t))
	var told []error
	server := Server{Root: copied, Out: filepath.Join(t.TempDir(), "site"), Told: func(err error) { told = append(told, err) }}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener) }()

	get := func() string {
		t.Helper()
		response, err := http.Get("http://" + listener.Addr().String() + "/style.html")
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != http.StatusOK || !strings.HasPrefix(response.Header.Get("Content-Security-Policy"), "default-src 'self';") {
			t.Fatalf("got %s, %v, %v", response.Status, response.Header, err)
		}
		return string(body)
	}
	if first := get(); strings.Contains(first, "A sentence that is new") || len(told) != 1 || told[0] != nil {
		t.Errorf("told %v", told)
	}
	get() // nothing changed, nothing is built
	page := filepath.Join(copied, "docs", "style.md")
	appendTo(t, page, "\nA sentence that is new. [x](none.md)\n")
	later := time.Now().Add(time.Second) // whatever the clock of the file system can tell apart
	if err := os.Chtimes(page, later, later); err != nil {
		t.Fatal(err)
	}
	second := get()
	if !strings.Contains(second, "A sentence that is new") || len(told) != 2 || told[1] == nil || !strings.Contains(told[1].Error(), "none.md: no such page") {
		t.Errorf("told %v", told)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
