// Package price has AWS's list prices in us-east-1, in US dollars, without free tiers, savings plans and discounts.
// They were written down in November 2026 without access to the pages that are named here: DynamoDB's are those announced in
// November 2024, the others have not changed for years. Compare them with the pages before you decide by them. Other Regions
// differ.
package price

// Million and Hour turn rates into what is billed; a month has 730 hours, as AWS's calculator counts.
const (
	Million      = 1e6
	MonthHours   = 730
	MonthSeconds = MonthHours * 3600
)

// DynamoDB on demand, per million units (https://aws.amazon.com/dynamodb/pricing/on-demand/). That Lambda reads a stream is free,
// however a table is paid.
const (
	Writes = 0.625
	Reads  = 0.125
)

// DynamoDB provisioned, per unit and hour, whether it is used or not (https://aws.amazon.com/dynamodb/pricing/provisioned/).
// Capacity that is reserved for a year or three costs less still, 54 and 77 % by AWS's own account, but is paid in advance.
const (
	WriteHours = 0.00065
	ReadHours  = 0.00013
)

// Lambda on arm64 (https://aws.amazon.com/lambda/pricing/), below 7.5 billion GB-seconds a month.
const (
	Invocations  = 0.20 // per million
	GBSecondsARM = 0.0000133334
)

// HTTPRequests are an HTTP API's, per million (https://aws.amazon.com/api-gateway/pricing/): the first 300 million of a month,
// and those after them.
const (
	HTTPRequests          = 1.00
	HTTPRequestsTier      = 300 * Million
	HTTPRequestsAfterTier = 0.90
)

// QueueRequests are a standard queue's, per million (https://aws.amazon.com/sqs/pricing/).
const QueueRequests = 0.40

// LogGB is a gigabyte that CloudWatch Logs takes in (https://aws.amazon.com/cloudwatch/pricing/); keeping it costs extra.
const LogGB = 0.50
