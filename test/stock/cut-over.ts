import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import type { ManagementApi } from './management-api.ts'
import { MigratedControllers } from './migrated-controllers.ts'
import { MovedOverlay, serverDigest, serverNames } from './moved-overlay.ts'
import { OpenZitiControllers } from './openziti-controllers.ts'
import { seen } from './stock-router.ts'

// Moves a live OpenZiti network to three of our controllers and back, while its routers, tunnels
// and clients run: `node test/stock/cut-over.ts --binary PATH [--controllers 1|3] [--ports 1|2]
// [--join-late] [--keep]`. Without --controllers and --ports, all four networks move. With
// --join-late, the second controller joins when the traffic of the routers is back, as the docs say
// for routers of OpenZiti 1.x. Clients that a single controller enrolled know one address, so the
// leader that is killed is another controller in that case.
//
// Each network has its PKI from OpenZiti's commands, three edge routers with public names, services
// that tunnels and routers host under traffic, and an unused enrollment token of each kind. A
// single controller keeps its address, and two are added; three keep theirs. With two ports, HTTPS
// has another key than the control channel. Afterwards this program expects: every router online at
// every controller, no file of a router or client changed, traffic back in time, all tokens valid,
// all names in a renewed certificate, no pause when the leader is killed, and the databases of
// OpenZiti unchanged. Then it returns to OpenZiti. Not covered: transit routers, second factors,
// passwords of others than the administrator, and SDKs other than that of Go.

const { values: options } = parseArgs({
  options: {
    binary: { type: 'string' },
    controllers: { type: 'string' },
    ports: { type: 'string' },
    'join-late': { type: 'boolean', default: false },
    keep: { type: 'boolean', default: false },
  },
})
const TRAFFIC_WITHIN_MS = 15_000
/**
 * Routers of OpenZiti 1.6 that run a tunnel redial every 5 s and then wait for 10 s; a request of
 * the traffic takes up to 3 s more.
 */
const TRAFFIC_OF_OLD_ROUTERS_WITHIN_MS = 19_000
/**
 * A tunnel that hosts notices at its next poll, up to 15 s later, that its session has ended, and
 * then binds again. If it logs in before its routers have reconnected, its SDK requests their
 * addresses again only after 30 s or more.
 */
const POLLING_WITHIN_MS = 75_000
const { binary } = options
if (binary === undefined || !existsSync(binary)) {
  console.log('skipped: --binary names no OpenZiti program, so there is nothing to try')
  process.exit(0)
}
for (const count of [1, 3] as const) {
  if (options.controllers !== undefined && options.controllers !== `${count}`) continue
  for (const ports of [1, 2] as const) {
    if (options.ports !== undefined && options.ports !== `${ports}`) continue
    await moveAndReturn(binary, count, ports)
  }
}
console.log('all seen')

async function moveAndReturn(program: string, count: 1 | 3, ports: 1 | 2): Promise<void> {
  console.log(`${count} controllers with ${ports} ports each:`)
  const folder = mkdtempSync(join(tmpdir(), `flotilla-cut-over-${count}-${ports}-`))
  try {
    await using old = await OpenZitiControllers.create({ binary: program, folder, count, ports })
    await using overlay = new MovedOverlay(program, join(folder, 'overlay'))
    await overlay.start(old)
    const tokens = await overlay.openTokens(old)
    await isOnline(overlay, 'OpenZiti', await Promise.all(old.numbers.map((k) => old.api(k))))
    const files = overlay.fileDigests()
    await overlay.settle()
    await using ours = new MigratedControllers(old, join(folder, 'flotilla'))
    const databases = await cutOver(old, overlay, ours)
    same('certificate, key and identity files', overlay.fileDigests(), files)
    for (const token of tokens) {
      await overlay.useToken(token, `tls:localhost:${old.routerPort(1)}`)
      console.log(`  enrolled: ${token.name}`)
    }
    await renewKeepsNames(overlay, ours)
    await loseLeader(old, overlay, ours)
    same('the databases of OpenZiti', old.databaseDigests(), databases)
    await comeBack(old, overlay, ours)
  } finally {
    if (options.keep) console.log(`  kept in ${folder}`)
    else rmSync(folder, { recursive: true, force: true })
  }
}

/**
 * Moves the network to our controllers. @returns digests of the databases of the stopped
 * controllers.
 */
