package idemconstruct

import "github.com/idem-go/idem-aws/infra/spec"

// Backlog watches how long it takes what waits.
func (m *Monitor) Backlog() { m.described(nil, spec.Backlog()...) }
