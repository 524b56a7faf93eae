import { create, fromBinary, toBinary } from '@bufbuild/protobuf'

import { CommandKind, CommandSchema, LogTimeResetSchema } from '../../proto/gen/command_pb.ts'
import { Problem } from '../../src/lib/problems.ts'
import { commandFeatureLevel } from '../../src/ports/feature-level.ts'
import type { AppliedEntry } from '../../src/ports/replicated-state-machine.ts'
import type { Entry } from '../../src/raft/types.ts'
import { anySystem } from '../support/commands.ts'
import type { Asker } from './asker.ts'
import type { Controller } from './controller.ts'
import type { Tally } from './tally.ts'

const kind = CommandKind.LOG_TIME_RESET
const BACK_MS = 20_000
const WAIT_MS = 5_000

/**
 * An operator who resets log time while all other faults occur, whether it is ahead or not. All
 * controllers must reach the same state, and no request may take effect twice.
 */
export async function bringLogTimeBack(
  { asker, tally }: { readonly asker: Asker; readonly tally: Tally },
  controller: Controller,
): Promise<void> {
  try {
    const answer = await asker.ask(controller, async ({ clusterNode, machine }) => {
      // Like the API, first applies the whole log: the log time of a controller that replays the log
      // is older than any clock.
      const index = await clusterNode.readIndex()
      if (!(await machine.waitForApplied(index, WAIT_MS))) return null
      const message = create(LogTimeResetSchema, { targetMs: BigInt(machine.logTimeMs - BACK_MS) })
      const payload = toBinary(LogTimeResetSchema, message)
      const level = commandFeatureLevel(kind)
      return await clusterNode.propose({ kind, payload, level, actor: anySystem })
    })
    if (answer !== 'over' && answer?.outcome.ok === true) tally.note('log time brought back')
  } catch (error) {
    if (!(error instanceof Problem)) throw error
  }
}

/** Whether an entry has reset log time. */
export function hasBroughtBack({ type, data }: Entry, { outcome }: AppliedEntry): boolean {
  if (type !== 'command' || outcome?.ok !== true || outcome.id === '0') return false
  return fromBinary(CommandSchema, data).kind === kind
}
