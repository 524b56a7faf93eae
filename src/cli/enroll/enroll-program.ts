import { Option } from 'commander'
import type { Command } from 'commander'

import type { CaKeyOptions, CaVerifyOptions } from './ca-verification.ts'
import type { EnrollOptions } from './enroll-identity.ts'

/** The `identity` and `ca` verbs. What they do is loaded when needed. */
export function addEnrollment(program: Command): void {
  addIdentity(program.command('identity').description('enroll an identity by its token'))
  addCa(program.command('ca').description("prove that a third-party CA's key is at hand"))
}

function addIdentity(identity: Command): void {
  identity
    .command('enroll')
    .argument('<token>', 'file of the enrollment token (JWT), or - for standard input')
    .option(
      '--out <file>',
      'write key, certificate and CA certificates to this identity file, 0600',
    )
    .option('--cert <file>', 'in place of --out: where the certificate and its chain are written')
    .option('--key <file>', 'with --cert: its key; used if it is there, else made, mode 0600')
    .option('--ca <file>', "write the cluster's CA certificates there as well")
    .addOption(
      new Option('--key-alg <kind>', 'of the key that is made')
        .choices(['ec', 'rsa'])
        .default('ec'),
    )
    .option('--client-cert <file>', 'tokens ottca and ca: certificate of the third-party CA')
    .option('--client-key <file>', 'with --client-cert: its key, mode 0600')
    .option('--name <name>', 'tokens ca: the name asked for')
    .option('--password-file <file>', 'tokens updb: the new password, or - for standard input')
    .option('--force', 'write over files that are there')
    .option('--json', 'print JSON')
    .description('turn an enrollment token into what an identity logs in by')
    .addHelpText(
      'after',
      `
The controller that the token names must show the certificate that signed it; nothing is sent before. The key is made here,
written before the token is used, and stays here: interrupted, the same command goes on with the same key. The identity
file is the one that SDKs of the API family read.

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
    .argument('<id>', 'id of the CA as it is registered')
    .requiredOption('--url <url>', 'any controller, https://host:port: asked with a session')
    .requiredOption('--ca <file>', 'CA certificates that --url is verified against')
    .requiredOption(
      '--session-file <file>',
      "token of an administrator's session, in a file of mode 0600, or - for standard input",
    )
    .description('sign the verification token of a registered CA with its key, and send it')
    .addHelpText(
      'after',
      `
The key of the CA stays here. Safe to repeat.

Example:
  flotilla ca verify ID --ca-cert plant.pem --ca-key plant.key \\
    --url https://ctrl1.example.net:1280 --ca ca.pem --session-file session`,
    )
    .action(async (id: string, options: CaVerifyOptions) => {
      const { verifyCa } = await import('./ca-verification.ts')
      await verifyCa(id, options)
    })
  withCaKey(ca.command('sign-verification'))
    .requiredOption('--token <text>', "the CA's verificationToken; it is no secret")
    .requiredOption('--out <file>', 'where the certificate that proves it is written')
    .description('the same on a machine that reaches no controller: write the proof to a file')
    .addHelpText(
      'after',
      `
Example:
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
    .requiredOption('--ca-key <file>', 'its key, PEM, mode 0600; it is read and not sent')
    .option('--json', 'print JSON')
}
