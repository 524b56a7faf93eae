import {
  type Hello,
  helloAcceptedMessage,
  formatVersionLine,
  type VersionLine,
} from '../channel/hello.ts'
import type { ChannelMessage } from '../channel/frame.ts'
import { channelHeaderKey } from '../channel/numbers.ts'
import { encodeBitMask, encodeText } from '../channel/headers.ts'
import { controlHeaderKey, legacyHelloHeaderKey } from '../channel/messages/control.ts'

/**
 * Capabilities that newer routers expect of every controller: creation of terminators by
 * version 2 of the request (1), links that only the dialing router reports (2), creation of
 * circuits by version 2 of the request (3), the data model (4), and session tokens as JWTs (6).
 * Routers reject a controller without 6. Capability 5, several sockets for each channel, is not
 * announced: a second socket for each router and controller would cost more than it gains. A
 * router that received this capability from a controller of an earlier release may still open
 * additional sockets.
 */
const capabilities = [1, 2, 3, 4, 6]

export interface ControllerIdentity {
  /** ID in the list of controllers that is sent to routers. */
  readonly id: string
  readonly clusterId: string
  readonly version: VersionLine
}

/**
 * The answer to the hello of an admitted router, with the ID, version and capabilities of this
 * controller.
 */
export function helloResponse(hello: Hello, identity: ControllerIdentity): ChannelMessage {
  const { id, clusterId, version } = identity
  const mask = encodeBitMask(capabilities)
  return helloAcceptedMessage(
    hello,
    id,
    new Map([
      [channelHeaderKey.helloVersion, encodeText(formatVersionLine(version))],
      [controlHeaderKey.capabilities, mask],
      [legacyHelloHeaderKey.capabilities, mask],
      [controlHeaderKey.clusterId, encodeText(clusterId)],
      [legacyHelloHeaderKey.clusterId, encodeText(clusterId)],
    ]),
  )
}

/** Why a hello must be rejected regardless of its sender; null if it is valid. */
export function helloFault(hello: Hello): string | null {
  if (hello.version === null) return 'the hello has no version of five fields'
  return null
}
