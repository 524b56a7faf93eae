import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads'
import { codeOf } from '../test/support/totp.ts'
import { LeanClient } from './support/lean-client.ts'
import { ClusterOfPeople, client } from './support/people.ts'
import { processorMs } from './support/processor-time.ts'
import { heading, percentile, spread } from './support/report.ts'

// Measures the cost of clients that report posture. 5,000 clients have a second factor and report
// to one of three controllers: a process, the operating system, hardware addresses, the domain and
// the state of the device. Policies require all of these checks. The reports either stay the same
// or change whether checks pass; each client reports once a minute, or without a pause.

const REPORTERS = 16

interface Reporting {
  readonly url: string
  readonly ca: string
  readonly tokens: readonly string[]
  readonly checks: Readonly<Record<'process' | 'os' | 'mac' | 'domain', string>>
  readonly isChanging: boolean
  /** Reports per second of all clients together; Infinity: without a pause. */
  readonly perSecond: number
}

if (isMainThread) await main()
else await report(workerData as Reporting)

/** A client's report in one request; `isGood`: all checks pass. */
function told({ checks }: Reporting, at: number, isGood: boolean): string {
  const mac = (0x10_00_00_00_00_00 + at).toString(16)
  return JSON.stringify([
    {
      typeId: 'PROCESS',
      id: checks.process,
      path: '/usr/bin/guard',
      isRunning: isGood,
      hash: 'ab'.repeat(64),
      signerFingerprints: ['cd'.repeat(20)],
    },
    { typeId: 'OS', id: checks.os, type: 'Linux', version: isGood ? '6.1.0' : '4.1.0', build: '' },
    { typeId: 'MAC', id: checks.mac, macAddresses: [isGood ? '001b44113ab7' : mac] },
    { typeId: 'DOMAIN', id: checks.domain, domain: isGood ? 'corp.test' : 'home.test' },
    { typeId: 'ENDPOINT_STATE', id: 'any', woken: false, unlocked: false },
  ])
}

/**
 * Sends reports from a separate thread, so that the latency of another caller depends only on the
 * controller. Reports at the end how many reports were accepted.
 */
async function report(given: Reporting): Promise<void> {
  const { url, ca, tokens, isChanging, perSecond } = given
  let isOver = false
  parentPort?.once('message', () => {
    isOver = true
  })
  const clients = await Promise.all(
    Array.from({ length: REPORTERS }, () => LeanClient.connect(url, ca)),
  )
  parentPort?.postMessage('reporting')
  const startedAt = performance.now()
  let next = 0
  let taken = 0
  await Promise.all(
    clients.map(async (one) => {
      while (!isOver) {
        const at = next
        next += 1
        const dueMs = startedAt + (at / perSecond) * 1000 - performance.now()
        if (dueMs > 0) await new Promise((resolve) => setTimeout(resolve, dueMs))
        const isGood = !isChanging || Math.floor(at / tokens.length) % 2 === 1
        const who = at % tokens.length
        const path = `${client}/posture-response-bulk`
        const { status, body } = await one.request(
          'POST',
          path,
          tokens[who] ?? '',
          told(given, who, isGood),
        )
        if (status === 200) taken += 1
        else if (status !== 429) throw new Error(body)
      }
    }),
  )
  for (const one of clients) one.close()
  parentPort?.postMessage(taken)
}

interface Round {
  readonly reports: number
  /**
   * Processor time of the controller that receives the reports, and of another one, to which it
   * publishes the posture.
   */
  readonly processorMs: readonly [told: number, other: number]
  readonly latencies: number[]
}

