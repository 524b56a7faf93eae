import { InvalidArgumentError } from 'commander'
import type { Command } from 'commander'

import type { ConnectionOptions } from '../cluster/connection.ts'
import { withConnection } from '../cluster/connection-options.ts'
import { ISSUED_DAYS_MAX } from '../../ports/pki-control.ts'

const CONFIG_HELP = 'configuration of a controller running on this host'

/** The `pki` verbs. What they do is loaded when needed. */
export function addPki(program: Command): void {
  const pki = program
    .command('pki')
    .description('look at certificates, renew them, and issue them for others')
  addInspect(pki)
  addRenew(pki)
  addRenewIssuing(pki)
  addIssue(pki)
}

function addInspect(pki: Command): void {
  pki
    .command('inspect')
    .argument('[files...]', 'PEM files with certificates')
    .option('--config <file>', 'the certificates that this configuration names')
    .option('--ca <file>', 'PEM: judge the trust of the files by these CA certificates')
    .option('--json', 'print JSON')
    .description(
      'who each certificate is for, until when, who issued it, and whether it is trusted',
    )
    .addHelpText(
      'after',
      `
With --config the controller, when it runs, also tells what it has in force and warns of.
Without --ca, the trust of files is judged by the self-signed CA certificates among them, if there are any.
Exit code 1: something has expired, is not valid yet, or is not trusted.

Examples:
  flotilla pki inspect --config /etc/flotilla/config.yml
  flotilla pki inspect --ca ca.pem router.pem`,
    )
    .action(async (files: string[], options: { config?: string; ca?: string; json?: boolean }) => {
      const { inspect } = await import('./inspect.ts')
      await inspect(files, options)
    })
}

function addRenew(pki: Command): void {
  withConnection(pki.command('renew'))
    .option('--member-cert <file>', 'sign this certificate of another member anew, not the own one')
    .option('--out <file>', 'with --member-cert: where the new certificate is written')
    .option('--root-key <file>', 'sign by the root: for a controller that cannot start any more')
    .option('--json', 'print JSON')
    .description(
      "sign the controller's certificate anew now, over the same key; nothing is restarted",
    )
    .addHelpText(
      'after',
      `
Certificates that the cluster has issued renew themselves when a third of their time is left. --member-cert is for a
member that was away until its certificate expired and so cannot get in any more: copy its certificate here, run this, and put
what is written in its place. Its key stays where it is. --root-key is for when no other member runs either: it writes a
certificate for some days, which the controller exchanges by itself as soon as it runs. --url asks in the session of flotilla
login; --member-cert is asked with --config alone.

Examples:
  flotilla pki renew --config /etc/flotilla/config.yml
  flotilla pki renew --url https://ctrl1.example.net:1280
  flotilla pki renew --config /etc/flotilla/config.yml --member-cert ctrl3.pem --out ctrl3-new.pem`,
    )
    .action(
      async (
        options: ConnectionOptions & {
          memberCert?: string
          out?: string
          rootKey?: string
          json?: boolean
        },
      ) => {
        const { renew } = await import('./commands.ts')
        await renew(options)
      },
    )
  withConnection(pki.command('reload'))
    .option('--json', 'print JSON')
    .description('read certificate, key and CA files again now, as SIGHUP does')
    .addHelpText(
      'after',
      `
Changed files are found within some seconds anyway; this says at once whether they are good. A set that does not belong
together is refused, and the one in force stays so.

Example:
  flotilla pki reload --config /etc/flotilla/config.yml`,
    )
    .action(async (options: ConnectionOptions & { json?: boolean }) => {
      const { reload } = await import('./commands.ts')
      await reload(options)
    })
}

function addRenewIssuing(pki: Command): void {
  pki
    .command('renew-issuing')
    .requiredOption('--config <file>', CONFIG_HELP)
    .requiredOption('--root-key <file>', 'private key of the root in identity.ca, PEM, mode 0600')
    .option('--keep-key', 'a new certificate for the key that the issuing authority has now')
    .option('--days <count>', 'how long it lasts', days(10 * 365), 5 * 365)
    .option('--json', 'print JSON')
    .description(
      'give the cluster a new issuing authority; the root key does not leave this program',
    )
    .addHelpText(
      'after',
      `
Every member then signs itself a certificate under the new one within seconds. Certificates issued before stay valid until
they end themselves, at the latest with the former issuing authority. Take the root key away again afterwards.

Example:
  flotilla pki renew-issuing --config /etc/flotilla/config.yml --root-key /mnt/usb/root.key`,
    )
    .action(
      async (options: {
        config: string
        rootKey: string
        keepKey?: boolean
        days: number
        json?: boolean
      }) => {
        const { renewIssuing } = await import('./commands.ts')
        await renewIssuing(options)
      },
    )
}

interface IssueFlags {
  readonly config: string
  readonly name: string
  readonly host: string[]
  readonly usage: string[]
  readonly days: number
  readonly out: string
  readonly key?: string
  readonly json?: boolean
}

function addIssue(pki: Command): void {
  const collect = (value: string, before: string[]): string[] => [...before, value]
  pki
    .command('issue')
    .requiredOption('--config <file>', CONFIG_HELP)
    .requiredOption('--name <text>', 'its common name')
    .requiredOption('--out <file>', 'where the certificate and its chain are written')
    .option(
      '--key <file>',
      'its key: used if it is there, else made, mode 0600 (default: <out>.key)',
    )
    .option('--host <host>', 'a DNS name or IP address it is for; may be repeated', collect, [])
    .option('--usage <usage>', 'server or client; may be repeated (default: client)', collect, [])
    .option('--days <count>', 'how long it lasts', days(ISSUED_DAYS_MAX), 365)
    .option('--json', 'print JSON')
    .description('issue a certificate for somebody outside of the cluster, as a monitor or a proxy')
    .addHelpText(
      'after',
      `
The key is made here and stays here. The certificate carries no SPIFFE id: nobody can be a controller or an identity with it.

Examples:
  flotilla pki issue --config config.yml --name prometheus --out prometheus.pem
  flotilla pki issue --config config.yml --name proxy --host proxy.example.org --usage server --out proxy.pem`,
    )
    .action(async (options: IssueFlags) => {
      const { issue } = await import('./commands.ts')
      await issue(options)
    })
}

function days(max: number): (text: string) => number {
  return (text) => {
    const value = /^[0-9]{1,9}$/.test(text) ? Number(text) : NaN
    if (value >= 1 && value <= max) return value
    throw new InvalidArgumentError(`Expected an integer from 1 to ${max}.`)
  }
}
