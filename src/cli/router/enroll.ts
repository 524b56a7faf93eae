import { accessSync, constants, existsSync, readFileSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'

import { CommandFailure, EXIT_FAILED, usageFailure } from '../../controller/command-failure.ts'
import { systemClock } from '../../lib/clock.ts'
import { decodeText } from '../../lib/text/decode-text.ts'
import { parseCertificates } from '../../pki/certificate.ts'
import { writePublicFile, writeSecretFile } from '../../pki/secret-file.ts'
import { certificatesPem } from '../../pki/verify/identity-files.ts'
import { normalizeHost, normalizedHosts } from '../../pki/authority/router-names.ts'
import { generateRouterKeyPem } from '../../pki/authority/router-request.ts'
import type { RouterKeyAlgorithm } from '../../pki/authority/router-key-algorithms.ts'
import { configuredEndpoints, configuredProxy } from '../../config/router/router-relations.ts'
import type { RouterConfig } from '../../config/router/table.ts'
import { writeEndpoints } from '../../router/controllers/endpoints-file.ts'
import { findIdentityFiles, type IdentityFiles } from '../../router/identity/identity-files.ts'
import { createCertificateRequests } from '../../router/identity/certificate-requests.ts'
import { parseControllerOrigin } from '../client/api-client.ts'
import { withOneSentenceErrors } from '../enroll/one-sentence-errors.ts'
import { EnrollmentFault, EnrollmentRefusedError } from '../enroll/enrollment-fault.ts'
import { type EnrollmentKey, loadOrCreateTemporaryKey } from '../enroll/enrollment-key.ts'
import { type CertificateChain, EnrollmentServer } from '../enroll/enrollment-server.ts'
import {
  checkTokenTime,
  type EnrollmentToken,
  readEnrollmentToken,
} from '../enroll/enrollment-token.ts'
import { readTokenFile } from '../enroll/token-file.ts'
import { CheckList } from '../terminal/check-list.ts'
import { printableLine } from '../../lib/text/terminal-text.ts'
import { refuseForeignFolders } from '../terminal/folder-owner.ts'
import { printJson, printLine, printNote } from '../terminal/output.ts'
import { loadCheckedRouterConfig } from './check.ts'
import { isoTime } from '../../lib/text/format-time.ts'

export interface EnrollRouterOptions {
  /** File of the token, or `-`. */
  readonly jwt: string
  readonly keyAlg: RouterKeyAlgorithm
  /**
   * Address at which this router reaches the controller that created the token, if it differs from
   * the address in the token.
   */
  readonly controller?: string
  readonly force?: boolean
  readonly json?: boolean
}

/**
 * Enrolls a router with an enrollment token and writes its identity files. It writes the key before
 * it uses the token, so that the user can repeat the command after an interruption. It overwrites
 * identity files only with `force`, or to finish an interrupted run.
 * @throws {CommandFailure} one sentence; exit 2 for an invalid configuration.
 */
export async function enrollRouter(path: string, options: EnrollRouterOptions): Promise<void> {
  const { config } = loadCheckedRouterConfig(path)
  await withOneSentenceErrors(() => new RouterEnrollmentRun(config, options).go())
}

interface Enrolled {
  readonly client: CertificateChain
  readonly server: CertificateChain
  /** Name of the router; null if the controller sent none. */
  readonly name: string | null
  /** Id of the router whose certificate this enrollment replaced; null if there was none. */
  readonly formerId: string | null
}

class RouterEnrollmentRun {
  readonly #config: RouterConfig
  readonly #options: EnrollRouterOptions
  readonly #checks: CheckList

  constructor(config: RouterConfig, options: EnrollRouterOptions) {
    this.#config = config
    this.#options = options
    this.#checks = new CheckList(options.json === true)
  }

  async go(): Promise<void> {
    const { csr } = this.#config
    if (csr === null) {
      throw usageFailure('the configuration has no section csr, which enrollment needs; add it')
    }
    const files = this.#files()
    refuseForeignFolders(Object.values(files).filter((path) => path !== null))
    const token = this.#token()
    if (!['erott', 'trott'].includes(token.method)) {
      throw new EnrollmentFault(
        `the token is for ${JSON.stringify(token.method)}, not for a router; ask an administrator for the token of an edge router`,
      )
    }
    const endpoints = this.#endpoints(token)
    this.#judgeFolders(files)
    const formerId = enrolledRouterId(files.cert)
    const isResumed = existsSync(`${files.key}.enrolling`)
    if (!isResumed) this.#judgeTargets(files, formerId, token)
    const server = await EnrollmentServer.meet(token, configuredProxy(this.#config))
    this.#checks.ok('token', `${token.method}, for router ${token.subject}`)
    this.#checks.ok('controller', `${token.origin} signed it; ${server.caCount} CA certificates`)
    const key = loadOrCreateTemporaryKey(files.key, token.secret, () =>
      generateRouterKeyPem(this.#options.keyAlg),
    )
    const keys = { privateKeyPem: key.privateKeyPem, serverKeyPem: key.privateKeyPem }
    const requests = await createCertificateRequests({ routerId: token.subject, csr, ...keys })
    const issued = await this.#certificates(token, server, key, () => server.router(requests, keys))
    const { client, server: own } = issued
    this.#checks.ok('certificate', `until ${isoTime(client[0].notAfterMs)}`)
    checkSubject(client, token)
    this.#write(files, { key: key.privateKeyPem, client, server: own, caPem: server.caPem })
    this.#writeEndpoints(endpoints, token, server)
    rmSync(key.path, { force: true })
    this.#report(token, { ...issued, formerId })
  }

  /**
   * The token. An option may replace the controller's address in it: at either address, the
   * controller must prove that it signed the token.
   */
  #token(): EnrollmentToken {
    const { jwt, controller } = this.#options
    const origin =
      controller === undefined ? null : parseControllerOrigin(controller, '--controller: ')
    const token = readEnrollmentToken(readTokenFile(jwt))
    return origin === null ? token : { ...token, origin }
  }

  #files(): IdentityFiles {
    const found = findIdentityFiles(this.#config)
    if (!found.ok) throw usageFailure(found.fault)
    return found.files
  }

  async #certificates<T>(
    token: EnrollmentToken,
    server: EnrollmentServer,
    key: EnrollmentKey,
    ask: () => Promise<T>,
  ): Promise<T> {
    this.#checks.ok('key', key.isFound ? `reused ${key.path}` : 'created on this host')
    try {
      // A token that was used before it expired is later accepted again with the same key. So the
      // expiry is not checked if an earlier run has stored the key.
      if (!key.isFound) checkTokenTime(token, server.dateMs ?? systemClock.nowMs())
      return await ask()
    } catch (error) {
      // After a refusal, the new key has no use. If the outcome is unknown, the key stays, because
      // a retry needs it.
      if (error instanceof EnrollmentRefusedError) key.forget()
      throw error
    }
  }

  /** Checks before the token is used that the files can be written. */
  #judgeFolders(files: IdentityFiles): void {
    for (const path of [...pathsOf(files), this.#config.ctrl.endpointsFile]) {
      accessSync(dirname(path), constants.W_OK)
    }
  }

  #judgeTargets(files: IdentityFiles, formerId: string | null, { subject }: EnrollmentToken): void {
    if (this.#options.force === true) return
    const found = pathsOf(files).find((path) => existsSync(path))
    if (found === undefined) return
    if (formerId !== null && formerId !== subject) {
      throw new CommandFailure(
        EXIT_FAILED,
        `${files.cert} is the certificate of router ${printableLine(formerId)}, but the token is for router ${subject}; use the token on the host of that router, or replace router ${printableLine(formerId)} here with --force`,
      )
    }
    throw new CommandFailure(
      EXIT_FAILED,
      `${found} already exists, this router may be enrolled; overwrite its files with --force, or name others in identity`,
    )
  }

  /**
   * Writes the certificate last: until it exists, the enrollment is incomplete and the user can
   * repeat the command.
   */
  #write(
    files: IdentityFiles,
    parts: { key: string; client: CertificateChain; server: CertificateChain; caPem: string },
  ): void {
    writeSecretFile(files.key, parts.key)
    if (files.serverKey !== null) writeSecretFile(files.serverKey, parts.key)
    writePublicFile(files.ca, parts.caPem)
    writePublicFile(files.serverCert, certificatesPem(parts.server))
    writePublicFile(files.cert, certificatesPem(parts.client))
  }

  /**
   * The controllers in the configuration, otherwise those in the token. Called before the token is
   * used, because it fails if there are none.
   */
  #endpoints({ controllers }: EnrollmentToken): readonly string[] {
    const configured = configuredEndpoints(this.#config).map(({ text }) => text)
    const endpoints = configured.length > 0 ? configured : controllers
    if (endpoints.length > 0) return endpoints
    throw usageFailure(
      'neither the configuration nor the token names a controller; add ctrl.endpoint with an address tls:<host>:<port>',
    )
  }

  #writeEndpoints(
    endpoints: readonly string[],
    token: EnrollmentToken,
    { trustDomain }: EnrollmentServer,
  ): void {
    const known = { endpoints, controllers: [], removed: [], apis: [token.origin], trustDomain }
    writeEndpoints(this.#config.ctrl.endpointsFile, known)
  }

  /**
   * Hosts in `csr.sans` that are missing in the server certificate, so that clients cannot connect
   * with these names.
   */
  #leftOut([{ names }]: CertificateChain): string[] {
    const { dns = [], ip = [] } = this.#config.csr?.sans ?? {}
    const named = new Set(normalizedHosts(names))
    return [...dns, ...ip].filter((host) => !named.has(normalizeHost(host)))
  }

  #report(token: EnrollmentToken, { client: [leaf], server, name, formerId }: Enrolled): void {
    const namesLeftOut = this.#leftOut(server)
    if (namesLeftOut.length > 0) {
      printNote(
        `flotilla: warning: the server certificate does not name ${namesLeftOut.join(', ')}, which another router has; have an administrator add it to allowedNames of this router and enroll again, or take it out of csr.sans`,
      )
    }
    const { cert } = this.#files()
    const router = name === null ? token.subject : `${name} (${token.subject})`
    if (formerId !== null && formerId !== token.subject) {
      printNote(
        `flotilla: warning: the files were those of router ${printableLine(formerId)}, and are now those of router ${printableLine(router)}; a running router needs a restart to use them. If the token was the wrong one, enroll both routers again`,
      )
    }
    const enrolled = {
      routerId: token.subject,
      name,
      controller: token.origin,
      notAfter: isoTime(leaf.notAfterMs),
      cert,
      namesLeftOut,
    }
    if (this.#options.json === true) printJson(enrolled)
    else printLine(`enrolled router ${printableLine(router)}: ${cert}`)
  }
}

/** Id of the router whose certificate is at a path; null if no certificate can be read there. */
function enrolledRouterId(path: string): string | null {
  try {
    return parseCertificates(decodeText(readFileSync(path)))[0].commonName
  } catch {
    return null
  }
}

/**
 * Requires that the certificate contains the router's ID, because controllers identify the router
 * by its certificate.
 */
function checkSubject([leaf]: CertificateChain, { subject, origin }: EnrollmentToken): void {
  if (leaf.commonName === subject) return
  throw new EnrollmentFault(
    `${origin}: it issued a certificate for another router than ${subject}; ask an administrator for a new enrollment`,
  )
}

function pathsOf(files: IdentityFiles): string[] {
  const { cert, key, serverCert, serverKey, ca } = files
  return [cert, key, serverCert, ca, ...(serverKey === null ? [] : [serverKey])]
}
