package config

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/idem-go/idem-aws/idem/canonical"
)

// Secrets are written as id:base64, separated by commas.
type Secrets []canonical.Secret

// UnmarshalText implements encoding.TextUnmarshaler. Its errors don't show what it was given.
func (s *Secrets) UnmarshalText(text []byte) error {
	*s = nil
	for n, each := range strings.Split(string(text), ",") {
		id, encoded, found := strings.Cut(each, ":")
		key, err := base64.StdEncoding.DecodeString(encoded)
		if !found || id == "" || err != nil {
			return fmt.Errorf("secret %d of the list must be id:base64", n+1)
		}
		*s = append(*s, canonical.Secret{ID: id, Key: key})
	}
	return nil
}
