package trace

import (
	"encoding/hex"
	"net/http"
	"strings"
)

// Names of the W3C headers.
const (
	ParentHeader = "Traceparent"
	StateHeader  = "Tracestate"
)

// StateBytesMax bounds a tracestate, in bytes. The W3C asks everybody to pass on at least as many. A longer one is dropped, and
// its traceparent is kept.
const StateBytesMax = 512

// Context is a position in a trace: the trace's id, the span's id, the flags and the vendors' state. "" is none. It holds the
// bytes as they are stored: 16 of the trace's id, 8 of the span's id, 1 of the flags, then the tracestate.
type Context string

const (
	traceIDBytes = 16
	spanIDBytes  = 8
	parentBytes  = traceIDBytes + spanIDBytes + 1
	parentChars  = len("00-") + 2*traceIDBytes + len("-") + 2*spanIDBytes + len("-00")
)

// Parse reads a traceparent and a tracestate. It returns none for a malformed traceparent, and drops a malformed tracestate or
// one of more than [StateBytesMax] bytes.
//
// A traceparent of a later version counts by what it has in common with version 00, as the W3C asks.
func Parse(parent, state string) Context {
	if len(parent) < parentChars || len(parent) > parentChars && (parent[:2] == "00" || parent[parentChars] != '-') {
		return ""
	}
	version, trace, span, flags := parent[:2], parent[3:35], parent[36:52], parent[53:55]
	if parent[2] != '-' || parent[35] != '-' || parent[52] != '-' || version == "ff" {
		return ""
	}
	for _, part := range []string{version, trace, span, flags} {
		if strings.Trim(part, "0123456789abcdef") != "" { // lower case only
			return ""
		}
	}
	raw, err := hex.DecodeString(trace + span + flags)
	if err != nil {
		return ""
	}
	return FromBytes(append(raw, usableState(state)...))
}

// FromHeader reads the headers of a request, as [Parse] does. Several Tracestate headers count as one; several Traceparent
// headers are malformed.
func FromHeader(h http.Header) Context {
	parents := h[ParentHeader]
	if len(parents) != 1 {
		return ""
	}
	return Parse(parents[0], strings.Join(h[StateHeader], ","))
}

// FromBytes reads what [Context.Bytes] returned. It returns none for too few bytes and for an id that is zero.
func FromBytes(raw []byte) Context {
	if len(raw) < parentBytes {
		return ""
	}
	c := Context(raw[:parentBytes])
	if strings.Trim(string(c[:traceIDBytes]), "\x00") == "" || strings.Trim(string(c[traceIDBytes:parentBytes-1]), "\x00") == "" {
		return ""
	}
	return c + Context(usableState(string(raw[parentBytes:])))
}

// usableState is the state, or none where it is too long or has bytes that no header may have.
func usableState(state string) string {
	state = strings.Trim(state, " \t,")
	if len(state) > StateBytesMax {
		return ""
	}
	for _, member := range strings.Split(state, ",") {
		if _, value, ok := strings.Cut(member, "="); state != "" && strings.TrimSpace(member) != "" && (!ok || value == "") {
			return ""
		}
	}
	for i := range len(state) {
		if c := state[i]; c < ' ' && c != '\t' || c > '~' {
			return ""
		}
	}
	return state
}

// Bytes is what a store keeps.
func (c Context) Bytes() []byte { return []byte(c) }

// TraceID is the trace's id, 16 bytes; "" for none. Two positions are in the same trace if these are equal.
func (c Context) TraceID() string {
	if len(c) < parentBytes {
		return ""
	}
	return string(c[:traceIDBytes])
}

// SpanID is the span's id, 8 bytes; "" for none.
func (c Context) SpanID() string {
	if len(c) < parentBytes {
		return ""
	}
	return string(c[traceIDBytes : parentBytes-1])
}

// Flags are the trace's flags; bit 0 says that it is sampled.
func (c Context) Flags() byte {
	if len(c) < parentBytes {
		return 0
	}
	return c[parentBytes-1]
}

// State is the tracestate; "" for none.
func (c Context) State() string {
	if len(c) < parentBytes {
		return ""
	}
	return string(c[parentBytes:])
}

// WithoutState is the position without its tracestate.
func (c Context) WithoutState() Context { return c[:min(len(c), parentBytes)] }

// Parent is the traceparent, in version 00; "" for none.
func (c Context) Parent() string {
	if len(c) < parentBytes {
		return ""
	}
	return "00-" + hex.EncodeToString([]byte(c.TraceID())) + "-" + hex.EncodeToString([]byte(c.SpanID())) + "-" + hex.EncodeToString([]byte{c.Flags()})
}

// String is the traceparent, and the tracestate where there is one.
func (c Context) String() string {
	return strings.TrimSuffix(c.Parent()+" "+c.State(), " ")
}
