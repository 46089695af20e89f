package localtool

import (
	"slices"
	"strings"
)

// WithoutAWS drops every variable that an AWS SDK or the CDK would read.
func WithoutAWS(environment []string) []string {
	return slices.DeleteFunc(slices.Clone(environment), func(variable string) bool {
		return strings.HasPrefix(variable, "AWS_") || strings.HasPrefix(variable, "CDK_")
	})
}
