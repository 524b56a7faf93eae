import { fromBinary } from '@bufbuild/protobuf'
import { RouterPresenceSchema } from '../../../proto/gen/command_pb.ts'
import type { Outcome } from '../../ports/proposer.ts'
import type { CommandContext } from '../apply/command-context.ts'
import { acceptedOutcome } from '../apply/outcome.ts'
import type { State } from '../records/state.ts'

/**
 * Stores the time since which routers have been online or offline. The revisions of the router
 * records stay the same, so that an administrator's conditional write is not refused only because a
 * router lost its connection.
 */
export function updateRouterPresence(
  state: State,
  payload: Uint8Array,
  { logTimeMs }: CommandContext,
): Outcome {
  for (const { id, atMs, online } of fromBinary(RouterPresenceSchema, payload).marks) {
    const router = state.get('router', id)
    if (router === undefined) continue
    const sinceMs = Math.min(Number(atMs), logTimeMs)
    const onlineSince = online ? sinceMs : null
    state.put('router', { ...router, onlineSince, offlineSince: online ? null : sinceMs })
  }
  return acceptedOutcome('')
}
