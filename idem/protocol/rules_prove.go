//go:build prove

package protocol

// switches is what [Config] has in the checker's build.
type switches struct{ Off Rules }

func (s switches) off(r Rules) bool { return s.Off&r != 0 }
