import type { Command } from 'commander'

import type { ContextOptions } from '../client/context-client.ts'
import { addContextOption } from '../client/connection-options.ts'
import type { LogInOptions } from './login.ts'

/** The commands `login`, `logout` and `context`. Their code is loaded when one of them runs. */
export function addSessionCommands(program: Command): void {
  addLogIn(program)
  addContextOption(program.command('logout'))
    .description('log out of a context')
    .addHelpText('after', '\nExamples:\n  flotilla logout --context prod')
    .action(async (options: ContextOptions) => {
      const { logOut } = await import('./contexts.ts')
      await logOut(options)
    })
  addContexts(program.command('context').description('list, select and remove contexts'))
}

function addLogIn(program: Command): void {
  program
    .command('login')
    .argument('<url...>', 'controllers, https://HOST:PORT; other members are discovered')
    .description('log in to administer a network')
    .option('--user <name>', 'log in by password as this user (default: prompt)')
    .option('--password-file <file>', 'password file, or - for standard input (default: prompt)')
    .option('--cert <file>', 'log in with this certificate, PEM')
    .option('--key <file>', 'with --cert: private key, PEM, mode 0600')
    .option('--browser', 'log in on the page of a controller, in a browser of this host')
    .option('--device', 'log in by a code that is entered in a browser elsewhere')
    .option(
      '--jwt-file <file>',
      'log in with the token of an identity provider, or add it to --user or --cert; - for standard input',
    )
    .option('--ca <file>', 'CA certificates to verify the controllers with')
    .option('--fingerprint <sha256>', 'trust the CA with this SHA-256 fingerprint')
    .option(
      '--code-file <file>',
      'file with the code of the authenticator app, or - for standard input',
    )
    .option('--context <name>', 'name of the context (default: the address)')
    .option('--json')
    .addHelpText(
      'after',
      `
The fingerprint of an unknown CA is shown and must be confirmed before any secret is sent. Session and addresses are
stored in $XDG_CONFIG_HOME/flotilla/contexts.json, mode 0600. If a controller is unreachable, the next one is used.
A session is renewed while it is in use; one that is not used for a day ends, and so does any after 30 days.

Examples:
  flotilla login https://ctrl1.example.net:1280 --user admin --ca ca.pem
  flotilla login https://ctrl1.example.net:1280 --user admin --password-file - --context prod < password
  flotilla login https://ctrl1.example.net:1280 --cert me.pem --key me.key --fingerprint 5F:70:…
  flotilla login https://ctrl1.example.net:1280 --browser
  flotilla login https://ctrl1.example.net:1280 --jwt-file token.jwt`,
    )
    .action(async (urls: string[], options: LogInOptions) => {
      const { logIn } = await import('./login.ts')
      await logIn(urls, options)
    })
}

function addContexts(context: Command): void {
  context
    .command('list')
    .description('list contexts')
    .option('--json')
    .addHelpText('after', '\nExamples:\n  flotilla context list')
    .action(async (options: ContextOptions) => {
      const { listContexts } = await import('./contexts.ts')
      listContexts(options)
    })
  context
    .command('use')
    .argument('<name>', 'name of the context')
    .description('set the current context')
    .option('--json')
    .addHelpText('after', '\nExamples:\n  flotilla context use prod')
    .action(async (name: string, options: ContextOptions) => {
      const { useContext } = await import('./contexts.ts')
      useContext(name, options)
    })
  context
    .command('remove')
    .argument('<name>', 'name of the context')
    .description('log out and remove a context')
    .option('--json')
    .addHelpText('after', '\nExamples:\n  flotilla context remove prod')
    .action(async (name: string, options: ContextOptions) => {
      const { removeContext } = await import('./contexts.ts')
      await removeContext(name, options)
    })
}
