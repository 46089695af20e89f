package storetest

import "sync"

// markTests: the store is named under one secret for ever: that of the first that marks it.
var markTests = []test{
	{"of marks that come at once one is kept, and everybody is told which", func(e *env) {
		kept := make([]string, 20)
		var group sync.WaitGroup
		for i := range kept {
			mark := string(e.owner())
			group.Go(func() {
				var err error
				if kept[i], err = e.Store.ScopeMark(e.ctx, mark); err != nil {
					e.Error(err)
				}
			})
		}
		group.Wait()
		for _, mark := range append(kept, e.mark(""), e.mark("another")) {
			if mark == "" || mark != kept[0] {
				e.Errorf("the mark is %q, and was %q", mark, kept[0])
			}
		}
	}},
}

func (e *env) mark(keep string) string {
	e.Helper()
	kept, err := e.Store.ScopeMark(e.ctx, keep)
	e.ok(err)
	return kept
}
