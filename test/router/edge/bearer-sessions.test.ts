import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import { readText, encodeText } from '../../../src/channel/headers.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { unverifiedClaims } from '../../../src/pki/oidc-token.ts'
import { BearerSessions } from '../../../src/router/edge/bearer-sessions.ts'
import { identitySpiffeId } from '../../../src/pki/spiffe.ts'
import { trustDomain } from '../support.ts'
import type { ModelEvent } from '../../../src/ports/router-model.ts'
import { BearerBench, modelIdentity, revocationOf, SECOND_MS } from './bearers.ts'
import { eventually, madeCircuit, serviceToken, type TestClient } from './support.ts'

// Goal: an OIDC client presents its access token to a router, which serves the client as long as
// the token is valid, whichever controllers are reachable: the router knows their keys.

let bearers: BearerBench
beforeEach(async () => {
  bearers = await BearerBench.open()
})
afterEach(() => bearers.bench.close())

function renewal(client: TestClient, token: string) {
  return client.channel.request({ contentType: 60_803, body: encodeText(token) }, 20_000)
}

describe('A client with an access token is admitted', () => {
  test('if it presents the certificate to which the token is bound', async () => {
    const { bench } = bearers
    const client = await bench.connect(await bearers.person('ann'))
    expect(client.refusal).toBe('')
    expect(client.isAdmitted).toBe(true)
    expect(bench.edge.channels).toBe(1)
  })

  test('if it presents a certificate that names its identity, and the token is bound to no certificate', async () => {
    const { bench } = bearers
    const ann = await bearers.person('ann', [identitySpiffeId(trustDomain, 'ann')])
    const token = await bearers.token(ann, { z_cfs: null })
    expect((await bench.connect(ann, { token })).isAdmitted).toBe(true)
  })

  test('as soon as the router has received the client’s identity', async () => {
    await bearers.bench.close()
    bearers = await BearerBench.open('60s')
    const { bench } = bearers
    const ann = await bench.person('ann')
    const connecting = bench.connect({ ...ann, token: await bearers.token(ann) })
    await eventually(() => bench.edge.ports.length).toBe(1)
    bearers.tell(modelIdentity('other'))
    bearers.tell(modelIdentity('ann'))
    expect((await connecting).isAdmitted).toBe(true)
  })

  test('as soon as the router knows the key of the controller that signed the token', async () => {
    await bearers.bench.close()
    bearers = await BearerBench.open('60s')
    const { bench } = bearers
    const ann = await bearers.person('ann')
    const newcomer = await bench.network.leaf('ctrl2', [], [])
    const connecting = bench.connect(ann, { token: await bearers.token(ann, {}, newcomer) })
    bearers.tellKey(newcomer.certificatePem)
    expect((await connecting).isAdmitted).toBe(true)
  })
})

test('A router forwards a client’s requests with the newest token that the client has presented', async () => {
  const { bench } = bearers
  const ann = await bearers.person('ann')
  const client = await bench.connect(ann)
  bench.controller.circuits = () => madeCircuit('c1')
  await client.request(60_783, 1, serviceToken('s1'))
  const renewed = await bearers.token(ann, { jti: 'renewed' })
  expect((await renewal(client, renewed)).contentType).toBe(60_801)
  await client.request(60_783, 2, serviceToken('s1'))
  const tokens = bench.controller
    .ofType(20_218)
    .map(({ headers }) => readText(headers ?? new Map<number, Uint8Array>(), 14))
  expect(tokens).toEqual([ann.token, renewed])
})

describe('An access token that replaces a client’s earlier token', () => {
  test('keeps all channels of its session open after the earlier token expires', async () => {
    const { bench } = bearers
    const ann = await bearers.person('ann')
    const nowSeconds = Math.floor(Date.now() / SECOND_MS)
    const short = await bearers.token(ann, { exp: nowSeconds + 600 })
    const [first, second] = [
      await bench.connect(ann, { token: short }),
      await bench.connect(ann, { token: short }),
    ]
    expect((await renewal(first, ann.token)).contentType).toBe(60_801)
    const bob = await bearers.person('bob')
    const ended = await bench.connect(bob, {
      token: await bearers.token(bob, { exp: nowSeconds + 600 }),
    })
    bench.aheadMs = 601 * SECOND_MS
    bearers.tell(modelIdentity('other'))
    await eventually(() => ended.closedReason).not.toBe(null)
    expect([first.closedReason, second.closedReason]).toEqual([null, null])
  })

  test('is refused, and the channel is closed, if the token does not belong to the session', async () => {
    const { bench } = bearers
    const [ann, legacy] = [await bearers.person('ann'), await bench.person('bob')]
    bench.controller.tellSessions([legacy])
    const client = await bench.connect(legacy)
    expect((await renewal(client, ann.token)).contentType).toBe(60_802)
    await eventually(() => client.closedReason).not.toBe(null)
  })
})

