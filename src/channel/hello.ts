import { randomUUID } from 'node:crypto'

import type { ChannelMessage } from './frame.ts'
import { keptBytes } from './header-view.ts'
import { flagValue, int32Value, readFlag, readText, textValue } from './headers.ts'
import { contentType, HELLO_SEQUENCE, headerKey } from './numbers.ts'

/** First message of the dialer of a channel. */
export interface Hello {
  /** Claimed id; its certificate has to prove it. */
  readonly token: string
  /** Null without a version line, or with one that is malformed. */
  readonly version: VersionLine | null
  /** `ctrl.default` and the like; '' where the dialer names none. */
  readonly type: string
  /** Null for a dialer that knows of no more than one socket a channel. */
  readonly group: HelloGroup | null
  readonly headers: ChannelMessage['headers']
}

/** A channel may consist of several sockets; the first one makes the group. */
export interface HelloGroup {
  /** False for a socket that wants to be part of a channel that there is. */
  readonly isFirst: boolean
  /** Id of the group that a dialer had before it lost all its sockets; '' for a new one. */
  readonly id: string
  readonly secret: Uint8Array | null
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

/** Null when the message is no hello. */
export function readHello(message: ChannelMessage): Hello | null {
  const { contentType: type, body } = message
  if (type !== contentType.hello) return null
  // It is kept for as long as the channel.
  const headers = new Map([...message.headers].map(([key, value]) => [key, keptBytes(value)]))
  return {
    token: Buffer.from(body).toString('utf8'),
    version: readVersionLine(readText(headers, headerKey.helloVersion)),
    type: readText(headers, headerKey.type) ?? '',
    // Without the mark of a group, the keys of its secret and its first socket mean other things.
    group: readFlag(headers, headerKey.isGrouped) ? groupIn(headers) : null,
    headers,
  }
}

function groupIn(headers: ChannelMessage['headers']): HelloGroup {
  return {
    isFirst: readFlag(headers, headerKey.isFirstGroupConnection),
    id: readText(headers, headerKey.connectionId) ?? '',
    secret: headers.get(headerKey.groupSecret) ?? null,
  }
}

/** Null unless it has five fields of a bounded length. */
export function readVersionLine(line: string | null): VersionLine | null {
  const fields = line?.split('|') ?? []
  if (fields.length !== VERSION_FIELDS) return null
  if (fields.some((field) => field.length > VERSION_FIELD_CHARACTERS_MAX)) return null
  const [version = '', revision = '', buildDate = '', os = '', arch = ''] = fields
  return { version, revision, buildDate, os, arch }
}

export function versionLine({ version, revision, buildDate, os, arch }: VersionLine): string {
  return [version, revision, buildDate, os, arch].join('|')
}

/**
 * The answer that opens the channel. A dialer that announces a group gives up without a secret in
 * it, even where there is to be one socket only.
 * @param listenerId who answers.
 * @param roleHeaders what the protocol over the channel has its listener say.
 */
export function helloAccepted(
  hello: Hello,
  listenerId: string,
  roleHeaders: ChannelMessage['headers'],
): ChannelMessage {
  const headers = new Map(roleHeaders)
  headers.set(headerKey.resultSuccess, flagValue(true))
  headers.set(headerKey.id, textValue(listenerId))
  const { group, type } = hello
  if (type !== '') headers.set(headerKey.type, textValue(type))
  const id = group === null || group.id === '' ? randomUUID() : group.id
  headers.set(headerKey.connectionId, textValue(id))
  if (group !== null) {
    const { secret } = group
    const kept = secret !== null && secret.length > 0 ? secret : textValue(randomUUID())
    headers.set(headerKey.isGrouped, flagValue(true))
    headers.set(headerKey.groupSecret, kept)
  }
  return {
    contentType: contentType.result,
    sequence: HELLO_SEQUENCE,
    headers,
    body: new Uint8Array(),
  }
}

export type HelloRejectClass = 'busy' | 'notPermitted'

const rejectClasses: Readonly<Record<HelloRejectClass, number>> = { busy: 1, notPermitted: 2 }

/**
 * The answer before the socket is closed: newer dialers log the reason, older ones see the socket
 * close.
 */
export function helloRefused(reason: string, rejectClass: HelloRejectClass): ChannelMessage {
  return {
    contentType: contentType.result,
    sequence: HELLO_SEQUENCE,
    headers: new Map([
      [headerKey.resultSuccess, flagValue(false)],
      [headerKey.helloRejectClass, int32Value(rejectClasses[rejectClass])],
    ]),
    body: textValue(reason),
  }
}
