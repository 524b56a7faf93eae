export const shells = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof shells)[number]

/**
 * Each asks the program itself, so that it never knows less than the program does; file names where
 * it offers nothing.
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

/** Script that a shell evaluates to complete the words of this program. */
export function completionScript(shell: Shell): string {
  return scripts[shell]
}
