import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { isMap, parse, parseDocument } from 'yaml'

import { pageText } from '../support/pages.ts'
import { freePort } from '../support/ports.ts'
import { until } from './support/client.ts'
import { TestCluster } from './support/cluster.ts'
import { Front } from './support/front.ts'
import { run } from './support/page.ts'

// Goal: the configurations of docs/operate/load-balancers.md work as written. Method: three
// controllers with the listeners of the page, behind haproxy with the configuration of the page,
// and behind a relay that sends the PROXY protocol header. Clients connect from a different
// loopback address than the load balancers.

const CLIENT = '127.0.0.9'
const HAPROXY = '/usr/sbin/haproxy'
const page = pageText('operate/load-balancers.md')
const hasHaproxy = spawnSync(HAPROXY, ['-v']).status === 0
if (!hasHaproxy) console.log('haproxy is not installed: its configuration of the page is not run')

/** The code blocks of the page in this language. */
function blocks(language: string): string[] {
  const found = page.matchAll(new RegExp(`^ *\`\`\`${language}\\n([^]*?)^ *\`\`\`$`, 'gm'))
  return Array.from(found, ([, text = '']) => text)
}

let cluster: TestCluster
/** For each controller, its port behind the load balancers. */
let balanced: number[]
let haproxy: ChildProcess | null = null
const fronts: Front[] = []

beforeAll(async () => {
  cluster = await TestCluster.start()
  await cluster.interrupt()
  balanced = await Promise.all([freePort(), freePort(), freePort()])
  for (const [at, port] of balanced.entries()) configure(at + 1, port)
  await cluster.quickstart()
})
afterAll(async () => {
  haproxy?.kill('SIGKILL')
  await Promise.all(fronts.map((front) => front.close()))
  await cluster[Symbol.asyncDispose]()
})

const configOf = (k: number): string => join(cluster.folder, cluster.id(k), 'config.yml')

/** Adds to a controller's configuration the listener for load balancers that the page shows. */
function configure(k: number, port: number): void {
  const text = blocks('yaml')
    .find((block) => block.includes('proxyProtocol'))
    ?.replace('10.0.0.1:1443', `127.0.0.1:${port}`)
    .replace('10.0.0.9/32', '127.0.0.1/32')
  const { web } = parse(text ?? '') as { web: object[] }
  const document = parseDocument(readFileSync(configOf(k), 'utf8'))
  if (!isMap(document.contents)) throw new Error('a configuration is a map')
  document.addIn(['web'], document.createNode(web[1]))
  writeFileSync(configOf(k), document.toString())
}

/** @returns the standard output of a curl that connects by the name of the load balancer. */
async function curl(address: string, path: string, more = ''): Promise<string> {
  const port = address.split(':')[1] ?? ''
  const host = `api.example.net:${port}`
  const ca = join(cluster.folder, 'ca.pem')
  const script = `curl --silent --show-error --fail-with-body --interface ${CLIENT} --max-time 20 \
    --resolve ${host}:127.0.0.1 --cacert '${ca}' ${more} 'https://${host}${path}'`
  const { code, output } = await run(script, cluster.dir)
  if (code !== 0) throw new Error(output)
  return output
}

const isReady = (address: string): Promise<boolean> =>
  curl(address, '/health-checks/ready').then(
    (text) => text.includes('"ready":true'),
    () => false,
  )

const logLines = (): string[] =>
  [1, 2, 3].flatMap((k) =>
    readFileSync(join(cluster.folder, cluster.id(k), 'controller.log'), 'utf8').split('\n'),
  )

async function startRelay(): Promise<string> {
  const front = await Front.open({ sendsHeader: true })
  fronts.push(front)
  front.ports = balanced
  return front.address
}

