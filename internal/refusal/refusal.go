// Package refusal makes the answers by which DynamoDB refuses a request, in the shape of the real service. Emulators
// never raise most of them.
//
// Two kinds of tests inject them: those with idem/dynamo/dynamotest/wirefault in their own process, and those with
// localstack/faultproxy on a deployed stack. Both take every shape from here, so that what one has shown holds for the
// other.
package refusal

import (
	"cmp"
	"encoding/json"
	"hash/crc32"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Codes of exceptions, without their namespace.
const (
	Throttling            = "ThrottlingException"
	ThroughputExceeded    = "ProvisionedThroughputExceededException"
	RequestLimitExceeded  = "RequestLimitExceeded"
	TransactionCanceled   = "TransactionCanceledException"
	TransactionConflict   = "TransactionConflictException"
	TransactionInProgress = "TransactionInProgressException"
	ParameterMismatch     = "IdempotentParameterMismatchException"
	// ReplicatedConflict is of a global table with strong consistency: another Region was writing the item.
	ReplicatedConflict = "ReplicatedWriteConflictException"
	ExpiredToken       = "ExpiredTokenException"
	// ExpiredTokenShort is what other services of AWS say instead, and what a gateway in between may.
	ExpiredTokenShort   = "ExpiredToken"
	InternalServerError = "InternalServerError"
	ServiceUnavailable  = "ServiceUnavailableException"
)

// Codes of a cancelled transaction's reasons.
const (
	ReasonNone       = "None"
	ReasonConflict   = "TransactionConflict"
	ReasonThrottling = "ThrottlingError"
	ReasonThroughput = "ProvisionedThroughputExceeded"
)

// Refusal is an answer of DynamoDB that refuses a request.
type Refusal struct {
	// Status is the HTTP status.
	Status int
	// Code is the exception without its namespace, such as "ThrottlingException".
	Code string
	// Reasons are the codes of a cancelled transaction's reasons, one for each item; "None" is a clean item.
	Reasons []string
}

// Of is the refusal by an exception: 500 and 503 where those are its status, else 400.
func Of(code string) Refusal {
	status := http.StatusBadRequest
	switch code {
	case InternalServerError:
		status = http.StatusInternalServerError
	case ServiceUnavailable:
		status = http.StatusServiceUnavailable
	}
	return Refusal{Status: status, Code: code}
}

// Cancelled is a cancelled transaction with these reasons, one for each item.
func Cancelled(reasons ...string) Refusal {
	return Refusal{Status: http.StatusBadRequest, Code: TransactionCanceled, Reasons: reasons}
}

// CancelledAt is a cancelled transaction of so many items, because of the one at the position, counted from 0.
func CancelledAt(item, items int, reason string) Refusal {
	reasons := slices.Repeat([]string{ReasonNone}, items)
	reasons[item] = reason
	return Cancelled(reasons...)
}

// CancelledThroughout is a cancelled transaction of so many items, because of each of them.
func CancelledThroughout(items int, reason string) Refusal {
	return Cancelled(slices.Repeat([]string{reason}, items)...)
}

// Reply is the answer's header and body.
func (f Refusal) Reply() (http.Header, []byte) {
	body, err := json.Marshal(f.content())
	if err != nil { // strings, slices and maps of them always encode
		panic(err)
	}
	return Header(body), body
}

// Header is the header of DynamoDB's answer with this body.
func Header(body []byte) http.Header {
	header := http.Header{}
	header.Set("Content-Type", "application/x-amz-json-1.0")
	// The SDK compares this checksum with the body where it is there, as it always is on DynamoDB's own answers.
	header.Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10))
	return header
}

func (f Refusal) content() map[string]any {
	if f.Code != TransactionCanceled {
		return map[string]any{"__type": cmp.Or(namespaces[f.Code], dynamoNamespace) + f.Code, "message": textOf(f.Code)}
	}
	reasons := make([]map[string]string, len(f.Reasons))
	for i, code := range f.Reasons {
		reasons[i] = map[string]string{"Code": code}
		if code != ReasonNone {
			reasons[i]["Message"] = textOf(code)
		}
	}
	return map[string]any{
		"__type": dynamoNamespace + f.Code,
		"Message": "Transaction cancelled, please refer cancellation reasons for specific reasons [" +
			strings.Join(f.Reasons, ", ") + "]",
		"CancellationReasons": reasons,
	}
}

const dynamoNamespace = "com.amazonaws.dynamodb.v20120810#"

// namespaces of the exceptions that are not DynamoDB's own, but those of the service in front of it.
var namespaces = map[string]string{
	Throttling: "com.amazon.coral.availability#", ServiceUnavailable: "com.amazon.coral.availability#",
	ExpiredToken: "com.amazon.coral.service#", ExpiredTokenShort: "com.amazon.coral.service#",
}

const (
	onDemandText = "Throughput exceeds the current capacity of your table or index. DynamoDB is automatically scaling your " +
		"table or index so please try again shortly."
	provisionedText = "The level of configured provisioned throughput for the table was exceeded. Consider increasing your " +
		"provisioning level with the UpdateTable API."
	conflictText = "Transaction is ongoing for the item"
	expiredText  = "The security token included in the request is expired"
)

// texts are DynamoDB's messages of exceptions and cancellation reasons.
var texts = map[string]string{
	Throttling: onDemandText, ReasonThrottling: onDemandText,
	ThroughputExceeded: provisionedText, ReasonThroughput: provisionedText,
	TransactionConflict: conflictText, ReasonConflict: conflictText,
	RequestLimitExceeded:  "Throughput exceeds the current throughput limit for your account.",
	TransactionInProgress: "Transaction from previous request is still in progress",
	ParameterMismatch:     "The idempotent token was already used for another payload.",
	ReplicatedConflict:    "One or more items in this request are being modified by a request in another Region.",
	ExpiredToken:          expiredText,
	ExpiredTokenShort:     expiredText,
	InternalServerError:   "Internal server error",
	ServiceUnavailable:    "The service is temporarily unavailable.",
}

func textOf(code string) string { return cmp.Or(texts[code], "refused by a test") }
