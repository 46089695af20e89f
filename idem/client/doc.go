// Package client calls APIs that honour Idempotency-Key. It is an http.RoundTripper that gives one operation one key,
// whatever is lost on the way: connections, answers, or the client's own process. Use it only for APIs that honour
// the key: elsewhere a second request may be a second execution. [WithoutKey] exempts a request.
//
// [Transport] gives every POST and PATCH a key, and buffers the body so that it can be sent again. It asks again with
// the same key until there is an answer: after lost connections, after 408, 425, 429, 500, 502, 503, 504 and similar
// statuses such as 524, and after the 409 of a request that is still in progress. Other methods pass through
// untouched.
//
// A stored answer is an answer whatever its status is ([Stored]). What must not be tried again ends in an error that says why:
// [MismatchError], [OutcomeUnknownError], [ExpiredError], or [GaveUpError] where the client stops first. A GaveUpError is also returned for an answer from 300 on that
// is not stored, if an earlier attempt may have been executed, or run still, or the key was given. After the
// errors that are [ErrUnknown] the operation may have happened. Asking again with the error's key is then safe,
// except after an [ExpiredError] or a GaveUpError of [ReasonUnprotected]: look at the resource then.
//
// A [Journal] keeps the keys of named operations ([WithOperation]) across restarts. The caller ends an operation by
// [Transport.Done], with the answer's key, once it has kept the answer; before that a crash loses nothing, since the same key
// gets the same answer. After that the same name is a new operation, so look for a kept answer before you send.
// Several callers may use one operation at once, in several processes too: they have one key, and the server executes one of
// their requests.
//
// net/http's own transport repeats a request by itself when a reused connection breaks, because it carries a key.
// With a server that honours the key that is safe; still, requests with a body are sent so that it
// can't happen, and where it can, without a body, [GaveUpError] and the log count what was written, not what was asked for.
// A request that was written twice has no first attempt any more: a 401, 404 or redirect then ends in a GaveUpError.
//
// The folders typescript and python have clients with the same rules, as an npm package and for httpx. All three are held to
// scenarios.json, and share the format of the journal's files.
//
// An http.Client follows redirects unless its CheckRedirect says otherwise. The page that an answer leads to comes without
// [KeyOf]; where it can't be had, or a Location is no URL, the error is a [GaveUpError] with the operation's key. Set
// CheckRedirect to a function that returns http.ErrUseLastResponse unless the API documents redirects: its own errors, such as
// "stopped after 10 redirects", have no key.
//
// http.Client.Timeout replaces errors by its own, without the key. Bound a request by its context, or by Config.
package client
