import { type Command, Option } from 'commander'

import { presetFieldNames, signerPresets } from '../../client/signer-presets.ts'
import { addContextOption } from '../client/connection-options.ts'
import type { CreateSignerOptions, DiscoverOptions } from './set-up.ts'
import type { TestTokenOptions } from './token-test.ts'

/**
 * Help texts for the options with values of an identity provider; `clientId` is the option
 * `--client-id`.
 */
const fieldTexts: Readonly<Record<(typeof presetFieldNames)[number], string>> = {
  clientId: 'ID of the public client that is registered at the provider',
  tenant: 'entra: directory (tenant) ID, a UUID',
  domain: 'okta: domain, such as example.okta.com',
  server: "okta: authorization server; without it, the organization's",
  address: 'keycloak: address of the server',
  realm: 'keycloak: realm',
  issuer: 'other: issuer, as in the claim iss',
}

/** `flotilla signer …`. The code of each command is loaded when it runs. */
export function addSignerCommands(program: Command): void {
  const signer = program
    .command('signer')
    .description('set up identity providers, and test their tokens')
    .addHelpText(
      'after',
      `
Create and change signers field by field with 'flotilla create external-jwt-signer'. These commands are for administrators.

Examples:
  flotilla signer discover --provider keycloak --address https://keycloak.example.net --realm staff
  flotilla signer create staff --provider keycloak --address https://keycloak.example.net --realm staff --client-id overlay
  flotilla signer test staff --jwt-file token.jwt`,
    )
  addProviderOptions(addContextOption(signer.command('discover')))
    .description('show what a provider publishes, and whether its keys are usable')
    .addHelpText(
      'after',
      `
A controller reads the provider's /.well-known/openid-configuration and its keys. Writes nothing.

Examples:
  flotilla signer discover --provider google
  flotilla signer discover --provider okta --domain example.okta.com
  flotilla signer discover --provider other --issuer https://idp.example.net -o json`,
    )
    .action(async (options: DiscoverOptions) => {
      const { printDiscoveredProvider: discover } = await import('./set-up.ts')
      await discover(options)
    })
  addProviderOptions(addContextOption(signer.command('create')))
    .argument('<name>', 'name of the new signer; people choose the provider by it')
    .option('--claim <pointer>', 'claim that names the identity (default: of the provider)')
    .option('--dry-run', 'show the signer, and create nothing')
    .description('create a signer from a few values of a provider')
    .addHelpText(
      'after',
      `
A controller reads the other values from the provider, as 'flotilla signer discover' shows them. The signer accepts ID
tokens that are issued for the client. The default claim is one that the provider never gives to another account.

Examples:
  flotilla signer create google --provider google --client-id 1234567890-example.apps.googleusercontent.com
  flotilla signer create okta --provider okta --domain example.okta.com --client-id 0oa0example0000000000 --dry-run`,
    )
    .action(async (name: string, options: CreateSignerOptions) => {
      const { createSigner } = await import('./set-up.ts')
      await createSigner(name, options)
    })
  addContextOption(signer.command('test'))
    .argument('[signer]', "name or id of a signer; without it, the one with the token's issuer")
    .requiredOption('--jwt-file <file>', 'file with the token (mode 0600), or - for standard input')
    .description('show each check of a log-in with a token, and the identity that it logs in')
    .addHelpText(
      'after',
      `
The controller verifies the token as for a log-in, but opens no session. It neither keeps nor logs the token.
Exit code 1: the token does not log in.

Examples:
  flotilla signer test --jwt-file token.jwt
  flotilla signer test staff --jwt-file - -o json < token.jwt`,
    )
    .action(async (name: string | undefined, options: TestTokenOptions) => {
      const { runTokenTest } = await import('./token-test.ts')
      await runTokenTest(name, options)
    })
}

function addProviderOptions(command: Command): Command {
  const names = signerPresets.map(({ name }) => name)
  const provider = new Option('--provider <name>', 'provider').choices(names).makeOptionMandatory()
  command.addOption(provider)
  for (const field of presetFieldNames) {
    const option = field.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
    command.option(`--${option} <value>`, fieldTexts[field])
  }
  return command
}
