package storage_test

import (
	"crypto/rand"
	"fmt"
	"log"
	"time"

	"github.com/idem-go/idem-aws/idem/storage"
)

// The id of a message names its operation and its place in the chain.
func ExampleMessageID_Operation() {
	mint := storage.IDGenerator{Random: rand.Reader}
	operation, err := mint.OperationID("xPMqmj-_uvsZVTnuooEICUPHm_dFxTFmUVtuuCrqnQs")
	if err != nil {
		log.Fatal(err)
	}
	back, place, err := operation.Message(2).Operation()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(back == operation, place)
	// Output: true 2
}

// A store applies a write only if the stored row passes the write's fence: here the holder's own, under its epoch.
func ExampleFenceOfHolder() {
	held := storage.Record{
		Key: "key", OperationID: "op_1", State: storage.StateInProgress, Owner: "owner-1", Epoch: 1,
		LeaseUntil: time.Date(2026, 11, 21, 12, 0, 30, 0, time.UTC),
	}
	fence := storage.FenceOfHolder(held, storage.StateInProgress)

	takenOver := held
	takenOver.Owner, takenOver.Epoch = "owner-2", 2

	fmt.Println("as it was reserved:", fence.Admits(held))
	fmt.Println("taken over by another execution:", fence.Admits(takenOver))
	// Output:
	// as it was reserved: true
	// taken over by another execution: false
}
