import { create, fromBinary, toBinary } from '@bufbuild/protobuf'

import {
  FaultSchema,
  FaultSubject,
  LinkListenersSchema,
  RouterLinksSchema,
  VerifyRouterSchema,
} from '../../../proto/gen/router_pb.ts'
import type { ChannelMessage, OutboundMessage } from '../frame.ts'
import { encodeFlag, encodeInt32, readFlag, readInt32, readText, encodeText } from '../headers.ts'
import { retainableBytes } from '../header-view.ts'
import { type HelloGroup, readHello } from '../hello.ts'
import { channelContentType, HELLO_SEQUENCE, channelHeaderKey } from '../numbers.ts'
import { controlContentType } from './control.ts'

/** Socket types of one link: the first socket, and the socket for acknowledgments. */
export const linkSocketTypes = ['link.default', 'link.ack'] as const
/**
 * Type of a link's socket. Payloads are sent over sockets of one type, acknowledgments over sockets
 * of the other type.
 */
export type LinkSocketType = (typeof linkSocketTypes)[number]

/**
 * Identity of a link with several sockets; each further socket must present its ID and secret.
 */
export interface LinkGroup {
  readonly id: string
  readonly secret: Uint8Array
}

/** Application protocol (ALPN) of links. */
export const LINK_PROTOCOL = 'ziti-link'
/** Type of the first socket of a link. */
export const FIRST_LINK_SOCKET_TYPE: LinkSocketType = 'link.default'
/** Default name of a listener or dialer. */
const BINDING = 'default'

/**
 * Headers in the hello of a link: LinkHeader of OpenZiti's xlink_transport. Other messages use the
 * same numbers for other headers.
 */
export const linkHeaderKey = {
  routerId: 2,
  routerVersion: 3,
  binding: 4,
  iteration: 5,
  dialedRouterId: 6,
  linkId: 100,
} as const

/** A listener for links, as reported to controllers. */
export interface PeerListener {
  readonly address: string
  readonly groups: readonly string[]
}

