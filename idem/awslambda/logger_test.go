package awslambda

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"testing"
)

func TestAPanicIsLoggedWhereNoLoggerIsGiven(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(before)
	handler := HTTP(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("boom") }), Config{})
	if _, err := handler.Invoke(t.Context(), sample(t, "api-http-payment")); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "boom") {
		t.Errorf("log %q", log.String())
	}
}
