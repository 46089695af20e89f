package canonical_test

import (
	"errors"
	"fmt"

	"github.com/idem-go/idem-aws/idem/canonical"
)

func ExampleFingerprinter_Sum() {
	// The client stamps every attempt; the stamp is not part of what it asks for.
	fields, err := canonical.NewFields(nil, []string{"/sent_at"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fingerprinter, err := canonical.New(canonical.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	sum := func(body string) canonical.Fingerprint {
		fingerprint, err := fingerprinter.Sum(canonical.Input{
			Operation: "payments.create", MediaType: "application/json", Body: []byte(body), Selection: canonical.Selection{Fields: fields},
		})
		var refused *canonical.SyntaxError
		if errors.As(err, &refused) {
			fmt.Println("refused:", refused.Reason)
		}
		return fingerprint
	}

	first := sum(`{"amount": 1999, "currency": "EUR", "sent_at": "10:00"}`)
	fmt.Println("retry:", first.Equal(sum(`{"sent_at":"10:05","currency":"EUR","amount":1999}`)))
	fmt.Println("another amount:", first.Equal(sum(`{"amount":2000,"currency":"EUR"}`)))
	sum(`{"amount":1e400}`)
	// Output:
	// retry: true
	// another amount: false
	// refused: a number beyond the range of a double
}
