import { fromBinary } from '@bufbuild/protobuf'
import { beforeEach, expect, test } from 'vitest'

import { CommandKind, EntityDeleteSchema, EntityWriteSchema } from '../../proto/gen/command_pb.ts'
import type { ServiceHost } from '../../src/fabric/circuits/host-lookup.ts'
import { UnknownTerminatorHandler } from '../../src/fabric/circuits/unknown-terminator-handler.ts'
import { Problem } from '../../src/lib/problems.ts'
import type { ProposalInput } from '../../src/ports/proposer.ts'
import { eventually } from '../support/eventually.ts'

const host: ServiceHost = {
  terminatorId: 't1',
  routerId: 'er1',
  hostId: 'i1',
  isMadeByRouter: true,
  binding: 'tunnel',
  address: 't1',
  cost: 0,
  precedence: 'default',
  instanceId: '',
  peerData: new Map(),
}

let proposed: ProposalInput[]
let lines: string[]
let hasLeader: boolean
let invalid: UnknownTerminatorHandler

beforeEach(() => {
  proposed = []
  lines = []
  hasLeader = true
  const log = (_: unknown, line: string): void => void lines.push(line)
  invalid = new UnknownTerminatorHandler({
    log: { info: log, warn: log },
    proposer: {
      propose: (input) => {
        proposed.push(input)
        if (!hasLeader) return Promise.reject(new Problem('CLUSTER_NO_LEADER'))
        return Promise.resolve({ index: 1, outcome: { ok: true, id: 't1' } })
      },
    },
  })
})

test('a terminator that a router created but no longer knows is deleted after a dial to it fails as invalid', () => {
  invalid.note(host)
  invalid.note(host)
  expect(proposed.map(({ kind }) => kind)).toEqual([CommandKind.ENTITY_DELETE])
  const { entity, id } = fromBinary(EntityDeleteSchema, proposed[0]?.payload ?? new Uint8Array())
  expect([entity, id]).toEqual(['terminator', 't1'])
})

test('a terminator that an operator created gets the precedence failed, with one write, if it proves to be invalid', () => {
  const fixed: ServiceHost = { ...host, isMadeByRouter: false, binding: 'transport' }
  invalid.note(fixed)
  invalid.note({ ...fixed, terminatorId: 't2', precedence: 'failed' })
  expect(proposed.map(({ kind }) => kind)).toEqual([CommandKind.ENTITY_PATCH])
  const { id, json } = fromBinary(EntityWriteSchema, proposed[0]?.payload ?? new Uint8Array())
  expect([id, Buffer.from(json).toString()]).toEqual(['t1', '{"precedence":"failed"}'])
})

test('an invalid terminator is kept while there is no leader, and the next failed dial tries to remove it again', async () => {
  hasLeader = false
  invalid.note(host)
  await eventually(() => expect(lines).toEqual(['an invalid terminator stays']))
  hasLeader = true
  await eventually(() => {
    invalid.note(host)
    expect(proposed).toHaveLength(2)
  })
})
