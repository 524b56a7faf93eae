import { create, toBinary } from '@bufbuild/protobuf'
import { afterAll, expect, test } from 'vitest'

import { CreateCircuitSchema, RemoveTerminatorsSchema } from '../../proto/gen/router_pb.ts'
import { messageRefusalReason } from '../../src/channel/message-bounds.ts'
import type { ProposalInput } from '../../src/ports/proposer.ts'
import { RouterTerminatorWriter } from '../../src/fabric/clients/router-terminator-writer.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { PresentedSessionTokens } from '../../src/fabric/clients/presented-session-tokens.ts'
import { TerminatorHandler } from '../../src/fabric/clients/terminator-handler.ts'
import { routerLimits } from '../../src/fabric/limits.ts'
import { settle } from '../channel/pipe.ts'
import { admittingClients } from '../fabric/fuzz.ts'
import { RouterStage, upToDate } from '../fabric/stage.ts'

// The attack: one router requests so many writes that those of other routers wait, or requests a
// circuit in the older message format, which had no limit.

const stage = new RouterStage()
afterAll(() => stage.channels.stop())

test('only a few writes of a router are proposed at the same time, and its other writes wait', async () => {
  const proposed: ProposalInput[] = []
  const going: (() => void)[] = []
  stage.channels.add(
    new TerminatorHandler({
      clients: new PresentedSessionTokens(admittingClients, upToDate, systemClock),
      writes: new RouterTerminatorWriter({
        log: { info: () => undefined, warn: () => undefined },
        proposer: {
          propose: (input) => {
            proposed.push(input)
            return new Promise((resolve) => {
              going.push(() => resolve({ index: 1, outcome: { ok: true, id: 'x' } } as never))
            })
          },
        },
      }),
    }),
  )
  const pipe = await stage.dial('er1')
  const ids = create(RemoveTerminatorsSchema, { terminatorIds: ['t1'] })
  const body = toBinary(RemoveTerminatorsSchema, ids)
  for (let times = 0; times < 100; times += 1) pipe.say({ contentType: 1038, body })
  await settle()
  expect(proposed).toHaveLength(routerLimits.routerWritesAtOnceMax)
  const other = await stage.dial('er2')
  other.say({ contentType: 1038, body })
  await settle()
  expect(proposed).toHaveLength(routerLimits.routerWritesAtOnceMax + 1)
  for (let at = 0; at < 101; at += 1) {
    going[at]?.()
    await new Promise((resolve) => setImmediate(resolve))
  }
  await settle()
  expect(proposed).toHaveLength(101)
})

test('a circuit request in the older message format is refused before it is decoded if it has too many elements', () => {
  const asked = create(CreateCircuitSchema, {
    fingerprints: Array.from({ length: 2000 }, () => ''),
  })
  const body = toBinary(CreateCircuitSchema, asked)
  expect(
    messageRefusalReason({ contentType: 20_205, sequence: 1, headers: new Map(), body }),
  ).toContain('elements')
})
