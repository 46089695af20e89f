package stack

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// stageFile is where the variables of a stage are, as idemctl --env-file reads them.
func stageFile(root, stage string) string { return filepath.Join(root, ".local", stage+".env") }

// addLoss says, as the functions are told, whether records may be missing: an operator's command must not take what was restored for what
// was never called. It is said either way, because who loads the file once more unsets nothing: a shell would go on refusing.
func (v Variables) addLoss(contexts map[string]string) {
	v["LOST_RECORDS"] = strconv.FormatBool(contexts["lost"] == "records")
}

// writeVariables writes what idemctl needs for the stage as deployed.
func (s *Stage) writeVariables(result outputs) error {
	variables := Variables{
		"AWS_REGION":     s.plan.Region,
		variableProvider: strings.TrimRight(s.plan.Context["providerUrl"], "/"),
		variableAPI:      strings.TrimRight(result["ApiUrl"], "/"),
	}
	if variables[variableAPI] == "" {
		return fmt.Errorf("the stack has no output ApiUrl")
	}
	for context, variable := range map[string]string{"scopeSecret": "SCOPE_SECRET_ID", "providerSecret": "PROVIDER_CREDENTIAL_ID"} {
		if secret := s.plan.Context[context]; secret != "" {
			variables[variable] = secret
		}
	}
	if s.plan.Context["encryption"] == "open" {
		variables["SEAL_OPEN_ONLY"] = "true"
	}
	variables.addLoss(s.plan.Context)
	if err := variables.addNames(result); err != nil {
		return err
	}
	file := stageFile(s.root, s.plan.Stage)
	if err := variables.Write(file); err != nil {
		return err
	}
	s.out.Line("variables in %s: make idemctl STAGE=%s ARGS=\"list unknown\"", file, s.plan.Stage)
	return nil
}
