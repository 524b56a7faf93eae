import { describe, expect, test } from 'vitest'

import { hostedTerminatorLimits } from '../../src/fsm/services/hosted-terminator.ts'
import { Hosting } from './support/hosting.ts'

describe('a terminator that a router’s client hosts', () => {
  test('belongs to the service and the identity of the service session, and to the router that requested it', () => {
    const hosting = new Hosting()
    expect(hosting.host({ cost: 7, peerData: { '1003': 'a2V5' } })).toEqual({ ok: true, id: 't1' })
    expect(hosting.terminator()).toMatchObject({
      serviceId: 's1',
      routerId: 'r1',
      hostId: 'i1',
      binding: 'edge',
      address: 'a',
      cost: 7,
      precedence: 'default',
      isSystem: true,
      peerData: { '1003': 'a2V5' },
    })
  })

  test('has the cost and precedence of its identity by default', () => {
    const hosting = new Hosting()
    hosting.log.patch('identity', 'i1', {
      defaultHostingCost: 40,
      defaultHostingPrecedence: 'required',
      serviceHostingCosts: { s1: 50 },
    })
    hosting.host()
    expect(hosting.terminator()).toMatchObject({ cost: 50, precedence: 'required' })
  })

  test('is created only once if the request is repeated, for example after a lost response', () => {
    const hosting = new Hosting()
    hosting.host()
    const revision = hosting.terminator()?.revision
    expect(hosting.host()).toEqual({ ok: true, id: 't1' })
    expect(hosting.terminator()?.revision).toBe(revision)
    expect(hosting.host({ address: 'b' })).toMatchObject({ ok: false, code: 'COULD_NOT_VALIDATE' })
    expect(hosting.host({}, 'r2')).toMatchObject({ ok: false, code: 'COULD_NOT_VALIDATE' })
  })

  test('gets a new cost or precedence if its router requests a valid one', () => {
    const hosting = new Hosting()
    hosting.host()
    expect(hosting.change({ cost: 9 }).ok).toBe(true)
    expect(hosting.change({ precedence: 'failed' }).ok).toBe(true)
    expect(hosting.terminator()).toMatchObject({ cost: 9, precedence: 'failed' })
    expect(hosting.change({ cost: 70_000 }).ok).toBe(false)
    expect(hosting.change({ precedence: 'best' }).ok).toBe(false)
    expect(hosting.change({ id: 'nowhere', cost: 1 })).toMatchObject({ code: 'NOT_FOUND' })
  })

  test('can be removed by its router, and a second removal succeeds', () => {
    const hosting = new Hosting()
    hosting.host()
    hosting.host({ id: 't2' })
    expect(hosting.remove(['t1', 'nowhere']).ok).toBe(true)
    expect(hosting.remove(['t1']).ok).toBe(true)
    expect([hosting.terminator(), hosting.terminator('t2')?.id]).toEqual([undefined, 't2'])
  })

  test('can share its instance with another terminator only if both have the same secret', () => {
    const hosting = new Hosting()
    const instance = { instanceId: 'front', instanceSecret: 'c2VjcmV0' }
    expect(hosting.host(instance).ok).toBe(true)
    expect(hosting.host({ ...instance, id: 't2' }).ok).toBe(true)
    const other = { ...instance, id: 't3', instanceSecret: 'b3RoZXI=' }
    expect(hosting.host(other)).toMatchObject({ ok: false, fault: { field: 'identitySecret' } })
  })

  test.each([
    ['no id', { id: '' }],
    ['an id that is too long', { id: 'x'.repeat(hostedTerminatorLimits.idCharactersMax + 1) }],
    ['no address', { address: '' }],
    ['a cost above the maximum', { cost: 65_536 }],
    ['an unknown precedence', { precedence: 'best' }],
    ['an instance id that is too long', { instanceId: 'x'.repeat(513) }],
    ['a peer data value that is too long', { peerData: { '1': 'x'.repeat(4097) } }],
    [
      'too many peer data keys',
      { peerData: Object.fromEntries(Array.from({ length: 33 }, (_, at) => [String(at), 'x'])) },
    ],
  ])('is refused if it has %s', (_what, changes) => {
    expect(new Hosting().host(changes)).toMatchObject({ ok: false, code: 'COULD_NOT_VALIDATE' })
  })
})
