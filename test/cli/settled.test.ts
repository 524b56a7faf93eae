import { create } from '@bufbuild/protobuf'
import { expect, test } from 'vitest'

import {
  type Configuration,
  ConfigurationSchema,
  MemberSchema,
} from '../../proto/gen/membership_pb.ts'
import { StateReadiness } from '../../src/controller/service/state-readiness.ts'

const own = new Uint8Array(16).fill(7)
const other = new Uint8Array(16).fill(8)

function listing(storeId: Uint8Array): Configuration {
  return create(ConfigurationSchema, { members: [create(MemberSchema, { id: 'ctrl2', storeId })] })
}
const nobody = create(ConfigurationSchema, {})

test('a controller that was a member when it stopped is ready immediately after its start', () => {
  const configuration = { record: nobody, index: 0, isCommitted: false }
  const parts = { selfId: 'ctrl2', storeId: own, lostIndex: 0, configuration: () => configuration }
  expect(new StateReadiness({ ...parts, persisted: listing(own), appliedIndex: () => 0 }).is).toBe(
    true,
  )
  expect(
    new StateReadiness({ ...parts, persisted: listing(other), appliedIndex: () => 9 }).is,
  ).toBe(false)
})

test('a new controller is ready once it has applied the committed configuration that contains its store ID, and stays ready', () => {
  let configuration = { record: nobody, index: 0, isCommitted: true }
  let applied = 0
  const settled = new StateReadiness({
    selfId: 'ctrl2',
    storeId: own,
    persisted: nobody,
    lostIndex: 0,
    configuration: () => configuration,
    appliedIndex: () => applied,
  })
  expect(settled.is).toBe(false)
  configuration = { record: listing(other), index: 5, isCommitted: true }
  applied = 5
  expect(settled.is).toBe(false)
  configuration = { record: listing(own), index: 9, isCommitted: true }
  expect(settled.is).toBe(false)
  applied = 9
  configuration = { record: listing(own), index: 9, isCommitted: false }
  expect(settled.is).toBe(false)
  configuration = { record: listing(own), index: 9, isCommitted: true }
  expect(settled.is).toBe(true)
  configuration = { record: listing(own), index: 12, isCommitted: false }
  expect(settled.is).toBe(true)
})

test('a controller that discarded a damaged state is ready once it has applied as many entries as before the damage', () => {
  let applied = 9
  const settled = new StateReadiness({
    selfId: 'ctrl2',
    storeId: own,
    persisted: nobody,
    lostIndex: 500,
    configuration: () => ({ record: listing(own), index: 9, isCommitted: true }),
    appliedIndex: () => applied,
  })
  expect(settled.is).toBe(false)
  applied = 500
  expect(settled.is).toBe(true)
})
