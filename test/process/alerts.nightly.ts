import { execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { QuarantineFile } from '../../src/store/folder/quarantine-file.ts'
import { issueLeaf } from '../../src/pki/authority/authority.ts'
import { newCa } from '../support/authorities.ts'
import { formatUuid, newUuidv7 } from '../../src/lib/text/uuid.ts'
import { programVersion } from '../support/packages.ts'
import { type Client, pause, until } from './support/client.ts'
import { MonitoredNetwork } from './support/monitored-network.ts'
import { missingPrometheus, type Prometheus, shippedAlerts } from './support/prometheus.ts'

// Goal: each alert in deploy/prometheus/rules.yml fires if its cause occurs, and resolves when the
// cause is gone. Method: a real Prometheus scrapes three controllers, a router and two tunnels;
// only the `for` durations of the rules are removed. An alert about a rate over some minutes
// resolves after these minutes; the test does not wait for that.

const missing = missingPrometheus()
const SLOW_MS = 1_800_000
const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000

describe.skipIf(missing !== null)(`A real Prometheus ${missing ?? ''}`, () => {
  let network: MonitoredNetwork
  let isStarted = false
  let prometheus: Prometheus
  beforeAll(async () => {
    network = await MonitoredNetwork.start()
    isStarted = true
    prometheus = network.prometheus
  }, SLOW_MS)
  afterAll(async () => {
    if (isStarted) await network[Symbol.asyncDispose]()
  }, SLOW_MS)

  /** Numbers of the leader and the two followers. */
  async function roles(): Promise<{ leader: number; followers: readonly [number, number] }> {
    const leader = await network.fleet.leader(1)
    const [one = 0, other = 0] = [1, 2, 3].filter((k) => k !== leader)
    return { leader, followers: [one, other] }
  }

  async function lead(k: number): Promise<void> {
    if ((await network.fleet.leader(1)) === k) return
    await network.fleet.change(1, 'transfer-leadership', `ctrl${k}`)
    await until('it leads', async () => (await network.fleet.leader(1)) === k)
  }

  test(
    'scrapes controllers, routers and tunnels with the shipped configuration, and evaluates every alert rule',
    async () => {
      await until(
        'all targets answer',
        async () => (await prometheus.healthyTargets()).length === 6,
      )
      await until('the service is reached', () => network.dials())
      expect(await prometheus.brokenRules()).toEqual([])
    },
    SLOW_MS,
  )

  test(
    'fires an alert when the certificates of a router and of tunnels expire soon, until these certificates are replaced',
    async () => {
      const { host, user } = network.tunnels
      const router = await prometheus.fires('FlotillaRouterCertificateExpires', { router: 'gate' })
      expect(router.summary).toMatch(
        /^the certificate of router gate ends in 4d 23h .*: it is not renewed$/,
      )
      for (const { file } of [host, user]) {
        await prometheus.fires('FlotillaTunnelCertificateExpires', { file })
      }
      network.fleet.env['FLOTILLA_ENROLLMENT_CERTIFICATE_DAYS'] = '365'
      for (const k of [1, 2, 3]) await network.restart(k)
      await network.router.kill()
      network.router.start('--extend')
      for (const [name, role, tunnel] of [
        ['host 2', 'Bind', host],
        ['user 2', 'Dial', user],
      ] as const) {
        await tunnel.stop()
        await network.enroll(name, role, tunnel.file)
        tunnel.start()
      }
      await prometheus.resolves('FlotillaRouterCertificateExpires')
      await prometheus.resolves('FlotillaTunnelCertificateExpires')
    },
    SLOW_MS,
  )

  test(
    'fires an alert for a tunnel that is not running, until it is started',
    async () => {
      const { host } = network.tunnels
      await host.stop()
      const labels = { instance: `127.0.0.1:${host.metricsPort}` }
      const down = await prometheus.fires('FlotillaTunnelDown', labels)
      expect(down).toMatchObject({
        labels: { job: 'flotilla-tunnels', cluster: 'prod.example.net' },
        runbook: 'docs/operate/alerts.md#flotillatunneldown',
      })
      host.start()
      await prometheus.resolves('FlotillaTunnelDown')
    },
    SLOW_MS,
  )

  test(
    'fires an alert for a disconnected router, until it reconnects',
    async () => {
      await network.router.kill()
      await prometheus.fires('FlotillaRouterAway', { router: 'gate' })
      await prometheus.fires('FlotillaNoRouter')
      await prometheus.fires('FlotillaTunnelWithoutRouter', { file: network.tunnels.host.file })
      network.router.start()
      for (const name of ['RouterAway', 'NoRouter', 'TunnelWithoutRouter']) {
        await prometheus.resolves(`Flotilla${name}`)
      }
      await until('the service is reached', () => network.dials())
    },
    SLOW_MS,
  )

  test(
    'fires an alert for failed dials while the server to which the host connects is not running',
    async () => {
      network.target.close()
      const refused =
        'sum(flotilla_circuits_failed_total{cause="ROUTER_ERR_REJECTED_BY_APPLICATION"})'
      const before = (await prometheus.values(refused))[0] ?? 0
      const counted = until(
        'the dials are counted',
        async () => ((await prometheus.values(refused))[0] ?? 0) >= before + 40,
        SLOW_MS,
      )
      await whileNotFiring([counted, prometheus.fires('FlotillaCircuitFailures')], async () => {
        const dials = Array.from({ length: 10 }, () => network.dials())
        expect(new Set(await Promise.all(dials))).toEqual(new Set([false]))
      })
      await network.target.open()
      await until('the service is reached', () => network.dials())
    },
    SLOW_MS,
  )

  test(
    'fires an alert for guesses of passwords',
    async () => {
      const guesser = network.fleet.client(1)
      const guess = async (): Promise<void> => {
        const body = { username: 'admin', password: 'a guess' }
        const path = '/edge/management/v1/authenticate?method=password'
        expect([401, 429]).toContain((await guesser.request('POST', path, { body })).status)
      }
      for (let round = 0; round < 25; round += 1)
        await Promise.all(Array.from({ length: 20 }, guess))
      await prometheus.fires('FlotillaLogInFailures', { instance: network.instance(1) })
    },
    SLOW_MS,
  )

  test(
    'fires an alert for a controller’s certificate that expires soon, until it is replaced',
    async () => {
      const folder = network.fleet.folder(2)
      const authority = await newCa('public', Date.now())
      const install = async (days: number): Promise<void> => {
        const leaf = await issueLeaf({
          issuer: authority,
          commonName: 'console.example.org',
          uris: [],
          hosts: ['console.example.org'],
          usages: ['server'],
          validity: { notBeforeMs: Date.now() - HOUR_MS, notAfterMs: Date.now() + days * DAY_MS },
        })
        writeFileSync(join(folder, 'web.pem'), leaf.certificatePem)
        writeFileSync(join(folder, 'web.key'), leaf.privateKeyPem, { mode: 0o600 })
      }
      await install(10)
      await network.restart(2, 'serverCertificates: [{ cert: web.pem, key: web.key }]\n')
      const labels = { instance: network.instance(2), certificate: 'server console.example.org' }
      const first = await prometheus.fires('FlotillaCertificateExpires', labels)
      expect(first.summary).toMatch(/ends in 9d 23h /)
      const reload = async (): Promise<void> => {
        const { code, stderr } = await network.fleet.cli([
          'pki',
          'reload',
          '--config',
          network.fleet.config(2),
        ])
        expect(code, stderr).toBe(0)
      }
      await install(2)
      await reload()
      await prometheus.fires('FlotillaCertificateEndsSoon', labels)
      await install(300)
      await reload()
      await prometheus.resolves('FlotillaCertificateExpires')
      await prometheus.resolves('FlotillaCertificateEndsSoon')
    },
    SLOW_MS,
  )

  test(
    'fires an alert for a backup that is 27 hours old, and for the alarm about the failed backup, until a backup succeeds',
    async () => {
      const folder = join(network.fleet.dir, 'backups')
      const recipient = join(network.fleet.dir, 'recipient.pem')
      mkdirSync(folder)
      const { certificatePem } = await newCa('backups', Date.now())
      writeFileSync(recipient, certificatePem)
      await network.restart(2, `backup: { folder: ${folder}, recipient: ${recipient} }\n`)
      const taken = () => readdirSync(folder).filter((name) => name.endsWith('.backup'))
      const [name = ''] = await until('a backup', () =>
        Promise.resolve(taken().length > 0 ? taken() : null),
      )
      await network.fleet.stop(2)
      // The name of a backup contains its time.
      const [time = ''] = /\d{8}T\d{6}Z/.exec(name) ?? []
      const old = new Date(Date.now() - 27 * HOUR_MS).toISOString().replaceAll(/[-:]|\.\d+/g, '')
      renameSync(join(folder, name), join(folder, name.replace(time, old)))
      writeFileSync(recipient, 'no certificate')
      await network.restart(2)
      const labels = { instance: network.instance(2) }
      const alert = await prometheus.fires('FlotillaBackupOld', labels)
      expect(alert.summary).toMatch(/ has made no backup for 1d 3h 0m /)
      await prometheus.fires('FlotillaAlarm', { ...labels, code: 'BACKUP_FAILED' })
      writeFileSync(recipient, certificatePem)
      await network.restart(2)
      await prometheus.resolves('FlotillaBackupOld')
      await prometheus.resolves('FlotillaAlarm', { ...labels, code: 'BACKUP_FAILED' })
    },
    SLOW_MS,
  )

  test(
    'fires an alert for controllers of different versions, until all have the same version again',
    async () => {
      const next = programVersion().replace(/\d+$/, (patch) => String(Number(patch) + 1))
      await network.fleet.stop(2)
      network.fleet.programs.set(2, network.otherVersion(next))
      await network.fleet.start(2)
      await prometheus.fires('FlotillaVersionsDiffer')
      await network.fleet.stop(2)
      network.fleet.programs.delete(2)
      await network.fleet.start(2)
      await prometheus.resolves('FlotillaVersionsDiffer')
    },
    SLOW_MS,
  )

  test(
    'fires an alert for a disk with little free space, and for one that will soon be full',
    async () => {
      const labels = { instance: network.instance(3) }
      const filler = join(network.fleet.folder(3), 'filler')
      await prometheus.fires('FlotillaLowDiskSpace', labels)
      for (let mib = 20; mib <= 200; mib += 20) {
        execFileSync('fallocate', ['--length', `${mib}MiB`, filler])
        await pause(1000)
      }
      await prometheus.fires('FlotillaDiskFullInADay', labels)
      rmSync(filler)
      network.resizeDisk(4096)
      await prometheus.resolves('FlotillaLowDiskSpace', labels)
      await prometheus.resolves('FlotillaDiskFullInADay', labels)
    },
    SLOW_MS,
  )

  test(
    'fires an alert for a disk whose syncs take too long',
    async () => {
      const labels = { instance: network.instance(3) }
      const pid = String(network.fleet.pid(3))
      await using _slow = slowCalls(['-f', '-p', pid], 'fdatasync', 800)
      const writer = await network.client(1)
      await whileNotFiring(
        ['FlotillaSlowDisk', 'FlotillaVerySlowDisk'].map((name) => prometheus.fires(name, labels)),
        (count) => write(writer, `slow ${count}`),
      )
    },
    SLOW_MS,
  )

  test(
    'fires an alert for a thread that gets too little processor time, until it gets enough',
    async () => {
      const { followers } = await roles()
      const [k] = followers
      const firing = prometheus.fires('FlotillaSlowEventLoop', { instance: network.instance(k) })
      await whileNotFiring([firing], async () => {
        network.fleet.signal(k, 'SIGSTOP')
        await pause(400)
        network.fleet.signal(k, 'SIGCONT')
        await pause(100)
      })
      expect((await firing).summary).toMatch(/^thread (main|raft) of \S+ is \d+\.?\d*ms late/)
      await prometheus.resolves('FlotillaSlowEventLoop')
    },
    SLOW_MS,
  )

  test(
    'fires an alert for a leader that changes repeatedly, and for writes that are refused meanwhile',
    async () => {
      const clients = await Promise.all([1, 2, 3].map((k) => network.client(k)))
      let count = 0
      await Promise.all([
        whileNotFiring(
          ['FlotillaLeaderChanges', 'FlotillaProposalsRefused'].map((name) =>
            prometheus.fires(name),
          ),
          async () => {
            const { followers } = await roles()
            await lead(followers[(count += 1) % 2] ?? 1)
          },
        ),
        ...Array.from({ length: 30 }, async (_, worker) => {
          const client = clients[worker % clients.length]
          await whileNotFiring([prometheus.fires('FlotillaProposalsRefused')], async (n) => {
            if (client !== undefined) await write(client, `moved ${worker} ${n}`)
          })
        }),
      ])
    },
    SLOW_MS,
  )

  test(
    'fires an alert for a member that was frozen by SIGSTOP, until it has caught up with the log',
    async () => {
      await lead(1)
      network.fleet.signal(3, 'SIGSTOP')
      const clients = await Promise.all([1, 2].map((k) => network.client(k)))
      // Changes the same record each time, so that the log grows and the state does not.
      const { id } = await network.post('config-types', { name: 'changed', schema: {} })
      const firing = prometheus.fires('FlotillaMemberLags', { member: 'ctrl3' })
      await Promise.all(
        Array.from({ length: 24 }, async (_, worker) => {
          const client = clients[worker % 2]
          await whileNotFiring([firing], async (count) => {
            const body = { tags: { worker, count } }
            await client?.request('PATCH', `/edge/management/v1/config-types/${id}`, {
              body,
              isHeld: false,
            })
          })
        }),
      )
      network.fleet.signal(3, 'SIGCONT')
      await prometheus.resolves('FlotillaMemberLags')
    },
    SLOW_MS,
  )

  /**
   * Creates records of 400 kB.
   * @param count a multiple of four.
   * @returns the function that deletes the records.
   */
  async function createLargeRecords(count: number): Promise<() => Promise<void>> {
    const client = await network.client(1)
    const schema = { name: `large ${randomBytes(4).toString('hex')}`, schema: {} }
    const type = await network.post('config-types', schema)
    const paths: string[] = [`config-types/${type.id}`]
    const create = async (): Promise<void> => {
      const text = randomBytes(300_000).toString('base64url')
      const body = { name: `large ${text.slice(0, 16)}`, configTypeId: type.id, data: { text } }
      // The request ID makes the retry of a request with an unknown outcome safe. 429: a controller
      // processes only few large bodies of one caller at the same time.
      const headers = { 'net-request-id': formatUuid(newUuidv7(Date.now())) }
      const made = await until('a large record is created', async () => {
        const request = { body, headers }
        const answer = await client.request('POST', '/edge/management/v1/configs', request)
        expect([201, 429, 503], answer.text.slice(0, 1000)).toContain(answer.status)
        return answer.status === 201 ? answer : null
      })
      paths.unshift(`configs/${(made.body.data as { id: string }).id}`)
    }
    for (let left = count; left > 0; left -= 4) await Promise.all([1, 2, 3, 4].map(create))
    return async () => {
      for (const path of paths) await client.request('DELETE', `/edge/management/v1/${path}`)
    }
  }

  test(
    'fires an alert for a member that reads frames too slowly, until it reads them fast enough',
    async () => {
      await lead(1)
      {
        // The member receives at most 64 KiB per 50 ms. With a much longer delay, it would answer
        // no keepalive ping in time, and a closed connection has no queue.
        const thread = threadNamed(network.fleet.pid(3), 'raft')
        await using _slow = slowCalls(['-p', thread], 'read', 50)
        await whileNotFiring(
          [prometheus.fires('FlotillaMeshBacklog', { instance: network.instance(1) })],
          async () => await (await createLargeRecords(16))(),
        )
      }
      await prometheus.resolves('FlotillaMeshBacklog')
    },
    SLOW_MS,
  )

  test(
    'fires an alert for a quarantined controller, which applies no entries, until it has rebuilt its state',
    async () => {
      await lead(1)
      // Compressed, the records have 27 MiB, which the member needs at least 27 seconds to receive.
      const remove = await createLargeRecords(96)
      // While the other controllers are frozen, the quarantine cannot end.
      await network.fleet.stop(3)
      for (const other of [1, 2]) network.fleet.signal(other, 'SIGSTOP')
      new QuarantineFile(network.fleet.data(3)).set('set by a test')
      network.fleet.run(3)
      const labels = { instance: network.instance(3) }
      await prometheus.fires('FlotillaCriticalAlarm', labels)
      for (const other of [1, 2]) network.fleet.signal(other, 'SIGCONT')
      const writer = await network.client(1)
      await whileNotFiring([prometheus.fires('FlotillaApplyLags', labels)], async (count) => {
        await write(writer, `quarantine ${count}`)
        await pause(100)
      })
      await prometheus.resolves('FlotillaCriticalAlarm', labels)
      await prometheus.resolves('FlotillaApplyLags', labels)
      expect(network.fleet.log(3)).toContain('quarantine lifted')
      await remove()
    },
    SLOW_MS,
  )

  test(
    'fires an alert for one stopped controller, then for a lost majority, until the controllers run again',
    async () => {
      await lead(1)
      await network.fleet.stop(3, 'SIGKILL')
      await prometheus.fires('FlotillaControllerDown', { instance: network.instance(3) })
      await prometheus.fires('FlotillaNoFailureTolerance', { instance: network.instance(1) })
      await prometheus.fires('FlotillaMemberDisconnected', { member: 'ctrl3' })
      await prometheus.fires('FlotillaAlarm', { code: 'NO_QUORUM_SPARE' })
      await network.fleet.stop(2, 'SIGKILL')
      for (const name of ['FlotillaMajorityDown', 'FlotillaNoQuorum', 'FlotillaNoLeader']) {
        await prometheus.fires(name)
      }
      const survivor = await network.client(1)
      const firing = prometheus.fires('FlotillaServerErrors', { instance: network.instance(1) })
      await Promise.all(
        Array.from({ length: 50 }, (_, worker) =>
          whileNotFiring([firing], (count) => write(survivor, `lost ${worker} ${count}`)),
        ),
      )
      for (const k of [2, 3]) await network.fleet.start(k)
      for (const name of [
        'ControllerDown',
        'NoFailureTolerance',
        'MemberDisconnected',
        'MajorityDown',
        'NoQuorum',
        'NoLeader',
        'Alarm',
      ]) {
        await prometheus.resolves(`Flotilla${name}`)
      }
    },
    SLOW_MS,
  )

  test(
    'fires an alert for a service that has had no host for ten minutes, until the service is deleted',
    async () => {
      const alert = await prometheus.fires('FlotillaServiceWithoutHost')
      expect(alert).toMatchObject({
        labels: { cluster: 'prod.example.net', severity: 'warning' },
        summary: '1 services of prod.example.net have had no host for 10 minutes: idle',
      })
      const client = await network.client(1)
      await client.request('DELETE', `/edge/management/v1/services/${network.idleServiceId}`)
      await prometheus.resolves('FlotillaServiceWithoutHost')
    },
    SLOW_MS,
  )

  test('has fired every shipped alert in the preceding tests', async () => {
    expect(await prometheus.fired()).toEqual([...shippedAlerts()].sort())
  })
})

/** Sends one write and ignores the response. */
async function write(client: Client, name: string): Promise<void> {
  const body = { name, schema: {} }
  await client
    .request('POST', '/edge/management/v1/config-types', { body, isHeld: false })
    .catch(() => undefined)
}

/**
 * Delays each system call of this name in the threads that the words select, until it is disposed.
 */
function slowCalls(threads: readonly string[], name: string, delayMs: number): AsyncDisposable {
  const delay = ['-e', `trace=${name}`, '-e', `inject=${name}:delay_enter=${delayMs * 1000}`]
  const tracer = spawn('strace', [...delay, ...threads], { stdio: 'ignore' })
  return {
    async [Symbol.asyncDispose]() {
      const ended = once(tracer, 'exit')
      tracer.kill('SIGTERM')
      await ended
    },
  }
}

/** The ID of a thread of a process. */
function threadNamed(pid: number, name: string): string {
  const folder = `/proc/${pid}/task`
  const found = readdirSync(folder).filter(
    (id) => readFileSync(join(folder, id, 'comm'), 'utf8').trim() === name,
  )
  expect(found).toHaveLength(1)
  return found[0] ?? ''
}

/** Repeats an action until all of these alerts fire. */
async function whileNotFiring(
  alerts: readonly Promise<unknown>[],
  cause: (count: number) => Promise<void>,
): Promise<void> {
  let isOver = false
  const all = Promise.all(alerts).finally(() => (isOver = true))
  // Awaited below, after the last action.
  all.catch(() => undefined)
  for (let count = 0; !isOver; count += 1) await cause(count)
  await all
}
