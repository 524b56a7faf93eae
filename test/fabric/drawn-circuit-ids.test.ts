import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import type { Route } from '../../proto/gen/router_pb.ts'
import { encodeInt32, readInt32, readText, encodeText } from '../../src/channel/headers.ts'
import { type Pipe, settle } from '../channel/pipe.ts'
import { askByService, HeirStage, routes } from './heir-stage.ts'

const drawn = 'drawn-by-the-router'
const client = { identityId: 'i1', identityName: 'clerk', serviceId: 's1' }

let stage: HeirStage
let er1: Pipe

beforeEach(async () => {
  stage = new HeirStage()
  stage.judged = { ok: true, client: { ...client, sessionId: 'dial', apiSessionId: 'session' } }
  stage.hosted = [['t1', 'er1']]
  er1 = await stage.routers.dial('er1')
})
afterEach(() => stage.routers.channels.stop())

const refusals = (): readonly string[] =>
  er1.ofType(20_002).map(({ body }) => Buffer.from(body).toString())

async function answerRoute(route: Route | undefined): Promise<void> {
  const headers = new Map([
    [1101, encodeInt32(route?.attempt ?? 0)],
    [1102, Uint8Array.of(1)],
  ])
  er1.say({ contentType: 1022, headers, body: encodeText(route?.circuitId ?? '') })
  await settle()
}

describe('a circuit that a router requests by service', () => {
  test('has the circuit ID that the router has chosen', async () => {
    await askByService(er1, drawn)
    await answerRoute(routes(er1)[0])
    const [reply] = er1.ofType(20_223)
    expect(readText(reply?.headers ?? new Map(), 11)).toBe(drawn)
    expect(stage.circuits.get(drawn)).toMatchObject({ clientId: 'i1', serviceId: 's1' })
  })

  test('gets its circuit ID from the controller if the router sends none', async () => {
    await askByService(er1, '')
    expect(routes(er1)[0]?.circuitId).toMatch(/^[0-9a-f-]{36}$/)
  })

  test('is refused with the error code of an unknown service if the client may not dial the service', async () => {
    stage.judged = { ok: false, fault: 'access' }
    await askByService(er1, drawn)
    expect(refusals()).toEqual(['dial refused: access'])
    const [message] = er1.ofType(20_002)
    expect(readInt32(message?.headers ?? new Map(), 1014)).toBe(6)
  })

  test('is refused while another circuit has the chosen ID, and accepted once that circuit has ended', async () => {
    await askByService(er1, drawn)
    await answerRoute(routes(er1)[0])
    await askByService(er1, drawn)
    expect(refusals()).toEqual(['a circuit has that id already'])
    expect(routes(er1)).toHaveLength(1)
    stage.circuits.remove(drawn, true)
    await askByService(er1, drawn)
    expect(refusals()).toHaveLength(1)
    expect(routes(er1)).toHaveLength(2)
  })

  test.each(['short', 'x'.repeat(65), 'with some spaces'])(
    'is refused if the chosen ID is %j',
    async (id) => {
      await askByService(er1, id)
      expect(refusals()).toEqual(['the circuit id is malformed'])
    },
  )
})
