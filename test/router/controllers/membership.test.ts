import { describe, expect, test } from 'vitest'

import {
  ControllerMembership,
  type MembersTold,
} from '../../../src/router/controllers/membership.ts'

const at = (id: string): string => `tls:${id}.test:6262`
const member = (id: string): { id: string; addresses: string[] } => ({ id, addresses: [at(id)] })

function told(
  senderId: string,
  index: number,
  isLeader: boolean,
  ids: string,
  dialedAddress = at(senderId),
): MembersTold {
  const controllers = ids === '' ? [] : ids.split(' ').map(member)
  return { senderId, dialedAddress, index: BigInt(index), isLeader, controllers }
}

const idsOf = ({ controllers }: ControllerMembership): string =>
  controllers
    .map(({ id }) => id)
    .sort()
    .join(' ')

describe('The members that a router knows', () => {
  test('are those of the first list that it is told, whoever tells it', () => {
    const members = new ControllerMembership([])
    expect(members.onMembers(told('a', 5, false, 'a b'))).toEqual({
      isChanged: true,
      asksLeader: false,
    })
    expect([idsOf(members), members.leaderId]).toEqual(['a b', null])
  })

  test('are replaced by a newer list of the leader', () => {
    const members = new ControllerMembership([member('a'), member('b')])
    members.onMembers(told('a', 5, true, 'a b'))
    expect(members.onMembers(told('b', 6, true, 'b c')).isChanged).toBe(true)
    expect([idsOf(members), members.leaderId]).toEqual(['b c', 'b'])
  })

  test('are not changed by an older list, or by the same one again', () => {
    const members = new ControllerMembership([])
    members.onMembers(told('a', 5, true, 'a b'))
    for (const other of [
      told('b', 4, true, 'b'),
      told('b', 5, false, 'b'),
      told('b', 4, false, 'b c'),
    ]) {
      expect(members.onMembers(other)).toEqual({ isChanged: false, asksLeader: false })
    }
    expect([idsOf(members), members.leaderId]).toEqual(['a b', 'a'])
  })

  test('can only be added to by a controller that does not lead, and the leader is asked for those that it lacks', () => {
    const members = new ControllerMembership([])
    members.onMembers(told('a', 5, true, 'a b c'))
    expect(members.onMembers(told('b', 6, false, 'a b d'))).toEqual({
      isChanged: true,
      asksLeader: true,
    })
    expect(idsOf(members)).toBe('a b c d')
    expect(members.onMembers(told('a', 6, true, 'a b d'))).toEqual({
      isChanged: true,
      asksLeader: false,
    })
    expect(idsOf(members)).toBe('a b d')
    expect(members.onMembers(told('b', 6, false, 'a b c d')).isChanged).toBe(false)
  })

  test('hold the address that the sender was dialed at, until the leader says where it is', () => {
    const members = new ControllerMembership([])
    const alias = 'tls:alias.test:1'
    expect(members.onMembers(told('a', 5, false, 'a', alias)).asksLeader).toBe(true)
    expect(members.controllers).toEqual([{ id: 'a', addresses: [at('a'), alias] }])
    members.onMembers(told('a', 5, true, 'a', alias))
    expect(members.controllers).toEqual([member('a')])
  })

  test('are asked of the leader when a list is empty', () => {
    const members = new ControllerMembership([member('a')])
    expect(members.onMembers(told('a', 9, false, ''))).toEqual({
      isChanged: false,
      asksLeader: true,
    })
    expect(members.index).toBe(0n)
  })

  test('have a leader that leads as of the greatest index, in a count of its own', () => {
    const members = new ControllerMembership([])
    members.onMembers(told('a', 50, true, 'a b'))
    expect(members.onLeader('b', 3n)).toBe(true)
    expect(members.onLeader('a', 3n)).toBe(false)
    expect(members.onLeader('a', 2n)).toBe(false)
    expect(members.leaderId).toBe('b')
    expect(members.onLeader('a', 4n)).toBe(true)
    expect(members.onMembers(told('b', 49, true, 'b'))).toEqual({
      isChanged: false,
      asksLeader: false,
    })
    expect(members.leaderId).toBe('a')
  })

  test('are no more than a cluster can have, whatever a list says', () => {
    const members = new ControllerMembership([])
    const many = Array.from({ length: 1000 }, (_, number) => `c${number}`).join(' ')
    members.onMembers(told('c0', 5, true, many))
    expect(members.controllers).toHaveLength(64)
  })
})
