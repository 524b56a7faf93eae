import argon2 from 'argon2'
import { create, toBinary } from '@bufbuild/protobuf'
import { expect } from 'vitest'

import { CommandKind, EntityWriteSchema } from '../../../proto/gen/command_pb.ts'
import { canonicalJson } from '../../../src/lib/text/canonical-json.ts'
import type { TestController } from '../../api/support/controller.ts'
import { commandData } from '../../support/commands.ts'

interface HashCost {
  readonly memoryCost: number
  readonly timeCost: number
  readonly parallelism: number
}

/** Parameters that OpenZiti uses. */
const OPENZITI: HashCost = { memoryCost: 3072, timeCost: 1, parallelism: 4 }

/** An Argon2 hash of a password, by default with OpenZiti's parameters as in a migrated network. */
export function weakHash(password: string, cost: Partial<HashCost> = {}): Promise<string> {
  return argon2.hash(password, { type: argon2.argon2id, hashLength: 32, ...OPENZITI, ...cost })
}

/** Stores a password hash for the ordinary user of the tests, by a log entry. */
export function setPasswordHash({ cluster }: TestController, passwordHash: string): void {
  const message = create(EntityWriteSchema, {
    entity: 'authenticator',
    id: 'alice-updb',
    json: new TextEncoder().encode(canonicalJson({ passwordHash })),
  })
  const data = commandData(CommandKind.ENTITY_PATCH, toBinary(EntityWriteSchema, message))
  expect(cluster.apply(data).outcome).toMatchObject({ ok: true })
}
