package main

import (
	"fmt"

	"github.com/idem-go/idem-aws/idem"
)

// path is a way that requests take, by hand too.
type path struct {
	name string
	// operation is what the requests are for.
	operation idem.Operation
	// replay says that each request was sent before.
	replay bool
}

// paths are what is measured.
func paths() []path {
	policy := idem.IETF()
	return []path{
		{"wrapped", idem.Operation{Name: "bench.wrapped", Kind: idem.KindWrapped, Policy: policy, UnknownToOperator: true}, false},
		{"atomic", idem.Operation{Name: "bench.atomic", Kind: idem.KindAtomic, Policy: policy}, false},
		{"optimistic", idem.Operation{Name: "bench.optimistic", Kind: idem.KindOptimistic, Policy: policy}, false},
		{"replay by failed put", idem.Operation{Name: "bench.replay_put", Kind: idem.KindAtomic, Policy: policy}, true},
		{"replay by read", idem.Operation{Name: "bench.replay_read", Kind: idem.KindAtomic, Policy: policy, ReadFirst: true}, true},
	}
}

func pathNames() []string {
	var names []string
	for _, p := range paths() {
		names = append(names, p.name)
	}
	return names
}

// named is the path with the name; all of them for none.
func named(name string) ([]path, error) {
	if name == "" {
		return paths(), nil
	}
	for _, p := range paths() {
		if p.name == name {
			return []path{p}, nil
		}
	}
	return nil, fmt.Errorf("--path %q: there is %q", name, pathNames())
}
