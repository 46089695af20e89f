package idem

import (
	"cmp"
	"fmt"

	"github.com/idem-go/idem-aws/idem/storage"
)

const responseBytesDefault = 3 << 20

// agree gives the bound on a response its default, and returns a [*ConfigError] where it is above the store's.
func (c Config) agree(store storage.Store) (Config, error) {
	most := storage.ResponseBytesMaxOf(store)
	c.ResponseBytesMax = cmp.Or(c.ResponseBytesMax, min(responseBytesDefault, most))
	if c.ResponseBytesMax > most {
		return c, &ConfigError{"Config.ResponseBytesMax", c.ResponseBytesMax, fmt.Sprintf("must be at most what the store takes, %d", most)}
	}
	return c, nil
}
