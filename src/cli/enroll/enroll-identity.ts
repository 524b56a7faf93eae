import { accessSync, constants, existsSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'

import { readTextFile } from '../terminal/text-file.ts'
import { systemClock } from '../../lib/clock.ts'
import { type Certificate, checkKeyMatches, parseCertificates } from '../../pki/certificate.ts'
import type { KeyKind } from '../../pki/authority/certificate-request.ts'
import {
  readSecretFile,
  writeNewFile,
  writePublicFile,
  writeSecretFile,
} from '../../pki/secret-file.ts'
import { CheckList } from '../terminal/check-list.ts'
import { CommandFailure, EXIT_FAILED, usageFailure } from '../../controller/command-failure.ts'
import { printJson, printLine } from '../terminal/output.ts'
import { readSecretInput } from '../terminal/secret-input.ts'
import { withOneSentenceErrors } from './one-sentence-errors.ts'
import { EnrollmentFault, EnrollmentRefusedError } from './enrollment-fault.ts'
import {
  type EnrollmentKey,
  loadOrCreateTemporaryKey,
  loadOrCreateKeyFile,
} from './enrollment-key.ts'
import { type ClientCertificateWithKey, EnrollmentServer } from './enrollment-server.ts'
import { checkTokenTime, type EnrollmentToken, readEnrollmentToken } from './enrollment-token.ts'
import { errorMessage } from '../../lib/error-code.ts'
import { type EnrolledIdentity, identityFileText } from './identity-file.ts'
import { fetchControllerAddresses } from './controller-addresses.ts'
import { readTokenFile } from './token-file.ts'
import { isoTime } from '../../lib/text/format-time.ts'

/**
 * Clock difference above which the command warns. A certificate is valid from one minute before it
 * is issued; a host whose clock is further behind rejects the certificate.
 */
const SKEW_MS_MAX = 60_000

export interface EnrollOptions {
  readonly out?: string
  readonly cert?: string
  readonly key?: string
  readonly ca?: string
  readonly clientCert?: string
  readonly clientKey?: string
  readonly name?: string
  readonly passwordFile?: string
  readonly keyAlg: KeyKind
  readonly force?: boolean
  readonly json?: boolean
}

/** Result of an enrollment, for JSON output. */
interface Enrolled {
  readonly method: string
  /**
   * ID of the identity; null if the enrollment created the identity from a certificate of a
   * third-party CA.
   */
  readonly identityId: string | null
  readonly controller: string
  /** Expiry of the certificate, UTC; null if the enrollment involves no certificate. */
  readonly notAfter: string | null
}

/**
 * Enrolls an identity with a token, and writes the files that the options name.
 * @param source file of the token, or `-`.
 * @throws {CommandFailure} one sentence.
 */
export async function enrollIdentity(source: string, options: EnrollOptions): Promise<void> {
  const checks = new CheckList(options.json === true)
  const run = new EnrollmentRun(options, checks)
  await withOneSentenceErrors(() => run.go(source))
}

class EnrollmentRun {
  readonly #options: EnrollOptions
  readonly #checks: CheckList

  constructor(options: EnrollOptions, checks: CheckList) {
    this.#options = options
    this.#checks = checks
  }

  async go(source: string): Promise<void> {
    const { passwordFile } = this.#options
    if (source === '-' && passwordFile === '-') {
      throw usageFailure(
        'token and password cannot both come from standard input; put one into a file',
      )
    }
    const token = readEnrollmentToken(readTokenFile(source))
    judgeOptions(token, this.#options)
    const password = passwordFile === undefined ? '' : readSecretInput(passwordFile, 'the password')
    const client = clientCertificateOf(this.#options)
    this.#judgeTargets()
    // The result of the signature check is printed only after the controller has proved that it
    // signed the token.
    const server = await EnrollmentServer.meet(token)
    this.#checks.ok('token', tokenLine(token))
    this.#checks.ok('controller', `${token.origin} signed it; ${server.caCount} CA certificates`)
    this.#judgeClock(server)
    this.#writeAuthorities(server)
    switch (token.method) {
      case 'ott':
        return await this.#ott(token, server)
      case 'updb':
        checkTokenTime(token, server.dateMs ?? systemClock.nowMs())
        await server.updb(password)
        return this.#report(token, null, 'password set; it can be used to log in')
      default:
        return await this.#byClientKey(token, server, client)
    }
  }

  async #ott(token: EnrollmentToken, server: EnrollmentServer): Promise<void> {
    const { out, cert } = this.#options
    const key = this.#keyOf(token)
    let chain: [Certificate, ...Certificate[]]
    try {
      // A token that was used before it expired is later accepted again with the same key. So the
      // expiry is not checked if an earlier run has stored the key.
      if (!key.isFound) checkTokenTime(token, server.dateMs ?? systemClock.nowMs())
      this.#checks.ok('key', key.isFound ? `reused ${key.path}` : 'created on this host')
      chain = await server.ott(key.privateKeyPem)
    } catch (error) {
      // After a refusal, the new key has no use. If the outcome is unknown, the key stays, because
      // a retry needs it.
      if (error instanceof EnrollmentRefusedError) key.forget()
      throw error
    }
    const certificatePem = pemOf(chain)
    this.#checks.ok('certificate', `until ${isoTime(chain[0].notAfterMs)}`)
    const { privateKeyPem } = key
    await this.#write({ caPem: server.caPem, origin: token.origin, privateKeyPem, certificatePem })
    if (out !== undefined) rmSync(key.path, { force: true })
    this.#report(token, chain[0], `enrolled: ${out ?? cert ?? ''}`)
  }

  async #byClientKey(
    token: EnrollmentToken,
    server: EnrollmentServer,
    client: ClientCertificateWithKey | null,
  ): Promise<void> {
    if (client === null) throw usageFailure(`a token for ${token.method} needs --client-cert`)
    if (token.method === 'ottca') await server.ottca(client)
    else await this.#ca(server, client)
    await this.#write({ caPem: server.caPem, origin: token.origin, ...client })
    const [leaf] = parseCertificates(client.certificatePem)
    this.#report(token, leaf, 'enrolled; log in with the client certificate')
  }

  /**
   * Enrolls with a certificate that a CA has issued. If the cluster responds that it already has
   * the certificate, an earlier interrupted run has succeeded, so this run succeeds as well.
   */
  async #ca(server: EnrollmentServer, client: ClientCertificateWithKey): Promise<void> {
    try {
      await server.ca(client, this.#options.name)
    } catch (error) {
      const isKnown =
        error instanceof EnrollmentRefusedError &&
        (error.code === 'CERT_IN_USE' || error.code === 'ENROLLMENT_IDENTITY_ALREADY_ENROLLED')
      if (!isKnown) throw error
      this.#checks.warn('certificate', 'already enrolled; nothing changed')
    }
  }

  #keyOf(token: EnrollmentToken): EnrollmentKey {
    const { out, key = '', keyAlg } = this.#options
    return out === undefined
      ? loadOrCreateKeyFile(key, keyAlg)
      : loadOrCreateTemporaryKey(out, token.secret, keyAlg)
  }

  /** Checks before the token is used that the files can be written. */
  #judgeTargets(): void {
    const { out, cert, key, ca, force } = this.#options
    for (const path of [out, cert, key, ca]) {
      if (path !== undefined) accessSync(dirname(path), constants.W_OK)
    }
    for (const path of [out, cert]) {
      if (path !== undefined && force !== true && existsSync(path)) throw isThere(path)
    }
  }

  #judgeClock({ dateMs }: EnrollmentServer): void {
    if (dateMs === null) return
    const aheadMs = systemClock.nowMs() - dateMs
    if (Math.abs(aheadMs) <= SKEW_MS_MAX) return
    const seconds = Math.round(Math.abs(aheadMs) / 1000)
    const side = aheadMs > 0 ? 'ahead of' : 'behind'
    this.#checks.warn(
      'clock',
      `this host's clock is ${seconds} s ${side} the controller's; synchronize it by NTP, certificates depend on it`,
    )
  }

  /**
   * Writes the CA certificates, which the controller has proved to belong to its cluster. An
   * earlier run may have written the same certificates.
   */
  #writeAuthorities({ caPem }: EnrollmentServer): void {
    const { ca, force } = this.#options
    if (ca === undefined) return
    if (force === true || !existsSync(ca)) this.#put(ca, caPem, 0o644)
    else if (readTextFile(ca) !== caPem) throw isThere(ca)
  }

  async #write(identity: EnrolledIdentity): Promise<void> {
    const { out, cert } = this.#options
    if (cert !== undefined) this.#put(cert, identity.certificatePem, 0o644)
    if (out === undefined) return
    this.#put(out, identityFileText(identity, await this.#controllersFor(identity)), 0o600)
  }

  /**
   * The addresses of all controllers. If the list is unavailable, the identity file is written
   * without it, because the address in the token is sufficient.
   */
  async #controllersFor(identity: EnrolledIdentity): Promise<readonly string[]> {
    try {
      return await fetchControllerAddresses(identity)
    } catch (error) {
      const reason = errorMessage(error)
      this.#checks.warn('controllers', `only ${identity.origin} is in the file: ${reason}`)
      return [identity.origin]
    }
  }

  #put(path: string, text: string, mode: 0o600 | 0o644): void {
    if (this.#options.force !== true) writeNewFile(path, text, mode)
    else if (mode === 0o600) writeSecretFile(path, text)
    else writePublicFile(path, text)
  }

  #report(token: EnrollmentToken, leaf: Certificate | null, sentence: string): void {
    const { out, cert, key, ca, json } = this.#options
    const enrolled: Enrolled = {
      method: token.method,
      identityId: token.method === 'ca' ? null : token.subject,
      controller: token.origin,
      notAfter: leaf === null ? null : isoTime(leaf.notAfterMs),
    }
    if (json === true) printJson({ ...enrolled, out, cert, key, ca })
    else printLine(sentence)
  }
}

