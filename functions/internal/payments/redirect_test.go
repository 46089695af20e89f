package payments_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
)

// A probe is answered by the provider or by nobody: the empty list of the place that a redirect leads to proves nothing, and it gets
// no credential.
func TestAProbeFollowsNoRedirect(t *testing.T) {
	asked := false
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked = true
		_, _ = io.WriteString(w, "[]")
	}))
	defer elsewhere.Close()
	provider := httptest.NewServer(http.RedirectHandler(strings.Replace(elsewhere.URL, "127.0.0.1", "localhost", 1), http.StatusFound))
	defer provider.Close()
	p, err := payments.NewProvider(provider.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	probed := 0
	for _, topic := range p.Topics(payments.Bounds{AttemptsMax: 3}) {
		if topic.Probe == nil {
			continue
		}
		probed++
		finding := topic.Probe(context.WithoutCancel(t.Context()), storage.Message{ID: idem.OperationID("op_" + strings.Repeat("A", 65)).Message(1)})
		if _, unclear := finding.(outbox.Unclear); !unclear || asked {
			t.Errorf("%s: %T, and the other place was asked: %v", topic.Name, finding, asked)
		}
	}
	if probed < 2 {
		t.Errorf("%d topics have a probe", probed)
	}
}
