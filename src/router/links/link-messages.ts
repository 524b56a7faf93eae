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
import {
  flagValue,
  int32Value,
  readFlag,
  readInt32,
  readText,
  textValue,
} from '../../channel/headers.ts'
import { keptBytes } from '../../channel/header-view.ts'
import { type HelloGroup, readHello } from '../../channel/hello.ts'
import { contentType, HELLO_SEQUENCE, headerKey } from '../../channel/numbers.ts'
import { parseAddress } from '../../config/router/values.ts'
import { linkLimits } from './limits.ts'
import type { Link, LinkGroup, LinkSocketType } from './link.ts'

/** Content types between routers and controllers that are about links. */
export const linkMessage = {
  fault: 1004,
  routerLinks: 1035,
  verifyRouter: 1036,
  peerStateChanges: 1050,
} as const

export const LINK_PROTOCOL = 'ziti-link'
/** Type of the first socket of a link. */
export const LINK_TYPE: LinkSocketType = 'link.default'
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
  const { peersMax, peerListenersMax } = linkLimits
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
  /** The group of a link of several sockets: 'first' begins one. Absent: it has one socket. */
  readonly group?: 'first' | { readonly of: LinkGroup; readonly type: LinkSocketType }
}): ChannelMessage {
  const { linkId, routerId, dialedId, dialedVersion, iteration, group } = options
  return {
    contentType: contentType.hello,
    sequence: HELLO_SEQUENCE,
    headers: new Map([
      ...groupHeaders(group),
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

function groupHeaders(
  group: 'first' | { readonly of: LinkGroup; readonly type: LinkSocketType } | undefined,
): [number, Uint8Array][] {
  if (group === undefined) return [[headerKey.type, textValue(LINK_TYPE)]]
  if (group === 'first') {
    return [
      [headerKey.type, textValue(LINK_TYPE)],
      [headerKey.isGrouped, flagValue(true)],
      [headerKey.isFirstGroupConnection, flagValue(true)],
    ]
  }
  const { of, type } = group
  return [
    [headerKey.type, textValue(type)],
    [headerKey.isGrouped, flagValue(true)],
    [headerKey.connectionId, textValue(of.id)],
    [headerKey.groupSecret, of.secret],
  ]
}

/** The group in the answer to a hello that begins one; null: the link stays with one socket. */
export function groupOfAnswer(headers: ChannelMessage['headers']): LinkGroup | null {
  const id = readText(headers, headerKey.connectionId) ?? ''
  const secret = headers.get(headerKey.groupSecret)
  if (!readFlag(headers, headerKey.isGrouped) || id === '' || secret === undefined) return null
  if (secret.length === 0 || secret.length > GROUP_BYTES_MAX || id.length > GROUP_BYTES_MAX) {
    return null
  }
  return { id, secret: keptBytes(secret) }
}

export interface LinkHello {
  readonly linkId: string
  readonly routerId: string
  /** Null: the dialer does not say whom it means. */
  readonly dialedId: string | null
  readonly iteration: number
  /** Null: its dialer means a link of one socket. */
  readonly group: HelloGroup | null
  /** The type that it says of its socket. */
  readonly type: string
}

const ID_CHARACTERS_MAX = 128
/** Longest id or secret of a group that is kept, in bytes. */
const GROUP_BYTES_MAX = 128

/** Null when it is none. */
export function readLinkHello(message: ChannelMessage): LinkHello | null {
  const { headers, body } = message
  const hello = readHello(message)
  if (hello === null) return null
  const { group, type } = hello
  const groupBytes = Math.max(group?.id.length ?? 0, group?.secret?.length ?? 0)
  if (groupBytes > GROUP_BYTES_MAX) return null
  const linkId = readText(headers, linkHeader.linkId) ?? Buffer.from(body).toString('utf8')
  const routerId = readText(headers, linkHeader.routerId)
  if (routerId === null || routerId === '' || linkId === '') return null
  if (linkId.length > ID_CHARACTERS_MAX || routerId.length > ID_CHARACTERS_MAX) return null
  const iteration = readInt32(headers, linkHeader.iteration) ?? 1
  const dialedId = readText(headers, linkHeader.dialedId)
  return { linkId, routerId, dialedId, iteration, group, type }
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
