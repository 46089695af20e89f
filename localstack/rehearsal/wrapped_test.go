package rehearsal

import (
	"reflect"
	"testing"

	"github.com/idem-go/idem-aws/idem/sdkhttp"
)

// The SDK by itself loses replies, and sends again what was done: a rehearsal that had restored a copy was told that the copy is there already.
func TestClientsOfARehearsalLoseNoReplies(t *testing.T) {
	got, want := reflect.TypeOf(localConfig(nil).HTTPClient), reflect.TypeOf(sdkhttp.BufferedBody(nil))
	if got != want {
		t.Errorf("its client is a %v, want the %v that sends each body whole", got, want)
	}
}
