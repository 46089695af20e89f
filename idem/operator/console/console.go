package console

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/operator"
)

// Config is what a console works with. Desk and Address are required.
type Config struct {
	// Desk reads and changes operations.
	Desk *operator.Desk
	// Address is where the console is served, as a listener names it: a loopback address with its port. Requests for any other
	// host are refused.
	Address string
	// Actor is who makes changes, as [operator.Change] has it. Default: nobody, and nothing can be changed.
	Actor string
	// About says in a few words which system this is: a stage, a Region. It is on every page.
	About string
	// Find names the operation that made something of the application's own, such as a payment; "" where there is none.
	// Default: nothing is found by ids of the application's.
	Find func(ctx context.Context, tenant, id string) (idem.OperationID, error)
	// Drift compares the application's books with its provider's, of one tenant or of all. Default: there is no such page.
	Drift func(ctx context.Context, tenant string) (Drift, error)
	// Within is for how long a page waits for the desk. Default 10 s.
	Within time.Duration
	// ChangeWithin is how long a change may take. A browser that has gone does not end it. Default 30 s.
	ChangeWithin time.Duration
	// DriftWithin is how long a comparison may take. Default 5 minutes.
	DriftWithin time.Duration
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Random is a cryptographic source of randomness. Default crypto/rand.Reader.
	Random io.Reader
	// Logger gets what a page could not show, and each refused request. Default slog.Default(), as it is when the console is made.
	Logger *slog.Logger
}

// Console is the page. It is an http.Handler, and safe for concurrent use.
type Console struct {
	cfg      Config
	token    string
	sessions sessions
	plans    plans
	objects  objects
	drift    comparison
	handler  http.Handler
	// busy bounds the requests that ask the desk at once.
	busy chan struct{}
	ctx  context.Context
	end  context.CancelFunc
}

// The bounds of what a console keeps and does at once.
const (
	busyMax      = 8
	sessionsMax  = 32
	sessionAge   = 12 * time.Hour
	plansMax     = 200
	objectsMax   = 200
	planAge      = 15 * time.Minute
	formBytesMax = 64 << 10
	pageRows     = 25
	auditRows    = 100
	findingsMax  = 200
)

// New returns a console, or an [*idem.ConfigError].
func New(cfg Config) (*Console, error) {
	if cfg.Desk == nil {
		return nil, &idem.ConfigError{Field: "Config.Desk", Value: nil, Rule: "must be given"}
	}
	if !loopback(cfg.Address) {
		return nil, &idem.ConfigError{Field: "Config.Address", Value: cfg.Address, Rule: "must be a loopback address with a port, such as 127.0.0.1:8080"}
	}
	if cfg.Within == 0 {
		cfg.Within = 10 * time.Second
	}
	if cfg.ChangeWithin == 0 {
		cfg.ChangeWithin = 30 * time.Second
	}
	if cfg.DriftWithin == 0 {
		cfg.DriftWithin = 5 * time.Minute
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Random == nil {
		cfg.Random = rand.Reader
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	c := &Console{cfg: cfg, busy: make(chan struct{}, busyMax)}
	var err error
	if c.token, err = c.mint(); err != nil {
		return nil, err
	}
	c.ctx, c.end = context.WithCancel(context.Background())
	c.handler = c.guarded(c.routes())
	return c, nil
}

// Close ends what goes on without a request, and waits for it.
func (c *Console) Close() {
	c.end()
	c.drift.running.Wait()
}

// Enter is the address that lets a browser in, for as long as the console lives. Anybody who has it can do what the console can.
func (c *Console) Enter() string { return "http://" + c.cfg.Address + "/enter?token=" + c.token }

// ServeHTTP implements http.Handler.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) { c.handler.ServeHTTP(w, r) }

func (c *Console) now() time.Time { return c.cfg.Now().UTC() }

// writes says that changes are admitted.
func (c *Console) writes() bool { return c.cfg.Actor != "" }

// mint returns 256 random bits as text.
func (c *Console) mint() (string, error) {
	raw := make([]byte, 32)
	if _, err := io.ReadFull(c.cfg.Random, raw); err != nil {
		return "", errors.Join(errors.New("console: read randomness"), err)
	}
	return hex.EncodeToString(raw), nil
}

func loopback(address string) bool {
	host, port, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && port != "" && ip != nil && ip.IsLoopback()
}

func (c *Console) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /enter", c.enter)
	mux.Handle("GET /console.css", asset("console.css", "text/css; charset=utf-8"))
	mux.Handle("GET /console.js", asset("console.js", "text/javascript; charset=utf-8"))
	mux.Handle("GET /icon.svg", asset("icon.svg", "image/svg+xml"))
	mux.HandleFunc("GET /{$}", c.reads(c.overview))
	mux.HandleFunc("GET /queue/{queue}", c.reads(c.queue))
	mux.HandleFunc("GET /operation/{id}", c.reads(c.operation))
	mux.HandleFunc("GET /find", c.reads(c.find))
	mux.HandleFunc("POST /key", c.reads(c.findKey))
	mux.HandleFunc("GET /audit", c.reads(c.audit))
	if c.cfg.Drift != nil {
		mux.HandleFunc("GET /drift", c.reads(c.lastDrift))
		mux.HandleFunc("POST /drift", c.reads(c.compare))
	}
	if c.writes() {
		mux.HandleFunc("GET /change", c.reads(c.changeForm))
		mux.HandleFunc("POST /change", c.reads(c.planChange))
		mux.HandleFunc("GET /plan/{id}", c.reads(c.showPlan))
		mux.HandleFunc("POST /plan/{id}", c.makeChange)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		c.fail(w, r, &pageError{http.StatusNotFound, "There is no such page."})
	})
	return mux
}

