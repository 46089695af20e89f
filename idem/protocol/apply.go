package protocol

// Rows are what is stored of the rows that a write names: the record, the message, and the place of the next message.
type Rows struct {
	// Rec is the record. The zero value is an absent row.
	Rec Record
	// Msg is the message, and Next the message that would follow it in the chain. The zero value is an absent row.
	Msg, Next Message
}

// Apply is what a store does with a write, in one step: where every condition holds it makes of the rows what the write
// says, and otherwise it changes nothing. It is the reference that stores are compared with.
//
// others are the conditions of the application's items that failed, or that were not judged; 0 where all hold. A write
// without a reply is no result of Apply: it was applied, or was not, or will be.
//
// The reply of a refused write holds the old image of each row whose own condition failed, and no other. One that
// succeeded holds none. Apply does not know tokens: a store answers OK to a token whose transaction it has executed, and
// applies nothing.
func Apply(rows Rows, w Write, others Conds) (Rows, Reply) {
	failed := others
	if w.RecAs != Leave && !w.RecIf.AdmitsRecord(rows.Rec) {
		failed |= CondRecord
	}
	if w.MsgAs != Leave && !w.MsgIf.AdmitsMessage(rows.Msg) {
		failed |= CondMessage
	}
	if w.Next.State != NoMessage && rows.Next.State != NoMessage {
		failed |= CondNextMessage
	}
	if failed != 0 {
		reply := Reply{Code: Refused, Conds: failed}
		if failed&CondRecord != 0 {
			reply.Rec = rows.Rec
		}
		if failed&CondMessage != 0 {
			reply.Msg = rows.Msg
		}
		return rows, reply
	}
	rows.Rec = w.RecAs.record(rows.Rec, w.Rec)
	rows.Msg = w.MsgAs.message(rows.Msg, w.Msg)
	if w.Next.State != NoMessage {
		rows.Next = w.Next
	}
	return rows, Reply{Code: OK}
}

// record is what becomes of a stored record.
func (a As) record(stored, next Record) Record {
	switch a {
	case Put:
		return next
	case Renew:
		stored.Lease, stored.Revision = next.Lease, next.Revision
	case End:
		stored.State, stored.Answer, stored.Revision = next.State, next.Answer, next.Revision
		stored.Lease, stored.Expires, stored.Free, stored.Tombstone = next.Lease, next.Expires, next.Free, next.Tombstone
	case Leave, Check, Patch, Postpone: // the last two are of messages
	}
	return stored
}

// message is what becomes of a stored message.
func (a As) message(stored, next Message) Message {
	switch a {
	case Put:
		return next
	case Patch:
		stored.State, stored.Revision, stored.Done, stored.LookAt = next.State, next.Revision, next.Done, next.LookAt
		stored.Kept |= next.Kept
		stored.Ended = stored.Ended || next.Ended
		stored.Unfailed = stored.Unfailed || next.Unfailed
	case Postpone:
		stored.LookAt = next.LookAt
	case Leave, Check, Renew, End: // the last two are of records
	}
	return stored
}
