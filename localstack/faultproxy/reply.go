package faultproxy

import (
	"encoding/json"
	"hash/crc32"
	"net/http"
	"strconv"
	"strings"
)

// reply is an answer, from DynamoDB or in its name.
type reply struct {
	status int
	header http.Header
	body   []byte
}

func (a reply) write(w http.ResponseWriter) {
	header := w.Header()
	for name, values := range a.header {
		header[name] = values
	}
	if _, ok := a.header["Content-Type"]; !ok {
		header["Content-Type"] = nil // no guess in the upstream's name
	}
	header.Set("Content-Length", strconv.Itoa(len(a.body)))
	w.WriteHeader(a.status)
	// The client may be gone; there is nobody left to tell.
	_, _ = w.Write(a.body)
}

// errorType is the exception that an answer carries, without its namespace; empty where it carries none.
func (a reply) errorType() string {
	var content struct {
		Type string `json:"__type"`
	}
	if a.status < 400 || json.Unmarshal(a.body, &content) != nil {
		return ""
	}
	return content.Type[strings.LastIndexByte(content.Type, '#')+1:]
}

// capacity is the sum of the capacity units that an answer says it consumed, 0 where it says nothing.
func (a reply) capacity() float64 {
	type consumed struct{ CapacityUnits float64 }
	var one struct{ ConsumedCapacity consumed }
	if json.Unmarshal(a.body, &one) == nil {
		return one.ConsumedCapacity.CapacityUnits
	}
	var many struct{ ConsumedCapacity []consumed }
	if json.Unmarshal(a.body, &many) != nil {
		return 0
	}
	sum := 0.0
	for _, c := range many.ConsumedCapacity {
		sum += c.CapacityUnits
	}
	return sum
}

const (
	dynamoNamespace = "com.amazonaws.dynamodb.v20120810#"
	coralNamespace  = "com.amazon.coral.availability#"
	throttledText   = "Throughput exceeds the current capacity of your table or index. DynamoDB is automatically scaling your " +
		"table or index so please try again shortly."
	conflictText = "Transaction is ongoing for the item"
)

// refusal is how DynamoDB answers a request with an exception.
func refusal(status int, content map[string]any) reply {
	body, err := json.Marshal(content)
	if err != nil { // strings, slices and maps of them always encode
		status, body = http.StatusInternalServerError, []byte("{}")
	}
	header := http.Header{}
	header.Set("Content-Type", "application/x-amz-json-1.0")
	// The SDK compares this checksum with the body where it is there, as it always is on DynamoDB's own answers.
	header.Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10))
	return reply{status: status, header: header, body: body}
}

func unavailable() reply {
	return refusal(http.StatusServiceUnavailable, map[string]any{
		"__type": coralNamespace + "ServiceUnavailableException", "message": "The service is temporarily unavailable.",
	})
}

func conflict(q request, item int) reply {
	if q.transaction() {
		return canceled(q, item, "TransactionConflict", conflictText)
	}
	return refusal(http.StatusBadRequest, map[string]any{
		"__type": dynamoNamespace + "TransactionConflictException", "message": conflictText,
	})
}

func throttled(q request, code string, item int) reply {
	switch code {
	case TransactionCanceled:
		return canceled(q, item, "ThrottlingError", throttledText)
	case Throttling:
		return refusal(http.StatusBadRequest, map[string]any{"__type": coralNamespace + Throttling, "message": throttledText})
	default:
		return refusal(http.StatusBadRequest, map[string]any{
			"__type": dynamoNamespace + ProvisionedThroughputExceeded, "message": throttledText,
		})
	}
}

// canceled has one reason for each item of the request, in its order; the clean ones say None.
func canceled(q request, item int, code, message string) reply {
	reasons, codes := make([]map[string]string, q.items), make([]string, q.items)
	for i := range reasons {
		codes[i] = "None"
		reasons[i] = map[string]string{"Code": "None"}
		if i == item {
			codes[i] = code
			reasons[i] = map[string]string{"Code": code, "Message": message}
		}
	}
	return refusal(http.StatusBadRequest, map[string]any{
		"__type": dynamoNamespace + TransactionCanceled,
		"Message": "Transaction cancelled, please refer cancellation reasons for specific reasons [" +
			strings.Join(codes, ", ") + "]",
		"CancellationReasons": reasons,
	})
}
