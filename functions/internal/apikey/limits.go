package apikey

import (
	"fmt"
	"strconv"
	"strings"
)

// LimitMax bounds each of a tenant's limits, as it does the deployment's.
const LimitMax = 1_000_000_000

// Limits are what one tenant may ask for, where that is not what the deployment says for every tenant. They are written on each of
// the tenant's keys, so that who authenticates has read them. 0 is the deployment's limit, and never none.
type Limits struct {
	NewKeysPerSecond int64 `json:"new_keys,omitempty"`
	ActiveKeys       int64 `json:"active_keys,omitempty"`
	LookUpsPerSecond int64 `json:"look_ups,omitempty"`
	WaitsPerSecond   int64 `json:"waits,omitempty"`
}

type limit struct {
	name  string
	value *int64
}

func (l *Limits) all() []limit {
	return []limit{
		{"new_keys", &l.NewKeysPerSecond}, {"active_keys", &l.ActiveKeys}, {"look_ups", &l.LookUpsPerSecond}, {"waits", &l.WaitsPerSecond},
	}
}

// String is how limits are stored, and how the authorizer says them to the function: "new_keys=5 look_ups=20", and "" where there
// are none.
func (l Limits) String() string {
	var words []string
	for _, one := range l.all() {
		if *one.value != 0 {
			words = append(words, fmt.Sprintf("%s=%d", one.name, *one.value))
		}
	}
	return strings.Join(words, " ")
}

// ParseLimits is the inverse of [Limits.String]. What it does not understand is left to the deployment's limit: nobody is without
// one because of a word.
func ParseLimits(words string) (l Limits) {
	for _, word := range strings.Fields(words) {
		name, text, _ := strings.Cut(word, "=")
		for _, one := range l.all() {
			if n, err := strconv.ParseInt(text, 10, 64); one.name == name && err == nil && n >= 1 && n <= LimitMax {
				*one.value = n
			}
		}
	}
	return l
}
