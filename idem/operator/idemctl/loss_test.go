package idemctl

import (
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem/operator"
)

// What counts is shown, and who says it.
func TestRefuseBeforeShowsTheTimeThatCounts(t *testing.T) {
	row, later := time.Date(2026, 11, 21, 11, 30, 2, 0, time.UTC), time.Date(2026, 11, 21, 13, 0, 0, 0, time.FixedZone("CET", 3600))
	for want, l := range map[string]operator.Loss{
		"never set: no key is refused for its age\n":                                                                                                                              {},
		"2026-11-21T11:30:02Z: nothing is executed for keys that are not proven younger\n":                                                                                        {RefuseBefore: row, Configured: row},
		"2026-11-21T12:00:00Z, by the instances' configuration: nothing is executed for keys that are not proven younger\n":                                                       {Configured: later},
		"2026-11-21T12:00:00Z, by the instances' configuration: nothing is executed for keys that are not proven younger\nthe table says an earlier time: 2026-11-21T11:30:02Z\n": {RefuseBefore: row, Configured: later},
		"not set, though data was lost: nothing is executed, and nothing is changed before it is set\n":                                                                           {NotDated: true, Configured: later},
	} {
		var out strings.Builder
		(&table{out: &out}).loss(l)
		if got := out.String(); got != want {
			t.Errorf("%+v shows %q, want %q", l, got, want)
		}
	}
}
