// Package spec says what an application of idem needs on AWS, as plain data: queues, functions, permissions, mappings and schedules,
// beside the tables of package schema.
//
// The CDK constructs (idemconstruct), the SAM template and the Terraform module are made from it, so a number or an action
// stands in one place. With the CDK you need two types of it: [Range], for provisioned tables, and [Units], for a table of
// your own. Use the rest if you deploy idem by another tool: it says which functions there are, what each may do, how
// queues are set, and which alarms there should be.
package spec
