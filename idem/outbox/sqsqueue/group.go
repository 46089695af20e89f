package sqsqueue

import (
	"crypto/sha256"
	"encoding/base64"
)

// groupBytesMax is the longest MessageGroupId (SQS API reference, SendMessage).
const groupBytesMax = 128

// Group is the message group of a tenant's wake-ups: on a standard queue a group is what SQS shares consumers fairly
// between, so one tenant's backlog doesn't delay another's. It is the tenant itself where SQS allows that, 1 to 128
// letters, digits and punctuation of ASCII, and a hash of it elsewhere. Two tenants whose groups collide would only share
// their fairness.
func Group(tenant string) string {
	if fits(tenant) {
		return tenant
	}
	sum := sha256.Sum256([]byte(tenant))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

func fits(group string) bool {
	if group == "" || len(group) > groupBytesMax {
		return false
	}
	for i := range len(group) {
		if group[i] <= ' ' || group[i] > '~' {
			return false
		}
	}
	return true
}
