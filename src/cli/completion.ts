import { Argument, type Command } from 'commander'

import { printLine } from './terminal/output.ts'
import type { Shell } from './completion-scripts.ts'

/** `completion`, and the hidden verb that the scripts ask. What they do is loaded when needed. */
export function addCompletion(program: Command): void {
  program
    .command('completion')
    .addArgument(new Argument('<shell>', 'shell to complete for').choices(['bash', 'zsh', 'fish']))
    .description('print the completion script of a shell')
    .addHelpText(
      'after',
      `
Examples:
  source <(flotilla completion bash)
  flotilla completion zsh > ~/.zfunc/_flotilla
  flotilla completion fish > ~/.config/fish/completions/flotilla.fish`,
    )
    .action(async (shell: Shell) => {
      const { completionScript } = await import('./completion-scripts.ts')
      printLine(completionScript(shell))
    })
  program
    .command('complete-words', { hidden: true })
    .argument('[words...]')
    .action(async (words: string[]) => {
      const { completions } = await import('./completion-words.ts')
      for (const word of await completions(program, words)) printLine(word)
    })
}
