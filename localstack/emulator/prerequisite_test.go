package emulator

import "testing"

func TestPrerequisitesReadVersions(t *testing.T) {
	tests := []struct {
		name   string
		wanted prerequisite
		output string
		err    string
	}{
		{"node new enough", nodeWanted, "v20.20.2\n", ""},
		{"node too old", nodeWanted, "v18.19.0\n", "Node 20 or newer is needed (found v18.19)"},
		{"java of a distribution", javaWanted, `openjdk version "17.0.15" 2025-04-15`, ""},
		{"java without minor version", javaWanted, `openjdk version "21" 2023-09-19`, ""},
		{"java of old numbering", javaWanted, `java version "1.8.0_292"`, `Java 17 or newer is needed (found version "1.8)`},
		{"maven in colour", mavenWanted, "\x1b[1mApache Maven 3.8.7\x1b[m", ""},
		{"go too old", goWanted, "go version go1.25.1 linux/amd64", "Go 1.26 or newer is needed (found go1.25)"},
		{"no version at all", nodeWanted, "what?", "Node 20 or newer is needed (found what?)"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := test.wanted.judge(test.output)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != test.err {
				t.Errorf("judge(%q) = %q, want %q", test.output, got, test.err)
			}
		})
	}
}
