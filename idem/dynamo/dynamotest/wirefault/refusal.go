package wirefault

import (
	"bytes"
	"cmp"
	"encoding/json"
	"hash/crc32"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

const (
	transactionCanceled = "TransactionCanceledException"
	reasonNone          = "None"

	dynamoNamespace = "com.amazonaws.dynamodb.v20120810#"
	coralNamespace  = "com.amazon.coral.availability#"

	throttledText = "Throughput exceeds the current capacity of your table or index. DynamoDB is automatically scaling your " +
		"table or index so please try again shortly."
	conflictText = "Transaction is ongoing for the item"
)

// texts are DynamoDB's messages of exceptions and cancellation reasons.
var texts = map[string]string{
	"ThrottlingException": throttledText, "ProvisionedThroughputExceededException": throttledText,
	"ThrottlingError": throttledText, "ProvisionedThroughputExceeded": throttledText,
	"TransactionConflictException": conflictText, "TransactionConflict": conflictText,
	"ServiceUnavailableException": "The service is temporarily unavailable.",
}

// Refusal is an answer of DynamoDB that refuses a request, in the shape of the real service.
type Refusal struct {
	// Status is the HTTP status.
	Status int
	// Code is the exception without its namespace, such as "ThrottlingException".
	Code string
	// Reasons are the codes of a cancelled transaction's reasons, one for each item; "None" is a clean item.
	Reasons []string
}

// At is a cancelled transaction of so many items, because of the one at the position, counted from 0.
func At(item, items int, reason string) Refusal {
	reasons := slices.Repeat([]string{reasonNone}, items)
	reasons[item] = reason
	return Refusal{Status: http.StatusBadRequest, Code: transactionCanceled, Reasons: reasons}
}

// Reply is the answer's header and body.
func (f Refusal) Reply() (http.Header, []byte) {
	body, err := json.Marshal(f.content())
	if err != nil { // strings, slices and maps of them always encode
		panic(err)
	}
	header := http.Header{}
	header.Set("Content-Type", "application/x-amz-json-1.0")
	// The SDK compares this checksum with the body where it is there, as it always is on DynamoDB's own answers.
	header.Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10))
	return header, body
}

// Fault answers the request with the refusal, and does not forward it.
func (f Refusal) Fault() Fault {
	return func(r *http.Request, _ http.RoundTripper) (*http.Response, error) {
		header, body := f.Reply()
		return &http.Response{
			StatusCode: f.Status, Status: http.StatusText(f.Status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
			Header: header, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
		}, nil
	}
}

func (f Refusal) content() map[string]any {
	if f.Code != transactionCanceled {
		namespace := dynamoNamespace
		if f.Code == "ThrottlingException" || f.Code == "ServiceUnavailableException" {
			namespace = coralNamespace
		}
		return map[string]any{"__type": namespace + f.Code, "message": cmp.Or(texts[f.Code], "refused by a test")}
	}
	reasons := make([]map[string]string, len(f.Reasons))
	for i, code := range f.Reasons {
		reasons[i] = map[string]string{"Code": code}
		if code != reasonNone {
			reasons[i]["Message"] = cmp.Or(texts[code], "refused by a test")
		}
	}
	return map[string]any{
		"__type": dynamoNamespace + f.Code,
		"Message": "Transaction cancelled, please refer cancellation reasons for specific reasons [" +
			strings.Join(f.Reasons, ", ") + "]",
		"CancellationReasons": reasons,
	}
}
