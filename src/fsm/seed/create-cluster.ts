import { fromBinary } from '@bufbuild/protobuf'
import { FormSchema } from '../../../proto/gen/command_pb.ts'
import { findEntity } from '../../entities/registry.ts'
import { FEATURE_LEVEL, FeatureLevelUnknownError } from '../../ports/feature-level.ts'
import type { Outcome } from '../../ports/proposer.ts'
import type { State } from '../records/state.ts'
import type { CommandContext } from '../apply/command-context.ts'
import { parseFields } from '../apply/entity.ts'
import { acceptedOutcome, refusedOutcome } from '../apply/outcome.ts'

/**
 * Applies the first command of a cluster: its id, its feature level and its first records. A
 * cluster that already exists refuses the command.
 * @throws {FeatureLevelUnknownError}
 */
export function applyCreateClusterCommand(
  state: State,
  payload: Uint8Array,
  context: CommandContext,
): Outcome {
  const message = fromBinary(FormSchema, payload)
  if (state.clusterId !== '')
    return refusedOutcome('ENTITY_CAN_NOT_BE_UPDATED', 'the cluster is formed')
  const level = Math.max(1, message.featureLevel)
  if (level > FEATURE_LEVEL) throw new FeatureLevelUnknownError('the log', level)
  const decoded = message.records.map((record) => ({
    entity: findEntity(record.entity),
    id: record.id,
    fields: parseFields(record.json),
  }))
  state.featureLevel = level
  for (const { entity, id, fields } of decoded) {
    state.put(entity.name, {
      ...fields,
      id,
      createdAt: context.logTimeMs,
      updatedAt: context.logTimeMs,
      revision: context.index,
    })
  }
  state.clusterId = message.clusterId
  return acceptedOutcome(message.clusterId)
}
