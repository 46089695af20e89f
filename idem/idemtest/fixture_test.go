package idemtest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

// recorder is a test that is watched: what it would have failed with.
type recorder struct {
	ctx            context.Context
	errors, logged []string
	fatal          string
}

func (*recorder) Helper()                    {}
func (r *recorder) Context() context.Context { return r.ctx }
func (r *recorder) Logf(format string, args ...any) {
	r.logged = append(r.logged, fmt.Sprintf(format, args...))
}
func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

type fatal struct{}

func (r *recorder) Fatalf(format string, args ...any) {
	r.fatal = fmt.Sprintf(format, args...)
	panic(fatal{})
}

// watch runs a part of a test and returns what it failed with.
func watch(t *testing.T, part func(r *recorder)) (r *recorder) {
	t.Helper()
	r = &recorder{ctx: t.Context()}
	defer func() {
		if p := recover(); p != nil && p != any(fatal{}) {
			panic(p)
		}
	}()
	part(r)
	return r
}

// fails runs a part of a test and demands that it ends with a message that says this.
func fails(t *testing.T, want string, part func(r *recorder)) {
	t.Helper()
	if r := watch(t, part); !strings.Contains(r.fatal, want) {
		t.Errorf("the test ended with %q, want it to say %q", r.fatal, want)
	}
}