/** Starts haproxy with the configuration of the page. */
async function startHaproxy(): Promise<string> {
  const address = `127.0.0.1:${await freePort()}`
  const config = (blocks('haproxy')[0] ?? '')
    .replace('bind :443', `bind ${address}`)
    .replace('/etc/haproxy/flotilla-ca.pem', join(cluster.folder, 'ca.pem'))
    .replaceAll(/ctrl([1-3])\.example\.net:1443/g, (_, k: string) => {
      return `127.0.0.1:${balanced[Number(k) - 1]}`
    })
  const file = join(cluster.dir, 'haproxy.cfg')
  writeFileSync(file, config)
  const { code, output } = await run(`${HAPROXY} -c -f ${file}`, cluster.dir)
  expect(code, output).toBe(0)
  haproxy = spawn(HAPROXY, ['-db', '-f', file], { stdio: 'ignore' })
  return address
}

describe.each([
  ['haproxy with the configuration of the page', startHaproxy, hasHaproxy],
  ['a relay that sends the header', startRelay, true],
] as const)('Behind the load balancer %s,', (_, start, isRun) => {
  test.runIf(isRun)(
    'controllers present a certificate with the name of the load balancer, and log the addresses of clients',
    async () => {
      const address = await start()
      await until('an answer', () => isReady(address))
      const { username, password } = cluster.admin
      writeFileSync(join(cluster.dir, 'log-in.json'), JSON.stringify({ username, password }))
      const json = `--header 'content-type: application/json'`
      const path = '/edge/management/v1/authenticate?method=password'
      const session = JSON.parse(await curl(address, path, `${json} --data @log-in.json`)) as {
        data: { token: string; ipAddress: string }
      }
      expect(session.data.ipAddress).toBe(CLIENT)

      const body = JSON.stringify({ name: `through ${address}`, type: 'Device', isAdmin: false })
      writeFileSync(join(cluster.dir, 'identity.json'), body)
      const token = `--header 'net-session: ${session.data.token}'`
      const created = await curl(
        address,
        '/edge/management/v1/identities',
        `${json} ${token} --data @identity.json`,
      )
      const { data } = JSON.parse(created) as { data: { id: string } }
      const line = await until('the line of the audit log', () =>
        Promise.resolve(logLines().find((one) => one.includes(`"entityId":"${data.id}"`))),
      )
      expect(JSON.parse(line)).toMatchObject({
        audit: 'write',
        entity: 'identity',
        address: CLIENT,
      })
    },
  )
})

test.runIf(hasHaproxy)(
  'haproxy stops sending requests to a controller that was stopped',
  async () => {
    if (haproxy === null) throw new Error('haproxy runs since the first test')
    const address = /bind (127\.0\.0\.1:\d+)/.exec(
      readFileSync(join(cluster.dir, 'haproxy.cfg'), 'utf8'),
    )?.[1]
    const pid = cluster.pid(3)
    cluster.kill(3, 'SIGTERM')
    await until('the controller has stopped', () =>
      Promise.resolve(cluster.pid(3) !== pid && 'yes'),
    )
    const answers: boolean[] = []
    await until('six answers in a row', async () => {
      answers.push(await isReady(address ?? ''))
      return answers.slice(-6).filter((is) => is).length === 6 && 'yes'
    })
    cluster.run(3)
    await cluster.untilWhole()
  },
)

test('A client that connects directly is refused by a web listener that accepts only load balancers', async () => {
  await expect(curl(`127.0.0.1:${balanced[0]}`, '/health-checks/ready')).rejects.toThrow(/curl:/)
  const reason = 'its address is not in proxyProtocol.from'
  await until('the reason in a log', () =>
    Promise.resolve(logLines().find((one) => one.includes(reason))),
  )
})

test('A reload of a changed configuration issues a certificate with the new host name', async () => {
  const document = parseDocument(readFileSync(configOf(1), 'utf8'))
  document.setIn(['web', 0, 'names'], ['second.example.net'])
  writeFileSync(configOf(1), document.toString())
  const script = `${cluster.program} controller reload '${configOf(1)}'
    curl --silent --show-error --cacert '${join(cluster.folder, 'ca.pem')}' \
      --resolve second.example.net:${cluster.port}:127.0.0.1 https://second.example.net:${cluster.port}/health-checks/ready`
  const { code, output } = await run(script, cluster.dir)
  expect(code, output).toBe(0)
  expect(output).toContain('web[0].names: (none) -> second.example.net, in force\n')
  expect(output).toContain('"ready":true')
})
