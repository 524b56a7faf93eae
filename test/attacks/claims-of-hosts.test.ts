import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { beforeEach, afterEach, expect, test } from 'vitest'

import {
  CreateTerminatorResult,
  CreateTerminatorV2AnswerSchema,
  CreateTerminatorV2Schema,
} from '../../proto/gen/router_pb.ts'
import { RouterTerminatorWriter } from '../../src/fabric/clients/router-terminator-writer.ts'
import { PresentedSessionTokens } from '../../src/fabric/clients/presented-session-tokens.ts'
import { TerminatorHandler } from '../../src/fabric/clients/terminator-handler.ts'
import { routerLimits } from '../../src/fabric/limits.ts'
import type { Outcome } from '../../src/ports/proposer.ts'
import type { ClientAccessRequest, ClientAccessDecision } from '../../src/ports/router-clients.ts'
import { type Pipe, settle } from '../channel/pipe.ts'
import { RouterStage } from '../fabric/stage.ts'

// The attack: a stolen router, or a client through an honest router, requests terminators with
// false credentials, or with valid ones that lead to rejected log entries, as fast as it can. Each
// of these requests costs more than a successful one.

const { refusedClaimsOfRouterMax, refusedClaimsOfSessionMax, refusedEntriesOfSessionMax } =
  routerLimits
const [CREATE, ANSWER] = [20_216, 20_217]
const { SUCCESS, FAILED_BUSY, FAILED_OTHER } = CreateTerminatorResult
const client = {
  sessionId: 'bind',
  apiSessionId: 'session',
  serviceId: 's1',
  identityId: 'i1',
  identityName: 'host',
}

let stage: RouterStage
let nowMs: number
/** Number of reads of the latest state. */
let looks: number
let proposed: number
let judge: (claim: ClientAccessRequest) => ClientAccessDecision
let outcome: Outcome

beforeEach(() => {
  stage = new RouterStage()
  nowMs = 0
  looks = 0
  proposed = 0
  judge = () => ({ ok: true, client })
  outcome = { ok: true, id: 't1' }
  const clients = {
    judge: (claim: ClientAccessRequest) => Promise.resolve(judge(claim)),
    report: () => Promise.resolve(true),
  }
  const reads = {
    reachLatest: () => {
      looks += 1
      return Promise.resolve()
    },
    report: () => Promise.resolve(true),
  }
  const proposer = {
    propose: () => {
      proposed += 1
      return Promise.resolve({ index: 1, outcome })
    },
  }
  const log = { info: () => undefined, warn: () => undefined }
  stage.channels.add(
    new TerminatorHandler({
      clients: new PresentedSessionTokens(clients, reads, { monotonicMs: () => nowMs }),
      writes: new RouterTerminatorWriter({ proposer, log }),
    }),
  )
})
afterEach(() => stage.channels.stop())

async function ask(
  pipe: Pipe,
  apiSessionToken: string,
  bytes = 0,
): Promise<CreateTerminatorResult> {
  const body = toBinary(
    CreateTerminatorV2Schema,
    create(CreateTerminatorV2Schema, {
      address: 't1',
      sessionToken: 'token',
      apiSessionToken,
      peerData: { 1003: new Uint8Array(bytes) },
    }),
  )
  const before = pipe.ofType(ANSWER).length
  pipe.say({ contentType: CREATE, body })
  for (let turns = 0; turns < 50 && pipe.ofType(ANSWER).length === before; turns += 1)
    await settle()
  const answer = pipe.ofType(ANSWER).at(-1)
  return fromBinary(CreateTerminatorV2AnswerSchema, answer?.body ?? new Uint8Array()).result
}

test('Forged API sessions that one router presents cause only a limited number of reads at the latest commit index', async () => {
  judge = ({ apiSessionToken }) =>
    apiSessionToken === 'of ann' ? { ok: true, client } : { ok: false, fault: 'apiSession' }
  const [stolen, honest] = [await stage.dial('stolen'), await stage.dial('honest')]
  for (let at = 0; at < refusedClaimsOfRouterMax + 50; at += 1) {
    expect(await ask(stolen, `forged ${at}`)).toBe(FAILED_OTHER)
  }
  expect(looks).toBe(refusedClaimsOfRouterMax)
  expect(await ask(stolen, 'of ann'), 'a valid claim is accepted').toBe(SUCCESS)
  expect(await ask(honest, 'unknown')).toBe(FAILED_OTHER)
  expect(looks, 'another router has its own limit').toBe(refusedClaimsOfRouterMax + 1)
  nowMs += 60_000
  expect(await ask(stolen, 'in the next minute')).toBe(FAILED_OTHER)
  expect(looks).toBe(refusedClaimsOfRouterMax + 2)
})

test('Refused session tokens of one client cause only a limited number of reads at the latest commit index, counted separately for each client of a router', async () => {
  judge = () => ({ ok: false, fault: 'session' })
  const router = await stage.dial('honest')
  const sessions = Math.ceil(refusedClaimsOfRouterMax / refusedClaimsOfSessionMax) + 1
  for (let session = 1; session <= sessions; session += 1) {
    for (let at = 0; at < refusedClaimsOfSessionMax + 10; at += 1) {
      expect(await ask(router, `of mallory ${session}`)).toBe(FAILED_OTHER)
    }
    expect(looks).toBe(session * refusedClaimsOfSessionMax)
  }
  await ask(router, 'of ann')
  expect(looks).toBe(sessions * refusedClaimsOfSessionMax + 1)
})

test('A client causes no more log entries after a limited number of its log entries was rejected', async () => {
  outcome = {
    ok: false,
    code: 'COULD_NOT_VALIDATE',
    fault: { field: 'identity', reason: 'other' },
    detail: null,
  }
  const router = await stage.dial('honest')
  for (let at = 0; at < refusedEntriesOfSessionMax; at += 1) {
    expect(await ask(router, 'of mallory')).toBe(FAILED_OTHER)
  }
  proposed = 0
  expect(await ask(router, 'of mallory')).toBe(FAILED_BUSY)
  expect(proposed).toBe(0)
  outcome = { ok: true, id: 't1' }
  expect(await ask(router, 'of ann')).toBe(SUCCESS)
})

test('A terminator with too much data is refused before it reaches the log', async () => {
  const router = await stage.dial('stolen')
  const bytes = routerLimits.routerEntryBytesMax
  expect(await ask(router, 'of mallory', bytes)).toBe(FAILED_OTHER)
  expect(proposed).toBe(0)
})
