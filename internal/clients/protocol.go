// Package clients builds the clients in Go, TypeScript and Python as their users get them, each as a program that runs requests
// for a test: the driver of one reads and writes what those of the others do, one line of JSON for each request. Tests of
// the client hold them against one list of scenarios, and end-to-end tests against a deployed stack.
package clients

// Task is one request, and how it is sent.
type Task struct {
	ID      string            `json:"id"`
	URL     string            `json:"url"`
	Method  string            `json:"method"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
	// Key and Operation are the caller's; nil for none.
	Key       *string `json:"key,omitempty"`
	Operation *string `json:"operation,omitempty"`
	// Journal is the directory of a file journal; "" for none.
	Journal string `json:"journal,omitempty"`
	// Await follows a 202 to its end, and Done ends the operation once there is an answer.
	Await bool `json:"await,omitempty"`
	Done  bool `json:"done,omitempty"`
	// ClockMS is when the client's clock begins, in milliseconds since 1970; its pauses then take no time, but are told. 0 is
	// the machine's clock.
	ClockMS int64 `json:"clock_ms,omitempty"`
	// AbortOn is a URL whose answer cancels the request, whatever it is; "" for none. AbortInPause cancels it in the pause of that
	// number, from 1.
	AbortOn      string  `json:"abort_on,omitempty"`
	AbortInPause int     `json:"abort_in_pause,omitempty"`
	Options      Options `json:"options"`
}

// Options are those settings that every client has. Zero is its default.
type Options struct {
	BaseURL          string  `json:"base_url,omitempty"`
	Syntax           string  `json:"syntax,omitempty"`
	SendFirstSent    bool    `json:"send_first_sent,omitempty"`
	KeyAgeMaxMS      float64 `json:"key_age_max_ms,omitempty"`
	AttemptsMax      int     `json:"attempts_max,omitempty"`
	ElapsedMaxMS     float64 `json:"elapsed_max_ms,omitempty"`
	AttemptTimeoutMS float64 `json:"attempt_timeout_ms,omitempty"`
	BackoffBaseMS    float64 `json:"backoff_base_ms,omitempty"`
	BackoffMaxMS     float64 `json:"backoff_max_ms,omitempty"`
	RetryAfterMaxMS  float64 `json:"retry_after_max_ms,omitempty"`
	AwaitMaxMS       float64 `json:"await_max_ms,omitempty"`
}

// Result is what became of a task: an answer or an error.
type Result struct {
	ID string `json:"id"`
	// Key is the one that was sent, as the client tells it; "" where it tells none.
	Key    string  `json:"key"`
	Answer *Answer `json:"answer,omitempty"`
	Error  *Error  `json:"error,omitempty"`
	// PausesMS are the client's pauses on a clock of the task's own, in milliseconds.
	PausesMS []float64 `json:"pauses_ms"`
	// Told is all that printing the error shows.
	Told string `json:"told,omitempty"`
}

// Answer is a response.
type Answer struct {
	// First is the status of the response that was followed; Status without.
	First   int               `json:"first"`
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"` // by names in lower case
	Body    string            `json:"body"`
}

// Error is a client's error; what it does not have is zero.
type Error struct {
	Code         string  `json:"code"`
	Unknown      bool    `json:"unknown"`
	Reason       string  `json:"reason,omitempty"`
	Attempts     int     `json:"attempts,omitempty"`
	Status       int     `json:"status,omitempty"`
	ProblemCode  string  `json:"problem_code,omitempty"`
	RetryAfterMS float64 `json:"retry_after_ms,omitempty"`
}
