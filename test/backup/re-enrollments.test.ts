import { beforeEach, expect, test } from 'vitest'

import { CommandKind } from '../../proto/gen/command_pb.ts'
import { findReEnrollments, type ReEnrollments } from '../../src/backup/re-enrollments.ts'
import type { Router } from '../../src/entities/kinds/router.ts'
import { formedState } from '../fsm/support/log.ts'

// Goal: before a restore, an operator knows each router and device that it locks out, and no other.

/** A state with routers and devices. */
class Network {
  readonly formed = formedState()

  router(id: string, fields: Partial<Router> = {}): void {
    const { log, state } = this.formed
    log.create('edgeRouter', id, { name: `name of ${id}` })
    state.put('router', { ...(state.get('router', id) as Router), ...fields })
  }

  device(id: string, ...fingerprints: readonly string[]): void {
    const { log, state } = this.formed
    log.create('identity', id, { name: `name of ${id}`, type: 'Device', isAdmin: false })
    const [first = '', ...others] = fingerprints
    const fields = { method: 'cert', identityId: id, fingerprint: first, certPem: 'PEM' }
    log.raw(CommandKind.ENTITY_CREATE, 'authenticator', `cert ${first}`, fields)
    const made = state.get('authenticator', `cert ${first}`)
    if (made === undefined) throw new Error('the authenticator was refused')
    // Only enrollments create several certificates of one identity.
    for (const fingerprint of others) {
      state.put('authenticator', { ...made, id: `cert ${fingerprint}`, fingerprint })
    }
  }
}

let backup: Network
let live: Network
beforeEach(() => {
  backup = new Network()
  live = new Network()
})

const found = (): ReEnrollments => findReEnrollments(live.formed.state, backup.formed.state)

function names(): object {
  const { routers, identities } = found()
  const namesOf = ({ first }: ReEnrollments['routers']): string[] => first.map(({ name }) => name)
  return { routers: namesOf(routers), identities: namesOf(identities) }
}

test('a router that renewed its certificate or enrolled after the backup must enroll again', () => {
  for (const [id, before, now] of [
    ['unchanged', 'a1', 'a1'],
    ['renewed', 'b1', 'b2'],
    ['enrolled', null, 'c1'],
    ['never', null, null],
  ] as const) {
    backup.router(id, { fingerprint: before })
    live.router(id, { fingerprint: now })
  }
  live.router('created later', { fingerprint: 'd1' })
  expect(names()).toEqual({ routers: ['name of enrolled', 'name of renewed'], identities: [] })
})

test('a router need not enroll again if the backup contains its next certificate, or if its certificate was withdrawn', () => {
  backup.router('next', { fingerprint: 'a1', nextFingerprint: 'a2' })
  live.router('next', { fingerprint: 'a2' })
  backup.router('withdrawn', { fingerprint: 'b1' })
  live.router('withdrawn', { fingerprint: null })
  expect(names()).toEqual({ routers: [], identities: [] })
})

test('an identity with a certificate that the backup does not contain must enroll again, and is named once', () => {
  backup.device('unchanged', 'a1')
  live.device('unchanged', 'a1')
  backup.device('renewed', 'b1')
  live.device('renewed', 'b2', 'b3')
  backup.device('one more', 'c1')
  live.device('one more', 'c1', 'c2')
  backup.device('withdrawn', 'd1')
  live.device('created later', 'e1')
  expect(names()).toEqual({
    routers: [],
    identities: ['name of one more', 'name of renewed'],
  })
})

test('only the first 20 records of a kind are named, and all are counted', () => {
  for (let n = 10; n < 42; n += 1) {
    backup.router(`r${n}`)
    live.router(`r${n}`, { fingerprint: `f${n}` })
  }
  const { routers } = found()
  expect(routers.count).toBe(32)
  const ids = routers.first.map(({ id }) => id)
  expect(ids).toEqual(Array.from({ length: 20 }, (_, n) => `r${n + 10}`))
})
