package recovery

import (
	"context"
	"fmt"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/storage"
)

// Probe looks up, wherever a handler's effect would be, what became of an operation whose outcome is unknown; it never
// causes one. What it looks up by is what the handler wrote: the record's OperationID, where the handler handed it down
// (idem.Tx.OperationID), or something of the application's own. The record is without its response. The context ends after
// Config.ProbeTimeout; nil and a panic count as [Unclear].
type Probe func(ctx context.Context, r storage.Record) Finding

// Finding is what a Probe found: [Found], [Absent] or [Unclear].
type Finding interface{ finding() }

// Found is what the handler did, with the answer that it would have given: every request with the key gets it. What
// failed for good counts as found too, with the failure as its response.
type Found struct{ Response idem.Response }

// Absent says that there is nothing. It proves something only once nothing of the handler's can arrive any more, and
// be listed, which is for the reconciler to judge.
type Absent struct{}

// Unclear says that the answer decides nothing: asked again later, and in the end by a person.
type Unclear struct {
	// Cause is what happened, for the log.
	Cause error
}

func (Found) finding()   {}
func (Absent) finding()  {}
func (Unclear) finding() {}

// ask asks the Probe. What is neither evidence nor absence is [Unclear].
func (r *Reconciler) ask(ctx context.Context, probe Probe, record storage.Record) (finding Finding) {
	defer func() {
		if p := recover(); p != nil {
			finding = Unclear{Cause: fmt.Errorf("recovery: probe panicked with a %T", p)}
		}
	}()
	switch finding := probe(ctx, record).(type) {
	case Found:
		if s := finding.Response.Status; s < 200 || s > 599 {
			return Unclear{Cause: fmt.Errorf("recovery: probe found a response with status %d", s)}
		}
		return finding
	case Absent, Unclear:
		return finding
	default:
		return Unclear{Cause: fmt.Errorf("recovery: probe answered with a %T", finding)}
	}
}
