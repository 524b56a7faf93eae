import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { afterEach, expect, test } from 'vitest'

import { HostedTerminatorsRemoveSchema } from '../../proto/gen/command_pb.ts'
import {
  CreateTerminatorV2Schema,
  FaultSchema,
  FaultSubject,
  RemoveTerminatorsSchema,
} from '../../proto/gen/router_pb.ts'
import { messageBounds } from '../../src/channel/message-bounds.ts'
import { routerLimits } from '../../src/fabric/limits.ts'
import { RouterTerminatorWriter } from '../../src/fabric/clients/router-terminator-writer.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { PresentedSessionTokens } from '../../src/fabric/clients/presented-session-tokens.ts'
import { TerminatorHandler } from '../../src/fabric/clients/terminator-handler.ts'
import type { ProposalInput } from '../../src/ports/proposer.ts'
import type { Pipe } from '../channel/pipe.ts'
import { admittingClients, dutiesStage } from '../fabric/fuzz.ts'
import { empties, hostileBodies, wrapped } from '../fabric/heavy-bodies.ts'
import { RouterStage, upToDate } from '../fabric/stage.ts'
import { eventually } from '../support/eventually.ts'

// The attack: an enrolled router stops its controller, or the whole cluster, with a few frames that
// cost the receiver a thousand times what they cost their sender.

let stage: RouterStage
afterEach(() => stage.channels.stop())

async function dialed(): Promise<Pipe> {
  ;({ stage } = dutiesStage())
  return await stage.dial('er1')
}

const isRefused = (pipe: Pipe, sequence: number): boolean =>
  pipe.ofType(2).some(({ headers }) => {
    const isReply = Buffer.from(headers.get(1) ?? []).readInt32LE(0) === sequence
    return isReply && headers.get(2)?.[0] === 0
  })

const reason = (): string => stage.lines.filter((line) => line.startsWith('message refused')).join()

test('a message with too many elements is refused before it is decoded', async () => {
  const pipe = await dialed()
  const body = empties(1, messageBounds.routerLinks.elementsMax / 10)
  pipe.say({ contentType: 1035, sequence: 7, body })
  await eventually(() => {
    expect(isRefused(pipe, 7)).toBe(true)
  })
  expect(reason()).toContain('more than 262144 elements')
})

test('a message with one oversized field is refused before it is decoded', async () => {
  const pipe = await dialed()
  const body = wrapped(1, wrapped(7, empties(2, 2000)))
  pipe.say({ contentType: 1035, sequence: 7, body })
  await eventually(() => {
    expect(isRefused(pipe, 7)).toBe(true)
  })
  expect(reason()).toContain('elements in one field')
})

test('a message whose body exceeds the maximum size is refused', async () => {
  const pipe = await dialed()
  const fault = { subject: FaultSubject.FORWARD, id: ' '.repeat(messageBounds.fault.bytesMax) }
  pipe.say({
    contentType: 1004,
    sequence: 7,
    body: toBinary(FaultSchema, create(FaultSchema, fault)),
  })
  await eventually(() => {
    expect(isRefused(pipe, 7)).toBe(true)
  })
  expect(reason()).toContain('bytes of body')
})

test('a second oversized message closes the router’s channel', async () => {
  const pipe = await dialed()
  const body = empties(1, messageBounds.removeTerminators.elementsMax + 1)
  pipe.say({ contentType: 1038, sequence: 7, body })
  pipe.say({ contentType: 1038, sequence: 8, body })
  await eventually(() => {
    expect(pipe.destroyed).toBe(true)
  })
  expect(isRefused(pipe, 8)).toBe(false)
})

test('for each message type, two messages that are expensive to decode close the router’s channel', async () => {
  for (const [name, contentType, body] of hostileBodies(5 * 1024 * 1024)) {
    const pipe = await dialed()
    pipe.say({ contentType, sequence: 7, body })
    pipe.say({ contentType, sequence: 8, body })
    await eventually(() => {
      expect(pipe.destroyed, name).toBe(true)
    })
    stage.channels.stop()
  }
})

/** Some 5,000 clients, which is within the bounds. */
const clients = Buffer.concat(
  Array.from({ length: 5000 }, (_, at) =>
    wrapped(1, Buffer.concat([wrapped(1, Buffer.from(`i${at}`)), Uint8Array.of(16, 1)])),
  ),
)

test('the controller handles other events while it processes one frame of many steps', async () => {
  const pipe = await dialed()
  // Sends until the router's work must wait for its share of processor time.
  for (let at = 0; at < 20; at += 1) pipe.say({ contentType: 20_415, sequence: at, body: clients })
  pipe.say({ contentType: 1, sequence: 100 })
  let turns = 0
  await eventually(
    async () => {
      await new Promise((resolve) => setImmediate(resolve))
      turns += 1
      expect(pipe.ofType(2).length).toBeGreaterThan(1)
    },
    { interval: 0 },
  )
  // The work pauses after about each millisecond.
  expect(turns).toBeGreaterThan(20)
})

