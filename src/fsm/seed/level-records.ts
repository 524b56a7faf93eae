import type { CommandContext } from '../apply/context.ts'
import { seededIdentityTypes } from './seed-identity-types.ts'
import type { State } from '../records/state.ts'

/**
 * Records that a feature level brings. A cluster that is formed at the level begins with them;
 * every other one gets them from the entry that puts the level in force.
 */
const records = seededIdentityTypes.map(({ id, level }) => ({
  level,
  entity: 'identityType',
  id,
  fields: { name: id },
}))

/** Adds what the levels above `from`, up to the one in force, bring and the state lacks. */
export function addLevelRecords(
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
