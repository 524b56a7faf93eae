import { X509Certificate } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import { systemClock } from '../../src/lib/clock.ts'
import { seededRandom } from '../../src/lib/random.ts'
import { parseCertificates } from '../../src/pki/certificate.ts'
import {
  createCertificateRequest,
  generatePrivateKeyPem,
} from '../../src/pki/authority/certificate-request.ts'
import { parseRouterConfig } from '../../src/config/router/load.ts'
import type { RouterConfig } from '../../src/config/router/table.ts'
import { ControllerManager } from '../../src/router/controllers/controller-manager.ts'
import { dialController } from '../../src/router/controllers/dial-controller.ts'
import type { RouterIdentity } from '../../src/router/identity/reloadable-identity.ts'
import { type Client, until } from '../process/support/client.ts'
import { Fleet } from '../process/support/fleet.ts'

// Connects many routers in one process to a cluster of three, with the control channels of the
// router program. The leader is killed, and then a controller is removed permanently. Every router
// must stay connected and know the members. `node test/chaos/router-fleet.ts --routers 1000`

const { values: options } = parseArgs({ options: { routers: { type: 'string', default: '1000' } } })
const count = Number(options.routers)
const quiet = { info: () => undefined, warn: () => undefined, error: () => undefined }
const version = { version: 'v0.0.0', revision: 'r', buildDate: 'd', os: 'linux', arch: 'x64' }

await using fleet = await Fleet.create(3)
await fleet.init()
for (const k of [2, 3]) await fleet.join(k, 1)
const admin = await fleet.loggedIn(1)
const folder = mkdtempSync(join(tmpdir(), 'flotilla-routers-'))
const endpoint = `tls:127.0.0.1:${fleet.port + 100}`

class SimulatedRouter {
  readonly #controllers: ControllerManager

  constructor(identity: RouterIdentity, at: number) {
    const config = controlConfig()
    this.#controllers = new ControllerManager({
      clock: systemClock,
      random: seededRandom(at + 1),
      log: quiet,
      endpointsFile: join(folder, `${at}.yml`),
      configuredEndpoints: [endpoint],
      dial: (address, handlers) =>
        dialController(
          {
            config,
            version,
            clock: systemClock,
            linkListeners: null,
            trace: null,
            proxy: null,
            identity: () => identity,
            trustDomain: () => this.#controllers.trustDomain,
            refusal: (id, key) => this.#controllers.refusal(id, key),
            reserve: (id) => this.#controllers.reserve(id),
            release: (id) => this.#controllers.release(id),
          },
          address,
          handlers,
        ),
      onApis: () => undefined,
      handlers: {
        onConnected: () => undefined,
        onMessage: () => undefined,
        onClosed: () => undefined,
      },
    })
  }

  get connected(): number {
    return this.#controllers.connections.length
  }

  get members(): readonly string[] {
    return this.#controllers.membership.controllers.map(({ id }) => id)
  }

  start(): void {
    this.#controllers.start()
  }

  stop(): void {
    this.#controllers.stop()
  }
}

const beganMs = performance.now()
const identities: RouterIdentity[] = []
for (let at = 0; at < count; at += 20) {
  const some = Array.from({ length: Math.min(20, count - at) }, (_, more) => at + more)
  identities.push(...(await Promise.all(some.map((each) => enrolled(admin, `router ${each}`)))))
}
console.log(`${count} routers enrolled in ${seconds(beganMs)} s`)

const memoryBefore = await memoryOf()
const routers = identities.map((identity, at) => new SimulatedRouter(identity, at))
for (const router of routers) router.start()
await seen('every router has a channel to each controller', () =>
  routers.every(({ connected }) => connected === 3),
)
const memoryAfter = await memoryOf()
for (const [at, bytes] of memoryAfter.entries()) {
  const each = (bytes - (memoryBefore[at] ?? 0)) / count / 1024
  console.log(`  ctrl${at + 1}: ${Math.round(each)} KiB more of memory a router`)
}
const leader = await fleet.leader(1)
await fleet.stop(leader, 'SIGKILL')
console.log(`ctrl${leader}, which led, is killed`)
await seen('every router has a channel to each of the two that are left', () =>
  routers.every(({ connected }) => connected === 2),
)
await fleet.start(leader)
await seen('every router has a channel to each of the three again', () =>
  routers.every(({ connected }) => connected === 3),
)
const asked = await fleet.leader(1)
const gone = (asked % 3) + 1
await fleet.change(asked, 'remove', `ctrl${gone}`)
console.log(`ctrl${gone} is removed for good`)
await seen('every router knows exactly the two that are left, and is connected to both', () =>
  routers.every(({ connected, members }) => connected === 2 && !members.includes(`ctrl${gone}`)),
)
for (const router of routers) router.stop()
rmSync(folder, { recursive: true, force: true })
console.log('all seen')

function seconds(sinceMs: number): string {
  return ((performance.now() - sinceMs) / 1000).toFixed(1)
}

async function seen(what: string, isSo: () => boolean): Promise<void> {
  const fromMs = performance.now()
  await until(what, () => Promise.resolve(isSo() || null), 120_000)
  console.log(`  seen after ${seconds(fromMs)} s: ${what}`)
}

async function memoryOf(): Promise<number[]> {
  return await Promise.all(
    [1, 2, 3].map(async (k) => {
      const client = await fleet.loggedIn(k)
      const { body } = await client.request('POST', '/fabric/v1/inspections', {
        body: { appRegex: `^ctrl${k}$`, requestedValues: ['runtime'] },
      })
      const { values } = body as unknown as {
        values: { value: { memoryBytes: { rss: number } } }[]
      }
      return values[0]?.value.memoryBytes.rss ?? 0
    }),
  )
}

async function enrolled(client: Client, name: string): Promise<RouterIdentity> {
  const made = await client.request('POST', '/edge/management/v1/edge-routers', { body: { name } })
  const { id } = made.body.data as { id: string }
  const detail = await client.request('GET', `/edge/management/v1/edge-routers/${id}`)
  const { enrollmentToken } = detail.body.data as { enrollmentToken: string }
  const privateKeyPem = generatePrivateKeyPem()
  const request = await createCertificateRequest({ privateKeyPem, id })
  const answer = await client.request(
    'POST',
    `/edge/client/v1/enroll?method=erott&token=${enrollmentToken}`,
    { body: { certCsr: request, serverCertCsr: request } },
  )
  const { cert, ca } = answer.body.data as { cert: string; ca: string }
  const [leaf] = parseCertificates(cert)
  if (new X509Certificate(cert).subject !== `CN=${id}`) throw new Error(`${name}: ${cert}`)
  return { id, leaf, certificatePem: cert, privateKeyPem, caPem: ca, alternates: [], server: null }
}

function controlConfig(): RouterConfig['ctrl'] {
  const text = `v: 3\nidentity: {cert: c, key: k, ca: a}\nctrl: {endpoint: "${endpoint}"}\n`
  const parsed = parseRouterConfig(join(folder, 'router.yml'), text, {})
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults))
  return parsed.config.ctrl
}
