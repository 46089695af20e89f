package awslambda

import (
	"context"
	"encoding/json"
)

// Authorizer is what the gateway's authorizer says of the caller. Its parts come from different authorizers and are kept
// apart: a claim that a user may choose must not pass for a Lambda authorizer's word. Values that are not scalar are left
// out; numbers and booleans are in their JSON form.
type Authorizer struct {
	// Lambda is the context of a Lambda authorizer; for REST APIs with its principalId.
	Lambda map[string]string
	// Claims are those of a verified JWT, of Cognito for REST APIs.
	Claims map[string]string
	// IAM is the caller of a request signed with AWS credentials: userArn, accountId, accessKey and others, as the event
	// names them.
	IAM map[string]string
}

type authorizerKey struct{}

// AuthorizerFrom returns what the authorizer said of the request with this context, and whether there was any authorizer:
// without one, nobody has been authenticated.
func AuthorizerFrom(ctx context.Context) (Authorizer, bool) {
	a, ok := ctx.Value(authorizerKey{}).(*Authorizer)
	if !ok {
		return Authorizer{}, false
	}
	return *a, true
}

func (e *httpEvent) authorizer() *Authorizer {
	var a *Authorizer
	switch e.shape() {
	case shapeV2:
		a = authorizerV2(e.RequestContext)
	case shapeV1:
		a = authorizerV1(e.RequestContext)
	case shapeALB: // its authentication is a header, signed, for the application to verify
	}
	if a == nil || len(a.Lambda)+len(a.Claims)+len(a.IAM) == 0 {
		return nil
	}
	return a
}

func authorizerV2(c *requestContext) *Authorizer {
	if c.Authorizer == nil {
		return nil
	}
	var parts struct {
		Lambda map[string]json.RawMessage `json:"lambda"`
		IAM    map[string]json.RawMessage `json:"iam"`
		JWT    struct {
			Claims map[string]json.RawMessage `json:"claims"`
		} `json:"jwt"`
	}
	if json.Unmarshal(*c.Authorizer, &parts) != nil {
		return nil
	}
	return &Authorizer{Lambda: scalars(parts.Lambda), Claims: scalars(parts.JWT.Claims), IAM: scalars(parts.IAM)}
}

func authorizerV1(c *requestContext) *Authorizer {
	a := &Authorizer{}
	if id := c.Identity; id != nil && id.UserARN != "" {
		a.IAM = map[string]string{"userArn": id.UserARN, "caller": id.Caller, "user": id.User, "accountId": id.AccountID, "accessKey": id.AccessKey}
	}
	if c.Authorizer == nil {
		return a
	}
	var flat map[string]json.RawMessage
	if json.Unmarshal(*c.Authorizer, &flat) != nil {
		return a
	}
	if raw, ok := flat["claims"]; ok {
		var claims map[string]json.RawMessage
		if json.Unmarshal(raw, &claims) == nil && claims != nil {
			a.Claims = scalars(claims)
			return a
		}
	}
	delete(flat, "integrationLatency") // the gateway's own figure
	a.Lambda = scalars(flat)
	return a
}

func scalars(raw map[string]json.RawMessage) map[string]string {
	values := make(map[string]string, len(raw))
	for name, value := range raw {
		if len(value) == 0 {
			continue
		}
		switch value[0] {
		case '{', '[', 'n':
		case '"':
			var s string
			if json.Unmarshal(value, &s) == nil {
				values[name] = s
			}
		default:
			values[name] = string(value)
		}
	}
	return values
}
