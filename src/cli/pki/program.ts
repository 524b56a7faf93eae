import { type Command } from 'commander'

import type { ConnectionOptions } from '../client/connection.ts'
import { addConnectionOptions } from '../client/connection-options.ts'
import { ISSUED_CERTIFICATE_DAYS_MAX } from '../../api/cluster/pki-control.ts'
import { createIntegerOptionParser } from '../terminal/integer-option.ts'

const CONFIG_HELP = 'configuration of a running controller on this host'

/** The `pki` commands. Their code is loaded when one of them runs. */
export function addPkiCommands(program: Command): void {
  const pki = program
    .command('pki')
    .description('request, verify, inspect, renew and issue certificates')
  addInspect(pki)
  addRequest(pki)
  addVerify(pki)
  addRenew(pki)
  addRenewIssuing(pki)
  addIssue(pki)
}

function addInspect(pki: Command): void {
  pki
    .command('inspect')
    .argument('[files...]', 'PEM files with certificates')
    .option('--config <file>', 'inspect the certificates of this configuration')
    .option('--ca <file>', 'CA certificates (PEM) to verify the files with')
    .option('--json')
    .description('show subject, expiry, issuer and trust of certificates')
    .addHelpText(
      'after',
      `
With --config, a running controller also reports the certificates in use and its warnings. Without --ca, files are
verified with the self-signed CA certificates among them. Exit code 1: a certificate is expired, not valid yet or not
trusted.

Examples:
  flotilla pki inspect --config /etc/flotilla/config.yml
  flotilla pki inspect --ca ca.pem router.pem`,
    )
    .action(async (files: string[], options: { config?: string; ca?: string; json?: boolean }) => {
      const { printCertificates } = await import('./inspect.ts')
      await printCertificates(files, options)
    })
}

function addRequest(pki: Command): void {
  const collect = (value: string, before: string[]): string[] => [...before, value]
  pki
    .command('csr')
    .requiredOption('--config <file>', 'configuration of the controller; it need not run')
    .requiredOption('--out <file>', 'file for the certificate request (PKCS #10, PEM)')
    .option(
      '--host <host>',
      'DNS name or IP address in addition to those advertised; may be repeated',
      collect,
      [],
    )
    .option('--rsa', 'make an RSA key of 3072 bits instead of EC P-256')
    .option('--json')
    .description('request a certificate for the controller from an authority of your own')
    .addHelpText(
      'after',
      `
Makes identity.key (mode 0600) unless it exists, and a request over it with the names that the certificate needs: the
SPIFFE id of the controller, every advertised host, server and client usage. Let the authority copy the extensions of the
request. For a renewal, run it again: the key stays, as the other members know the controller by it.

Examples:
  flotilla pki csr --config /etc/flotilla/config.yml --out ctrl1.csr`,
    )
    .action(
      async (options: {
        config: string
        out: string
        host: string[]
        rsa?: boolean
        json?: boolean
      }) => {
        const { requestControllerCertificate: request } = await import('./request.ts')
        await request(options)
      },
    )
}

function addVerify(pki: Command): void {
  pki
    .command('verify')
    .requiredOption('--config <file>', 'configuration of the controller; it need not run')
    .option('--json')
    .description('check all certificates and keys of a configuration before a start')
    .addHelpText(
      'after',
      `
Checks identity.cert, identity.key and identity.ca, identity.signer where its key is on this host, and
serverCertificates: key, times, SPIFFE id, usages, hosts, the chain up to a root, and a TLS handshake with itself. Prints
what was found and when it expires. Exit code 1: something is wrong; each fault is one sentence with its remedy.

Examples:
  flotilla pki verify --config /etc/flotilla/config.yml`,
    )
    .action(async (options: { config: string; json?: boolean }) => {
      const { verifyCredentials } = await import('./verify.ts')
      await verifyCredentials(options)
    })
}

