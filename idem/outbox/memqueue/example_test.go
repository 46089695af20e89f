package memqueue_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/idem-go/idem-aws/idem/outbox/memqueue"
)

// A test moves the clock instead of waiting for the delay.
func Example() {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	queue := memqueue.New(func() time.Time { return now })
	if err := queue.Schedule(context.Background(), "tenant-a", "message-1", time.Minute); err != nil {
		log.Fatal(err)
	}
	fmt.Println("due at once:", len(queue.Take()))
	now = now.Add(time.Minute)
	fmt.Println("after a minute:", queue.Take())
	// Output:
	// due at once: 0
	// after a minute: [message-1]
}
