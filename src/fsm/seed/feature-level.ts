import { fromBinary } from '@bufbuild/protobuf'

import { FeatureLevelRaiseSchema } from '../../../proto/gen/command_pb.ts'
import { FEATURE_LEVEL, FeatureLevelUnknownError } from '../../ports/feature-level.ts'
import type { Outcome } from '../../ports/proposer.ts'
import type { State } from '../records/state.ts'
import { upgradeConfigTypes } from './superseded-schemas.ts'
import type { CommandContext } from '../apply/command-context.ts'
import { acceptedOutcome } from '../apply/outcome.ts'
import { withdrawPrivilegedEnrollmentsAtLevel } from '../apply/withdraw-enrollments.ts'
import { endRefusedSessions } from '../apply/session-validity.ts'
import { seededIdentityTypes } from './seed-identity-types.ts'

/**
 * Raises the feature level and adds the records of the new level. A level that is not higher has no
 * effect, because two leaders may have proposed the same raise.
 * @throws {FeatureLevelUnknownError} when this version cannot apply entries of that level.
 */
export function raiseFeatureLevel(
  state: State,
  payload: Uint8Array,
  context: CommandContext,
): Outcome {
  const { level } = fromBinary(FeatureLevelRaiseSchema, payload)
  if (level > FEATURE_LEVEL) throw new FeatureLevelUnknownError('the log from here on', level)
  const from = state.featureLevel
  state.featureLevel = Math.max(from, level)
  addLevelRecords(state, from, context)
  upgradeConfigTypes(state, from, context)
  endRefusedSessions(state, from, context)
  withdrawPrivilegedEnrollmentsAtLevel(state, from, context)
  return acceptedOutcome(String(state.featureLevel))
}

/**
 * Records that a feature level adds. A cluster that is created at this level contains them from the
 * start; every other cluster gets them from the entry that raises the level.
 */
const records = seededIdentityTypes.map(({ id, level }) => ({
  level,
  entity: 'identityType' as const,
  id,
  fields: { name: id },
}))

/** Adds the missing records of all levels above `from`, up to the current level. */
function addLevelRecords(
  state: State,
  from: number,
  { index: revision, logTimeMs }: Pick<CommandContext, 'index' | 'logTimeMs'>,
): void {
  for (const { level, entity, id, fields } of records) {
    if (level <= from || level > state.featureLevel) continue
    if (state.get(entity, id) !== undefined) continue
    state.put(entity, { ...fields, id, createdAt: logTimeMs, updatedAt: logTimeMs, revision })
  }
}
