package spec

import "regexp"

// SecretForm is what names a secret, or "" for none, and SecretRule says so.
var SecretForm = regexp.MustCompile(`^(arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:[A-Za-z0-9/_+=.@-]{1,256}-[A-Za-z0-9]{6}|[A-Za-z0-9/_+=.@-]{1,256})?$`)

// SecretRule is the rule of SecretForm.
const SecretRule = "the name or the whole ARN of a secret in AWS Secrets Manager"
