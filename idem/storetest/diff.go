package storetest

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/idem-go/idem-aws/idem/storage"
)

// diffRecords names the fields that differ; "" for none. How many chunks hold a body is the store's own business, and no
// body is as good as an empty one.
func diffRecords(got, want storage.Record) string {
	got.Chunks, want.Chunks, got.ChunksDigest, want.ChunksDigest = 0, 0, "", ""
	for _, r := range []*storage.Record{&got, &want} {
		if r.LookAt.IsZero() { // says the same
			r.LookAt = r.LeaseUntil
		}
	}
	got.Response, want.Response = normal(got.Response), normal(want.Response)
	return diffFields(got, want)
}

func diffMessages(got, want storage.Message) string {
	for _, m := range []*storage.Message{&got, &want} {
		m.Payload = orNil(m.Payload)
		m.KeptDelivered, m.KeptDeclined = keptOrNil(m.KeptDelivered), keptOrNil(m.KeptDeclined)
	}
	return diffFields(got, want)
}

func normal(r storage.Response) storage.Response {
	r.Header, r.Body = orNil(r.Header), orNil(r.Body)
	return r
}

func keptOrNil(k *storage.Kept) *storage.Kept {
	if k == nil {
		return nil
	}
	return &storage.Kept{Reference: k.Reference, Evidence: orNil(k.Evidence)}
}

func orNil[T any](s []T) []T {
	if len(s) == 0 {
		return nil
	}
	return s
}

func diffFields[T any](got, want T) string {
	var lines []string
	g, w := reflect.ValueOf(got), reflect.ValueOf(want)
	for i := range g.NumField() {
		if d := diff(g.Field(i).Interface(), w.Field(i).Interface()); d != "" {
			lines = append(lines, fmt.Sprintf("  %s: %s", g.Type().Field(i).Name, d))
		}
	}
	return strings.Join(lines, "\n")
}

// diff compares deeply; times too: a store returns them in UTC, so equal instants are equal values.
func diff(got, want any) string {
	if reflect.DeepEqual(got, want) {
		return ""
	}
	return fmt.Sprintf("got %s, want %s", brief(got), brief(want))
}

const briefBytesMax = 200

func brief(v any) string {
	text := fmt.Sprintf("%+v", v)
	if len(text) > briefBytesMax {
		return fmt.Sprintf("%s… (%d bytes)", text[:briefBytesMax], len(text))
	}
	return text
}
