package payments

import (
	"fmt"
	"hash/fnv"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/functions/table"
	"github.com/idem-go/idem-aws/idem"
)

// EntryKind is the kind of a row that money at the provider stands behind.
type EntryKind string

// The kinds of entry.
const (
	EntryPayment EntryKind = "payment"
	EntryRefund  EntryKind = "refund"
	EntryPayout  EntryKind = "payout"
)

// Entry is what the drift job compares of a payment, refund or payout. Nothing in it is a client's own text.
type Entry struct {
	Kind     EntryKind
	Tenant   string
	ID       string
	Status   Status
	Amount   int64
	Currency string
	// Message is the first message of its operation.
	Message           idem.MessageID
	ProviderReference string
	CreatedAt         time.Time
	// Payment is the id of the payment that a refund gives back.
	Payment string
	// Refunded is the sum of a payment's refunds that are pending or succeeded.
	Refunded int64
	// Counted and GivenBack say that a payout has the mark of its debit, and of its credit, whatever the marks say: see [Payout].
	Counted, GivenBack bool
}

// EntryKey is the key of an entry's row; ok is false for a kind that there is not.
func EntryKey(kind EntryKind, tenant, id string) (pk string, ok bool) {
	switch kind {
	case EntryPayment:
		return paymentKey(tenant, id), true
	case EntryRefund:
		return refundKey(tenant, id), true
	case EntryPayout:
		return payoutKey(tenant, id), true
	}
	return "", false
}

// EntryID is the id of what an operation made, if the operation made an entry of the kind; "" for an operation id that is none.
func EntryID(kind EntryKind, operation idem.OperationID) string {
	if _, err := operation.RecordKey(); err != nil {
		return ""
	}
	return entityID(entryPrefixes[kind], operation)
}

var entryPrefixes = map[EntryKind]string{EntryPayment: paymentPrefix, EntryRefund: refundPrefix, EntryPayout: payoutPrefix}

// beginningForm is an id of an entry, or its beginning, from the prefix on.
var beginningForm = regexp.MustCompile(`^([a-z]+_)[0-9A-Za-z]*$`)

// EntryBeginning is the kind of the entries whose id may begin so. ok is false for a whole id, and for a text that begins none.
func EntryBeginning(text string) (kind EntryKind, ok bool) {
	found := beginningForm.FindStringSubmatch(text)
	if found == nil {
		return "", false
	}
	for kind, prefix := range entryPrefixes {
		if found[1] == prefix && len(text) < len(prefix)+entityRandom {
			return kind, true
		}
	}
	return "", false
}

// EntryOf is the key of the row that an operation of the tenant made, if the operation made one of the kind.
func EntryOf(kind EntryKind, tenant string, operation idem.OperationID) (pk string, ok bool) {
	id := EntryID(kind, operation)
	if id == "" {
		return "", false
	}
	return EntryKey(kind, tenant, id)
}

// EntryTenant is whose row the key of an entry names; "" for a key that is none.
func EntryTenant(pk string) string {
	_, rest, _ := strings.Cut(pk, "#")
	if cut := strings.LastIndexByte(rest, '/'); cut >= 0 { // ids hold no "/", tenants may
		return rest[:cut]
	}
	return ""
}

// DecodeEntry reads a row of the payments table. It is an error for a row that is no entry. A status that is none is read as it is, so that
// it can be shown: see [Status.Stored].
func DecodeEntry(it map[string]types.AttributeValue) (Entry, error) {
	d := &decoder{item: it}
	pk := d.str(attrKey)
	kind, _, _ := strings.Cut(pk, "#")
	e := Entry{
		Kind: EntryKind(kind), Tenant: d.str(attrTenant), ID: d.str(attrID), Status: Status(d.str(attrStatus)), Amount: d.num(attrAmount),
		Currency: d.str(attrCurrency), Message: idem.MessageID(d.str(attrMessage)), ProviderReference: d.str(attrProvider),
		CreatedAt: time.UnixMilli(d.num(attrCreatedAt)).UTC(), Payment: d.str(attrPayment), Refunded: d.numOrZero(attrRefunded),
		Counted: d.has(attrCounted), GivenBack: d.has(attrGivenBack),
	}
	if d.err != nil {
		return e, fmt.Errorf("%w of %s", d.err, pk)
	}
	if own, ok := EntryKey(e.Kind, e.Tenant, e.ID); !ok || own != pk {
		return e, fmt.Errorf("payments: %q is not a payment, refund or payout", pk)
	}
	return e, nil
}

// LedgerPartition is a partition of the ledger index, shard from 0.
func LedgerPartition(at time.Time, shard int) string {
	return at.UTC().Format("2006-01-02T15") + "#" + strconv.Itoa(shard)
}

// entered adds to a new row what the ledger index needs beside the time that the row has.
func entered(it item, pk string, at time.Time, shards int) item {
	it[table.Hour] = str(LedgerPartition(at, spread(pk, shards)))
	return it
}

// spread picks one of so many partitions for a row, from 0, always the same.
func spread(pk string, partitions int) int {
	h := fnv.New32a()
	h.Write([]byte(pk))
	return int(h.Sum32() % uint32(partitions))
}