async function cutOver(
  old: OpenZitiControllers,
  overlay: MovedOverlay,
  ours: MigratedControllers,
): Promise<readonly string[]> {
  const stopMs = performance.now()
  const since = (ms = performance.now()): string => `${((ms - stopMs) / 1000).toFixed(1)} s`
  for (const traffic of overlay.traffic) traffic.takeFailures()
  await old.stop()
  console.log(`  after ${since()}: OpenZiti has stopped`)
  const databases = old.databaseDigests()
  const report = await ours.migrate()
  console.log(`  after ${since()}: migrated`)
  if (options.keep) console.log(report)
  await ours.startFirst()
  const answersMs = performance.now()
  console.log(`  after ${since(answersMs)}: the first controller answers`)
  const back = overlay.traffic.map((traffic) => traffic.back(answersMs))
  if (options['join-late']) {
    await Promise.all(back.filter((_, at) => overlay.traffic[at]?.name === 'routers'))
  }
  for (const k of ours.numbers.slice(1)) {
    await ours.join(k)
    console.log(`  after ${since()}: ${ours.id(k)} has joined`)
  }
  for (const [at, traffic] of overlay.traffic.entries()) {
    const backMs = (await back[at]) ?? Infinity
    const gap = (traffic.longestGapMs(stopMs) / 1000).toFixed(1)
    const failures = traffic.takeFailures()
    console.log(
      `  after ${since(backMs)}: traffic of ${traffic.name} is back, longest gap ${gap} s, ${failures.length} failed: ${[...new Set(failures)].join(', ')}`,
    )
    const routersWithinMs = options['join-late']
      ? TRAFFIC_OF_OLD_ROUTERS_WITHIN_MS
      : TRAFFIC_WITHIN_MS
    const withinMs = traffic.name === 'tunnels' ? POLLING_WITHIN_MS : routersWithinMs
    if (backMs - answersMs > withinMs) {
      throw new Error(`traffic of ${traffic.name} came back too late`)
    }
  }
  console.log(`  a connection of before is ${overlay.stream.text}`)
  const apis = await Promise.all(ours.numbers.map((k) => ours.api(k)))
  await isOnline(overlay, 'Flotilla', apis)
  return databases
}

/** Waits until every router is online at every controller. */
async function isOnline(
  overlay: MovedOverlay,
  whose: string,
  apis: readonly ManagementApi[],
): Promise<void> {
  for (const [at, api] of apis.entries()) {
    await seen(`every router online at controller ${at + 1} of ${whose}`, async () => {
      const listed = await api.list<Listed>('edge-routers')
      return overlay.routers.every(({ options: { name } }) =>
        listed.some((one) => one.name === name && one.isOnline),
      )
    })
  }
}

interface Listed {
  readonly id: string
  readonly name: string
  readonly isOnline: boolean
}

/** The third router renews its certificates immediately when it starts. */
async function renewKeepsNames(overlay: MovedOverlay, ours: MigratedControllers): Promise<void> {
  const router = overlay.router('er3')
  const [names, before] = [serverNames(router), serverDigest(router)]
  await router.kill()
  router.start('--extend')
  await seen('er3 has another server certificate', () => {
    // The router writes the file in several steps.
    return serverDigest(router) !== before && serverNames(router).length > 0
  })
  same('names of the renewed certificate', serverNames(router), names)
  console.log(`  kept: ${names.join(', ')}`)
  await isOnline(overlay, 'Flotilla, after the renewal', [await ours.api(1)])
}

async function loseLeader(
  old: OpenZitiControllers,
  overlay: MovedOverlay,
  ours: MigratedControllers,
): Promise<void> {
  if (old.numbers.length === 1) await ours.transferLeadership(2)
  const leader = await ours.leader()
  for (const traffic of overlay.traffic) traffic.takeFailures()
  const killedMs = performance.now()
  await ours.kill(leader)
  console.log(`  ${ours.id(leader)}, which led, is killed`)
  const others = ours.numbers.filter((k) => k !== leader)
  const apis = await Promise.all(others.map((k) => ours.api(k)))
  for (const api of apis) await api.post('services', serviceOf(apis.indexOf(api)))
  const writableS = ((performance.now() - killedMs) / 1000).toFixed(1)
  console.log(`  after ${writableS} s: log-ins and writes at both others`)
  await seen('another leader', async () => (await ours.leader()) !== leader)
  for (const traffic of overlay.traffic) {
    await traffic.back(killedMs)
    const gap = (traffic.longestGapMs(killedMs) / 1000).toFixed(1)
    const failures = traffic.takeFailures()
    console.log(
      `  traffic of ${traffic.name} continues, longest gap ${gap} s, ${failures.length} failed`,
    )
  }
  await isOnline(overlay, 'Flotilla, without its leader', apis)
  ours.start(leader)
  await isOnline(overlay, 'Flotilla, with the killed one again', [await ours.api(leader)])
}

function serviceOf(number: number) {
  return { name: `after the leader ${number}`, encryptionRequired: true }
}

async function comeBack(
  old: OpenZitiControllers,
  overlay: MovedOverlay,
  ours: MigratedControllers,
): Promise<void> {
  // OpenZiti does not know the router's renewed certificate.
  await overlay.router('er3').kill()
  overlay.routers.splice(overlay.routers.indexOf(overlay.router('er3')), 1)
  const stopMs = performance.now()
  await ours.stop()
  await old.start()
  const answersMs = performance.now()
  for (const traffic of overlay.traffic) {
    const backMs = await traffic.back(answersMs)
    console.log(
      `  after ${((backMs - stopMs) / 1000).toFixed(1)} s: traffic of ${traffic.name} is back at OpenZiti`,
    )
  }
  await isOnline(overlay, 'OpenZiti again', await Promise.all(old.numbers.map((k) => old.api(k))))
}

function same(what: string, is: unknown, was: unknown): void {
  const [now, before] = [JSON.stringify(is, null, 1), JSON.stringify(was, null, 1)]
  if (now !== before) throw new Error(`${what} changed:\n${before}\n${now}`)
  console.log(`  unchanged: ${what}`)
}
