package schema_test

import (
	"fmt"

	"github.com/idem-go/idem-aws/idem/dynamo/schema"
)

// A tool that creates the outbox table reads from here what the store expects of it.
func ExampleOutbox() {
	table := schema.Outbox()
	fmt.Println("partition key:", table.Key)
	fmt.Println("native TTL:", table.TTL)
	fmt.Println("stream with new images:", table.StreamNewImage)
	fmt.Println("index:", table.Index.Name, table.Index.Partition, table.Index.Sort)
	// Output:
	// partition key: id
	// native TTL: ttl
	// stream with new images: true
	// index: queue q qa
}
