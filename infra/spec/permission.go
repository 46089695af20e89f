package spec

// Resource is something that a permission is about.
type Resource string

// The resources.
const (
	IdempotencyTable Resource = "idempotency table"
	OutboxTable      Resource = "outbox table"
	IdempotencyIndex Resource = "index of the idempotency table"
	OutboxIndex      Resource = "index of the outbox table"
	OutboxStream     Resource = "stream of the outbox table"
	// OutboxStreams are all streams of the table: ListStreams names no one stream.
	OutboxStreams Resource = "streams of the outbox table"
	WakeUps       Resource = "queue of wake-ups"
	DeadLetter    Resource = "dead-letter queue"
)

// Permission allows actions on resources, nothing else.
type Permission struct {
	// Actions are IAM's, such as dynamodb:GetItem.
	Actions []string
	// On are the resources that the actions are allowed on.
	On []Resource
}

// Execute is what a function needs that executes operations: reserve, commit, complete, release and replay, and the messages of its
// commits. No Query, no Scan, no DeleteItem.
func Execute() []Permission {
	return []Permission{
		{[]string{"dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"}, []Resource{IdempotencyTable}},
		{[]string{"dynamodb:GetItem", "dynamodb:PutItem"}, []Resource{OutboxTable}},
	}
}

// Inline is what a function needs beside Execute and Send that settles messages: it delivers its own first, or takes a provider's
// webhooks. A message whose record stays as it is, because something is undone first or a person starts it anew, is settled under a
// condition on the record.
func Inline() []Permission {
	return []Permission{
		{[]string{"dynamodb:UpdateItem"}, []Resource{OutboxTable}},
		{[]string{"dynamodb:ConditionCheckItem"}, []Resource{IdempotencyTable}},
	}
}

// Deliver is what a function needs that claims and settles messages, as Inline does: worker and sweep.
func Deliver() []Permission {
	return []Permission{
		{[]string{"dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:ConditionCheckItem"}, []Resource{IdempotencyTable}},
		{[]string{"dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"}, []Resource{OutboxTable}},
	}
}

// List is what a sweep needs beside Deliver: the two sparse indexes.
func List() []Permission {
	return []Permission{{[]string{"dynamodb:Query"}, []Resource{IdempotencyIndex, OutboxIndex}}}
}

// ReadStream is what the function behind the outbox stream needs for Lambda to poll it. ListStreams is granted on all streams of
// the table, as AWS's own policy template does.
func ReadStream() []Permission {
	return []Permission{
		{[]string{"dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"}, []Resource{OutboxStream}},
		{[]string{"dynamodb:ListStreams"}, []Resource{OutboxStreams}},
	}
}

// Send is what a function needs that puts wake-ups and dead letters.
func Send() []Permission {
	return []Permission{{[]string{"sqs:SendMessage"}, []Resource{WakeUps, DeadLetter}}}
}

// Offer is what a sweep needs beside Send that offers messages unread (outbox.Config.WakeUpsMax): how many wake-ups wait.
func Offer() []Permission {
	return []Permission{{[]string{"sqs:GetQueueAttributes"}, []Resource{WakeUps}}}
}

// Poll is what a process needs that polls the queue of wake-ups itself (sqsqueue.Consumer): it holds what it works on for longer than
// the queue hides it.
func Poll() []Permission {
	return []Permission{{
		[]string{"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility"}, []Resource{WakeUps},
	}}
}

// Consume is what the function behind the queue of wake-ups needs for Lambda to poll it.
func Consume() []Permission {
	return []Permission{{
		[]string{"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"}, []Resource{WakeUps},
	}}
}
