import { readFileSync, statSync } from 'node:fs'
import { createSecureContext, type SecureContext } from 'node:tls'

import {
  BUNDLE_CERTIFICATES_MAX,
  type Certificate,
  CertificateError,
  checkKeyMatches,
  checkValidityTime,
  parseCertificates,
  PEM_BYTES_MAX,
} from '../../pki/certificate.ts'
import { checkPurpose } from '../../pki/verify/key-purposes.ts'
import { readSecretFile, SecretFileError } from '../../pki/secret-file.ts'
import type { RouterConfig } from '../../config/router/table.ts'
import type { PemSource } from '../../config/router/values.ts'
import { ProgramFailure } from '../../overlay/failure.ts'
import type { ProgramLogger } from '../../overlay/logger.ts'
import type {
  ListenerCertificates,
  ServerIdentity,
} from '../../overlay/sockets/listener-certificates.ts'
import { errorMessage } from '../../lib/error-code.ts'
import { decodeText } from '../../lib/text/decode-text.ts'
import { printableLine } from '../../lib/text/terminal-text.ts'

/** A loaded identity whose certificates and keys match. */
export interface RouterIdentity extends ListenerCertificates {
  /** Common name of the client certificate; controllers identify the router by it. */
  readonly id: string
  readonly leaf: Certificate
  /** Leaf and intermediate certificates, without the root. */
  readonly certificatePem: string
  readonly privateKeyPem: string
  readonly caPem: string
}

type IdentityConfig = RouterConfig['identity']

/** @throws {ProgramFailure} names the option, such as `identity.cert`, and the problem. */
export function readRouterIdentity(identity: IdentityConfig, nowMs: number): RouterIdentity {
  const { cert, key, ca, server_cert: serverCert, server_key: serverKey } = identity
  if (ca === null) {
    throw new ProgramFailure(
      'identity.ca is missing: without CA certificates no controller can be verified; name the file that enrollment wrote',
    )
  }
  const chain = certificatesOf(cert, 'identity.cert')
  const privateKeyPem = keyOf(key, 'identity.key')
  const [leaf] = chain
  judge('identity.key', () => checkKeyMatches(leaf, privateKeyPem))
  judge('identity.cert', () => checkValidityTime(leaf, nowMs))
  judge('identity.cert', () => checkPurpose(leaf, 'clientAuth'))
  if (leaf.commonName === null) {
    throw new ProgramFailure('identity.cert: it has no common name, which is the id of a router')
  }
  const authorities = certificatesOf(ca, 'identity.ca', BUNDLE_CERTIFICATES_MAX)
  const caPem = authorities.map(({ pem }) => pem).join('')
  const place = 'identity'
  return {
    id: leaf.commonName,
    leaf,
    certificatePem: pemWithoutRoots(chain),
    privateKeyPem,
    caPem,
    server:
      serverCert === null ? null : serverIdentity(serverCert, serverKey, privateKeyPem, place),
    alternates: identity.alt_server_certs.map((alternate, at) => {
      const own = `${place}.alt_server_certs[${at}]`
      const server = serverIdentity(alternate.server_cert, alternate.server_key, privateKeyPem, own)
      return { ...server, context: judge(own, () => contextOf(server, caPem)) }
    }),
  }
}

function serverIdentity(
  source: PemSource,
  key: PemSource | null,
  clientKeyPem: string,
  place: string,
): ServerIdentity {
  const chain = certificatesOf(source, `${place}.server_cert`)
  const privateKeyPem = key === null ? clientKeyPem : keyOf(key, `${place}.server_key`)
  const [leaf] = chain
  judge(`${place}.server_cert`, () => checkKeyMatches(leaf, privateKeyPem))
  judge(`${place}.server_cert`, () => checkPurpose(leaf, 'serverAuth'))
  return { leaf, certificatePem: pemWithoutRoots(chain), privateKeyPem }
}

function contextOf(server: ServerIdentity, caPem: string): SecureContext {
  return createSecureContext({
    cert: server.certificatePem,
    key: server.privateKeyPem,
    ca: caPem,
    minVersion: 'TLSv1.2',
  })
}

