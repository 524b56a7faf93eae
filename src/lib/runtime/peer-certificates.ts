import { createHash } from 'node:crypto'
import type { TLSSocket } from 'node:tls'

import { unsupportedNode } from './supported-node.ts'

/**
 * Maximum bytes of all certificates that a peer presents; a longer chain counts as none. OpenSSL
 * itself fails a handshake at 100 KiB. Chains of public and company authorities take 3 to 8 KiB.
 */
export const PEER_CHAIN_BYTES_MAX = 32 * 1024

/** `getPeerX509Certificate()` of other versions never frees a chain of several certificates. */
const freesChains = unsupportedNode() === null

/** A certificate and its issuer; one that is self-signed may name itself. */
interface LinkedCertificate {
  readonly raw: Uint8Array
  readonly issuerCertificate?: LinkedCertificate | undefined
}

/**
 * The certificate that the peer of a TLS connection presented and proved to hold the key of, in
 * DER. Null: it presented none, or one of more than {@link PEER_CHAIN_BYTES_MAX} bytes, or the
 * connection has ended.
 */
export function peerLeafDer(socket: TLSSocket): Uint8Array | null {
  const { raw } = linked(socket.getPeerCertificate()) ?? {}
  return raw === undefined || raw.length > PEER_CHAIN_BYTES_MAX ? null : Uint8Array.from(raw)
}

/** Lower-case hex of the SHA-256 of {@link peerLeafDer}; empty where that is null. */
export function peerLeafSha256(socket: TLSSocket): string {
  const der = peerLeafDer(socket)
  return der === null ? '' : createHash('sha256').update(der).digest('hex')
}

/**
 * The certificates that the peer presented in DER, its own first, the others as presented. On a
 * version of Node that never frees them ({@link unsupportedNode}), only those that issued one
 * another.
 *
 * @param certificatesMax further ones are left out.
 * @returns null as {@link peerLeafDer}, the bytes of all that are returned counted together.
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

/** Node returns null once the connection has ended, and an empty object for no certificate. */
function linked(certificate: object | null): LinkedCertificate | undefined {
  return certificate !== null && 'raw' in certificate
    ? (certificate as LinkedCertificate)
    : undefined
}