/** Value of the header that reports this router's link listeners to controllers. */
export function encodeLinkListeners(listeners: readonly PeerListener[]): Uint8Array {
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

export function linkHelloMessage(options: {
  readonly linkId: string
  readonly routerId: string
  readonly dialedId: string
  readonly dialedVersion: string
  readonly iteration: number
  /**
   * Identifies a link with several sockets: 'first' requests a new group; `of` names an existing
   * group that the socket joins. Absent: the link has one socket.
   */
  readonly group?: 'first' | { readonly of: LinkGroup; readonly type: LinkSocketType }
}): ChannelMessage {
  const { linkId, routerId, dialedId, dialedVersion, iteration, group } = options
  return {
    contentType: channelContentType.hello,
    sequence: HELLO_SEQUENCE,
    headers: new Map([
      ...groupHeaders(group),
      [linkHeaderKey.routerId, encodeText(routerId)],
      [linkHeaderKey.routerVersion, encodeText(dialedVersion)],
      [linkHeaderKey.binding, encodeText(BINDING)],
      [linkHeaderKey.iteration, encodeInt32(iteration)],
      [linkHeaderKey.dialedRouterId, encodeText(dialedId)],
      [linkHeaderKey.linkId, encodeText(linkId)],
    ]),
    body: encodeText(linkId),
  }
}

function groupHeaders(
  group: 'first' | { readonly of: LinkGroup; readonly type: LinkSocketType } | undefined,
): [number, Uint8Array][] {
  if (group === undefined) return [[channelHeaderKey.type, encodeText(FIRST_LINK_SOCKET_TYPE)]]
  if (group === 'first') {
    return [
      [channelHeaderKey.type, encodeText(FIRST_LINK_SOCKET_TYPE)],
      [channelHeaderKey.isGrouped, encodeFlag(true)],
      [channelHeaderKey.isFirstGroupConnection, encodeFlag(true)],
    ]
  }
  const { of, type } = group
  return [
    [channelHeaderKey.type, encodeText(type)],
    [channelHeaderKey.isGrouped, encodeFlag(true)],
    [channelHeaderKey.connectionId, encodeText(of.id)],
    [channelHeaderKey.groupSecret, of.secret],
  ]
}

/**
 * The group in the reply to a hello that requested a new group; null: the link has only one socket.
 */
export function readLinkGroup(headers: ChannelMessage['headers']): LinkGroup | null {
  const id = readText(headers, channelHeaderKey.connectionId) ?? ''
  const secret = headers.get(channelHeaderKey.groupSecret)
  if (!readFlag(headers, channelHeaderKey.isGrouped) || id === '' || secret === undefined)
    return null
  if (secret.length === 0 || secret.length > GROUP_BYTES_MAX || id.length > GROUP_BYTES_MAX) {
    return null
  }
  return { id, secret: retainableBytes(secret) }
}

/** Contents of the hello with which a router dials a link. */
export interface LinkHello {
  readonly linkId: string
  readonly routerId: string
  /** Null if the hello does not contain the ID of the dialed router. */
  readonly dialedId: string | null
  readonly iteration: number
  /** Null if the dialer creates a link with one socket. */
  readonly group: HelloGroup | null
  /** Socket type according to the dialer. */
  readonly type: string
}

const ID_CHARACTERS_MAX = 128
/** Maximum stored length of a group's ID or secret, in bytes. */
const GROUP_BYTES_MAX = 128

/** Null if the message is not a valid link hello. */
export function readLinkHello(message: ChannelMessage): LinkHello | null {
  const { headers, body } = message
  const hello = readHello(message)
  if (hello === null) return null
  const { group, type } = hello
  const groupBytes = Math.max(group?.id.length ?? 0, group?.secret?.length ?? 0)
  if (groupBytes > GROUP_BYTES_MAX) return null
  const linkId = readText(headers, linkHeaderKey.linkId) ?? Buffer.from(body).toString('utf8')
  const routerId = readText(headers, linkHeaderKey.routerId)
  if (routerId === null || routerId === '' || linkId === '') return null
  if (linkId.length > ID_CHARACTERS_MAX || routerId.length > ID_CHARACTERS_MAX) return null
  const iteration = readInt32(headers, linkHeaderKey.iteration) ?? 1
  const dialedId = readText(headers, linkHeaderKey.dialedRouterId)
  return { linkId, routerId, dialedId, iteration, group, type }
}

/** A link in a router's report. */
export interface LinkReport {
  readonly id: string
  readonly peerId: string
  readonly iteration: number
  readonly dialAddress: string
  readonly localAddress: string
  readonly remoteAddress: string
}

/** @param isWhole whether the list contains all links of the router. */
export function routerLinksMessage(
  links: readonly LinkReport[],
  isWhole: boolean,
): OutboundMessage {
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
        conns: [
          { type: FIRST_LINK_SOCKET_TYPE, localAddr: localAddress, remoteAddr: remoteAddress },
        ],
      },
    })),
  })
  return { contentType: controlContentType.routerLinks, body: toBinary(RouterLinksSchema, message) }
}

/**
 * @param isDuplicate true if the router closed the link because it has another link to the same
 * router; false if the link was lost.
 */
export function linkFaultMessage(
  { id, iteration }: Pick<LinkReport, 'id' | 'iteration'>,
  isDuplicate: boolean,
): OutboundMessage {
  const subject = isDuplicate ? FaultSubject.LINK_DUPLICATE : FaultSubject.LINK
  const fault = create(FaultSchema, { subject, id, iteration })
  return { contentType: controlContentType.fault, body: toBinary(FaultSchema, fault) }
}

/**
 * The link that a controller asks the router to close; null if the fault message concerns another
 * kind of object.
 * @throws when the bytes cannot be decoded.
 */
export function readLinkFault(body: Uint8Array): { id: string; iteration: number } | null {
  const { subject, id, iteration } = fromBinary(FaultSchema, body)
  return subject === FaultSubject.LINK ? { id, iteration } : null
}

/** @param sha1 SHA-1 of the leaf certificate, lowercase hex. */
export function verifyRouterMessage(routerId: string, sha1: string): OutboundMessage {
  const message = create(VerifyRouterSchema, { routerId, fingerprints: [sha1] })
  return {
    contentType: controlContentType.verifyRouter,
    body: toBinary(VerifyRouterSchema, message),
  }
}
