import { afterEach, beforeEach, expect, test } from 'vitest'

import { identitySpiffeId, sessionSpiffeId } from '../../src/pki/spiffe.ts'
import { EdgeBench } from '../router/edge/support.ts'
import { trustDomain } from '../router/support.ts'

// The attack: somebody has seen the token of an API session (in a log, or at a stolen router) and
// presents it at a router with a certificate of another identity. The network has issued that
// certificate, as it does for every identity.

let bench: EdgeBench
beforeEach(async () => {
  bench = await EdgeBench.open()
})
afterEach(() => bench.close())

test('A session token is refused without the certificate of its session', async () => {
  const [ann, mallory] = [await bench.person('ann'), await bench.person('mallory')]
  bench.controller.tellSessions([ann])
  bench.controller.tellSessions([mallory])
  const thief = await bench.connect(ann, { key: mallory.key })
  expect(thief.isAdmitted).toBe(false)
  expect(bench.edge.channels).toBe(0)
  expect((await bench.connect(ann)).isAdmitted, 'its owner').toBe(true)
})

test('A client certificate that names another session, identity or network is refused', async () => {
  const ann = await bench.person('ann')
  bench.controller.tellSessions([ann])
  const ids = { identityId: 'ann', apiSessionId: 'ann-session', certificateId: 'c' }
  const forged = [
    sessionSpiffeId(trustDomain, { ...ids, apiSessionId: 'mallory-session' }),
    sessionSpiffeId(trustDomain, { ...ids, identityId: 'mallory' }),
    sessionSpiffeId('other.example', ids),
    identitySpiffeId(trustDomain, 'ann'),
  ]
  const admitted: string[] = []
  for (const uri of forged) {
    const { key } = await bench.person('mallory', [uri])
    if ((await bench.connect(ann, { key })).isAdmitted) admitted.push(uri)
  }
  expect(admitted).toEqual([])
})

test('A client certificate that names the session but was issued by a foreign CA is refused', async () => {
  const ann = await bench.person('ann')
  bench.controller.tellSessions([ann])
  const other = await EdgeBench.open()
  try {
    const ids = { identityId: 'ann', apiSessionId: 'ann-session', certificateId: 'c' }
    const { key } = await other.person('ann', [sessionSpiffeId(trustDomain, ids)])
    expect((await bench.connect(ann, { key })).isAdmitted).toBe(false)
  } finally {
    await other.close()
  }
})
