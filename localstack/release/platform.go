package release

// Platform is an operating system and an architecture, as GOOS and GOARCH name them. The zero value is this machine's.
type Platform struct{ OS, Arch string }

// Platforms are those that a release has binaries for.
func Platforms() []Platform {
	return []Platform{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"}}
}

// executable is the file name of a program.
func (p Platform) executable(name string) string {
	if p.OS == "windows" {
		return name + ".exe"
	}
	return name
}
