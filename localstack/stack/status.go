package stack

// Status prints the stack's daemons and returns whether all are alive that it was brought up with.
func (s *Stack) Status() (bool, error) {
	variables, err := ReadVariables(s.options.EnvFile)
	if err != nil {
		return false, err
	}
	up := true
	for _, name := range daemonNames {
		running, alive, err := readDaemon(s.options.State, name)
		if err != nil {
			return false, err
		}
		switch {
		case alive:
			s.out.Line("%-10s  up    %s  pid %d", name, running.URL(), running.PID)
		case variables.brought(name):
			up = false
			s.out.Line("%-10s  down", name)
		}
	}
	return up, nil
}

// optionalDaemons are those that a stack may be brought up without, and the variable that the env file has with one.
var optionalDaemons = map[string]string{daemonFaultProxy: variableFaultProxy, daemonCollector: variableCollector}

// brought tells whether the stack of these variables was brought up with a daemon.
func (v Variables) brought(name string) bool {
	variable, optional := optionalDaemons[name]
	return !optional || v[variable] != ""
}
