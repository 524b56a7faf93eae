import { readTextFile } from '../terminal/text-file.ts'
import { CommandFailure, EXIT_FAILED, EXIT_USAGE } from '../../controller/command-failure.ts'
import {
  BUNDLE_CERTIFICATES_MAX,
  type Certificate,
  CertificateError,
  parseCertificates,
} from '../../pki/certificate.ts'
import { readCertsOnly } from '../../pki/certs-only.ts'
import { sendHttpsRequest, HttpsFault, isUnknownCa } from '../client/https-request.ts'
import { promptLine, isInteractive } from '../terminal/prompt.ts'
import { printNote, quoteShellWord } from '../terminal/output.ts'
import { MANAGEMENT_API_PATH } from '../../client/cluster-client.ts'
import { errorMessage } from '../../lib/error-code.ts'

const TIMEOUT_MS = 15_000
const CERTIFICATES_PATH = '/.well-known/est/cacerts'

interface TrustOptions {
  readonly ca?: string
  readonly fingerprint?: string
  /**
   * Trusted CA certificates of the context from an earlier log-in; undefined when there was none.
   */
  readonly known?: string | null
}

/**
 * The CA certificates to verify a controller, PEM; null: those of this host. If the options name no
 * CA, an earlier log-in stored none, and this host does not trust the controller's CA, the command
 * prints the fingerprint of that CA. It sends no secret until the user accepts it.
 * @throws {CommandFailure}
 */
export async function loadTrustedCa(
  controller: string,
  options: TrustOptions,
): Promise<string | null> {
  if (options.ca !== undefined) return givenCa(options.ca)
  if (options.fingerprint !== undefined) {
    return await pinnedCa(controller, wantedFingerprint(options.fingerprint))
  }
  if (options.known !== undefined) return options.known
  if (await isTrustedByHost(controller)) return null
  return await confirmedCa(controller)
}

function givenCa(path: string): string {
  try {
    const pem = readTextFile(path)
    parseCertificates(pem, { certificatesMax: BUNDLE_CERTIFICATES_MAX })
    return pem
  } catch (error) {
    const message = `--ca: ${path} cannot be used (${errorMessage(error)})`
    throw new CommandFailure(EXIT_USAGE, message, error)
  }
}

/** Parses a fingerprint in the format of openssl, with or without colons. */
function wantedFingerprint(text: string): string {
  const hex = text
    .replace(/^sha256[:=]/i, '')
    .replaceAll(':', '')
    .toLowerCase()
  if (/^[0-9a-f]{64}$/.test(hex)) return hex
  throw new CommandFailure(
    EXIT_USAGE,
    `--fingerprint: expected the SHA-256 of a CA certificate, 64 hex digits, found ${JSON.stringify(text)}`,
  )
}

async function pinnedCa(controller: string, wanted: string): Promise<string> {
  const found = await shownAuthorities(controller)
  const pinned = found.find(({ sha256 }) => sha256 === wanted)
  if (pinned === undefined) {
    throw new CommandFailure(
      EXIT_FAILED,
      `${controller}: none of its CA certificates has that fingerprint; it presented ${found.map(fingerprintOf).join(', ')}`,
    )
  }
  return await verifiedCa(controller, pinned)
}

async function isTrustedByHost(controller: string): Promise<boolean> {
  try {
    await askVersion(controller)
    return true
  } catch (error) {
    if (error instanceof HttpsFault && isUnknownCa(error)) return false
    throw unreachable(controller, error)
  }
}

/**
 * Command that prints the fingerprint on the host of a controller; `identity.ca` in the
 * configuration names the file.
 */
const FINGERPRINT_COMMAND = 'openssl x509 -noout -fingerprint -sha256 -in ca.pem'

async function confirmedCa(controller: string): Promise<string> {
  const [root, ...others] = await shownAuthorities(controller)
  if (root === undefined) throw noAuthorities(controller)
  const shown = [root, ...others].map(fingerprintOf).join(', ')
  const unknown = `${controller}: its certificate was issued by an unknown CA with SHA-256 fingerprint ${shown}`
  const command = `flotilla login ${quoteShellWord(controller)} --fingerprint ${fingerprintOf(root)}`
  if (!isInteractive()) {
    throw new CommandFailure(
      EXIT_FAILED,
      `${unknown}; compare it on a controller's host (${FINGERPRINT_COMMAND}) and run: ${command}`,
    )
  }
  printNote(unknown)
  printNote(`compare it on a controller's host: ${FINGERPRINT_COMMAND}`)
  const said = await promptLine('Trust it? (yes/no) ')
  if (said !== 'yes') throw new CommandFailure(EXIT_FAILED, 'not trusted; nothing was sent')
  return await verifiedCa(controller, root)
}

/**
 * Verifies that the server has a certificate from the given CA; then trusts also the CA
 * certificates that the server publishes.
 */
async function verifiedCa(controller: string, root: Certificate): Promise<string> {
  try {
    await askVersion(controller, root.pem)
  } catch (error) {
    if (!(error instanceof HttpsFault) || !isUnknownCa(error)) throw unreachable(controller, error)
    throw new CommandFailure(
      EXIT_FAILED,
      `${controller}: its HTTPS certificate was not issued by the CA ${fingerprintOf(root)}; pass the issuing CA with --ca FILE`,
      error,
    )
  }
  const authorities = await shownAuthorities(controller, root.pem)
  return authorities.map(({ pem }) => `${pem.trim()}\n`).join('')
}

/** Root certificates of the network, which a controller publishes to all clients. */
async function shownAuthorities(controller: string, caPem?: string): Promise<Certificate[]> {
  let found: Certificate[] = []
  try {
    const answer = await sendHttpsRequest({
      url: `${controller}/edge/client/v1${CERTIFICATES_PATH}`,
      method: 'GET',
      headers: { accept: 'application/pkcs7-mime' },
      caPem,
      verified: caPem === undefined ? 'nothing' : 'chain and name',
      timeoutMs: TIMEOUT_MS,
    })
    if (answer.status === 200) found = readCertsOnly(Buffer.from(answer.text, 'base64'))
  } catch (error) {
    if (!(error instanceof CertificateError)) throw unreachable(controller, error)
  }
  const roots = found.filter(({ isAuthority, native }) => isAuthority && native.checkIssued(native))
  if (roots.length === 0) throw noAuthorities(controller)
  return roots.sort((a, b) => (a.sha256 < b.sha256 ? -1 : 1))
}

function noAuthorities(controller: string): CommandFailure {
  return new CommandFailure(
    EXIT_FAILED,
    `${controller}: unknown CA, and no CA certificates in its response; pass them with --ca FILE`,
  )
}

function askVersion(controller: string, caPem?: string): ReturnType<typeof sendHttpsRequest> {
  return sendHttpsRequest({
    url: `${controller}${MANAGEMENT_API_PATH}/version`,
    method: 'GET',
    caPem,
    timeoutMs: TIMEOUT_MS,
  })
}

function unreachable(controller: string, error: unknown): unknown {
  if (!(error instanceof HttpsFault)) return error
  return new CommandFailure(EXIT_FAILED, `${controller}: it ${error.message}`, error)
}

/** Fingerprint in the format of `openssl x509 -fingerprint -sha256`. */
function fingerprintOf({ sha256 }: Certificate): string {
  return (sha256.toUpperCase().match(/../g) ?? []).join(':')
}
