/**
 * Configuration of an OpenZiti controller. Source: ziti 804f55abb,
 * controller/config/config.go:230-760, config_edge.go:597.
 */
import { readFileSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'

import type { Environment } from '../../config/engine/environment.ts'
import { CONFIG_BYTES_MAX } from '../../config/engine/load.ts'
import { decodeText } from '../../lib/text/decode-text.ts'
import { systemErrorText } from './system-error.ts'
import { configurationFault, OpenZitiSettings } from './settings.ts'

/** A PEM string and its source. */
export interface PemText {
  /** Path of the file; null if the PEM is in the configuration itself. */
  readonly path: string | null
  readonly text: string
}

/** An HTTPS listener in the section `web`. */
export interface WebListener {
  /** host:port that the listener binds. */
  readonly bind: string
  /** host:port to which clients connect. */
  readonly advertise: string
  readonly apis: readonly string[]
}

/** Certificates and keys of a section `identity`. */
export interface PemIdentity {
  /** Client certificate: leaf first, then the intermediates. */
  readonly clientCertificate: PemText
  readonly serverCertificate: PemText
  /** Private key of the server certificate. */
  readonly key: PemText
  /** Option of the section that names the private key `key`. */
  readonly keyName: 'key' | 'server_key'
  /** Key of the client certificate; null if the section names only `server_key`. */
  readonly clientKey: PemText | null
  readonly ca: PemText
  readonly alternatives: readonly { readonly certificate: PemText; readonly key: PemText }[]
}

/**
 * The identity of an HTTPS listener that is configured with a separate identity, in addition to the
 * controller's identity.
 */
export interface WebIdentity extends PemIdentity {
  /** Whether clients connect to the listener; if so, the identity's key signs enrollment tokens. */
  readonly isForClients: boolean
}

export interface OpenZitiConfiguration {
  /** Absolute path of the configuration. */
  readonly path: string
  /**
   * The identity that the controller presents on the control channel, and on HTTPS listeners
   * without a separate identity.
   */
  readonly identity: PemIdentity
  readonly webIdentities: readonly WebIdentity[]
  readonly signer: {
    readonly certificate: PemText
    readonly key: PemText
    readonly ca: PemText | null
  }
  /** Path of the controller's database; null if the configuration contains none. */
  readonly databasePath: string | null
  readonly isClustered: boolean
  /**
   * host:port on which the controller listens for routers, and host:port to which routers connect.
   */
  readonly routers: { readonly bind: string; readonly advertise: string } | null
  readonly web: readonly WebListener[]
  readonly trustDomain: string | null
  readonly sessionTimeout: string | null
  readonly identityEnrollment: string | null
  readonly routerEnrollment: string | null
  /** Keys of the file that have no counterpart in Flotilla. */
  readonly unused: readonly string[]
}

const PEM_BYTES_MAX = 1024 * 1024

/**
 * Reads a configuration, and the certificates and keys to which it refers.
 * @throws {MigrationFault} CONFIGURATION, one sentence.
 */
export function readOpenZitiConfiguration(
  path: string,
  environment: Environment,
): OpenZitiConfiguration {
  const file = resolve(path)
  const settings = OpenZitiSettings.parse(readText(file, CONFIG_BYTES_MAX), file, environment)
  requireVersion(settings, file)
  const folder = dirname(file)
  const edge = settings.section('edge')
  const enrollment = edge.section('enrollment')
  const signing = enrollment.section('signingCert')
  const read = {
    path: file,
    identity: identityOf(settings.section('identity'), folder),
    webIdentities: settings.sections('web').flatMap((one) => webIdentityOf(one, folder)),
    signer: {
      certificate: requiredPem(signing, 'cert', folder),
      key: requiredPem(signing, 'key', folder),
      ca: optionalPem(signing, 'ca', folder),
    },
    ...databaseOf(settings, folder),
    routers: routersOf(settings),
    web: settings.sections('web').flatMap(listenersOf),
    trustDomain: settings.text('trustDomain')?.replace(/^spiffe:\/\//, '') ?? null,
    sessionTimeout: edge.section('api').text('sessionTimeout'),
    identityEnrollment: enrollment.section('edgeIdentity').text('duration'),
    routerEnrollment: enrollment.section('edgeRouter').text('duration'),
  }
  edge.section('api').text('address')
  return { ...read, unused: settings.unused() }
}

function identityOf(section: OpenZitiSettings, folder: string): PemIdentity {
  const clientCertificate = requiredPem(section, 'cert', folder)
  const serverKey = optionalPem(section, 'server_key', folder)
  // The section may omit `key` if it has a separate key for the server certificate.
  const ownKey = optionalPem(section, 'key', folder)
  const key = serverKey ?? ownKey ?? requiredPem(section, 'key', folder)
  return {
    clientCertificate,
    serverCertificate: optionalPem(section, 'server_cert', folder) ?? clientCertificate,
    key,
    keyName: serverKey === null ? 'key' : 'server_key',
    clientKey: ownKey,
    ca: requiredPem(section, 'ca', folder),
    alternatives: section.sections('alt_server_certs').map((one) => ({
      certificate: requiredPem(one, 'server_cert', folder),
      key: optionalPem(one, 'server_key', folder) ?? ownKey ?? key,
    })),
  }
}

function webIdentityOf(listener: OpenZitiSettings, folder: string): WebIdentity[] {
  const section = listener.section('identity')
  if (!section.has('cert')) return []
  const isForClients = apisOf(listener).includes('edge-client')
  return [{ ...identityOf(section, folder), isForClients }]
}

function apisOf(listener: OpenZitiSettings): string[] {
  return listener.sections('apis').map((one) => one.text('binding') ?? '')
}

function requireVersion(settings: OpenZitiSettings, file: string): void {
  const version = settings.text('v')
  const control = settings.section('ctrl')
  if (version === '3' && (control.has('endpoint') || control.has('endpoints'))) {
    throw configurationFault(`${file} is the configuration of a router; name that of a controller`)
  }
  if (version === '3' && settings.has('identity')) return
  throw configurationFault(
    `${file} is not the configuration of an OpenZiti controller (v: 3 with a section identity)`,
  )
}

function databaseOf(settings: OpenZitiSettings, folder: string) {
  const single = settings.text('db')
  if (single !== null) return { databasePath: resolve(folder, single), isClustered: false }
  // `raft` is the older name of the section `cluster`.
  const clustered = settings.has('cluster') ? 'cluster' : 'raft'
  const data = settings.section(clustered).text('dataDir')
  return {
    databasePath: data === null ? null : join(resolve(folder, data), 'ctrl-ha.db'),
    isClustered: data !== null,
  }
}

function routersOf(settings: OpenZitiSettings): OpenZitiConfiguration['routers'] {
  const control = settings.section('ctrl')
  const listener = control.text('listener')
  if (listener === null) return null
  const options = control.section('options')
  // Marks `newListener` as read, so that it is not reported as unused: it announces the new address
  // of the router listener and needs no migration.
  options.text('newListener')
  const bind = withoutScheme(listener)
  return { bind, advertise: withoutScheme(options.text('advertiseAddress') ?? listener) }
}

/** `tls:127.0.0.1:6262` → `127.0.0.1:6262`. */
function withoutScheme(address: string): string {
  return address.replace(/^[a-z]+:(?:\/\/)?/, '')
}

function listenersOf(section: OpenZitiSettings): WebListener[] {
  section.text('name')
  const apis = apisOf(section)
  return section.sections('bindPoints').map((point) => {
    const bind = point.requiredText('interface')
    point.text('newAddress')
    return { bind, advertise: point.text('address') ?? bind, apis }
  })
}

function requiredPem(section: OpenZitiSettings, name: string, folder: string): PemText {
  return readPem(section, name, section.requiredText(name), folder)
}

function optionalPem(section: OpenZitiSettings, name: string, folder: string): PemText | null {
  const value = section.text(name)
  return value === null ? null : readPem(section, name, value, folder)
}

/** Reads a PEM value, which is given in the value itself (`pem:`) or in a file. */
function readPem(section: OpenZitiSettings, name: string, value: string, folder: string): PemText {
  if (value.startsWith('pem:')) return { path: null, text: value.slice('pem:'.length) }
  if (/^[a-z0-9+]+:/i.test(value) && !/^(file:|[a-z]:[\\/])/i.test(value)) {
    const reason = 'keys and certificates are read from files only, not from tokens or engines'
    throw section.fault(name, reason)
  }
  const path = resolve(folder, value.replace(/^file:\/\//, ''))
  try {
    return { path, text: readText(path, PEM_BYTES_MAX) }
  } catch (error) {
    throw section.fault(name, error instanceof Error ? error.message : String(error))
  }
}

function readText(path: string, bytesMax: number): string {
  try {
    const status = statSync(path)
    if (!status.isFile()) throw configurationFault(`${path} is no regular file`)
    if (status.size > bytesMax) {
      throw configurationFault(`${path} is larger than ${bytesMax} bytes`)
    }
    return decodeText(readFileSync(path))
  } catch (error) {
    throw configurationFault(`${path}: ${systemErrorText(error)}`)
  }
}