/** Reads an additional identity of a web server. @throws {ProgramFailure} */
export function readServerIdentity(
  { server_cert: cert, key }: { readonly server_cert: PemSource; readonly key: PemSource },
  place: string,
): ServerIdentity {
  const chain = certificatesOf(cert, `${place}.server_cert`)
  const privateKeyPem = keyOf(key, `${place}.key`)
  judge(`${place}.server_cert`, () => checkKeyMatches(chain[0], privateKeyPem))
  return { leaf: chain[0], certificatePem: pemWithoutRoots(chain), privateKeyPem }
}

function pemWithoutRoots(chain: readonly Certificate[]): string {
  const isRoot = ({ native }: Certificate): boolean => native.checkIssued(native)
  const [leaf, ...others] = chain
  return [leaf, ...others.filter((one) => !isRoot(one))].map((one) => one?.pem ?? '').join('')
}

function certificatesOf(
  source: PemSource,
  place: string,
  certificatesMax?: number,
): [Certificate, ...Certificate[]] {
  return judge(place, () => {
    const text = source.pem ?? readBounded(source.path ?? '')
    return parseCertificates(text, certificatesMax === undefined ? {} : { certificatesMax })
  })
}

function keyOf(source: PemSource, place: string): string {
  return judge(place, () => source.pem ?? readSecretFile(source.path ?? '').text)
}

function readBounded(path: string): string {
  if (statSync(path).size > PEM_BYTES_MAX) {
    throw new CertificateError('unreadable', `${path} is larger than ${PEM_BYTES_MAX} bytes`)
  }
  return decodeText(readFileSync(path))
}

function judge<T>(place: string, step: () => T): T {
  try {
    return step()
  } catch (error) {
    throw new ProgramFailure(`${place}: ${reasonOf(error)}`, { cause: error })
  }
}

function reasonOf(error: unknown): string {
  if (error instanceof SecretFileError) return error.message
  const code = error instanceof Error && 'code' in error ? error.code : null
  const path = error instanceof Error && 'path' in error ? String(error.path) : 'the file'
  if (code === 'ENOENT') {
    return `${path} does not exist; enroll this router first with 'flotilla router enroll CONFIG --jwt FILE'`
  }
  if (code === 'EACCES')
    return `${path}: the user running this program has no permission to read it`
  if (error instanceof CertificateError && error.fault === 'expired') {
    return `${error.message}; enroll the router again, as an expired certificate cannot be extended`
  }
  return errorMessage(error)
}

/**
 * The current identity of the router. After its files change, new connections use the new content,
 * unless it is invalid or belongs to another router.
 */
export class ReloadableIdentity {
  readonly #config: IdentityConfig
  readonly #nowMs: () => number
  readonly #log: ProgramLogger
  #current: RouterIdentity
  #stamp: string

  /** @throws {ProgramFailure} */
  constructor(config: IdentityConfig, nowMs: () => number, log: ProgramLogger) {
    this.#config = config
    this.#nowMs = nowMs
    this.#log = log
    this.#stamp = this.#stampOf()
    this.#current = readRouterIdentity(config, nowMs())
  }

  current(): RouterIdentity {
    const stamp = this.#stampOf()
    if (stamp === this.#stamp) return this.#current
    this.#stamp = stamp
    try {
      const next = readRouterIdentity(this.#config, this.#nowMs())
      if (next.id === this.#current.id) this.#current = next
      else this.#log.warn({}, foreignFilesText(next.id, this.#current.id))
    } catch (error) {
      this.#log.warn(
        { err: error },
        'identity files changed and were rejected; keeping those in use',
      )
    }
    return this.#current
  }

  #stampOf(): string {
    const { cert, key, ca, server_cert: serverCert, server_key: serverKey } = this.#config
    const alternates = this.#config.alt_server_certs.flatMap((one) => [
      one.server_cert,
      one.server_key,
    ])
    return [cert, key, ca, serverCert, serverKey, ...alternates]
      .map((source) => stampOfFile(source?.path ?? null))
      .join(' ')
  }
}

function foreignFilesText(id: string, ownId: string): string {
  return `the identity files are now those of router ${printableLine(id)}; router ${ownId} keeps its former certificates until it is restarted`
}

function stampOfFile(path: string | null): string {
  if (path === null) return '-'
  const status = statSync(path, { bigint: true, throwIfNoEntry: false })
  return status === undefined ? 'none' : `${status.mtimeNs}:${status.size}:${status.ino}`
}
