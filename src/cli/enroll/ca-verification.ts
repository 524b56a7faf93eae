import { booleanShape, objectShape, optionalShape, textShape } from '../client/response-shape.ts'
import { readTextFile } from '../terminal/text-file.ts'
import { issueLeaf, validityStartingAt } from '../../pki/authority/authority.ts'
import {
  BUNDLE_CERTIFICATES_MAX,
  type Certificate,
  CertificateError,
  checkKeyMatches,
  parseCertificate,
  parseCertificates,
} from '../../pki/certificate.ts'
import { readSecretFile, SecretFileError, writePublicFile } from '../../pki/secret-file.ts'
import { systemClock } from '../../lib/clock.ts'
import type { ApiClient } from '../client/api-client.ts'
import { createSessionFileClient } from '../client/connection.ts'
import { CommandFailure, EXIT_FAILED } from '../../controller/command-failure.ts'
import { printJson, printLine } from '../terminal/output.ts'
import { printableLine } from '../../lib/text/terminal-text.ts'
import { isoTime } from '../../lib/text/format-time.ts'

/**
 * Lifetime of the proof of possession: enough time to carry its certificate from an offline machine
 * to a controller.
 */
const PROOF_LIFETIME_MS = 60 * 60 * 1000
const COMMON_NAME_CHARACTERS_MAX = 64

export interface CaKeyOptions {
  readonly caCert: string
  readonly caKey: string
  readonly json?: boolean
}

export interface CaVerifyOptions extends CaKeyOptions {
  readonly url: string
  readonly ca: string
  readonly sessionFile: string
}

/**
 * Proves to the cluster that this host possesses the key of a registered CA; the key does not leave
 * this host. Safe to repeat.
 */
export async function proveCaPossession(id: string, options: CaVerifyOptions): Promise<void> {
  await explained(async () => {
    const authority = readAuthority(options)
    const path = `/cas/${encodeURIComponent(id)}`
    const { name, isVerified } = await verified(createSessionFileClient(options), path, authority)
    if (options.json === true) printJson({ id, name, isVerified: true })
    else {
      printLine(`${printableLine(name)} ${isVerified ? 'is verified already' : 'is verified'}`)
    }
  })
}

const caShape = objectShape<{
  readonly name: string
  readonly isVerified: boolean
  readonly verificationToken?: string
  readonly certPem: string
}>({
  name: textShape,
  isVerified: booleanShape,
  verificationToken: optionalShape(textShape),
  certPem: textShape,
})

async function verified(
  client: ApiClient,
  path: string,
  authority: Authority,
): Promise<{ readonly name: string; readonly isVerified: boolean }> {
  const { data } = await client.ask({ method: 'GET', path }, caShape)
  const { name, isVerified, verificationToken, certPem } = data
  if (parseCertificate(certPem).sha256 !== authority.certificate.sha256) {
    throw new CertificateError(
      'wrong-identity',
      `the CA ${printableLine(name)} was registered with another certificate than the one of --ca-cert`,
    )
  }
  if (!isVerified) {
    const text = await proofOf(authority, verificationToken ?? '')
    await client.ask({ method: 'POST', path: `${path}/verify`, text })
  }
  return { name, isVerified }
}

/** Writes the proof of possession to a file, for a key on an offline machine. */
export async function signVerification(
  options: CaKeyOptions & { readonly token: string; readonly out: string },
): Promise<void> {
  await explained(async () => {
    const pem = await proofOf(readAuthority(options), options.token)
    writePublicFile(options.out, pem)
    const notAfter = isoTime(parseCertificate(pem).notAfterMs)
    if (options.json === true) printJson({ out: options.out, notAfter })
    else printLine(`${options.out}: submit it to /cas/ID/verify before ${notAfter}`)
  })
}

interface Authority {
  readonly certificate: Certificate
  readonly privateKeyPem: string
}

function readAuthority({ caCert, caKey }: CaKeyOptions): Authority {
  const [certificate] = parseCertificates(readTextFile(caCert), {
    certificatesMax: BUNDLE_CERTIFICATES_MAX,
  })
  if (!certificate.isAuthority) {
    throw new CertificateError('wrong-identity', `${caCert} does not begin with a CA certificate`)
  }
  const { text } = readSecretFile(caKey)
  checkKeyMatches(certificate, text)
  return { certificate, privateKeyPem: text }
}

async function proofOf({ certificate, privateKeyPem }: Authority, token: string): Promise<string> {
  if (token === '' || token.length > COMMON_NAME_CHARACTERS_MAX) {
    throw new CertificateError('unreadable', 'not a verification token of a CA')
  }
  const { certificatePem } = await issueLeaf({
    issuer: { certificatePem: certificate.pem, privateKeyPem },
    commonName: token,
    uris: [],
    hosts: [],
    usages: ['server'],
    validity: validityStartingAt(systemClock.nowMs(), PROOF_LIFETIME_MS),
  })
  return parseCertificates(certificatePem)[0].pem
}

/**
 * Converts a fault of a certificate or key file to a failure with one sentence, because the
 * operator must correct the file.
 */
async function explained(step: () => Promise<void>): Promise<void> {
  try {
    await step()
  } catch (error) {
    const isTheirs = error instanceof CertificateError || error instanceof SecretFileError
    throw isTheirs ? new CommandFailure(EXIT_FAILED, error.message, error) : error
  }
}
