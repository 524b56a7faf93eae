import { create, fromBinary, toBinary } from '@bufbuild/protobuf'

import {
  FaultSchema,
  LinkListenersSchema,
  PeerStateChangesSchema,
  RouterLinksSchema,
  VerifyRouterSchema,
} from '../../../proto/gen/router_pb.ts'
import type { Outgoing } from '../../channel/channel.ts'
import type { ChannelMessage } from '../../channel/frame.ts'
import { int32Value, readInt32, readText, textValue } from '../../channel/headers.ts'
import { contentType, HELLO_SEQUENCE, headerKey } from '../../channel/numbers.ts'
import { parseAddress } from '../../config/router/values.ts'
import { routerProgramLimits } from '../limits.ts'
import type { Link } from './link-registry.ts'

/** Content types between routers and controllers that are about links. */
export const linkMessage = {
  fault: 1004,
  routerLinks: 1035,
  verifyRouter: 1036,
  peerStateChanges: 1050,
} as const

export const LINK_PROTOCOL = 'ziti-link'
export const LINK_TYPE = 'link.default'
/** Names a listener or dialer that has no name of its own. */
const BINDING = 'default'

/** Headers of the hello of a link; they mean other things than in any other message. */
const linkHeader = { routerId: 2, version: 3, binding: 4, iteration: 5, dialedId: 6, linkId: 100 }

/** Another router, as a controller tells of it. */
export interface PeerChange {
  readonly id: string
  readonly state: 'healthy' | 'unhealthy' | 'removed'
  readonly version: string
  readonly listeners: readonly PeerListener[]
}

export interface PeerListener {
  readonly address: string
  readonly groups: readonly string[]
}

const states = ['healthy', 'unhealthy', 'removed'] as const

/**
 * Addresses that no link can be dialed at are left out.
 * @throws when the bytes are no such message.
 */
export function readPeerChanges(body: Uint8Array): readonly PeerChange[] {
  const { peersMax, peerListenersMax } = routerProgramLimits
  return fromBinary(PeerStateChangesSchema, body)
    .changes.slice(0, peersMax)
    .flatMap(({ id, state, version, listeners }): PeerChange[] => {
      const found = states[state]
      if (found === undefined || id === '') return []
      const usable = listeners
        .filter(({ address }) => parseAddress(address)?.protocol === 'tls')
        .slice(0, peerListenersMax)
        .map(({ address, groups }) => ({ address, groups }))
      return [{ id, state: found, version, listeners: usable }]
    })
}

/** The value of the header that tells controllers where this router listens for links. */
export function listenersValue(listeners: readonly PeerListener[]): Uint8Array {
  const message = create(LinkListenersSchema, {
    listeners: listeners.map(({ address, groups }) => ({
      address,
      protocol: 'tls',
      groups: [...groups],
      localBinding: BINDING,
    })),
  })
  return toBinary(LinkListenersSchema, message)
}

export function linkHello(options: {
  readonly linkId: string
  readonly routerId: string
  readonly dialedId: string
  readonly dialedVersion: string
  readonly iteration: number
}): ChannelMessage {
  const { linkId, routerId, dialedId, dialedVersion, iteration } = options
  return {
    contentType: contentType.hello,
    sequence: HELLO_SEQUENCE,
    headers: new Map([
      [headerKey.type, textValue(LINK_TYPE)],
      [linkHeader.routerId, textValue(routerId)],
      [linkHeader.version, textValue(dialedVersion)],
      [linkHeader.binding, textValue(BINDING)],
      [linkHeader.iteration, int32Value(iteration)],
      [linkHeader.dialedId, textValue(dialedId)],
      [linkHeader.linkId, textValue(linkId)],
    ]),
    body: textValue(linkId),
  }
}

export interface LinkHello {
  readonly linkId: string
  readonly routerId: string
  /** Null: the dialer does not say whom it means. */
  readonly dialedId: string | null
  readonly iteration: number
}

const ID_CHARACTERS_MAX = 128

/** Null when it is none. */
export function readLinkHello({
  contentType: type,
  headers,
  body,
}: ChannelMessage): LinkHello | null {
  if (type !== contentType.hello) return null
  const linkId = readText(headers, linkHeader.linkId) ?? Buffer.from(body).toString('utf8')
  const routerId = readText(headers, linkHeader.routerId)
  if (routerId === null || routerId === '' || linkId === '') return null
  if (linkId.length > ID_CHARACTERS_MAX || routerId.length > ID_CHARACTERS_MAX) return null
  const iteration = readInt32(headers, linkHeader.iteration) ?? 1
  return { linkId, routerId, dialedId: readText(headers, linkHeader.dialedId), iteration }
}

/** @param isWhole there are no others. */
export function routerLinksMessage(links: readonly Link[], isWhole: boolean): Outgoing {
  const message = create(RouterLinksSchema, {
    fullRefresh: isWhole,
    links: links.map(({ id, peerId, iteration, dialAddress, localAddress, remoteAddress }) => ({
      id,
      destRouterId: peerId,
      linkProtocol: 'tls',
      dialAddress,
      iteration,
      connState: {
        stateIteration: 1,
        conns: [{ type: LINK_TYPE, localAddr: localAddress, remoteAddr: remoteAddress }],
      },
    })),
  })
  return { contentType: linkMessage.routerLinks, body: toBinary(RouterLinksSchema, message) }
}

const faultSubject = { link: 2, duplicate: 5 } as const

export function linkFaultMessage({ id, iteration }: Link, isDuplicate: boolean): Outgoing {
  const subject = isDuplicate ? faultSubject.duplicate : faultSubject.link
  const fault = create(FaultSchema, { subject, id, iteration })
  return { contentType: linkMessage.fault, body: toBinary(FaultSchema, fault) }
}

/**
 * The link that an operator has a controller close; null: the fault is of something else.
 * @throws for bytes that are none.
 */
export function readLinkFault(body: Uint8Array): { id: string; iteration: number } | null {
  const { subject, id, iteration } = fromBinary(FaultSchema, body)
  return subject === faultSubject.link ? { id, iteration } : null
}

/** @param sha1 of the leaf, lower-case hex. */
export function verifyRouterMessage(routerId: string, sha1: string): Outgoing {
  const message = create(VerifyRouterSchema, { routerId, fingerprints: [sha1] })
  return { contentType: linkMessage.verifyRouter, body: toBinary(VerifyRouterSchema, message) }
}
