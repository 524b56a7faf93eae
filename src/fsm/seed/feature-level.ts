import { fromBinary } from '@bufbuild/protobuf'
import { FeatureLevelRaiseSchema } from '../../../proto/gen/command_pb.ts'
import { FEATURE_LEVEL, FeatureLevelUnknown } from '../../ports/feature-level.ts'
import type { Outcome } from '../../ports/proposer.ts'
import { addLevelRecords } from './level-records.ts'
import type { State } from '../records/state.ts'
import { carrySchemasOver } from './superseded-schemas.ts'
import type { CommandContext } from '../apply/context.ts'
import { done } from '../apply/outcome.ts'

/**
 * Puts a feature level in force, and the records that come with it. One that is not higher changes
 * nothing: two leaders may have proposed the same raise.
 * @throws {FeatureLevelUnknown} when this version could not apply what may follow.
 */
export function raiseFeatureLevel(
  state: State,
  payload: Uint8Array,
  context: CommandContext,
): Outcome {
  const { level } = fromBinary(FeatureLevelRaiseSchema, payload)
  if (level > FEATURE_LEVEL) throw new FeatureLevelUnknown('the log from here on', level)
  const from = state.featureLevel
  state.featureLevel = Math.max(from, level)
  addLevelRecords(state, from, context)
  carrySchemasOver(state, from, context)
  return done(String(state.featureLevel))
}
