import { create, toBinary } from '@bufbuild/protobuf'

import { CommandKind, EntityDeleteSchema } from '../../../proto/gen/command_pb.ts'
import { SYSTEM_ACTOR } from '../../ports/actor.ts'
import type { ProposalInput } from '../../ports/proposer.ts'

/** Proposal with which a controller itself removes a terminator. */
export function terminatorRemovalProposal(id: string): ProposalInput {
  const removal = create(EntityDeleteSchema, { entity: 'terminator', id })
  const payload = toBinary(EntityDeleteSchema, removal)
  return { kind: CommandKind.ENTITY_DELETE, payload, actor: SYSTEM_ACTOR }
}
