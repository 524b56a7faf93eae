import { create, toBinary } from '@bufbuild/protobuf'
import { expect, test } from 'vitest'

import { type Configuration, ConfigurationSchema } from '../../proto/gen/membership_pb.ts'
import {
  hasOtherVoters,
  membershipFromRecord,
  otherMeshAddresses,
} from '../../src/controller/start/known-voters.ts'

function configuration(voters: readonly string[], learners: readonly string[] = []): Configuration {
  const members = [
    ...voters.map((id) => ({ id, voter: true, address: `${id}:1000` })),
    ...learners.map((id) => ({ id, voter: false, address: '' })),
  ]
  return create(ConfigurationSchema, { members })
}

test('the newest configuration that a controller knows determines whether there are other voters', () => {
  const three = { configuration: configuration(['a', 'b', 'c']), index: 5 }
  const alone = { configuration: configuration(['a'], ['b']), index: 9 }
  expect(hasOtherVoters('a', [three])).toBe(true)
  expect(hasOtherVoters('a', [three, alone])).toBe(false)
  expect(hasOtherVoters('a', [alone, { ...three, index: 12 }])).toBe(true)
  expect(hasOtherVoters('b', [alone])).toBe(true)
})

test('a controller that knows no members knows no other voters', () => {
  expect(hasOtherVoters('a', [null, { configuration: configuration([]), index: 0 }])).toBe(false)
  expect(membershipFromRecord(null)).toBeNull()
  expect(otherMeshAddresses('a', null)).toEqual([])
})

test('the stored list of members (roster) contains the cluster addresses of the other members', () => {
  const bytes = toBinary(ConfigurationSchema, configuration(['a', 'b'], ['c']))
  const known = membershipFromRecord({ configuration: bytes, index: 3, claims: [], marks: [] })
  expect(known?.index).toBe(3)
  expect(otherMeshAddresses('a', known)).toEqual(['b:1000'])
})
