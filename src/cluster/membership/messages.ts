import type { MessageInitShape } from '@bufbuild/protobuf'

import type {
  ChangePlan as ChangePlanMessage,
  ChangePlanSchema,
  MemberChange,
  Requester,
} from '../../../proto/gen/peer_pb.ts'
import { isControllerId } from '../../lib/text/names.ts'
import { isSessionPermission } from '../../lib/permissions.ts'
import { Problem } from '../../lib/problems.ts'
import type { Actor } from '../../ports/actor.ts'
import type { ChangePlan, MembershipChange } from '../../ports/membership.ts'
import type { NodeId } from '../../raft/types.ts'

// Messages between controllers about members. The strings and ids of requests are checked, even
// though they come from controllers.

const TEXT_CHARACTERS_MAX = 256

/**
 * Checks the id of a controller.
 * @throws {Problem} COULD_NOT_VALIDATE.
 */
export function readControllerId(value: string, name: string): NodeId {
  if (isControllerId(value)) return value
  throw malformed(`${name} is no id of a controller`)
}

/**
 * Checks the length of a text.
 * @throws {Problem} COULD_NOT_VALIDATE.
 */
export function readBoundedText(value: string, name: string): string {
  if (value.length <= TEXT_CHARACTERS_MAX) return value
  throw malformed(`${name} is no text of up to ${TEXT_CHARACTERS_MAX} characters`)
}

/**
 * Checks the length of bytes.
 * @throws {Problem} COULD_NOT_VALIDATE.
 */
export function readFixedLengthBytes(value: Uint8Array, name: string, length: number): Uint8Array {
  if (value.length === length) return value
  throw malformed(`${name} is not ${length} bytes`)
}

/**
 * Converts a count to a number.
 * @throws {Problem} COULD_NOT_VALIDATE.
 */
export function readCount(value: bigint, name: string): number {
  const count = Number(value)
  if (Number.isSafeInteger(count)) return count
  throw malformed(`${name} is no count`)
}

/**
 * Decodes a membership change.
 * @throws {Problem} COULD_NOT_VALIDATE.
 */
export function readMembershipChange({
  verb,
  id,
  isCompromised,
  oldId,
  newId,
}: MemberChange): MembershipChange {
  switch (verb) {
    case 'promote':
    case 'demote':
      return { verb, id: readControllerId(id, 'id') }
    case 'remove':
      return { verb, id: readControllerId(id, 'id'), isCompromised }
    case 'replace':
      return {
        verb,
        oldId: readControllerId(oldId, 'oldId'),
        newId: readControllerId(newId, 'newId'),
      }
    default:
      throw malformed('verb is none of promote, demote, remove, replace')
  }
}

export function toChangePlanMessage(plan: ChangePlan): MessageInitShape<typeof ChangePlanSchema> {
  const { change, votersBefore, votersAfter, warnings, confirmation, ...rest } = plan
  return {
    ...rest,
    change: { ...change },
    votersBefore: [...votersBefore],
    votersAfter: [...votersAfter],
    warnings: [...warnings],
    ...(confirmation === null ? {} : { confirmation }),
  }
}

/**
 * Decodes the plan of a membership change.
 * @throws {Problem} COULD_NOT_VALIDATE.
 */
export function decodeChangePlan(message: ChangePlanMessage | undefined): ChangePlan {
  if (message?.change === undefined) throw malformed('the answer holds no plan')
  const { isNeeded, votersBefore, votersAfter, toleranceBefore, toleranceAfter } = message
  return {
    change: readMembershipChange(message.change),
    isNeeded,
    votersBefore,
    votersAfter,
    toleranceBefore,
    toleranceAfter,
    warnings: message.warnings,
    confirmation: message.confirmation ?? null,
  }
}

/**
 * Actor on whose behalf another controller forwarded a request.
 * @throws {Problem} COULD_NOT_VALIDATE when the request has no valid actor.
 */
export function readRequesterActor(by: Requester | undefined): Actor {
  switch (by?.actor.case) {
    case 'system':
      return {
        case: 'system',
        value: textsIn(by.actor.value, ['name', 'address', 'identityId', 'sessionId']),
      }
    case 'enrollment':
      return {
        case: 'enrollment',
        value: textsIn(by.actor.value, [
          'enrollmentId',
          'method',
          'address',
          'caId',
          'routerId',
          'signerId',
        ]),
      }
    case 'session': {
      const { permission } = by.actor.value
      if (!isSessionPermission(permission)) throw malformed('permission is none of a session')
      const who = textsIn(by.actor.value, [
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
  message: Readonly<Record<K, string>>,
  keys: readonly K[],
): Readonly<Record<K, string>> {
  const texts = keys.map((key) => [key, readBoundedText(message[key], key)] as const)
  return Object.fromEntries(texts) as Record<K, string>
}

function malformed(detail: string): Problem {
  return new Problem('COULD_NOT_VALIDATE', { detail })
}
