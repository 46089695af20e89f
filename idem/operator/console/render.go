package console

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"time"

	"github.com/idem-go/idem-aws/idem/operator"
)

//go:embed page
var files embed.FS

// asset serves a file of the page.
func asset(name, kind string) http.Handler {
	content, err := files.ReadFile("page/" + name)
	if err != nil {
		panic(err) // embedded
	}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write(content) // a browser that has gone is told nothing
	})
}

var pages = template.Must(template.New("").Funcs(template.FuncMap{
	"at": func(t time.Time) string { return instant(t, "not recorded") },
	// still is a time that is to come where the end is not there yet.
	"still": func(t time.Time, ended bool) string {
		if ended {
			return instant(t, "not recorded")
		}
		return instant(t, "not yet")
	},
	"machine": func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) },
	"some": func(text string) string {
		if text == "" {
			return "none"
		}
		return text
	},
	"sha256":        func(raw []byte) string { return fmt.Sprintf("%x", sha256.Sum256(raw)) },
	"span":          span,
	"operationOf":   operationOf,
	"operationLink": func(id any) string { return "/operation/" + url.PathEscape(fmt.Sprint(id)) },
	"findLink": func(tenant, id string) string {
		return "/find?" + url.Values{"tenant": {tenant}, "id": {id}}.Encode()
	},
	"days": func(d time.Duration) string {
		if d == operator.SinceMax {
			return "a year"
		}
		return span(d)
	},
	"inWords":       operator.InWords,
	"toneOfMessage": toneOfMessage,
	"toneOfRecord":  toneOfRecord,
	"toneOfEntry": func(s operator.EntryState) tone {
		switch s {
		case operator.EntryDone:
			return good
		case operator.EntryFailed, operator.EntryIntended:
			return bad
		case operator.EntryRefused: // nothing was changed
		}
		return plain
	},
	"add":       func(a, b int) int { return a + b },
	"sweepLink": func() string { return changeLink(url.Values{"action": {"sweep"}, "subject": {everything}}) },
}).ParseFS(files, "page/*.html"))

// instant is a time, or what there is instead of one.
func instant(t time.Time, none string) string {
	if t.IsZero() {
		return none
	}
	return t.UTC().Format("2006-01-02 15:04:05.000") + " UTC"
}

// moment is a time within a sentence, and how far it is from now.
func moment(t, now time.Time) string {
	distance := "now"
	switch ago := now.Sub(t); {
	case ago >= time.Second:
		distance = span(ago) + " ago"
	case ago <= -time.Second:
		distance = "in " + span(-ago)
	}
	return t.UTC().Format(time.DateTime) + " UTC (" + distance + ")"
}

// frame is what every page has around what it shows.
type frame struct {
	Title, View, About, Actor string
	CSRF                      string
	Drift                     bool
	Now                       time.Time
	// In says that the browser was let in.
	In bool
	// Live says that the page keeps itself up to date.
	Live bool
	Data any
}

// live are the views that show what changes by itself.
var live = map[string]bool{"overview": true, "queue": true, "operation": true, "audit": true, "drift": true}

func (c *Console) render(w http.ResponseWriter, r *http.Request, status int, view, title string, data any) {
	f := frame{
		Title: title, View: view, About: c.cfg.About, Actor: c.cfg.Actor, Drift: c.cfg.Drift != nil, Now: c.now(), Live: live[view], Data: data,
	}
	if in := sessionOf(r); in != nil {
		f.In, f.CSRF = true, in.csrf
	}
	// The whole page, or none: half of one would be believed.
	var page bytes.Buffer
	if err := pages.ExecuteTemplate(&page, view+".html", f); err != nil {
		c.cfg.Logger.ErrorContext(r.Context(), "console.failed", "path", r.URL.Path, "error", err.Error())
		http.Error(w, "The page could not be made.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(page.Bytes()) // a browser that has gone is told nothing
}