async function main(): Promise<void> {
  const { values: options } = parseArgs({
    options: {
      clients: { type: 'string', default: '5000' },
      rounds: { type: 'string', default: '3' },
      seconds: { type: 'string', default: '6' },
    },
  })
  const count = Number(options.clients)
  const seconds = Number(options.seconds)
  console.log(
    heading(`Posture reports of ${count} clients, five facts each; min / median / max over rounds`),
  )
  await using people = await ClusterOfPeople.start()
  const { cluster } = people
  const checks = await makeChecks(people)
  const ids = await people.newIdentities(count, (at) => ({
    name: `client ${at}`,
    roleAttributes: [`team${at % 50}`],
  }))
  const tokens = await people.sessionsOf(ids)
  await turnOnMfa(people, tokens)
  const [observer = ''] = await people.newIdentities(1, () => ({
    name: 'observer',
    roleAttributes: ['team1'],
  }))
  const [token = ''] = await people.sessionsOf([observer])
  const polite = await people.connect(1)

  const measured = async (given: Partial<Reporting> | null): Promise<Round> => {
    const worker =
      given === null
        ? null
        : new Worker(new URL(import.meta.url), {
            workerData: {
              url: people.url(1),
              ca: cluster.admin.ca,
              tokens,
              checks,
              isChanging: false,
              perSecond: Infinity,
              ...given,
            },
          })
    if (worker !== null) await new Promise((resolve) => worker.once('message', resolve))
    const pids = [1, 2].map((k) => cluster.pid(k) ?? 0)
    const before = pids.map(processorMs)
    const latencies: number[] = []
    const end = performance.now() + seconds * 1000
    while (performance.now() < end) {
      const from = performance.now()
      const answer = await polite.request('GET', `${client}/services?limit=20`, token)
      if (answer.status !== 200) throw new Error(answer.body)
      latencies.push(performance.now() - from)
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    const [toldMs = 0, otherMs = 0] = pids.map((pid, at) => processorMs(pid) - (before[at] ?? 0))
    let reports = 0
    if (worker !== null) {
      const ended = new Promise<number>((resolve) => worker.once('message', resolve))
      worker.postMessage('stop')
      reports = await ended
    }
    return { reports, processorMs: [toldMs, otherMs], latencies }
  }

  const memory = (): string => `${residentMiB(cluster.pid(1) ?? 0).toFixed(0)} MiB`
  const before = memory()
  for (let at = 0; at < count;) at += (await measured({})).reports
  const toldOnce = memory()
  const kinds: readonly (readonly [string, Partial<Reporting> | null])[] = [
    ['nobody reports', null],
    ['a minute each, the same', { perSecond: count / 60 }],
    ['a minute each, changing', { perSecond: count / 60, isChanging: true }],
    ['no pause, the same', {}],
    ['no pause, changing', { isChanging: true }],
  ]
  let idle: Round[] = []
  let all = 0
  for (const [title, given] of kinds) {
    const rounds: Round[] = []
    for (let round = 0; round < Number(options.rounds); round += 1) {
      rounds.push(await measured(given))
    }
    if (given === null) idle = rounds
    all += rounds.reduce((sum, { reports }) => sum + reports, 0)
    print(title, rounds, idle, seconds)
  }
  await new Promise((resolve) => setTimeout(resolve, 2000))
  console.log(
    `memory of the controller told: ${before} before, ${toldOnce} once all were heard, ${memory()} after ${all} more reports`,
  )
  polite.close()
}

function print(title: string, rounds: readonly Round[], idle: readonly Round[], seconds: number) {
  const idleMs = (at: 0 | 1): number =>
    idle.reduce((sum, round) => sum + round.processorMs[at], 0) / idle.length
  const each = (at: 0 | 1): number[] =>
    rounds.map((round) => ((round.processorMs[at] - idleMs(at)) / round.reports) * 1000)
  const cost = (at: 0 | 1): string => spread(each(at)).padStart(18)
  const rate = spread(rounds.map(({ reports }) => reports / seconds)).padStart(20)
  const p99 = spread(
    rounds.map(({ latencies }) => percentile(latencies, 0.99)),
    1,
  )
  const shown = idle === rounds ? '' : `${rate} /s   ${cost(0)} µs told ${cost(1)} µs heard`
  console.log(`${title.padEnd(26)} beside it p99 ${p99.padStart(20)} ms ${shown}`)
}

function residentMiB(pid: number): number {
  const line = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
  return Number(line?.[1]) / 1024
}

async function makeChecks(people: ClusterOfPeople): Promise<Reporting['checks']> {
  const check = (name: string, body: object): Promise<string> =>
    people.make('posture-checks', { name, roleAttributes: ['all'], ...body })
  const checks = {
    process: await check('process', {
      typeId: 'PROCESS',
      process: { osType: 'Linux', path: '/usr/bin/guard', hashes: ['ab'.repeat(64)] },
    }),
    os: await check('os', {
      typeId: 'OS',
      operatingSystems: [{ type: 'Linux', versions: ['>=5.0.0 <7.0.0', '7.x'] }],
    }),
    mac: await check('mac', { typeId: 'MAC', macAddresses: ['00:1b:44:11:3a:b7'] }),
    domain: await check('domain', { typeId: 'DOMAIN', domains: ['corp.test'] }),
  }
  await check('mfa', { typeId: 'MFA', timeoutSeconds: -1 })
  for (let at = 0; at < 50; at += 1) {
    await people.make('services', {
      name: `service ${at}`,
      encryptionRequired: true,
      roleAttributes: [`team${at}`],
    })
    await people.make('service-policies', {
      name: `team ${at}`,
      type: 'Dial',
      semantic: 'AnyOf',
      identityRoles: [`#team${at}`],
      serviceRoles: [`#team${at}`],
      postureCheckRoles: ['#all'],
    })
  }
  return checks
}

/** Enables MFA for each identity: starts the enrollment, reads the secret and sends a code. */
async function turnOnMfa(people: ClusterOfPeople, tokens: readonly string[]): Promise<void> {
  const path = `${client}/current-identity/mfa`
  await people.each(tokens.length, async (one, at) => {
    const token = tokens[at] ?? ''
    await expectDone(one.request('POST', path, token))
    const { data } = JSON.parse(await expectDone(one.request('GET', path, token))) as {
      data: { provisioningUrl: string }
    }
    const body = JSON.stringify({ code: codeOf(data.provisioningUrl, Date.now()) })
    await expectDone(one.request('POST', `${path}/verify`, token, body))
  })
}

async function expectDone(asked: Promise<{ status: number; body: string }>): Promise<string> {
  const { status, body } = await asked
  if (status >= 300) throw new Error(body)
  return body
}
