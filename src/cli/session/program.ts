import type { Command } from 'commander'

import type { ContextOptions } from './contexts.ts'
import type { LogInOptions } from './login.ts'

/** The verbs `login`, `logout` and `context`. What they do is loaded when needed. */
export function addSession(program: Command): void {
  addLogIn(program)
  withContextOption(program.command('logout'))
    .description('end the session of a context')
    .addHelpText('after', '\nExample:\n  flotilla logout --context prod')
    .action(async (options: ContextOptions) => {
      const { logOut } = await import('./contexts.ts')
      await logOut(options)
    })
  addContexts(program.command('context').description('list, choose and remove contexts'))
}

function addLogIn(program: Command): void {
  program
    .command('login')
    .argument('<url...>', 'controllers, https://HOST:PORT; the others of the cluster are learned')
    .description('open a session, for the verbs that administer a network')
    .option('--user <name>', 'log in by password as this user')
    .option('--password-file <file>', 'the password, or - for standard input; else it is asked for')
    .option('--cert <file>', 'log in by this certificate, PEM')
    .option('--key <file>', 'with --cert: its key, PEM, mode 0600')
    .option('--ca <file>', 'CA certificates that the controllers are verified against')
    .option('--fingerprint <sha256>', 'trust the CA whose certificate has this SHA-256')
    .option('--code-file <file>', 'code of the authenticator app, or - for standard input')
    .option('--context <name>', 'keep it under this name (default: the address)')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
A CA that is neither given nor known to this host is shown by its fingerprint, and must be trusted before anything secret is
sent. Session and addresses are kept in $XDG_CONFIG_HOME/flotilla/contexts.json, mode 0600; when a controller is away, the next
one is asked.

Examples:
  flotilla login https://ctrl1.example.net:1280 --user admin --ca ca.pem
  flotilla login https://ctrl1.example.net:1280 --user admin --password-file - --context prod < password
  flotilla login https://ctrl1.example.net:1280 --cert me.pem --key me.key --fingerprint 5F:70:…`,
    )
    .action(async (urls: string[], options: LogInOptions) => {
      const { logIn } = await import('./login.ts')
      await logIn(urls, options)
    })
}

function addContexts(context: Command): void {
  context
    .command('list')
    .description('the networks that this user has logged in to; no secrets')
    .option('--json', 'print JSON')
    .action(async (options: ContextOptions) => {
      const { listContexts } = await import('./contexts.ts')
      listContexts(options)
    })
  context
    .command('use')
    .argument('<name>', 'as context list tells it')
    .description('work in this context from now on')
    .option('--json', 'print JSON')
    .action(async (name: string, options: ContextOptions) => {
      const { useContext } = await import('./contexts.ts')
      useContext(name, options)
    })
  context
    .command('remove')
    .argument('<name>', 'as context list tells it')
    .description('end its session and forget it')
    .option('--json', 'print JSON')
    .action(async (name: string, options: ContextOptions) => {
      const { removeContext } = await import('./contexts.ts')
      await removeContext(name, options)
    })
}

/** For every verb that works in a context. */
export function withContextOption(command: Command): Command {
  return command
    .option('--context <name>', 'work in this context (default: the one in use)')
    .option('--json', 'print JSON')
}