// reads lets a few requests at once ask the desk, each for as long as Config.Within.
func (c *Console) reads(view func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), c.cfg.Within)
		defer cancel()
		r = r.WithContext(ctx)
		select {
		case c.busy <- struct{}{}:
			defer func() { <-c.busy }()
		case <-ctx.Done():
			c.fail(w, r, &pageError{http.StatusServiceUnavailable, "Too many pages are being read at once. Try again."})
			return
		}
		if err := view(w, r); err != nil {
			c.fail(w, r, err)
		}
	}
}

// pageError is a page that is not shown, and why.
type pageError struct {
	status int
	why    string
}

func (e *pageError) Error() string { return e.why }

// statusOf is the status of a page that an error stands on, and its title.
func statusOf(err error) (status int, title string) {
	var (
		page    *pageError
		invalid *operator.InvalidError
		stale   *operator.StaleError
	)
	switch {
	case errors.As(err, &page):
		return page.status, http.StatusText(page.status)
	case errors.As(err, &stale):
		return http.StatusConflict, "The page was out of date"
	case errors.As(err, &invalid):
		return http.StatusBadRequest, "That can't be used"
	case errors.Is(err, operator.ErrNotFound):
		return http.StatusNotFound, "Nothing is stored under that name"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return http.StatusGatewayTimeout, "It took too long"
	case operator.Refused(err):
		return http.StatusConflict, "Refused"
	}
	return http.StatusBadGateway, "It could not be read"
}

// fail shows why a page is not shown.
func (c *Console) fail(w http.ResponseWriter, r *http.Request, err error) {
	status, title := statusOf(err)
	if status >= http.StatusInternalServerError {
		c.cfg.Logger.ErrorContext(r.Context(), "console.failed", "path", r.URL.Path, "error", err.Error())
	}
	why := err.Error()
	if stale := (*operator.StaleError)(nil); errors.As(err, &stale) {
		why = "Nothing was changed. Somebody, or the system itself, has written it since: it is not as you saw it."
		if stale.Lost() {
			why = "Nothing was changed. Data may have been lost since you looked: the provider may have been called in between. Ask it again."
		}
	}
	c.render(w, r, status, "failed", title, failed{Why: sentence(why), Stale: staleOf(err), Back: backOf(err)})
}

type failed struct {
	Why string
	// Stale is what was seen and what is there, where that is why.
	Stale *operator.StaleError
	// Back is the operation, or the message, to look at again.
	Back string
}

func staleOf(err error) *operator.StaleError {
	var stale *operator.StaleError
	errors.As(err, &stale)
	return stale
}

func backOf(err error) string {
	if stale := staleOf(err); stale != nil && operationOf(stale.Subject) != "" {
		return stale.Subject
	}
	return ""
}

// operationOf is the operation of a subject, which is one, or one of its messages; "" where it is neither.
func operationOf(subject string) string {
	if of, _, err := idem.MessageID(subject).Operation(); err == nil {
		return string(of)
	}
	if _, err := idem.OperationID(subject).RecordKey(); err == nil {
		return subject
	}
	return ""
}

// sentence is an error's text without the package that it comes from.
func sentence(text string) string {
	for _, prefix := range []string{"operator: ", "console: ", "idem: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return text
}
