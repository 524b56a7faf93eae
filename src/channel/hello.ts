import { randomUUID, timingSafeEqual } from 'node:crypto'

import type { ChannelMessage } from './frame.ts'
import { retainableBytes } from './header-view.ts'
import { encodeFlag, encodeInt32, readFlag, readText, encodeText } from './headers.ts'
import { channelContentType, HELLO_SEQUENCE, channelHeaderKey } from './numbers.ts'

/** First message of a dialer. */
export interface Hello {
  /** ID that the dialer claims; the listener must check it against the dialer's certificate. */
  readonly token: string
  /** Null if the version line is missing or malformed. */
  readonly version: VersionLine | null
  /** For example `ctrl.default`; '' if the dialer names no type. */
  readonly type: string
  /** Null if the dialer supports only one socket for each channel. */
  readonly group: HelloGroup | null
  readonly headers: ChannelMessage['headers']
}

/**
 * The sockets of one channel. A channel may have several sockets; the first one creates the group.
 */
export interface HelloGroup {
  /** False when the socket joins an existing channel. */
  readonly isFirst: boolean
  /**
   * ID of the group that the socket joins. For a first socket: ID that the group had before the
   * dialer lost all its sockets; '' for a new group.
   */
  readonly id: string
  readonly secret: Uint8Array | null
}

/** ID and secret of a group; an additional socket must present both to join. */
export interface JoinableGroup {
  readonly id: string
  readonly secret: Uint8Array
}

/** `version|revision|buildDate|os|arch`. */
export interface VersionLine {
  readonly version: string
  readonly revision: string
  readonly buildDate: string
  readonly os: string
  readonly arch: string
}

const VERSION_FIELDS = 5
const VERSION_FIELD_CHARACTERS_MAX = 128

/** Null if the message is not a hello. */
export function readHello(message: ChannelMessage): Hello | null {
  const { contentType: type, body } = message
  if (type !== channelContentType.hello) return null
  // The values are copied if they are views of received data, because the hello is stored for the
  // lifetime of the channel.
  const headers = new Map([...message.headers].map(([key, value]) => [key, retainableBytes(value)]))
  return {
    token: Buffer.from(body).toString('utf8'),
    version: readVersionLine(readText(headers, channelHeaderKey.helloVersion)),
    type: readText(headers, channelHeaderKey.type) ?? '',
    // These keys have other meanings in a message without the `isGrouped` flag.
    group: readFlag(headers, channelHeaderKey.isGrouped) ? groupIn(headers) : null,
    headers,
  }
}

function groupIn(headers: ChannelMessage['headers']): HelloGroup {
  return {
    isFirst: readFlag(headers, channelHeaderKey.isFirstGroupConnection),
    id: readText(headers, channelHeaderKey.connectionId) ?? '',
    secret: headers.get(channelHeaderKey.groupSecret) ?? null,
  }
}

/** The group in a reply to a hello; null if the reply contains no group. */
export function readAcceptedGroup(answer: ChannelMessage): JoinableGroup | null {
  const { headers } = answer
  if (!readFlag(headers, channelHeaderKey.isGrouped)) return null
  const secret = headers.get(channelHeaderKey.groupSecret)
  if (secret === undefined) return null
  return { id: readText(headers, channelHeaderKey.connectionId) ?? '', secret }
}

/** Whether an additional socket presents the ID and the secret of the group. */
export function hasGroupCredentials(group: JoinableGroup | null, shown: HelloGroup): boolean {
  const { id, secret } = shown
  if (group === null || group.id !== id || secret === null) return false
  // @guard sockets-of-a-control-channel--secret
  return secret.length === group.secret.length && timingSafeEqual(secret, group.secret)
}

/** Null if the line does not have five fields, or a field is too long. */
export function readVersionLine(line: string | null): VersionLine | null {
  const fields = line?.split('|') ?? []
  if (fields.length !== VERSION_FIELDS) return null
  if (fields.some((field) => field.length > VERSION_FIELD_CHARACTERS_MAX)) return null
  const [version = '', revision = '', buildDate = '', os = '', arch = ''] = fields
  return { version, revision, buildDate, os, arch }
}

/** Formats a {@link VersionLine} for the hello. */
export function formatVersionLine({ version, revision, buildDate, os, arch }: VersionLine): string {
  return [version, revision, buildDate, os, arch].join('|')
}

/**
 * The reply that opens the channel. A dialer that announces a group requires a secret in the reply,
 * even for a single socket.
 * @param listenerId ID of the listener.
 * @param roleHeaders headers that the listener must send according to the protocol that runs over
 * the channel.
 */
export function helloAcceptedMessage(
  hello: Hello,
  listenerId: string,
  roleHeaders: ChannelMessage['headers'],
): ChannelMessage {
  const headers = new Map(roleHeaders)
  headers.set(channelHeaderKey.resultSuccess, encodeFlag(true))
  headers.set(channelHeaderKey.id, encodeText(listenerId))
  const { group, type } = hello
  if (type !== '') headers.set(channelHeaderKey.type, encodeText(type))
  const id = group === null || group.id === '' ? randomUUID() : group.id
  headers.set(channelHeaderKey.connectionId, encodeText(id))
  if (group !== null) {
    const { secret } = group
    const kept = secret !== null && secret.length > 0 ? secret : encodeText(randomUUID())
    headers.set(channelHeaderKey.isGrouped, encodeFlag(true))
    headers.set(channelHeaderKey.groupSecret, kept)
  }
  return {
    contentType: channelContentType.result,
    sequence: HELLO_SEQUENCE,
    headers,
    body: new Uint8Array(),
  }
}

export type HelloRejectClass = 'busy' | 'notPermitted'

const rejectClasses: Readonly<Record<HelloRejectClass, number>> = { busy: 1, notPermitted: 2 }

/**
 * The reply that refuses a hello; the listener closes the socket after it. Newer dialers log the
 * reason; older dialers only see the socket close.
 */
export function helloRefusedMessage(reason: string, rejectClass: HelloRejectClass): ChannelMessage {
  return {
    contentType: channelContentType.result,
    sequence: HELLO_SEQUENCE,
    headers: new Map([
      [channelHeaderKey.resultSuccess, encodeFlag(false)],
      [channelHeaderKey.helloRejectClass, encodeInt32(rejectClasses[rejectClass])],
    ]),
    body: encodeText(reason),
  }
}
