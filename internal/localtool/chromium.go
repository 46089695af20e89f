package localtool

import (
	"errors"
	"os"
	"os/exec"
)

// ErrNoChromium says that no browser was found for the tests that need one.
var ErrNoChromium = errors.New("a Chromium is needed (not found; CHROMIUM names one that is elsewhere)")

// Chromium is the path of a Chromium or Chrome. The variable CHROMIUM names one to try first. It returns [ErrNoChromium] where
// there is none.
func Chromium() (string, error) {
	for _, name := range []string{os.Getenv("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); name != "" && err == nil {
			return path, nil
		}
	}
	return "", ErrNoChromium
}
