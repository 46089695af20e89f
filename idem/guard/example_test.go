package guard_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/guard"
	"github.com/idem-go/idem-aws/idem/memstore"
)

// charge calls the provider. Its context must be the handler's.
func charge(ctx context.Context, client *http.Client, url string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return err
}

// A wrapped handler calls a provider with a guarded client. Outside of an execution that client sends nothing.
func Example() {
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Println("the provider was called")
		w.WriteHeader(http.StatusCreated)
	}))
	defer provider.Close()
	client := &http.Client{Transport: guard.Transport(http.DefaultTransport)}

	store, err := memstore.New(memstore.Config{})
	if err != nil {
		log.Fatal(err)
	}
	engine, err := idem.New(store, idem.Config{})
	if err != nil {
		log.Fatal(err)
	}
	charges, err := engine.Register(idem.Operation{
		Name: "charges.create", Kind: idem.KindWrapped, Policy: idem.IETF(), UnknownToOperator: true,
	})
	if err != nil {
		log.Fatal(err)
	}
	request := idem.Request{Tenant: "tenant-a", Key: "key-1", Input: canonical.Input{MediaType: "application/json", Body: []byte(`{}`)}}
	result, err := charges.Do(context.Background(), request, func(ctx context.Context, _ *idem.Tx) (idem.Response, error) {
		if err := charge(ctx, client, provider.URL); err != nil {
			return idem.Response{}, err
		}
		return idem.JSON(http.StatusCreated, "charged")
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Outcome, result.Response.Status)

	err = charge(context.Background(), client, provider.URL)
	fmt.Println("outside of an execution nothing is sent:", errors.Is(err, idem.ErrLeaseOver))
	// Output:
	// the provider was called
	// executed 201
	// outside of an execution nothing is sent: true
}
