import { Argument, type Command } from 'commander'

import { printLine } from './terminal/output.ts'

/** The `completion` command, and the hidden command that the completion scripts call. */
export function addCompletionCommands(program: Command): void {
  program
    .command('completion')
    .addArgument(new Argument('<shell>', 'shell to complete for').choices(shells))
    .description('print the completion script of a shell')
    .addHelpText(
      'after',
      `
Examples:
  source <(flotilla completion bash)
  flotilla completion zsh > ~/.zfunc/_flotilla
  flotilla completion fish > ~/.config/fish/completions/flotilla.fish`,
    )
    .action((shell: Shell) => printLine(scripts[shell]))
  program
    .command('complete-words', { hidden: true })
    .argument('[words...]')
    .action(async (words: string[]) => {
      const { completeCommandLine } = await import('./complete-command-line.ts')
      for (const word of await completeCommandLine(program, words)) printLine(word)
    })
}

const shells = ['bash', 'zsh', 'fish'] as const
type Shell = (typeof shells)[number]

/**
 * Completion script for each shell. The script calls the program, so completions always match the
 * installed version. If the program returns no completion, the shell completes file names.
 */
const scripts: Readonly<Record<Shell, string>> = {
  bash: `_flotilla() {
  local line
  COMPREPLY=()
  while IFS= read -r line; do
    COMPREPLY+=("$(printf '%q' "$line")")
  done < <("\${COMP_WORDS[0]}" complete-words -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  [[ "\${COMPREPLY[0]-}" == *[=@] ]] && compopt -o nospace
  [[ \${#COMPREPLY[@]} -eq 0 ]] && compopt -o default
  return 0
}
complete -F _flotilla flotilla`,
  zsh: `#compdef flotilla
_flotilla() {
  local -a found
  found=("\${(@f)$("\${words[1]}" complete-words -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  found=(\${found:#})
  if (( \${#found} )); then compadd -- $found; else _files; fi
}
compdef _flotilla flotilla`,
  fish: `function __flotilla_words
  set -l words (commandline -opc) (commandline -ct)
  set -l found (flotilla complete-words -- $words[2..-1] 2>/dev/null)
  if set -q found[1]
    printf '%s\\n' $found
  else
    __fish_complete_path (commandline -ct)
  end
end
complete -c flotilla -f -a '(__flotilla_words)'`,
}
