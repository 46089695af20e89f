package dynamo

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/idem-go/idem-aws/idem/storage"
)

// BenchmarkPrepare is what a commit of a record, a message and two business rows costs before it is sent: encoding,
// compression, validation and the serialized bytes.
func BenchmarkPrepare(b *testing.B) {
	store := offline(b)
	store.client = dynamodb.New(dynamodb.Options{Region: "us-east-1"})
	row := func(key string) storage.Write {
		return Put(types.Put{TableName: aws.String("rows"), Item: item{"pk": stringValue(key)}})
	}
	for _, size := range []int{32, 10 << 10} {
		b.Run(fmt.Sprintf("%d B", size), func(b *testing.B) {
			r := everyField()
			r.Response.Body = bytes.Repeat([]byte(`{"id":"pay_1","amount":500}     `), size/32)
			commit := storage.Commit{
				Record: r, Now: noon, Token: "token", Messages: []storage.Message{everyFieldOfMessage()}, Writes: []storage.Write{row("a"), row("b")},
			}
			var send func(context.Context) error
			b.ReportAllocs()
			for b.Loop() {
				var err error
				if send, err = store.Prepare(commit); err != nil {
					b.Fatal(err)
				}
			}
			if send == nil {
				b.Fatal("nothing to send")
			}
		})
	}
}

// BenchmarkDecodeRecord is what a replay costs after its item was read.
func BenchmarkDecodeRecord(b *testing.B) {
	store := offline(b)
	it, _, err := store.encodeRecord(everyField())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := store.decodeRecord(it); err != nil {
			b.Fatal(err)
		}
	}
}