/**
 * Checks that the options fit the enrollment method.
 * @throws {CommandFailure} exit 2, or 1 if the token cannot enroll an identity.
 */
function judgeOptions({ method, subject }: EnrollmentToken, options: EnrollOptions): void {
  const { out, cert, key, clientCert, clientKey, name, passwordFile } = options
  if (!['ott', 'ottca', 'ca', 'updb'].includes(method)) {
    const what = ['erott', 'trott'].includes(method)
      ? `is for the router ${subject}; use flotilla router enroll`
      : `is for the method ${JSON.stringify(method)}, which this command does not support`
    throw new EnrollmentFault(`the token ${what}`)
  }
  const given = (flags: Readonly<Record<string, string | undefined>>): string[] =>
    Object.keys(flags).filter((flag) => flags[flag] !== undefined)
  const byClient = { '--client-cert': clientCert, '--client-key': clientKey }
  const uses: Readonly<Record<string, Readonly<Record<string, string | undefined>>>> = {
    ott: { '--out': out, '--cert': cert, '--key': key },
    ottca: { '--out': out, ...byClient },
    ca: { '--out': out, '--name': name, ...byClient },
    updb: { '--password-file': passwordFile },
  }
  const all = { ...uses['ott'], ...uses['ca'], ...uses['updb'] }
  const useless = given(all).filter((flag) => !Object.hasOwn(uses[method] ?? {}, flag))
  if (useless.length > 0)
    throw usageFailure(`this token is for ${method}, which does not support ${useless[0]}`)
  if (method === 'ott' && (out === undefined) === (cert === undefined && key === undefined)) {
    throw usageFailure('name the files of the identity: --out FILE, or --cert FILE and --key FILE')
  }
  if ((cert === undefined) !== (key === undefined))
    throw usageFailure('--cert and --key go together')
  if (method === 'updb' && passwordFile === undefined) {
    throw usageFailure('this token is for a password; pass --password-file FILE, or -')
  }
  const isByClient = method === 'ottca' || method === 'ca'
  if (isByClient && (clientCert === undefined || clientKey === undefined)) {
    throw usageFailure(
      `this token is for ${method}; pass the certificate issued by the CA with --client-cert FILE and --client-key FILE`,
    )
  }
}

function tokenLine({ method, subject, expiresAtMs }: EnrollmentToken): string {
  const until = expiresAtMs === null ? 'without an end' : `until ${isoTime(expiresAtMs)}`
  return `${method}, for ${method === 'ca' ? 'CA' : 'identity'} ${subject}, ${until}`
}

function clientCertificateOf({
  clientCert,
  clientKey,
}: EnrollOptions): ClientCertificateWithKey | null {
  if (clientCert === undefined || clientKey === undefined) return null
  const chain = parseCertificates(readTextFile(clientCert))
  const { text } = readSecretFile(clientKey)
  checkKeyMatches(chain[0], text)
  return { certificatePem: pemOf(chain), privateKeyPem: text }
}

function pemOf(chain: readonly Certificate[]): string {
  return chain.map(({ pem }) => `${pem.trim()}\n`).join('')
}

function isThere(path: string): CommandFailure {
  return new CommandFailure(
    EXIT_FAILED,
    `${path} already exists; name another file, or overwrite it with --force`,
  )
}