function addRenew(pki: Command): void {
  addConnectionOptions(pki.command('renew'))
    .option('--member-cert <file>', 'renew this certificate of another member instead of its own')
    .option('--out <file>', 'with --member-cert: file for the new certificate')
    .option(
      '--root-key <file>',
      'sign with the root key: for a controller that can no longer start',
    )
    .option('--json')
    .description('renew the controller certificate now, keeping its key')
    .addHelpText(
      'after',
      `
Nothing is restarted. Certificates issued by the cluster renew themselves when a third of their lifetime is left.
--member-cert is for a member whose certificate expired while it was offline: copy its certificate here, run this, and
install the result there; its key is not needed. --root-key is for when no member runs: it writes a short-lived
certificate, which the controller replaces once it runs. --url uses the session of flotilla login; --member-cert needs
--config.

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
        const { renewCertificate } = await import('./commands.ts')
        await renewCertificate(options)
      },
    )
  addConnectionOptions(pki.command('reload'))
    .option('--json')
    .description('reload certificate, key and CA files now, without the configuration')
    .addHelpText(
      'after',
      `
Changed files are detected within seconds; this reports at once whether they are valid. Files that do not match each
other are rejected, and the current ones stay in use.

Examples:
  flotilla pki reload --config /etc/flotilla/config.yml`,
    )
    .action(async (options: ConnectionOptions & { json?: boolean }) => {
      const { reloadCertificates } = await import('./commands.ts')
      await reloadCertificates(options)
    })
}

function addRenewIssuing(pki: Command): void {
  pki
    .command('renew-issuing')
    .requiredOption('--config <file>', CONFIG_HELP)
    .option('--root-key <file>', 'private key of the root in identity.ca, PEM, mode 0600')
    .option('--cert <file>', 'certificate that an authority of your own has issued, with its chain')
    .option('--key <file>', 'with --cert: its private key; omitted: the current key is kept')
    .option('--keep-key', 'with --root-key: new certificate for the current key')
    .option('--days <count>', 'lifetime in days', createIntegerOptionParser(1, 10 * 365), 5 * 365)
    .option('--json')
    .description('rotate the issuing authority of the cluster')
    .addHelpText(
      'after',
      `
The root key does not leave this program; move it offline again afterwards. Where the root is your own (identity.signer),
sign the new authority with your tools, under the same name, and pass it by --cert and --key. Every member renews its
certificate under the new authority within seconds. Certificates issued before stay valid until they expire, at the
latest with the former issuing authority.

Examples:
  flotilla pki renew-issuing --config /etc/flotilla/config.yml --root-key /mnt/usb/root.key
  flotilla pki renew-issuing --config /etc/flotilla/config.yml --cert signer-2.pem --key signer-2.key`,
    )
    .action(
      async (options: {
        config: string
        rootKey?: string
        cert?: string
        key?: string
        keepKey?: boolean
        days: number
        json?: boolean
      }) => {
        const { replaceIssuingAuthority } = await import('./commands.ts')
        await replaceIssuingAuthority(options)
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
    .requiredOption('--name <text>', 'common name')
    .requiredOption('--out <file>', 'file for the certificate and its chain')
    .option(
      '--key <file>',
      'private key: used if it exists, else created, mode 0600 (default: <out>.key)',
    )
    .option(
      '--host <host>',
      'DNS name or IP address of the certificate; may be repeated',
      collect,
      [],
    )
    .option('--usage <usage>', 'server or client; may be repeated (default: client)', collect, [])
    .option(
      '--days <count>',
      'lifetime in days',
      createIntegerOptionParser(1, ISSUED_CERTIFICATE_DAYS_MAX),
      365,
    )
    .option('--json')
    .description('issue a certificate for an external client or server')
    .addHelpText(
      'after',
      `
For monitoring, a proxy and the like. The key is created on this host and never leaves it. The certificate carries no
SPIFFE id, so it is accepted for no controller, router or identity.

Examples:
  flotilla pki issue --config config.yml --name prometheus --out prometheus.pem
  flotilla pki issue --config config.yml --name proxy --host proxy.example.org --usage server --out proxy.pem`,
    )
    .action(async (options: IssueFlags) => {
      const { issueExternalCertificate } = await import('./commands.ts')
      await issueExternalCertificate(options)
    })
}
