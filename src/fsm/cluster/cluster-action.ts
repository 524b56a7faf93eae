import { fromBinary } from '@bufbuild/protobuf'
import { ClusterActionSchema } from '../../../proto/gen/command_pb.ts'
import { isControllerId } from '../../lib/text/names.ts'
import type { Outcome } from '../../ports/proposer.ts'
import type { State } from '../records/state.ts'
import { acceptedOutcome, fieldFaultOutcome } from '../apply/outcome.ts'

/**
 * Format of action names. The names are constants of the program, so the audit log stores them
 * without escaping.
 */
const ACTION = /^[a-z][a-z-]{0,63}$/
const OUTCOME = /^(?:requested|done|[A-Z][A-Z0-9_]{0,63})$/

/** Applies a command that changes no record: its audit record contains the action and the actor. */
export function applyClusterActionCommand(_state: State, payload: Uint8Array): Outcome {
  const { action, target, outcome } = fromBinary(ClusterActionSchema, payload)
  if (!ACTION.test(action))
    return fieldFaultOutcome({ field: 'action', reason: 'action is not usable' })
  if (!OUTCOME.test(outcome))
    return fieldFaultOutcome({ field: 'outcome', reason: 'outcome is not usable' })
  if (target !== '' && !isControllerId(target)) {
    return fieldFaultOutcome({ field: 'target', reason: 'target is not the id of a controller' })
  }
  return acceptedOutcome(target)
}
