import { type ChildProcess, execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { loadavg } from 'node:os'
import { join } from 'node:path'
import { parseArgs, promisify } from 'node:util'

import {
  createCertificateRequest,
  generatePrivateKeyPem,
} from '../src/pki/authority/certificate-request.ts'
import { pause } from '../test/process/support/client.ts'
import { inBackground, sendAndReceive } from '../test/stock/echo.ts'
import { StockNetwork } from '../test/stock/network.ts'
import { LeanClient } from './support/lean-client.ts'
import { load } from './support/load.ts'
import { heading, percentile, spread } from './support/report.ts'
import {
  asked,
  CLIENT,
  type Item,
  made,
  MANAGEMENT,
  PeerNetwork,
  type Target,
  TOKEN_HEADER,
} from './support/target.ts'

// Compares Flotilla with OpenZiti in one run, with the same requests: enrollments, lists, and the
// time from a grant until a new client can dial. `--peer BINARY` is the `ziti` program, which is
// also the client of both networks. The network of Flotilla has three controllers and a router. The
// network of OpenZiti is its quickstart: one controller, which replicates nothing, and a router.

const { values: options } = parseArgs({
  options: {
    peer: { type: 'string' },
    rounds: { type: 'string', default: '5' },
    devices: { type: 'string', default: '200' },
    seconds: { type: 'string', default: '3' },
    clients: { type: 'string', default: '8' },
  },
})
const rounds = Number(options.rounds)
const deviceCount = Number(options.devices)
const clientCount = Number(options.clients)

function clientsOf({ controllers, ca }: Target): Promise<LeanClient[]> {
  return Promise.all(
    Array.from({ length: clientCount }, (_, at) =>
      LeanClient.connect(controllers[at % controllers.length] ?? '', ca, TOKEN_HEADER),
    ),
  )
}

const device = (name: string, roleAttributes: readonly string[] = []): object => ({
  name,
  type: 'Device',
  isAdmin: false,
  roleAttributes,
  enrollment: { ott: true },
})

/** Measures enrollments per second. */
async function enrollments(target: Target, round: number): Promise<number> {
  const ids: string[] = []
  for (let at = 0; at < deviceCount; at += 1) {
    ids.push(await made(target, 'identities', device(`device ${round} ${at}`)))
  }
  const tokens = await Promise.all(
    ids.map(async (id) => {
      const { enrollment } = await asked<Item>(target, 'GET', `identities/${id}`)
      return (enrollment as { readonly ott: { readonly token: string } }).ott.token
    }),
  )
  const privateKeyPem = generatePrivateKeyPem()
  const csr = await createCertificateRequest({ privateKeyPem, id: 'device' })
  const clients = await clientsOf(target)
  const from = performance.now()
  let next = 0
  await Promise.all(
    clients.map(async (client) => {
      for (let at = next++; at < tokens.length; at = next++) {
        const path = `${CLIENT}/enroll?method=ott&token=${tokens[at]}`
        const { status, body } = await client.request('POST', path, null, csr, '', PEM)
        if (status !== 200) throw new Error(`${target.title}: ${body}`)
      }
    }),
  )
  const perSecond = (tokens.length * 1000) / (performance.now() - from)
  for (const client of clients) client.close()
  return perSecond
}
const PEM = 'application/x-pem-file'

/** Measures lists of 100 records per second. */
async function lists(target: Target, kind: string): Promise<number> {
  const clients = await clientsOf(target)
  const list = async (client: LeanClient): Promise<number> =>
    (await client.request('GET', `${MANAGEMENT}/${kind}?limit=100`, target.token)).status
  const { perSecond } = await load(clients, list, Number(options.seconds))
  for (const client of clients) client.close()
  return perSecond
}

/** Enrolls a new identity with the OpenZiti program. @returns the path of its identity file. */
async function enrolled(target: Target, binary: string, role: string): Promise<string> {
  const id = await made(target, 'identities', device(role, [role]))
  const { enrollment } = await asked<Item>(target, 'GET', `identities/${id}`)
  const [jwt, file] = [join(target.folder, `${role}.jwt`), join(target.folder, `${role}.json`)]
  writeFileSync(jwt, (enrollment as { readonly ott: { readonly jwt: string } }).ott.jwt)
  await promisify(execFile)(binary, ['edge', 'enroll', jwt, '-o', file])
  return file
}

/** A hosted service whose dial permission is granted and revoked. */
class GrantedService {
  readonly #target: Target
  readonly #binary: string
  readonly #policyId: string
  readonly #user: string
  readonly host: ChildProcess

  private constructor(
    target: Target,
    binary: string,
    parts: { readonly policyId: string; readonly user: string; readonly host: ChildProcess },
  ) {
    this.#target = target
    this.#binary = binary
    this.#policyId = parts.policyId
    this.#user = parts.user
    this.host = parts.host
  }

  static async offer(target: Target, binary: string): Promise<GrantedService> {
    const service = { name: 'echo', encryptionRequired: true, roleAttributes: ['echo'] }
    const id = await made(target, 'services', service)
    const policy = { semantic: 'AnyOf', serviceRoles: ['#echo'] }
    const [bind, dial] = [
      { ...policy, name: 'hosts', type: 'Bind', identityRoles: ['#hosts'] },
      { ...policy, name: 'users', type: 'Dial', identityRoles: ['#nobody'] },
    ]
    await made(target, 'service-policies', bind)
    const policyId = await made(target, 'service-policies', dial)
    const everywhere = { name: 'bench', semantic: 'AnyOf', edgeRouterRoles: ['#all'] }
    const forAll = { ...everywhere, serviceRoles: ['#all'] }
    await made(target, 'service-edge-router-policies', forAll)
    await made(target, 'edge-router-policies', { ...everywhere, identityRoles: ['#all'] })
    const hostFile = await enrolled(target, binary, 'hosts')
    const user = await enrolled(target, binary, 'users')
    const args = ['demo', 'echo-server', '-i', hostFile, '-s', 'echo']
    const host = inBackground(binary, args, join(target.folder, 'host.log'))
    const terminators = (): Promise<readonly Item[]> =>
      asked<readonly Item[]>(target, 'GET', `services/${id}/terminators`)
    while ((await terminators()).length === 0) await pause(200)
    return new GrantedService(target, binary, { policyId, user, host })
  }

  async grant(role: string): Promise<void> {
    const path = `service-policies/${this.#policyId}`
    await asked(this.#target, 'PATCH', path, { identityRoles: [role] })
  }

  /** Time from the response to the grant until a new client has received its data back, ms. */
  async dialMs(): Promise<number> {
    await this.grant('#nobody')
    await pause(1000)
    await this.grant('#users')
    const from = performance.now()
    for (;;) {
      const { bytes } = await sendAndReceive(this.#binary, this.#user, Buffer.from('a word\n'))
      if (bytes.length > 0) return performance.now() - from
    }
  }
}

/** Each measured quantity, with whether a larger value is better. */
const figures = {
  'enrollments /s': true,
  'lists of 100 services /s': true,
  'lists of 100 identities /s': true,
  'a dial by a new client after a grant, ms': false,
} as const
type Figure = keyof typeof figures

async function measured(target: Target, service: GrantedService, round: number) {
  return {
    'enrollments /s': await enrollments(target, round),
    'lists of 100 services /s': await lists(target, 'services'),
    'lists of 100 identities /s': await lists(target, 'identities'),
    'a dial by a new client after a grant, ms': await service.dialMs(),
  } satisfies Record<Figure, number>
}

const { peer: binary } = options
if (binary === undefined) throw new Error('name the program of OpenZiti with --peer')
const load0 = loadavg()[0] ?? 0
console.log(heading('Beside OpenZiti, by the same requests; min / median / max over rounds'))
await using network = await StockNetwork.start(binary, [])
await network.addOurRouter('gate')
const { cluster } = network
const { token } = network.client(1)
const { controllers, ca } = cluster.admin
const pids = [1, 2, 3].map((k) => cluster.pid(k) ?? 0)
const ours: Target = {
  title: 'ours',
  pids,
  controllers,
  ca,
  token: token ?? '',
  folder: cluster.folder,
}
await using peer = await PeerNetwork.start(binary)
const targets = [ours, peer.target]
const services: GrantedService[] = []
try {
  for (const target of targets) {
    services.push(await GrantedService.offer(target, binary))
    for (let at = 0; at < 100; at += 1) {
      await made(target, 'services', { name: `service ${at}`, encryptionRequired: true })
    }
  }
  const runs = targets.map((): Awaited<ReturnType<typeof measured>>[] => [])
  for (let round = 0; round < rounds; round += 1) {
    for (const [at, target] of targets.entries()) {
      const service = services[at]
      if (service !== undefined) runs[at]?.push(await measured(target, service, round))
    }
  }
  for (const [figure, isMoreBetter] of Object.entries(figures) as [Figure, boolean][]) {
    const [own = [], others = []] = runs.map((all) => all.map((run) => run[figure]))
    const [shown, shownOthers] = [spread(own), spread(others)]
    const ratio = percentile(own, 0.5) / percentile(others, 0.5)
    const better = isMoreBetter ? ratio : 1 / ratio
    console.log(
      `${figure.padEnd(44)} ours ${shown}, OpenZiti ${shownOthers}: ${better.toFixed(2)}x`,
    )
  }
  console.log(
    `load of the machine ${load0.toFixed(1)} before, ${(loadavg()[0] ?? 0).toFixed(1)} after`,
  )
} finally {
  for (const { host } of services) host.kill('SIGKILL')
}
