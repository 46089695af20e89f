package sqsqueue

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
)

// LetterKind is what a body in the dead-letter queue is.
type LetterKind string

// The kinds of letters.
const (
	// LetterDeadMessage is the copy of a message that was given up ([outbox.DeadLetter]); its row decides.
	LetterDeadMessage LetterKind = "dead_message"
	// LetterWakeUp is a wake-up that was received too often: each worker that took it failed, or died.
	LetterWakeUp LetterKind = "wake_up"
	// LetterStreamFailure is a batch of stream records that Lambda gave up. It names the batch and holds none of it.
	LetterStreamFailure LetterKind = "stream_failure"
	// LetterUnknown is a body that nobody of idem writes.
	LetterUnknown LetterKind = "unknown_body"
)

// letter is a message of the dead-letter queue.
type letter struct {
	id, receipt string
	sentAt      time.Time // by the queue's clock
	group       string    // the tenant's, of a wake-up
	kind        LetterKind
	dead        outbox.DeadLetter // of a dead message; of a wake-up its Message
	detail      string
}

// letterBody has the members that tell the kinds apart. Lambda writes DDBStreamBatchInfo and requestContext to the failure
// destination of a stream mapping.
type letterBody struct {
	outbox.DeadLetter
	Batch *struct {
		Shard string `json:"shardId"`
		First string `json:"startSequenceNumber"`
		Last  string `json:"endSequenceNumber"`
		Size  int    `json:"batchSize"`
	} `json:"DDBStreamBatchInfo"`
	RequestContext struct {
		Condition string `json:"condition"`
	} `json:"requestContext"`
}

// readLetter never fails: what it does not know is [LetterUnknown].
func readLetter(m types.Message) letter {
	attribute := func(name types.MessageSystemAttributeName) string { return m.Attributes[string(name)] }
	at := func(name types.MessageSystemAttributeName) time.Time {
		if ms, err := strconv.ParseInt(attribute(name), 10, 64); err == nil {
			return time.UnixMilli(ms).UTC()
		}
		return time.Time{}
	}
	l := letter{
		id: aws.ToString(m.MessageId), receipt: aws.ToString(m.ReceiptHandle), kind: LetterUnknown,
		group:  attribute(types.MessageSystemAttributeNameMessageGroupId),
		sentAt: at(types.MessageSystemAttributeNameSentTimestamp),
	}
	var body letterBody
	if json.Unmarshal([]byte(aws.ToString(m.Body)), &body) != nil {
		return l
	}
	_, _, malformed := body.Message.Operation()
	switch {
	case body.Batch != nil:
		l.kind = LetterStreamFailure
		l.detail = fmt.Sprintf("%s: %d records of shard %s, %s to %s", body.RequestContext.Condition, body.Batch.Size,
			body.Batch.Shard, body.Batch.First, body.Batch.Last)
	case malformed != nil:
	case body.Topic != "":
		l.kind, l.dead, l.detail = LetterDeadMessage, body.DeadLetter, body.Reason
	default:
		l.kind, l.dead = LetterWakeUp, outbox.DeadLetter{Message: body.Message}
	}
	return l
}

// LetterAction is what became of a letter in a run of [Queue.Redrive].
type LetterAction string

// The actions.
const (
	// LetterRedriven: its message was dealt with, or woken, and the letter deleted.
	LetterRedriven LetterAction = "redriven"
	// LetterAcknowledged: there is nothing to send again, because the sweep offers whatever the lost records were about;
	// the letter was deleted.
	LetterAcknowledged LetterAction = "acknowledged"
	// LetterGone: its message is not there, because it ended and was removed since; the letter was deleted.
	LetterGone LetterAction = "gone"
	// LetterRepeated: the redrive of its message failed in this run, and the letter that it failed for stays; this one was deleted.
	LetterRepeated LetterAction = "repeated"
	// LetterLeft: nothing was done, and it is still in the queue: a dry run, a body that nobody knows, or a further copy of
	// one whose first letter may be gone.
	LetterLeft LetterAction = "left"
	// LetterFailed: the error says why: its redrive failed, or its message died again in this run. It is still in the queue, and the next run
	// tries again.
	LetterFailed LetterAction = "failed"
)

// Redriven is one letter of a [RedriveReport]. Bodies that nobody knows are not repeated in it.
type Redriven struct {
	// ID is SQS's message id.
	ID string `json:"id"`
	// Kind is what the letter is about.
	Kind LetterKind `json:"kind"`
	// Message is empty for stream failures and unknown bodies, Topic but for dead messages.
	Message idem.MessageID `json:"message,omitempty"`
	Topic   string         `json:"topic,omitempty"`
	// Detail is why a message is dead, or which records of a stream were given up.
	Detail string `json:"detail,omitempty"`
	// SentAt is when the letter was put into the queue.
	SentAt time.Time `json:"sent_at"`
	// Action is what was done with it.
	Action LetterAction `json:"action"`
	// Error is that of LetterFailed.
	Error string `json:"error,omitempty"`
}

func (l letter) redriven(action LetterAction, err error) Redriven {
	r := Redriven{
		ID: l.id, Kind: l.kind, Message: l.dead.Message, Topic: l.dead.Topic, Detail: l.detail, SentAt: l.sentAt, Action: action,
	}
	if err != nil {
		r.Action, r.Error = LetterFailed, err.Error()
	}
	return r
}
