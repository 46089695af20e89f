package middleware

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
)

// selects says what of the endpoint's requests counts, or returns a [*idem.ConfigError]. pattern is the one that a Router
// serves the endpoint at; "" where nobody knows.
func (e *endpoint) selects(pattern string) error {
	s := canonical.Selection{IgnoreQuery: e.route.IgnoreQuery, IgnoreTracking: e.route.IgnoreTracking, Fields: e.route.Fields}
	ignored := e.route.IgnorePath
	switch {
	case pattern != "" && e.route.PathParams != nil:
		return &idem.ConfigError{Field: "Route.PathParams", Value: pattern, Rule: "is for other routers: the pattern has the parameters"}
	case pattern != "" && complete(pattern):
		s.Path, e.wildcards = canonical.PathWildcards, wildcards(pattern)
		positions, missing := positions(e.wildcards, ignored)
		if missing != "" {
			return &idem.ConfigError{Field: "Route.IgnorePath", Value: fmt.Sprintf("%q", missing), Rule: "must name a parameter of the pattern " + pattern}
		}
		s.IgnorePath, ignored = positions, nil
	case pattern != "" && len(ignored) > 0:
		return &idem.ConfigError{Field: "Route.IgnorePath", Value: fmt.Sprintf("%q", ignored), Rule: fmt.Sprintf("contradicts the pattern %s: what follows its last / has no name, so that the whole path counts", pattern)}
	case e.route.PathParams != nil:
		s.Path, s.IgnorePath = canonical.PathParameters, ignored
	case e.route.PathByWildcards || len(ignored) > 0:
		s.Path = canonical.PathWildcards
	}
	e.selection = s
	// The positions of what is left out are known by the request's pattern. They are no longer than the names.
	if s.IgnorePath == nil && s.Path != canonical.PathWhole {
		s.IgnorePath = ignored
	}
	if err := s.Validate(); err != nil {
		return &idem.ConfigError{Field: "Route", Value: s.String(), Rule: err.Error()}
	}
	return nil
}

// input is what the fingerprint is taken of.
func (e *endpoint) input(r *Request) (canonical.Input, *refusal) {
	in := canonical.Input{
		Method: r.HTTP.Method, Path: sentPath(r.HTTP), MediaType: r.HTTP.Header.Get("Content-Type"), Body: r.Body, Selection: e.selection,
	}
	var err error
	if in.Query, err = url.ParseQuery(r.HTTP.URL.RawQuery); err != nil {
		return in, invalid("The query is malformed.")
	}
	if err := e.path(r.HTTP, &in); err != nil {
		e.m.cfg.Logger.ErrorContext(r.HTTP.Context(), "the path's parameters are not known: nothing runs",
			"error", err, "operation", e.operation.Operation().Name, "pattern", r.HTTP.Pattern)
		return in, internalError()
	}
	return in, nil
}

// path fills in the parameters of the path. It returns an error where the route counts on one that the router has not: as
// an empty value it would be the same in the requests for two resources.
func (e *endpoint) path(r *http.Request, in *canonical.Input) error {
	names := e.wildcards
	if names == nil && complete(r.Pattern) {
		names = wildcards(r.Pattern)
	}
	in.Wildcards = wildcardValues(r, names)
	if e.selection.Path == canonical.PathWildcards && in.Wildcards == nil {
		return errors.New("middleware: the request has no http.ServeMux pattern that names every variable part of the path: set Route.PathParams")
	}
	if e.selection.Path == canonical.PathWildcards && e.wildcards == nil {
		var missing string
		if in.Selection.IgnorePath, missing = positions(names, e.route.IgnorePath); missing != "" {
			return fmt.Errorf("middleware: Route.IgnorePath names %q, which is not in the pattern", missing)
		}
	}
	if e.route.PathParams == nil {
		return nil
	}
	in.Parameters = maps.Clone(e.route.PathParams(r))
	if len(in.Parameters) == 0 {
		return errors.New("middleware: Route.PathParams returned no parameter")
	}
	for name, value := range in.Parameters {
		if value == "" {
			return fmt.Errorf("middleware: Route.PathParams returned no value of %q", name)
		}
	}
	for _, name := range e.selection.IgnorePath {
		if _, ok := in.Parameters[name]; !ok {
			return fmt.Errorf("middleware: Route.IgnorePath names %q, which Route.PathParams did not return", name)
		}
	}
	if rewritten := rewritten(r); rewritten != "" {
		in.Parameters[""] = rewritten
	}
	return nil
}

