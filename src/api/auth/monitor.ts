import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import {
  type Certificate,
  CertificateError,
  checkChain,
  parseCertificate,
} from '../../pki/certificate.ts'
import { isExternal } from '../../pki/spiffe.ts'
import type { Operation } from '../operation.ts'
import type { ApiParts } from '../parts.ts'
import { networkAuthorities } from './trusted-authorities.ts'

type MonitorParts = Pick<ApiParts, 'authorities' | 'clock'>

const CLIENT_AUTHENTICATION = '1.3.6.1.5.5.7.3.2'

/**
 * Whether the peer of a connection has proven, by a certificate of `flotilla pki issue`, that it
 * may read what is shown to monitoring systems. The handshake proves that it holds the key; all
 * else about the certificate is judged here, each time.
 */
export function isMonitor(parts: MonitorParts, socket: Socket): boolean {
  if (!(socket instanceof TLSSocket)) return false
  // An empty object where the client has shown none.
  const shown = socket.getPeerCertificate() as { readonly raw?: Uint8Array } | null
  if (shown?.raw === undefined) return false
  try {
    return isMonitorCertificate(parts, parseCertificate(shown.raw))
  } catch (error) {
    if (error instanceof CertificateError) return false
    throw error
  }
}

/** @throws {CertificateError} when the network has not issued it, or its time is over. */
function isMonitorCertificate(parts: MonitorParts, leaf: Certificate): boolean {
  checkChain([leaf], networkAuthorities(parts), parts.clock.nowMs())
  const isForClients = leaf.native.keyUsage?.includes(CLIENT_AUTHENTICATION) === true
  // Controllers and identities have certificates of the same authority, and are no monitors.
  return isForClients && isExternal(leaf.uris)
}

/** What a listener for monitoring systems alone serves, to whoever reaches it. */
export function openForMonitors(operations: readonly Operation[]): Operation[] {
  return operations
    .filter(({ isForMonitors }) => isForMonitors === true)
    .map(({ elevatedPermission: _, ...operation }) => ({ ...operation, permission: 'public' }))
}
