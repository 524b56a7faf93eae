import { create, toBinary } from '@bufbuild/protobuf'
import { CommandKind, EntityWriteSchema } from '../../../proto/gen/command_pb.ts'
import { canonicalJson } from '../../../src/lib/text/canonical-json.ts'
import type { TestController } from './controller.ts'
import { commandData } from '../../support/commands.ts'

/** Creates records as other controllers do: by log entries, without a request for each. */
export function makeMany(
  controller: TestController,
  entity: string,
  count: number,
  fieldsOf: (at: number) => object,
): void {
  for (let at = 0; at < count; at += 1) {
    const json = new TextEncoder().encode(canonicalJson(fieldsOf(at)))
    const id = `many${String(at).padStart(6, '0')}`
    const payload = toBinary(EntityWriteSchema, create(EntityWriteSchema, { entity, id, json }))
    const kind = CommandKind.ENTITY_CREATE
    controller.cluster.apply(commandData(kind, payload))
  }
}

export function makeManyIdentities(controller: TestController, count: number): void {
  const common = { type: 'Default', isAdmin: false, authPolicyId: 'default' }
  makeMany(controller, 'identity', count, (at) => ({ ...common, name: `many ${at}` }))
}