// sentPath is the path as the client sent it, whatever was done to the request's URL since.
func sentPath(r *http.Request) string {
	path, _, _ := strings.Cut(r.RequestURI, "?")
	if strings.HasPrefix(path, "/") {
		return path
	}
	if u, err := url.ParseRequestURI(r.RequestURI); err == nil && u.Path != "" { // with scheme and host, as to a proxy
		return u.EscapedPath()
	}
	return r.URL.EscapedPath()
}

// rewritten is what of the path no pattern has seen: the beginning that was stripped off, or all that was sent where the
// path was made another one; "" where nothing was done to it.
func rewritten(r *http.Request) string {
	sent, seen := sentPath(r), r.URL.EscapedPath()
	if prefix, ok := strings.CutSuffix(sent, seen); ok {
		return prefix
	}
	return sent
}

// wildcardValues are the values of the wildcards, and last what was rewritten of the path; nil where there are no names,
// or no value of one.
func wildcardValues(r *http.Request, names []string) []string {
	if names == nil {
		return nil
	}
	values := make([]string, 0, len(names)+1)
	for _, name := range names {
		value := r.PathValue(strings.TrimSuffix(name, rest))
		if value == "" && !strings.HasSuffix(name, rest) {
			return nil
		}
		if strings.HasSuffix(name, rest) {
			value = segments(r, value)
		}
		values = append(values, value)
	}
	if rewritten := rewritten(r); rewritten != "" {
		values = append(values, rewritten)
	}
	return values
}

// segments is the value of the wildcard that stands for the rest of a path, so that it tells a/b from a%2Fb, which http.Request.PathValue
// does not: its segments are escaped where one of them holds a slash or a percent sign, and else as they are.
func segments(r *http.Request, value string) string {
	sent := r.URL.EscapedPath()
	for i := range sent {
		if i > 0 && sent[i-1] != '/' {
			continue
		}
		if tail, err := url.PathUnescape(sent[i:]); err != nil || tail != value {
			continue
		}
		all := strings.Split(sent[i:], "/")
		plain := true
		for n, segment := range all {
			unescaped, _ := url.PathUnescape(segment) // as the whole was
			all[n] = url.PathEscape(unescaped)
			plain = plain && !strings.ContainsAny(unescaped, "/%")
		}
		if plain {
			return value
		}
		return strings.Join(all, "/")
	}
	return value
}

// positions are the positions, from "1", of names among the wildcards, or the first name that is none.
func positions(wildcards, names []string) (positions []string, missing string) {
	for _, name := range names {
		i := slices.IndexFunc(wildcards, func(wildcard string) bool { return strings.TrimSuffix(wildcard, rest) == name })
		if i < 0 {
			return nil, name
		}
		positions = append(positions, strconv.Itoa(i+1))
	}
	return positions, ""
}

// rest marks the wildcard that stands for all that is left of a path, which may be nothing.
const rest = "..."

// complete says whether a pattern of http.ServeMux names all that varies in the paths that it matches. One that ends in
// "/" does not. Other routers write patterns too, and mean something else.
func complete(pattern string) bool {
	return pattern != "" && !strings.HasSuffix(pattern, "/") && !strings.ContainsAny(pattern, ":*")
}

// wildcards are the names of a pattern's wildcards, in its order; [rest] ends the name of the one that has it.
func wildcards(pattern string) []string {
	names := []string{}
	for {
		_, after, ok := strings.Cut(pattern, "{")
		if !ok {
			return names
		}
		name, left, _ := strings.Cut(after, "}")
		if name != "$" {
			names = append(names, name)
		}
		pattern = left
	}
}
