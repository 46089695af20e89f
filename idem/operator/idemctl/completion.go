package idemctl

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

type completion struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"Which shell: ${enum}."`
}

// Run implements the command.
func (c *completion) Run(s *session, app *kong.Kong) error {
	all := parts(app.Model)
	script := map[string]func([]part) string{"bash": bashScript, "zsh": zshScript, "fish": fishScript}[c.Shell](all)
	_, err := io.WriteString(s.out, script)
	return err
}

// candidates are what may follow a command: commands, flags, and the fixed values of its argument.
func candidates(p part) []word {
	all := append([]word{}, p.words...)
	for _, arg := range p.args {
		for _, value := range values(arg) {
			all = append(all, word{value, ""})
		}
	}
	for _, f := range p.flags {
		all = append(all, word{"--" + f.Name, f.Help})
	}
	return all
}

// A shell's script finds the command that was typed by its words, and then knows what may follow. A value of a flag is completed
// where it is fixed, or a file.

// shellCase writes the branches of a case over commands: of bash, and of zsh.
func shellCase(all []part, branch func(p part) string) string {
	var text strings.Builder
	for _, p := range all {
		fmt.Fprintf(&text, "    %s) %s ;;\n", singleQuoted(strings.Join(p.path, " ")), branch(p))
	}
	return text.String()
}

// flagCase writes what follows a flag.
func flagCase(all []part, fixed func(values []string) string, file string) string {
	var text strings.Builder
	told := map[string]bool{}
	for _, p := range all {
		for _, f := range p.flags {
			switch name := "--" + f.Name; {
			case told[name] || f.IsBool():
			case len(values(f.Value)) > 0:
				told[name] = true
				fmt.Fprintf(&text, "    %s) %s; return ;;\n", name, fixed(values(f.Value)))
			case isFile(f):
				told[name] = true
				fmt.Fprintf(&text, "    %s) %s; return ;;\n", name, file)
			default:
				told[name] = true
				fmt.Fprintf(&text, "    %s) return ;;\n", name)
			}
		}
	}
	return text.String()
}

// commandWords is a function of bash and zsh that sets typed to the command that stands on the line, of the commands there are.
func commandWords(all []part) string {
	names := make([]string, 0, len(all))
	for _, p := range all {
		if len(p.path) > 0 {
			names = append(names, singleQuoted(strings.Join(p.path, " ")))
		}
	}
	return `  for word in "${line[@]}"; do
    case "${typed:+$typed }$word" in
    ` + strings.Join(names, "|") + `) typed="${typed:+$typed }$word" ;;
    esac
  done
`
}

func bashScript(all []part) string {
	fixed := func(values []string) string {
		return `COMPREPLY=($(compgen -W "` + strings.Join(values, " ") + `" -- "$current"))`
	}
	branch := func(p part) string {
		words := make([]string, 0, len(p.flags))
		for _, w := range candidates(p) {
			words = append(words, w.text)
		}
		return `words="` + strings.Join(words, " ") + `"`
	}
	return `# Completions of idemctl for bash. In ~/.bashrc: source <(idemctl completion bash)
_idemctl() {
  local current="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" typed="" words="" word
  local line=("${COMP_WORDS[@]:1:COMP_CWORD-1}")
  COMPREPLY=()
  case "$before" in
` + flagCase(all, fixed, `COMPREPLY=($(compgen -f -- "$current"))`) + `  esac
` + commandWords(all) + `  case "$typed" in
` + shellCase(all, branch) + `  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o filenames -F _idemctl idemctl
`
}

func zshScript(all []part) string {
	fixed := func(values []string) string { return "compadd -- " + strings.Join(values, " ") }
	branch := func(p part) string {
		words := make([]string, 0, len(p.flags))
		for _, w := range candidates(p) {
			words = append(words, singleQuoted(strings.ReplaceAll(w.text, ":", `\:`)+":"+w.help))
		}
		return "choices=(" + strings.Join(words, " ") + ")"
	}
	return `#compdef idemctl
# Completions of idemctl for zsh, in a folder of fpath: idemctl completion zsh > ~/.zfunc/_idemctl
_idemctl() {
  local typed="" word
  local -a line choices
  line=("${(@)words[2,CURRENT-1]}")
  case "${words[CURRENT-1]}" in
` + flagCase(all, fixed, "_files") + `  esac
` + commandWords(all) + `  case "$typed" in
` + shellCase(all, branch) + `  esac
  _describe idemctl choices
}
if [ "$funcstack[1]" = _idemctl ]; then
  _idemctl "$@"
else
  compdef _idemctl idemctl
fi
`
}

func fishScript(all []part) string {
	var text strings.Builder
	text.WriteString("# Completions of idemctl for fish: idemctl completion fish > ~/.config/fish/completions/idemctl.fish\ncomplete -c idemctl -f\n")
	for _, p := range all {
		on := "-n " + singleQuoted(fishCondition(p, all))
		for _, w := range p.words {
			fmt.Fprintf(&text, "complete -c idemctl %s -a %s -d %s\n", on, w.text, singleQuoted(w.help))
		}
		for _, arg := range p.args {
			if fixed := values(arg); len(fixed) > 0 {
				fmt.Fprintf(&text, "complete -c idemctl %s -a %s\n", on, singleQuoted(strings.Join(fixed, " ")))
			}
		}
		for _, f := range p.flags {
			follows := " -x"
			switch fixed := values(f.Value); {
			case f.IsBool():
				follows = ""
			case len(fixed) > 0:
				follows = " -x -a " + singleQuoted(strings.Join(fixed, " "))
			case isFile(f):
				follows = " -r -F"
			}
			fmt.Fprintf(&text, "complete -c idemctl %s -l %s%s -d %s\n", on, f.Name, follows, singleQuoted(f.Help))
		}
	}
	return text.String()
}

// fishCondition holds on a line that has the command's words, and none of the commands below it.
func fishCondition(p part, all []part) string {
	var conditions []string
	for _, name := range p.path {
		conditions = append(conditions, "__fish_seen_subcommand_from "+name)
	}
	if len(p.words) > 0 {
		var below []string
		for _, w := range p.words {
			below = append(below, w.text)
		}
		conditions = append(conditions, "not __fish_seen_subcommand_from "+strings.Join(below, " "))
	}
	return strings.Join(conditions, "; and ")
}

// singleQuoted is a text as one word of a shell.
func singleQuoted(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
