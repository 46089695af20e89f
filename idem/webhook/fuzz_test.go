package webhook

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"testing"
	"time"
)

// FuzzParse: what parse takes, it has read as it stands; it takes nothing that is out of bounds; and nothing signs for a
// body but what a secret has made of it.
func FuzzParse(f *testing.F) {
	body := []byte(`{"id":"evt_1"}`)
	valid := Sign("secret", time.Unix(1795262400, 0), body)
	for _, header := range []string{
		"", valid, valid + "," + valid, "t=1,v0=x,v1=" + strings.Repeat("0", 64), "v1=,t=", "t=-1", "t=99999999999999999999", valid + ",", "=,=", "t", strings.Repeat(",", 2000),
	} {
		f.Add(header, body)
	}
	f.Fuzz(func(t *testing.T, header string, body []byte) {
		s, err := parse(header)
		if err != nil {
			if len(s.sums) > 0 || s.timestamp != "" {
				t.Errorf("%q: %v, and %+v", header, err, s)
			}
			return
		}
		members := strings.Split(header, ",")
		if !slices.Contains(members, "t="+s.timestamp) || s.at.Unix() < 0 || len(s.timestamp) > timestampBytesMax {
			t.Errorf("%q has the time %q, %v", header, s.timestamp, s.at)
		}
		if len(header) > headerBytesMax || len(s.sums) < 1 || len(s.sums) > signaturesMax {
			t.Errorf("%q: %d bytes, %d signatures", header, len(header), len(s.sums))
		}
		for _, sum := range s.sums {
			if !strings.Contains(strings.ToLower(header), "v1="+hex.EncodeToString(sum[:])) {
				t.Errorf("%q has no signature %x", header, sum)
			}
		}
		mac := hmac.New(sha256.New, []byte("secret"))
		mac.Write(slices.Concat([]byte(s.timestamp), []byte("."), body))
		made := slices.ContainsFunc(s.sums, func(sum [sha256.Size]byte) bool { return bytes.Equal(sum[:], mac.Sum(nil)) })
		if s.signs([]string{"another", "secret"}, body) != made || s.signs(nil, body) {
			t.Errorf("%q signs for %q: %v", header, body, !made)
		}
	})
}
