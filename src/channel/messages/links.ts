import { create, fromBinary, toBinary } from '@bufbuild/protobuf'

import {
  FaultSchema,
  FaultSubject,
  LinkListenersSchema,
  RouterLinksSchema,
  VerifyRouterSchema,
} from '../../../proto/gen/router_pb.ts'
import type { ChannelMessage, Outgoing } from '../frame.ts'
import { flagValue, int32Value, readFlag, readInt32, readText, textValue } from '../headers.ts'
import { keptBytes } from '../header-view.ts'
import { type HelloGroup, readHello } from '../hello.ts'
import { contentType, HELLO_SEQUENCE, headerKey } from '../numbers.ts'
import { controlMessage } from './control.ts'

export const linkSocketTypes = ['link.default', 'link.ack'] as const
/** Payloads go over sockets of the one type, and acknowledgements over those of the other. */
export type LinkSocketType = (typeof linkSocketTypes)[number]

/** Identity of a link of several sockets: a further one shows it, and its secret. */
export interface LinkGroup {
  readonly id: string
  readonly secret: Uint8Array
}

export const LINK_PROTOCOL = 'ziti-link'
/** Type of the first socket of a link. */
export const LINK_TYPE: LinkSocketType = 'link.default'
/** Names a listener or dialer that has no name of its own. */
const BINDING = 'default'

/**
 * Headers of the hello of a link: LinkHeader of xlink_transport. Their numbers mean other things in
 * any other message.
 */
export const linkHeader = {
  routerId: 2,
  routerVersion: 3,
  binding: 4,
  iteration: 5,
  dialedRouterId: 6,
  linkId: 100,
} as const

export interface PeerListener {
  readonly address: string
  readonly groups: readonly string[]
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
      [linkHeader.routerVersion, textValue(dialedVersion)],
      [linkHeader.binding, textValue(BINDING)],
      [linkHeader.iteration, int32Value(iteration)],
      [linkHeader.dialedRouterId, textValue(dialedId)],
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
  const dialedId = readText(headers, linkHeader.dialedRouterId)
  return { linkId, routerId, dialedId, iteration, group, type }
}

/** A link, as a router reports it. */
export interface LinkReport {
  readonly id: string
  readonly peerId: string
  readonly iteration: number
  readonly dialAddress: string
  readonly localAddress: string
  readonly remoteAddress: string
}

/** @param isWhole there are no others. */
export function routerLinksMessage(links: readonly LinkReport[], isWhole: boolean): Outgoing {
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
  return { contentType: controlMessage.routerLinks, body: toBinary(RouterLinksSchema, message) }
}

export function linkFaultMessage(
  { id, iteration }: Pick<LinkReport, 'id' | 'iteration'>,
  isDuplicate: boolean,
): Outgoing {
  const subject = isDuplicate ? FaultSubject.LINK_DUPLICATE : FaultSubject.LINK
  const fault = create(FaultSchema, { subject, id, iteration })
  return { contentType: controlMessage.fault, body: toBinary(FaultSchema, fault) }
}

/**
 * The link that an operator has a controller close; null: the fault is of something else.
 * @throws for bytes that are none.
 */
export function readLinkFault(body: Uint8Array): { id: string; iteration: number } | null {
  const { subject, id, iteration } = fromBinary(FaultSchema, body)
  return subject === FaultSubject.LINK ? { id, iteration } : null
}

/** @param sha1 of the leaf, lower-case hex. */
export function verifyRouterMessage(routerId: string, sha1: string): Outgoing {
  const message = create(VerifyRouterSchema, { routerId, fingerprints: [sha1] })
  return { contentType: controlMessage.verifyRouter, body: toBinary(VerifyRouterSchema, message) }
}
