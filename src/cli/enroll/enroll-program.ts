import { type Command, Option } from 'commander'

import type { CaKeyOptions, CaVerifyOptions } from './ca-verification.ts'
import type { EnrollOptions } from './enroll-identity.ts'

/** The `identity` and `ca` commands. Their code is loaded when one of them runs. */
export function addEnrollmentCommands(program: Command): void {
  addIdentity(
    program.command('identity').description('enroll, import, disable or enable identities'),
  )
  addCa(program.command('ca').description('verify a third-party CA'))
}

function addIdentity(identity: Command): void {
  identity
    .command('enroll')
    .argument('<token>', 'file with the enrollment token (JWT), or - for standard input')
    .option('--out <file>', 'identity file for key, certificate and CA certificates, mode 0600')
    .option('--cert <file>', 'instead of --out: file for the certificate and its chain')
    .option('--key <file>', 'with --cert: private key; used if it exists, else created, mode 0600')
    .option('--ca <file>', "also write the cluster's CA certificates to this file")
    .addOption(
      new Option('--key-alg <kind>', 'type of the key that is created')
        .choices(['ec', 'rsa'])
        .default('ec'),
    )
    .option('--client-cert <file>', 'tokens ottca and ca: certificate issued by the third-party CA')
    .option('--client-key <file>', 'with --client-cert: private key, mode 0600')
    .option('--name <name>', 'tokens ca: requested name')
    .option(
      '--password-file <file>',
      'tokens updb: file with the new password, or - for standard input',
    )
    .option('--force', 'overwrite existing files')
    .option('--json')
    .description('enroll an identity with an enrollment token')
    .addHelpText(
      'after',
      `
Nothing is sent until the controller named by the token has presented the certificate that signed it. The key is created
on this host, written before the token is used, and never leaves it; after an interruption, rerun the same command.
OpenZiti's SDKs read the identity file.

Examples:
  flotilla identity enroll laptop.jwt --out laptop.json
  flotilla identity enroll - --cert laptop.pem --key laptop.key --ca ca.pem < laptop.jwt
  flotilla identity enroll plant.jwt --client-cert pump.pem --client-key pump.key --out pump.json
  flotilla identity enroll alice.jwt --password-file password`,
    )
    .action(async (token: string, options: EnrollOptions) => {
      const { enrollIdentity } = await import('./enroll-identity.ts')
      await enrollIdentity(token, options)
    })
}

function addCa(ca: Command): void {
  withCaKey(ca.command('verify'))
    .argument('<id>', 'id of the registered CA')
    .requiredOption('--url <url>', 'any controller, https://host:port; needs a session')
    .requiredOption('--ca <file>', 'CA certificates to verify --url with')
    .requiredOption(
      '--session-file <file>',
      "file (mode 0600) with an administrator's session token, or - for standard input",
    )
    .description('sign the verification token of a CA and submit it')
    .addHelpText(
      'after',
      `
The key of the CA never leaves this host. Safe to repeat.

Examples:
  flotilla ca verify ID --ca-cert plant.pem --ca-key plant.key \\
    --url https://ctrl1.example.net:1280 --ca ca.pem --session-file session`,
    )
    .action(async (id: string, options: CaVerifyOptions) => {
      const { proveCaPossession: verifyCa } = await import('./ca-verification.ts')
      await verifyCa(id, options)
    })
  withCaKey(ca.command('sign-verification'))
    .requiredOption('--token <text>', 'verificationToken of the CA; not a secret')
    .requiredOption('--out <file>', 'file for the signed certificate')
    .description('sign the verification token of a CA, offline')
    .addHelpText(
      'after',
      `
Examples:
  flotilla ca sign-verification --token TOKEN --ca-cert plant.pem --ca-key plant.key --out proof.pem`,
    )
    .action(async (options: CaKeyOptions & { token: string; out: string }) => {
      const { signVerification } = await import('./ca-verification.ts')
      await signVerification(options)
    })
}

function withCaKey(command: Command): Command {
  return command
    .requiredOption('--ca-cert <file>', 'certificate of the CA, PEM')
    .requiredOption('--ca-key <file>', 'private key of the CA, PEM, mode 0600; never sent')
    .option('--json')
}