describe('A client that requests a circuit by service name', () => {
  const asked = [1036, encodeText('ledger')] as const
  const byName = [1037, Uint8Array.of(1)] as const

  /** The data model of the router gets a policy that lets ann dial the service. */
  function permit(): void {
    const service = { id: 'ledger-id', name: 'ledger', encryptionRequired: false, configs: [] }
    const policy = { id: 'p', name: 'p', type: 'Dial' } as const
    bearers.tell(
      { kind: 'service', action: 'create', value: service },
      { kind: 'servicePolicy', action: 'create', value: policy },
      { kind: 'members', policyId: 'p', of: 'service', ids: ['ledger-id'], isAdded: true },
      { kind: 'members', policyId: 'p', of: 'identity', ids: ['ann'], isAdded: true },
    )
  }

  test('gets its circuit if it presents only its access token', async () => {
    const { bench } = bearers
    const ann = await bearers.person('ann')
    permit()
    const client = await bench.connect(ann)
    bench.controller.circuits = () => ({ ...madeCircuit('c1'), contentType: 20_223 })
    const answer = await client.request(60_806, 1, '', [asked, byName])
    expect(answer.contentType).toBe(60_784)
    const [request] = bench.controller.ofType(20_222)
    const said = (key: number): string | null =>
      readText(request?.headers ?? new Map<number, Uint8Array>(), key)
    expect([said(14), said(15), said(16), said(11)]).toEqual([ann.token, 'ann', 'ledger-id', null])
    const other = await client.request(60_806, 2, '', [[1036, encodeText('ledger-id')]])
    expect(other.contentType).toBe(60_784)
  })

  test('gets no information about a service that no policy allows it to dial', async () => {
    const { bench } = bearers
    permit()
    const client = await bench.connect(await bearers.person('bob'))
    for (const name of ['ledger', 'nothing']) {
      const answer = await client.request(60_806, 1, '', [[1036, encodeText(name)], byName])
      expect(answer.contentType).toBe(60_785)
      expect(Buffer.from(answer.body).toString()).toBe('no such service')
    }
    expect(bench.controller.ofType(20_222)).toEqual([])
  })

  test('must present a service session token if its API session is not an OIDC session', async () => {
    const { bench } = bearers
    const client = await bench.admitted('bob')
    const answer = await client.request(60_806, 1, '', [asked])
    expect(answer.contentType).toBe(60_785)
    expect(bench.controller.ofType(20_222)).toEqual([])
  })
})

test('Routers send no activity reports for access tokens to controllers, because clients renew these tokens at the API', async () => {
  const { bench } = bearers
  await bench.connect(await bearers.person('ann'))
  bench.controller.tellSessions([await bench.person('bob')], { isFull: true })
  expect(bench.edge.channels).toBe(1)
  expect(bench.controller.ofType(20_203)).toEqual([])
})

test('After a change of the data model a router evaluates only those tokens again that the change may invalidate', async () => {
  const names = ['ann', 'bob', 'cy', 'dan']
  const people = await Promise.all(names.map((name) => bearers.person(name)))
  let looks = 0
  const nowMs = (): number => {
    looks += 1
    return Date.now()
  }
  const ended: string[] = []
  const { signal } = new AbortController()
  const sessions = new BearerSessions({
    model: bearers.bench.model,
    clock: { ...systemClock, nowMs },
    isShown: () => true,
    onEnded: (tokens) => ended.push(...tokens),
  })
  for (const [at, person] of people.entries()) {
    const token = await bearers.token(person, { jti: `token ${at}` })
    expect(await sessions.await(token, 0, signal)).not.toBeNull()
  }
  /** The identities whose tokens the event ends, and how many tokens the router checked. */
  const after = async (event: ModelEvent) => {
    const told = new Promise<void>((resolve) => {
      const stop = bearers.bench.model.onChanged(() => {
        stop()
        resolve()
      })
    })
    looks = 0
    bearers.tell(event)
    await told
    const gone = ended.splice(0).map((token) => unverifiedClaims(token)?.['sub'])
    return { gone, looks }
  }
  const [, bob, cy] = people
  const hourAgoMs = Date.now() - 3_600_000
  expect(await after(modelIdentity('somebody'))).toEqual({ gone: [], looks: 0 })
  const disabled = modelIdentity('ann', { disabledAt: hourAgoMs })
  expect(await after(disabled)).toEqual({ gone: ['ann'], looks: 1 })
  const ofSession = revocationOf(bob?.sessionId ?? '', 'API_SESSION', Date.now())
  expect(await after(ofSession)).toEqual({ gone: ['bob'], looks: 1 })
  expect(await after(revocationOf('token 2', 'JTI', Date.now()))).toEqual({
    gone: ['cy'],
    looks: 1,
  })
  const ofIdentity = revocationOf(cy?.identityId ?? '', 'IDENTITY', hourAgoMs)
  expect(await after(ofIdentity)).toEqual({ gone: [], looks: 0 })
  expect(await after(revocationOf('dan', 'IDENTITY', Date.now() + 60_000))).toEqual({
    gone: ['dan'],
    looks: 1,
  })
  expect(sessions.size).toBe(0)
  sessions.stop()
})
