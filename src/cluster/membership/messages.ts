import { isControllerId } from '../../lib/names.ts'
import { isSessionPermission } from '../../lib/permissions.ts'
import { Problem } from '../../lib/problems.ts'
import type { Actor } from '../../ports/actor.ts'
import type { MembershipChange } from '../../ports/membership.ts'
import type { NodeId } from '../../raft/types.ts'

/**
 * What controllers ask each other about members, as JSON: it is rare and small, and a newer release may add to it. Every
 * text is bounded and every id checked, though it comes from a controller.
 */
export type Message = Readonly<Record<string, unknown>>

const TEXT_CHARACTERS_MAX = 256

export function encodeMessage(message: Message): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(message))
}

/** @throws {Problem} COULD_NOT_VALIDATE. */
export function decodeMessage(payload: Uint8Array): Message {
  let value: unknown
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(payload))
  } catch {
    throw malformed('the message is no JSON')
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw malformed('the message is no JSON object')
  }
  return value as Message
}

/** @throws {Problem} COULD_NOT_VALIDATE. */
export function idIn(message: Message, key: string): NodeId {
  const value = message[key]
  if (typeof value === 'string' && isControllerId(value)) return value
  throw malformed(`${key} is no id of a controller`)
}

/** @throws {Problem} COULD_NOT_VALIDATE. */
export function textIn(message: Message, key: string): string {
  const value = message[key]
  if (typeof value === 'string' && value.length <= TEXT_CHARACTERS_MAX) return value
  throw malformed(`${key} is no text of up to ${TEXT_CHARACTERS_MAX} characters`)
}

/** @throws {Problem} COULD_NOT_VALIDATE. */
export function countIn(message: Message, key: string): number {
  const value = message[key]
  if (Number.isSafeInteger(value) && Number(value) >= 0) return Number(value)
  throw malformed(`${key} is no count`)
}

/** Of hex text. @throws {Problem} COULD_NOT_VALIDATE. */
export function bytesIn(message: Message, key: string, length: number): Uint8Array {
  const value = message[key]
  if (typeof value === 'string' && new RegExp(`^[0-9a-f]{${length * 2}}$`).test(value)) {
    return Uint8Array.from(Buffer.from(value, 'hex'))
  }
  throw malformed(`${key} is not ${length} bytes in hex`)
}

/** @throws {Problem} COULD_NOT_VALIDATE. */
export function messageIn(message: Message, key: string): Message {
  const value = message[key]
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Message
  throw malformed(`${key} is no object`)
}

/** @throws {Problem} COULD_NOT_VALIDATE. */
export function changeOf(message: Message): MembershipChange {
  const verb = message['verb']
  switch (verb) {
    case 'promote':
    case 'demote':
      return { verb, id: idIn(message, 'id') }
    case 'remove':
      return { verb, id: idIn(message, 'id'), isCompromised: message['isCompromised'] === true }
    case 'replace':
      return { verb, oldId: idIn(message, 'oldId'), newId: idIn(message, 'newId') }
    default:
      throw malformed('verb is none of promote, demote, remove, replace')
  }
}

/** Who asked the controller that passes a request on. @throws {Problem} COULD_NOT_VALIDATE where it names nobody. */
export function actorOf(value: unknown): Actor {
  const by = messageIn({ by: value }, 'by')
  const claimed = messageIn(by, 'value')
  switch (by['case']) {
    case 'system':
      return {
        case: 'system',
        value: textsIn(claimed, ['name', 'address', 'identityId', 'sessionId']),
      }
    case 'enrollment':
      return {
        case: 'enrollment',
        value: textsIn(claimed, [
          'enrollmentId',
          'method',
          'address',
          'caId',
          'routerId',
          'signerId',
        ]),
      }
    case 'session': {
      const permission = claimed['permission']
      if (!isSessionPermission(permission)) throw malformed('permission is none of a session')
      const who = textsIn(claimed, [
        'identityId',
        'sessionId',
        'address',
        'signerId',
        'signerRevision',
      ])
      return { case: 'session', value: { ...who, permission } }
    }
    default:
      throw malformed('by is none of system, enrollment, session')
  }
}

function textsIn<const K extends string>(
  message: Message,
  keys: readonly K[],
): Readonly<Record<K, string>> {
  const texts = keys.map((key) => [key, textIn(message, key)] as const)
  return Object.fromEntries(texts) as Record<K, string>
}

function malformed(detail: string): Problem {
  return new Problem('COULD_NOT_VALIDATE', { detail })
}
