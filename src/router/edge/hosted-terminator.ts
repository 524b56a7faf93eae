import { randomUUID } from 'node:crypto'

import type { ChannelMessage } from '../../channel/frame.ts'
import { readFlag, readText } from '../../channel/headers.ts'
import type { ClientChannel } from './client-channel.ts'
import { terminatorRequestMessage, toModelPrecedence } from '../../channel/messages/terminators.ts'
import { edgeHeaderKey, readUint16 } from '../../channel/messages/edge.ts'
import type { ServiceSession } from './service-session.ts'

/** A service that a client hosts over one of its connections. */
export interface HostedTerminator {
  /** ID of the terminator, which is also its address. */
  readonly id: string
  readonly client: ClientChannel
  readonly connectionId: number
  readonly session: ServiceSession
  /**
   * ID with which a client identifies its listener in repeated bind requests; '' if the client
   * sends none.
   */
  readonly listenerId: string
  readonly instanceId: string
  readonly instanceSecret: Uint8Array
  readonly publicKey: Uint8Array | null
  readonly cost: number
  readonly precedence: number
  /**
   * True if the router assigns the IDs of connections to this terminator; false if the client does.
   */
  readonly takesRouterIds: boolean
  readonly wantsSuccess: boolean
  readonly isInspectable: boolean
  /** True if the client contains the circuit endpoints. */
  readonly isXgressInClient: boolean
  isEstablished: boolean
  /** Number of refusals by controllers without a retry hint since the last success. */
  strikes: number
  /** Monotonic ms at which the creation request must be sent or, while it is pending, repeated. */
  dueMs: number
  /** The controller to which the last request was sent; '' if none was sent. */
  controllerId: string
  isAsked: boolean
  /** Monotonic ms before which no change may be reported. */
  changeDueMs: number
}

export function newHostedTerminator(
  client: ClientChannel,
  { headers }: ChannelMessage,
  connectionId: number,
  session: ServiceSession,
  dueMs: number,
): HostedTerminator {
  const instanceId = readText(headers, edgeHeaderKey.terminatorIdentity) ?? ''
  const secret = headers.get(edgeHeaderKey.terminatorIdentitySecret)
  return {
    id: randomUUID(),
    client,
    connectionId,
    session,
    listenerId: readText(headers, edgeHeaderKey.listenerId) ?? '',
    instanceId,
    instanceSecret: instanceId === '' || secret === undefined ? new Uint8Array() : secret,
    publicKey: headers.get(edgeHeaderKey.publicKey) ?? null,
    cost: readUint16(headers, edgeHeaderKey.cost) ?? 0,
    precedence: headers.get(edgeHeaderKey.precedence)?.[0] ?? 0,
    takesRouterIds: readFlag(headers, edgeHeaderKey.routerProvidedConnId),
    wantsSuccess: readFlag(headers, edgeHeaderKey.supportsBindSuccess),
    isInspectable: readFlag(headers, edgeHeaderKey.supportsInspect),
    isXgressInClient: readFlag(headers, edgeHeaderKey.useXgressToSdk),
    isEstablished: false,
    strikes: 0,
    dueMs,
    controllerId: '',
    isAsked: false,
    changeDueMs: 0,
  }
}

/**
 * Credentials for a change of the terminator: session tokens and certificate fingerprint, which a
 * controller checks.
 */
export function hostCredentials({ client, session }: Pick<HostedTerminator, 'client' | 'session'>) {
  const { sessionToken, apiSessionToken, fingerprint } = client.claimOf(session)
  return { sessionToken, apiSessionToken, fingerprints: [fingerprint] }
}

/** The creation request; repeating it has no further effect. */
export function terminatorCreationRequest(terminator: HostedTerminator) {
  const { publicKey } = terminator
  return terminatorRequestMessage({
    address: terminator.id,
    ...hostCredentials(terminator),
    peerData: publicKey === null ? {} : { [edgeHeaderKey.publicKey]: publicKey },
    cost: terminator.cost,
    precedence: toModelPrecedence(terminator.precedence),
    instanceId: terminator.instanceId,
    instanceSecret: terminator.instanceSecret,
  })
}
