package metric_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"log/slog"

	"github.com/idem-go/idem-aws/idem/telemetry"
	"github.com/idem-go/idem-aws/idem/telemetry/metric"
)

// A log line whose message is a metric's name counts one, under the name that an alarm watches.
func Example() {
	var lines bytes.Buffer
	handler, err := telemetry.NewHandler(slog.NewJSONHandler(&lines, nil), telemetry.Config{Service: "payments"})
	if err != nil {
		log.Fatal(err)
	}
	slog.New(handler).InfoContext(context.Background(), metric.ReserveReplay, "tenant", "tenant-a")

	var line map[string]any
	if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
		log.Fatal(err)
	}
	fmt.Println(metric.Namespace, metric.ReserveReplay, line[metric.ReserveReplay])
	fmt.Println(metric.Service, line[metric.Service])
	// Output:
	// idem idempotency.reserve.replay 1
	// service payments
}
