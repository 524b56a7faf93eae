import { create, toBinary } from '@bufbuild/protobuf'

import { CommandKind, FeatureLevelRaiseSchema } from '../../../proto/gen/command_pb.ts'
import { createSystemActor } from '../../../src/ports/actor.ts'
import { FEATURE_LEVEL } from '../../../src/ports/feature-level.ts'
import type { TestController } from './controller.ts'

/** Raises the feature level, as the membership reconciler does once every voter supports it. */
export async function raiseLevel({ cluster }: TestController): Promise<void> {
  const message = create(FeatureLevelRaiseSchema, { level: FEATURE_LEVEL })
  const payload = toBinary(FeatureLevelRaiseSchema, message)
  const actor = createSystemActor({ name: 'test' })
  await cluster.propose({ kind: CommandKind.FEATURE_LEVEL_RAISE, payload, actor })
}
