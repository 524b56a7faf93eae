import { Gauge, type Registry } from 'prom-client'
import type { KindName } from '../../entities/kind-records.ts'
import { CertificateError, parseCertificates } from '../../pki/certificate.ts'
import type { VersionInfo } from '../api-deps.ts'

export interface NetworkMetricsSources {
  readonly version: VersionInfo
  /** Returns the number of records of a kind. */
  readonly count: (entity: KindName) => number
  /**
   * PEM certificates of the network, by the value of the metric's label; '' if this controller has
   * none yet.
   */
  readonly certificates: () => Readonly<Record<'controller' | 'issuing' | 'root', string>>
  /**
   * Expiry of each server certificate from another authority, UTC ms, with the certificate's first
   * name.
   */
  readonly serverEnds: () => readonly { readonly name: string; readonly notAfterMs: number }[]
}

/** Kinds whose record counts show the size and the use of a network. */
const KINDS = [
  'apiSession',
  'authPolicy',
  'authenticator',
  'ca',
  'config',
  'configType',
  'edgeRouter',
  'edgeRouterPolicy',
  'enrollment',
  'externalJwtSigner',
  'identity',
  'postureCheck',
  'revocation',
  'service',
  'serviceEdgeRouterPolicy',
  'servicePolicy',
  'session',
  'terminator',
] as const

/**
 * Adds metrics of the network's records, versions and certificate lifetimes, read at each scrape.
 */
export function addNetworkMetrics(
  registry: Registry,
  { version, count, certificates, serverEnds }: NetworkMetricsSources,
): void {
  const registers = [registry]
  new Gauge({
    name: 'flotilla_build_info',
    help: 'Always 1; the labels hold version and build.',
    labelNames: ['version', 'revision', 'runtime'],
    registers,
    collect() {
      const { version: release, revision, runtimeVersion } = version
      this.set({ version: release, revision, runtime: runtimeVersion }, 1)
    },
  })
  new Gauge({
    name: 'flotilla_entities',
    help: 'Records by kind; apiSession and session count open sessions.',
    labelNames: ['kind'],
    registers,
    collect() {
      for (const kind of KINDS) this.set({ kind }, count(kind))
    },
  })
  const ends = new Map<string, number | null>()
  new Gauge({
    name: 'flotilla_certificate_not_after_timestamp_seconds',
    help: 'Expiry of a certificate that this controller uses (its own, an authority or a server certificate), Unix time.',
    labelNames: ['certificate'],
    registers,
    collect() {
      this.reset()
      for (const [certificate, pem] of Object.entries(certificates())) {
        const notAfterMs = ends.get(pem) ?? notAfterOf(pem)
        // Caches the expiry, because a process uses only a few different certificates.
        ends.set(pem, notAfterMs)
        if (notAfterMs !== null) this.set({ certificate }, Math.floor(notAfterMs / 1000))
      }
      for (const { name, notAfterMs } of serverEnds()) {
        this.set({ certificate: `server ${name}` }, Math.floor(notAfterMs / 1000))
      }
    },
  })
}

/** Earliest expiry of the certificates in a PEM text; null if it has none or is unreadable. */
function notAfterOf(pem: string): number | null {
  if (pem === '') return null
  try {
    return Math.min(...parseCertificates(pem).map(({ notAfterMs }) => notAfterMs))
  } catch (error) {
    if (error instanceof CertificateError) return null
    throw error
  }
}
