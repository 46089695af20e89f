package stack_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// What people change is recorded with who changed it, and the log can't be changed unseen.
func TestTrail(t *testing.T) {
	each(t, func(t *testing.T, variant string, template *synthesized) {
		if !chosen(variant, "trail") {
			template.counts(t, "AWS::CloudTrail::Trail", 0)
			return
		}
		trail := template.only(t, "AWS::CloudTrail::Trail", "Trail").Properties
		if trail["IsLogging"] != true || trail["EnableLogFileValidation"] != true || plain(trail["S3BucketName"]) != "TrailBucket" {
			t.Errorf("%v", trail)
		}
		var tables []string
		for _, each := range trail["AdvancedEventSelectors"].([]any)[0].(map[string]any)["FieldSelectors"].([]any) {
			if selector := each.(map[string]any); selector["Field"] == "resources.ARN" {
				for _, arn := range selector["Equals"].([]any) {
					tables = append(tables, plain(arn))
				}
			}
		}
		want := []string{"AuditTable.Arn", "ApiKeys.Arn", "KeysTable.Arn"}
		if variants[variant]["trail"] == "all" {
			want = append(want, "TablesIdempotency.Arn", "TablesOutbox.Arn", "Payments.Arn")
		}
		if !slices.Equal(tables, want) {
			t.Errorf("recorded are %v, want %v", tables, want)
		}
		bucket := template.only(t, "AWS::S3::Bucket", "TrailBucket")
		if bucket.DeletionPolicy != "Retain" {
			t.Errorf("the bucket is %s", bucket.DeletionPolicy)
		}
		// A bucket that keeps versions deletes nothing by an expiry alone.
		ends, err := json.Marshal(bucket.Properties["LifecycleConfiguration"])
		for _, end := range []string{`"ExpirationInDays":400`, `"NoncurrentVersionExpiration":{"NoncurrentDays":1}`, `"ExpiredObjectDeleteMarker":true`} {
			if err != nil || !strings.Contains(string(ends), end) {
				t.Errorf("no rule has %s: %s, %v", end, ends, err)
			}
		}
	})
}
