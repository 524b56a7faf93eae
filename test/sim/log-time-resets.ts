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

/**
 * An operator who resets log time while all other faults occur, whether it is ahead or not. All
 * controllers must reach the same state, and no request may take effect twice.
 */
export async function bringLogTimeBack(
  { asker, tally }: { readonly asker: Asker; readonly tally: Tally },
  controller: Controller,
): Promise<void> {
  const nowMs = controller.life?.machine.logTimeMs ?? 0
  if (nowMs <= BACK_MS) return
  const message = create(LogTimeResetSchema, { targetMs: BigInt(nowMs - BACK_MS) })
  const payload = toBinary(LogTimeResetSchema, message)
  try {
    const answer = await asker.ask(controller, ({ clusterNode }) =>
      clusterNode.propose({ kind, payload, level: commandFeatureLevel(kind), actor: anySystem }),
    )
    if (answer !== 'over' && answer.outcome.ok) tally.note('log time brought back')
  } catch (error) {
    if (!(error instanceof Problem)) throw error
  }
}

/** Whether an entry has reset log time. */
export function hasBroughtBack({ type, data }: Entry, { outcome }: AppliedEntry): boolean {
  if (type !== 'command' || outcome?.ok !== true || outcome.id === '0') return false
  return fromBinary(CommandSchema, data).kind === kind
}
