import { fromBinary } from '@bufbuild/protobuf'

import { AccessRevokeSchema } from '../../../proto/gen/command_pb.ts'
import { isControllerId } from '../../lib/text/names.ts'
import type { Outcome } from '../../ports/proposer.ts'
import type { CommandContext } from '../apply/command-context.ts'
import { acceptedOutcome, fieldFaultOutcome } from '../apply/outcome.ts'
import { createWriteConsequences } from '../apply/references.ts'
import type { State } from '../records/state.ts'
import { revokePendingJoins } from './join-tickets.ts'

/**
 * Maximum number of withdrawn enrollments that the entry's audit record lists; events report all of
 * them.
 */
const TOUCHED_MAX = 100

/**
 * Ends every API session, withdraws every open enrollment, and removes all tickets and admissions
 * of joining controllers. Called after a controller was removed as compromised: that controller
 * could have created tokens for any session and tickets for itself, and could read the token of
 * each enrollment. From the stored revocations, routers learn which OIDC sessions have ended.
 */
export function revokeAccess(state: State, payload: Uint8Array, context: CommandContext): Outcome {
  const { nodeId } = fromBinary(AccessRevokeSchema, payload)
  if (!isControllerId(nodeId))
    return fieldFaultOutcome({ field: 'nodeId', reason: 'nodeId is not usable' })
  const { remove } = createWriteConsequences(state, context)
  // @guard access-after-a-compromise--sessions
  for (const id of Array.from(state.table('apiSession').ids)) remove('apiSession', id)
  for (const id of Array.from(state.table('enrollment').ids)) {
    // @guard access-after-a-compromise--enrollments
    remove('enrollment', id)
    if (context.touched.length < TOUCHED_MAX) {
      context.touched.push({ action: 'delete', entity: 'enrollment', id, fields: [] })
    }
  }
  revokePendingJoins(state, context)
  return acceptedOutcome(nodeId)
}
