import type { AdmittedClient } from '../../ports/router-clients.ts'
import type { PeerData } from './circuit-request.ts'

/** The key of the other end's encryption, among what ends tell each other. */
export const PUBLIC_KEY = 1003
/** The terminator that a client keeps to. */
export const STICKY = 1114
/** The identity that dials, as the host is told of it. */
const dialer = { id: 1115, name: 1116 } as const

/**
 * Headers of the host that the dialer is told. Where the host is, and where its target, is not
 * among them.
 */
const sentToDialer: ReadonlySet<number> = new Set([PUBLIC_KEY, STICKY])

/** The part of what a host, or its router, says that goes to the router of the client. */
export function dialerData(
  said: readonly (readonly [number, Uint8Array])[],
): Map<number, Uint8Array> {
  // @guard peer-data-of-others--host
  return new Map(said.filter(([key]) => sentToDialer.has(key)))
}

/** Data of a client's router, as the host hears it: who dials, the controller says. */
export function hostData(
  said: PeerData,
  { identityId, identityName }: Pick<AdmittedClient, 'identityId' | 'identityName'>,
): PeerData {
  return new Map([
    ...said,
    [dialer.id, Buffer.from(identityId)],
    [dialer.name, Buffer.from(identityName)],
  ])
}
