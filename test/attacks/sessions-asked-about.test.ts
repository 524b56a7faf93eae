import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { afterEach, expect, test } from 'vitest'

import { SessionRemovedSchema, ValidateSessionsSchema } from '../../proto/gen/router_pb.ts'
import { unverifiedServiceSessionId } from '../../src/auth/sessions/service-session-token.ts'
import { SessionHandler } from '../../src/fabric/clients/session-handler.ts'
import { PresentedSessionTokens } from '../../src/fabric/clients/presented-session-tokens.ts'
import { routerLimits } from '../../src/fabric/limits.ts'
import { admittingClients } from '../fabric/fuzz.ts'
import { RouterStage, upToDate } from '../fabric/stage.ts'
import { eventually } from '../support/eventually.ts'
import type { RouterChannelsDeps } from '../../src/fabric/router-channels.ts'
import { settle } from '../channel/pipe.ts'
import { ManualClock } from '../api/support/manual-time.ts'

// The attack: a router asks again and again whether sessions have ended, which costs the router
// nothing and its controller much.

let stage: RouterStage
let clock: ManualClock
afterEach(() => stage.channels.stop())

function staged(processor?: RouterChannelsDeps['processor']): RouterStage {
  stage = new RouterStage(processor)
  clock = new ManualClock()
  const clients = {
    ...admittingClients,
    goneSession: (token: string) => ({ token, id: unverifiedServiceSessionId(token) ?? token }),
  }
  stage.channels.add(
    new SessionHandler({
      clients,
      shown: new PresentedSessionTokens(clients, upToDate, clock),
      clock,
      isLeader: () => true,
      onEnded: () => undefined,
      connections: () => stage.channels.connections(),
    }),
  )
  return stage
}

const part = (claims: object): string => Buffer.from(JSON.stringify(claims)).toString('base64url')

test('a controller looks up the service sessions in a router’s query one per work step, without verifying their tokens', async () => {
  let steps = 0
  const pipe = await staged({
    begin: (_caller, work) => {
      const left = work()
      for (; left !== null && left.next().done !== true; steps += 1);
      return null
    },
  }).dial('er1')
  steps = 0
  const forged = `${part({ alg: 'ES256' })}.${part({ z_t: 's', jti: 'named' })}.AAAA`
  const sessionTokens = Array.from({ length: routerLimits.sessionsValidatedMax }, () => forged)
  const asked = create(ValidateSessionsSchema, { sessionTokens })
  pipe.say({ contentType: 20_213, body: toBinary(ValidateSessionsSchema, asked) })
  await settle()
  const [told] = pipe.ofType(20_102)
  const { ids } = fromBinary(SessionRemovedSchema, told?.body ?? new Uint8Array())
  expect(new Set(ids)).toEqual(new Set(['named']))
  expect(steps).toBeGreaterThanOrEqual(routerLimits.sessionsValidatedMax)
})

test('a controller sends the full list of API sessions to a router at most once in 5 s, even if the router requests the list more often', async () => {
  const pipe = await staged().dial('er1')
  stage.channels.sweep()
  const before = pipe.ofType(20_200).length
  const sent: number[] = []
  for (const passedMs of [0, 4999, 1]) {
    clock.advance(passedMs)
    const pongs = pipe.ofType(2).length
    for (let times = 0; times < 50; times += 1) pipe.say({ contentType: 20_204, sequence: times })
    pipe.say({ contentType: 1, sequence: 99 })
    await eventually(() => expect(pipe.ofType(2).length).toBeGreaterThan(pongs))
    stage.channels.sweep()
    sent.push(pipe.ofType(20_200).length - before)
  }
  expect(sent).toEqual([1, 1, 2])
})
