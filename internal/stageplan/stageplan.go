// Package stageplan is what the CDK app makes of a stage's file, and what the commands that deploy the stage work with. Both
// are in modules of their own.
package stageplan

import (
	"fmt"
	"path/filepath"
	"regexp"
)

// Plan is a stage whose file has been checked.
type Plan struct {
	// Stage is the stage's name.
	Stage string `json:"stage"`
	// Account and Region are where the stage is, and nowhere else.
	Account string `json:"account"`
	Region  string `json:"region"`
	// Stack is the name of the CloudFormation stack.
	Stack string `json:"stack"`
	// Arch is the architecture of the functions, by its Go name.
	Arch string `json:"arch"`
	// Protected says that CloudFormation refuses to delete the stack.
	Protected bool `json:"protected"`
	// Context is the whole CDK context, account, region and stack too.
	Context map[string]string `json:"context"`
}

// File is the path of a stage's file in a checkout.
func File(root, stage string) string { return filepath.Join(root, "infra", "stages", stage+".json") }

var nameForm = regexp.MustCompile(`^[a-z][a-z0-9-]{0,19}$`)

// reserved is the name whose variables would overwrite those of the local stack, .local/run.env.
const reserved = "run"

// CheckName returns an error where a stage can't have that name.
func CheckName(stage string) error {
	switch {
	case stage == "":
		return fmt.Errorf("name the stage: STAGE=prod uses infra/stages/prod.json")
	case stage == reserved:
		return fmt.Errorf("stage=%q is refused: .local/%s.env has the variables of the local stack", stage, stage)
	case !nameForm.MatchString(stage):
		return fmt.Errorf("stage=%q is refused; allowed: a lower-case letter, then up to 19 of a to z, 0 to 9 and -", stage)
	}
	return nil
}
