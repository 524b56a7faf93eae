import { createHash } from 'node:crypto'
import type { TLSSocket } from 'node:tls'

import { unsupportedNodeReason } from './unsupported-node.ts'

/**
 * Maximum total bytes of the certificates that are read from a peer; a longer chain is treated as
 * absent. OpenSSL itself fails a handshake at 100 KiB. Chains from public and company authorities
 * take 3 to 8 KiB.
 */
export const PEER_CHAIN_BYTES_MAX = 32 * 1024

/**
 * Whether this version of Node frees a chain of several certificates that
 * `getPeerX509Certificate()` returned. Versions with a known leak never free such a chain.
 */
const freesChains = unsupportedNodeReason() === null

/** A certificate linked to its issuer; a self-signed certificate may be linked to itself. */
interface LinkedCertificate {
  readonly raw: Uint8Array
  readonly issuerCertificate?: LinkedCertificate | undefined
}

/**
 * The certificate, in DER, that the peer of a TLS connection presented and whose private key the
 * peer has proved to have. Null when the peer presented none, when the certificate has more than
 * {@link PEER_CHAIN_BYTES_MAX} bytes, or when the connection has ended.
 */
export function peerLeafDer(socket: TLSSocket): Uint8Array | null {
  const { raw } = linked(socket.getPeerCertificate()) ?? {}
  return raw === undefined || raw.length > PEER_CHAIN_BYTES_MAX ? null : Uint8Array.from(raw)
}

/** Lowercase hex SHA-256 of {@link peerLeafDer}; empty when that returns null. */
export function peerLeafSha256(socket: TLSSocket): string {
  const der = peerLeafDer(socket)
  return der === null ? '' : createHash('sha256').update(der).digest('hex')
}

/**
 * The certificates that the peer presented, in DER: the leaf first, the others in the presented
 * order. On Node versions that never free a chain ({@link unsupportedNodeReason}), the result
 * contains only certificates that issued one another.
 * @param certificatesMax maximum number returned.
 * @returns null in the cases in which {@link peerLeafDer} does; the size limit applies to all
 * returned certificates together.
 */
export function peerChainDer(
  socket: TLSSocket,
  certificatesMax: number,
): readonly [Uint8Array, ...Uint8Array[]] | null {
  const leaf = freesChains
    ? socket.getPeerX509Certificate()
    : linked(socket.getPeerCertificate(true))
  if (leaf === undefined) return null
  const chain: [Uint8Array, ...Uint8Array[]] = [Uint8Array.from(leaf.raw)]
  let bytes = leaf.raw.length
  let last: LinkedCertificate = leaf
  while (chain.length < certificatesMax) {
    const next: LinkedCertificate | undefined = last.issuerCertificate
    if (next === undefined || next === last) break
    chain.push(Uint8Array.from(next.raw))
    bytes += next.raw.length
    last = next
  }
  // @guard chain-of-a-stranger
  return bytes > PEER_CHAIN_BYTES_MAX ? null : chain
}

/**
 * Node returns null after the connection has ended, and an empty object if there is no certificate.
 */
function linked(certificate: object | null): LinkedCertificate | undefined {
  return certificate !== null && 'raw' in certificate
    ? (certificate as LinkedCertificate)
    : undefined
}
