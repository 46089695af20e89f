// Package spec says what an application of idem needs on AWS, as plain data: queues, functions, permissions, mappings and schedules,
// beside the tables of package schema.
//
// The CDK constructs (idemconstruct), the SAM template and the Terraform module are made from it, so a number or an action
// stands in one place.
package spec