test('the controller stops reading from a router while it processes frames of the router', async () => {
  const pipe = await dialed()
  let isWorked: () => void = () => undefined
  const done = new Promise<void>((resolve) => {
    isWorked = resolve
  })
  stage.channels.add({
    handlers: new Map([
      [
        77,
        function* () {
          for (let at = 0; at < 20_000; at += 1) yield
          isWorked()
        },
      ],
    ]),
  })
  for (let at = 0; at < 50; at += 1) pipe.say({ contentType: 77, sequence: at })
  let wasPaused = false
  let isDone = false
  void done.then(() => {
    isDone = true
  })
  while (!isDone) {
    wasPaused ||= pipe.isPaused()
    await new Promise((resolve) => setImmediate(resolve))
  }
  expect(wasPaused).toBe(true)
})

test('processing messages of a busy router leaves half of the processor time to other work', async () => {
  const pipe = await dialed()
  const works: { fromMs: number; toMs: number; workedMs: number }[] = []
  stage.channels.add({
    handlers: new Map([
      [
        77,
        function* () {
          const fromMs = performance.now()
          let workedMs = 0
          for (let step = 0; step < 10; step += 1) {
            const at = performance.now()
            while (performance.now() - at < 2);
            workedMs += performance.now() - at
            yield
          }
          works.push({ fromMs, toMs: performance.now(), workedMs })
        },
      ],
    ]),
  })
  for (let at = 0; at < 5; at += 1) pipe.say({ contentType: 77, sequence: at })
  await eventually(() => {
    expect(works).toHaveLength(5)
  })
  for (const [at, { toMs, workedMs }] of works.slice(0, -1).entries()) {
    const restMs = (works[at + 1]?.fromMs ?? 0) - toMs
    // A timer may be a millisecond early.
    expect(restMs).toBeGreaterThan(Math.min(workedMs, 1000) - 2)
  }
})

/** A test setup with a cluster that accepts every write. */
async function writing(): Promise<{ pipe: Pipe; proposed: ProposalInput[] }> {
  const proposed: ProposalInput[] = []
  stage = new RouterStage()
  const log = { info: () => undefined, warn: () => undefined }
  const proposer = {
    propose: (input: ProposalInput) => {
      proposed.push(input)
      return Promise.resolve({ index: 1, outcome: { ok: true as const, id: '' } })
    },
  }
  const writes = new RouterTerminatorWriter({ log, proposer })
  const clients = new PresentedSessionTokens(admittingClients, upToDate, systemClock)
  stage.channels.add(new TerminatorHandler({ clients, writes }))
  return { pipe: await stage.dial('er1'), proposed }
}

test('each log entry removes at most a hundred terminators, however many terminators a router’s request names', async () => {
  const { pipe, proposed } = await writing()
  const terminatorIds = Array.from({ length: 950 }, (_, at) => `terminator ${at}`)
  const message = create(RemoveTerminatorsSchema, { terminatorIds })
  pipe.say({ contentType: 1038, sequence: 7, body: toBinary(RemoveTerminatorsSchema, message) })
  await eventually(() => {
    expect(pipe.ofType(2).length).toBeGreaterThan(1)
  })
  const named = proposed.map(
    ({ payload }) => fromBinary(HostedTerminatorsRemoveSchema, payload).ids,
  )
  expect(named.flat()).toEqual(terminatorIds)
  expect(Math.max(...named.map((ids) => ids.length))).toBeLessThanOrEqual(100)
})

test('a router’s message that would create a log entry larger than the limit is refused', async () => {
  const { pipe, proposed } = await writing()
  const terminatorIds = ['x'.repeat(routerLimits.routerEntryBytesMax)]
  const removal = create(RemoveTerminatorsSchema, { terminatorIds })
  pipe.say({ contentType: 1038, sequence: 7, body: toBinary(RemoveTerminatorsSchema, removal) })
  const address = 'y'.repeat(routerLimits.routerEntryBytesMax)
  const made = create(CreateTerminatorV2Schema, { address, sessionToken: 's' })
  pipe.say({ contentType: 20_216, sequence: 8, body: toBinary(CreateTerminatorV2Schema, made) })
  await eventually(() => {
    expect(isRefused(pipe, 7)).toBe(true)
    expect(pipe.ofType(20_217)).toHaveLength(1)
  })
  expect(proposed.map(({ kind }) => kind)).toEqual([])
})
