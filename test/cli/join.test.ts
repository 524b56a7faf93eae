import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { type AddressInfo, connect, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'

import { CheckList } from '../../src/cli/terminal/check-list.ts'
import { type ConfigFlags, planConfig } from '../../src/cli/bootstrap/config-from-flags.ts'
import { prepareJoin } from '../../src/cli/bootstrap/join.ts'
import { requestJoin } from '../../src/cli/bootstrap/join-request.ts'
import { checkJoinMembers, checkJoinTicket } from '../../src/cli/bootstrap/join-preflight.ts'
import {
  createJoinState,
  JOIN_STATE_FILE_NAME,
  readJoinState,
} from '../../src/cli/bootstrap/join-state.ts'
import type { ControllerConfig } from '../../src/config/controller/options.ts'
import { loadControllerConfig } from '../../src/config/controller/load.ts'
import { parseCertificateRequest } from '../../src/pki/authority/certificate-request.ts'
import { checkKeyMatches, parseCertificates } from '../../src/pki/certificate.ts'
import { parseTicket } from '../../src/pki/secrets/ticket.ts'
import { createDataFolder } from '../../src/store/folder/create-data-folder.ts'
import { writeFence } from '../../src/store/folder/fence-file.ts'
import { readDataIdentity } from '../../src/store/log/data-identity.ts'
import { FEATURE_LEVEL } from '../../src/ports/feature-level.ts'
import { freePort, freePortBlock } from '../support/ports.ts'
import { FakeMember, refusal } from './fake-member.ts'
import { runHere } from './run-here.ts'
import { type Finished, run } from './support.ts'

// Goal: a join prints each step, changes nothing if it is refused, and continues if it is repeated.

let member: FakeMember
let folder = ''
let etc = ''
let config = ''
let flags: ConfigFlags = {}

beforeAll(async () => {
  member = await FakeMember.start()
})
afterAll(async () => {
  await member.close()
})
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'flotilla-join-'))
  etc = join(folder, 'etc')
  config = join(etc, 'config.yml')
  const port = await freePortBlock(1)
  flags = {
    id: 'ctrl2',
    bindApi: `127.0.0.1:${port}`,
    bindRouter: `127.0.0.1:${port + 100}`,
    bindCluster: `127.0.0.1:${port + 200}`,
  }
  member.received.length = 0
  member.replies.length = 0
  member.clockOffsetMs = 0
  member.hosts = null
  member.sharedOptions = {}
})
afterEach(() => {
  rmSync(folder, { recursive: true, force: true })
})

/** Joins without starting the controller. @returns the printed checks. */
async function attempt(text: string, changes: ConfigFlags = {}): Promise<CheckList> {
  const checks = new CheckList(true)
  const ticket = checkJoinTicket(text, checks, Date.now())
  const planned = planConfig(config, { ...flags, ...changes }, ticket.trustDomain)
  await prepareJoin(planned, ticket, text, checks)
  return checks
}

/** Runs `cluster join` with the address of a member in addition to those in the ticket. */
async function joinAt(ticket: string, controller: string): Promise<Finished> {
  const words = ['cluster', 'join', config, '--ticket-file', ticket, '--controller', controller]
  const { bindApi = '', bindRouter = '', bindCluster = '' } = flags
  const binds = ['--bind-api', bindApi, '--bind-router', bindRouter, '--bind-cluster', bindCluster]
  return await runHere([...words, '--no-run', '--id', 'ctrl2', ...binds])
}

async function refused(text: string, changes: ConfigFlags = {}): Promise<string> {
  const failure = await attempt(text, changes).then(
    () => new Error('it was accepted'),
    (error: unknown) => error as Error,
  )
  return failure.message
}

describe('A join that is admitted', () => {
  test('writes key, certificate, CA, configuration and an empty data folder, and only their owner can read the secrets', async () => {
    const checks = await attempt(member.ticket())
    expect(checks.checks.every(({ result }) => result === 'ok')).toBe(true)
    expect(readdirSync(etc).sort()).toEqual([
      'ca.pem',
      'cert.pem',
      'config.yml',
      'controller.key',
      'data',
    ])
    const key = readFileSync(join(etc, 'controller.key'), 'utf8')
    expect(statSync(join(etc, 'controller.key')).mode & 0o777).toBe(0o600)
    const [leaf] = parseCertificates(readFileSync(join(etc, 'cert.pem'), 'utf8'))
    checkKeyMatches(leaf, key)
    expect(readFileSync(config, 'utf8')).toMatch(/seeds:\s+- ctrl1\.example\.net:1480/)
    const [sent] = member.received
    expect(sent).toMatchObject({
      id: 'ctrl2',
      address: flags.bindCluster,
      featureLevel: FEATURE_LEVEL,
    })
    expect(sent?.hosts).toContain('127.0.0.1')
    const { storeId, nodeId, clusterId } = readDataIdentity(join(etc, 'data'))
    expect({ nodeId, clusterId }).toEqual({ nodeId: 'ctrl2', clusterId: member.clusterId })
    expect(Buffer.from(storeId).toString('base64url')).toBe(sent?.storeId)
    expect(JSON.stringify(sent)).not.toContain('PRIVATE KEY')
  })

  test('prints each check on a line, and with --no-run finally prints the command that starts the controller', async () => {
    const ticket = join(folder, 'ticket')
    writeFileSync(ticket, member.ticket(), { mode: 0o600 })
    const words = ['cluster', 'join', config, '--ticket-file', ticket, '--no-run', '--id', 'ctrl2']
    const binds = ['--bind-api', flags.bindApi ?? '', '--bind-router', flags.bindRouter ?? '']
    const done = await run([...words, ...binds, '--bind-cluster', flags.bindCluster ?? ''])
    expect(done).toMatchObject({ code: 0, stderr: '' })
    for (const name of [
      'ticket',
      'names',
      'ports',
      'members',
      'clock',
      'admission',
      'certificate',
    ]) {
      expect(done.stdout).toMatch(new RegExp(`^${name} \\.+ ok`, 'm'))
    }
    expect(done.stdout).toContain(`flotilla controller run ${config}`)
  })

  test('uses the member address that the user gives if no address in the ticket is reachable', async () => {
    const ticket = join(folder, 'ticket')
    const nowhere = `https://127.0.0.1:${await freePort()}/fabric/v1`
    writeFileSync(ticket, member.ticket({ addresses: [nowhere] }), { mode: 0o600 })
    const done = await joinAt(ticket, member.address.replace('/fabric/v1', ''))
    expect(done).toMatchObject({ code: 0, stderr: '' })
    expect(done.stdout).toMatch(/^members \.+ warning: ctrl1 reachable; /m)
    expect(done.stdout).toContain(`${nowhere} refused the connection`)
    expect(member.received.map(({ id }) => id)).toEqual(['ctrl2'])
  })

  test('waits while an election is in progress, and repeats an interrupted request with the same key and store ID', async () => {
    member.replies.push(refusal(503, 'CLUSTER_NO_LEADER', 'there is no leader'), 'cut')
    await attempt(member.ticket())
    expect(member.received).toHaveLength(3)
    expect(new Set(member.received.map(({ storeId }) => storeId)).size).toBe(1)
    const requests = await Promise.all(
      member.received.map(({ certificateRequestPem: pem }) => parseCertificateRequest(pem)),
    )
    const keys = requests.map(({ publicKeySpki }) => Buffer.from(publicKeySpki).toString('hex'))
    expect(new Set(keys).size).toBe(1)
  })

  test('accepts an IPv6 address in brackets, and advertises the address with the brackets', () => {
    const changed = { ...flags, advertise: '[2001:db8::1]' }
    const { config: planned } = planConfig(config, changed, member.trustDomain)
    expect(planned.cluster.advertise).toMatch(/^\[2001:db8::1\]:[0-9]+$/)
  })

  test('keeps the seeds and the comments in an existing configuration', async () => {
    const { text } = planConfig(config, flags, member.trustDomain)
    mkdirSync(etc)
    const seeds = 'seeds: [mesh.example.net:1480]'
    writeFileSync(config, `# mine\n${text.replace('cluster:', `cluster:\n  ${seeds}`)}`)
    await attempt(member.ticket())
    const loaded = loadControllerConfig(config, {})
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.faults))
    expect(loaded.config.cluster.seeds).toEqual(['mesh.example.net:1480', 'ctrl1.example.net:1480'])
    expect(readFileSync(config, 'utf8')).toContain('# mine')
  })

  test('keeps a seed only if it leads to a member or its name cannot be resolved', async () => {
    const { text } = planConfig(config, flags, member.trustDomain)
    mkdirSync(etc)
    const removed = await member.controllerAt('ctrl9')
    const [own, closed] = [`127.0.0.1:${member.port}`, `127.0.0.1:${await freePort()}`]
    const seeds = [closed, own, `localhost:${removed.port}`, 'mesh.invalid:1480']
    writeFileSync(config, text.replace('cluster:', `cluster:\n  seeds: [${seeds.join(', ')}]`))
    const checks = await attempt(member.ticket())
    await removed.close()
    const loaded = loadControllerConfig(config, {})
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.faults))
    expect(loaded.config.cluster.seeds).toEqual([
      own,
      'mesh.invalid:1480',
      'ctrl1.example.net:1480',
    ])
    expect(checks.checks.filter(({ check }) => check === 'seeds')).toEqual([
      {
        check: 'seeds',
        result: 'warning',
        detail: `removed from cluster.seeds, because no member of the cluster listens there: ${closed}, localhost:${removed.port}`,
      },
    ])
  })

  test('sends nothing and changes nothing if it is repeated after it was completed', async () => {
    const text = member.ticket()
    await attempt(text)
    const before = readFileSync(join(etc, 'cert.pem'), 'utf8')
    const { checks } = await attempt(text)
    expect(member.received).toHaveLength(1)
    expect(readFileSync(join(etc, 'cert.pem'), 'utf8')).toBe(before)
    // The fake member does not listen at a cluster port.
    expect(checks.at(-1)).toMatchObject({
      check: 'admission',
      result: 'warning',
      detail: expect.stringMatching(/^no member could confirm that ctrl2 is still admitted: /),
    })
  })
})

describe('The cluster options that a joining controller receives', () => {
  /** Loads the written configuration. */
  function written(): ControllerConfig {
    const loaded = loadControllerConfig(config, {})
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.faults))
    return loaded.config
  }

  function optionsLine({ checks }: CheckList): unknown {
    return checks.find(({ check }) => check === 'options')
  }

  test('are written into a new configuration, and printed', async () => {
    member.sharedOptions = {
      'oidc.enabled': 'false',
      'raft.electionTimeoutMs': '700',
      'raft.tickMs': '50',
    }
    expect(optionsLine(await attempt(member.ticket()))).toEqual({
      check: 'options',
      result: 'ok',
      detail:
        'set as in the cluster: raft.electionTimeoutMs 700 (was 600), oidc.enabled false (was true)',
    })
    expect(written().oidc.enabled).toBe(false)
    expect(written().raft).toMatchObject({ tickMs: 50, electionTimeoutMs: 700 })
    expect(readFileSync(config, 'utf8')).not.toContain('tickMs')
  })

  test('replace the cluster options in an existing configuration, and keep its comments', async () => {
    member.sharedOptions = { 'oidc.enabled': 'false', 'api.sessionTimeoutMs': '120000' }
    const { text } = planConfig(config, flags, member.trustDomain)
    mkdirSync(etc)
    writeFileSync(config, `# mine\n${text}oidc:\n  enabled: true # for now\napi:\n`)
    await attempt(member.ticket())
    expect(written().oidc.enabled).toBe(false)
    expect(written().api.sessionTimeoutMs).toBe(120_000)
    expect(readFileSync(config, 'utf8')).toMatch(/^# mine\n[^]*enabled: false # for now/)
  })

  test('include the profile of Raft times, without the times that the profile determines', async () => {
    member.sharedOptions = {
      'raft.profile': '"wan"',
      'raft.heartbeatMs': '500',
      'raft.electionTimeoutMs': '3000',
      'raft.electionTimeoutMaxMs': '8000',
    }
    expect(optionsLine(await attempt(member.ticket()))).toMatchObject({
      detail:
        'set as in the cluster: raft.profile wan (was lan), raft.electionTimeoutMaxMs 8000 (was 1200)',
    })
    expect(written().raft).toMatchObject({ heartbeatMs: 500, electionTimeoutMaxMs: 8000 })
    expect(readFileSync(config, 'utf8')).not.toContain('heartbeatMs')
  })

  test('are not written if they already equal the local options', async () => {
    expect(optionsLine(await attempt(member.ticket()))).toEqual({
      check: 'options',
      result: 'ok',
      detail: 'equal to those of the cluster',
    })
  })

  test('leave the local options unchanged if the member runs a release that sends no options', async () => {
    member.sharedOptions = null
    expect(optionsLine(await attempt(member.ticket()))).toMatchObject({ result: 'warning' })
    expect(written().oidc.enabled).toBe(true)
  })

  test('are ignored if they are unknown to this release', async () => {
    member.sharedOptions = { 'oidc.later': '1', 'oidc.enabled': 'false', 'raft.tickMs': '{}' }
    await attempt(member.ticket())
    expect(written().oidc.enabled).toBe(false)
    expect(readFileSync(config, 'utf8')).not.toContain('later')
  })

  test('stop the join if they are not valid on this host, and then the join can be repeated after a fix', async () => {
    member.sharedOptions = { 'raft.electionTimeoutMs': '7' }
    const text = member.ticket()
    expect(await refused(text)).toMatch(
      /^the options of the cluster do not fit .*electionTimeoutMs: expected an integer from 50/,
    )
    expect(existsSync(config)).toBe(false)
    member.sharedOptions = { 'raft.electionTimeoutMs': '800' }
    await attempt(text)
    expect(written().raft.electionTimeoutMs).toBe(800)
  })

  test('stop the join if environment variables override them', async () => {
    member.sharedOptions = { 'oidc.enabled': 'false' }
    vi.stubEnv('FLOTILLA_OIDC_ENABLED', 'true')
    try {
      expect(await refused(member.ticket())).toBe(
        'the environment sets FLOTILLA_OIDC_ENABLED, and the cluster runs with other values; unset it, and rerun the join',
      )
    } finally {
      vi.unstubAllEnvs()
    }
    expect(existsSync(config)).toBe(false)
  })
})

describe('A join that was interrupted', () => {
  test('resumes at any step with the same key and store ID', async () => {
    const text = member.ticket()
    const state = createJoinState(etc, 'ctrl2', parseTicket(text), null)
    // Simulates the files that are left when an attempt is killed between any two steps.
    await attempt(text)
    const whole = readdirSync(etc)
    const storeId = Buffer.from(state.storeId).toString('base64url')
    expect(member.received[0]?.storeId).toBe(storeId)
    for (const missing of [
      'nothing',
      'data',
      'config.yml',
      'ca.pem',
      'cert.pem',
      'controller.key',
    ]) {
      rmSync(join(etc, missing), { recursive: true, force: true })
      const { id, clusterId } = state
      writeFileSync(
        join(etc, JOIN_STATE_FILE_NAME),
        JSON.stringify({
          format: 1,
          id,
          clusterId,
          privateKeyPem: state.privateKeyPem,
          storeId: Buffer.from(state.storeId).toString('hex'),
        }),
        { mode: 0o600 },
      )
      await attempt(text)
      expect(readdirSync(etc).sort(), missing).toEqual(whole.sort())
      expect(member.received.at(-1)?.storeId).toBe(storeId)
      const [leaf] = parseCertificates(readFileSync(join(etc, 'cert.pem'), 'utf8'))
      checkKeyMatches(leaf, state.privateKeyPem)
    }
  })

  test('keeps its key if the outcome of the join request is unknown', async () => {
    const checks = new CheckList(true)
    const text = member.ticket()
    const ticket = parseTicket(text)
    const state = createJoinState(etc, 'ctrl2', ticket, null)
    member.replies.push('cut', 'cut')
    const request = {
      ticket: text,
      id: 'ctrl2',
      certificateRequestPem: '',
      storeId: state.storeId,
      address: 'a:1',
      hosts: [],
      version: 'v0',
      featureLevel: 1,
    }
    const outcome = await requestJoin(ticket, [member.address], request, { patienceMs: 100 })
    expect(outcome).toMatchObject({ type: 'unknown', isSent: true })
    expect(checks.checks).toEqual([])
    expect(readJoinState(etc)?.privateKeyPem).toBe(state.privateKeyPem)
  })

  test('keeps its key if it is refused after an attempt that may have succeeded', async () => {
    member.replies.push('cut', refusal(409, 'TICKET_REFUSED', 'this ticket has expired'))
    expect(await refused(member.ticket())).toContain('this ticket has expired')
    const key = readJoinState(etc)?.privateKeyPem
    expect(key).toBeDefined()
    // With another ticket, the controller stays the same, and the cluster may know it already.
    await attempt(member.ticket())
    expect(new Set(member.received.map(({ storeId }) => storeId)).size).toBe(1)
    expect(readFileSync(join(etc, 'controller.key'), 'utf8')).toBe(key)
  })

  test('requires a new ticket to advertise another host, because the old ticket yields the old certificate again', async () => {
    member.hosts = ['first.example.net']
    const sentence = await refused(member.ticket())
    expect(sentence).toContain('lacks 127.0.0.1')
    expect(sentence).toContain('with a new ticket')
    expect(existsSync(join(etc, 'data'))).toBe(false)
    member.hosts = null
    await attempt(member.ticket())
  })

  test('leaves a certificate of the operator unchanged, also when the join resumes', async () => {
    await attempt(member.ticket())
    const [cert, key, ca] = ['cert.pem', 'controller.key', 'ca.pem'].map((name) => join(etc, name))
    const theirs = [cert, key, ca].map((path = '') => readFileSync(path, 'utf8'))
    rmSync(etc, { recursive: true })
    mkdirSync(etc)
    for (const [at, path] of [cert, key, ca].entries()) {
      writeFileSync(path ?? '', theirs[at] ?? '', { mode: 0o600 })
    }
    member.replies.push({ status: 200, body: { data: {} } })
    expect(await refused(member.ticket())).toContain('unknown response')
    const { checks } = await attempt(member.ticket())
    // The certificate in the response of the cluster is not the one in use.
    expect(checks.map(({ check }) => check)).not.toContain('certificate')
    expect([cert, key, ca].map((path = '') => readFileSync(path, 'utf8'))).toEqual(theirs)
  })

  test('cannot be continued as a join to another cluster', async () => {
    const other = parseTicket(member.ticket({ clusterId: '01900000-0000-7000-8000-00000000000f' }))
    createJoinState(etc, 'ctrl2', other, null)
    expect(await refused(member.ticket())).toContain('a join of ctrl2 to cluster 01900000')
    expect(member.received).toHaveLength(0)
  })
})

describe('A join that is refused', () => {
  test.each([
    ['used', refusal(403, 'TICKET_REFUSED', 'the ticket was used by ctrl9; ask for a new one')],
    ['expired', refusal(403, 'TICKET_REFUSED', 'the ticket has expired; ask for a new one')],
    ['taken', refusal(409, 'MEMBERSHIP_REFUSED', 'ctrl2 is a member already; choose another --id')],
  ])('prints the cluster’s reason and leaves no files (%s)', async (_title, reply) => {
    member.replies.push(reply)
    const sentence = await refused(member.ticket())
    expect(JSON.stringify(reply)).toContain(sentence)
    expect(readdirSync(folder)).toEqual([])
  })

  test('prints one sentence if the ticket was edited or truncated', async () => {
    const text = member.ticket()
    for (const bad of [text.slice(0, -4), text.replace('.eyJ', '.eyK'), 'flotilla']) {
      const file = join(folder, 'ticket')
      rmSync(file, { force: true })
      writeFileSync(file, bad, { mode: 0o600 })
      const done = await run(['cluster', 'join', config, '--ticket-file', file, '--no-run'])
      expect(done.code).toBe(1)
      expect(done.stderr).toMatch(/ticket.*cluster invite/)
      expect(done.stderr.trim().split('\n')).toHaveLength(1)
      expect(existsSync(etc)).toBe(false)
    }
  })

  test('prints the name of the other cluster if the data folder belongs to another cluster', async () => {
    mkdirSync(etc)
    createDataFolder(join(etc, 'data'), {
      nodeId: 'old7',
      storeId: new Uint8Array(16),
      clusterId: 'elsewhere',
      generation: 1,
      entries: [],
    })
    expect(await refused(member.ticket())).toContain(
      'belongs to controller old7 of cluster elsewhere',
    )
    expect(readdirSync(etc)).toEqual(['data'])
  })

  test('lists the files to move away if the cluster was recovered without this controller', async () => {
    await attempt(member.ticket())
    const data = join(etc, 'data')
    writeFence(data, { generation: 2, by: 'ctrl1' })
    const sentence = await refused(member.ticket())
    expect(sentence).toMatch(/^the cluster was recovered without ctrl2 \(generation 2/)
    const left = [data, join(etc, 'controller.key'), join(etc, 'cert.pem')]
    expect(sentence).toContain(`\n  move away: ${left.join(' ')}`)
    expect(member.received).toHaveLength(1)
  })

  test('stops before any request if the clock is far off', async () => {
    member.clockOffsetMs = -90_000
    const sentence = await refused(member.ticket())
    expect(sentence).toMatch(/clock is (89|90|91)\.\d s ahead of the cluster's; correct it/)
    member.clockOffsetMs = 300_000
    expect(await refused(member.ticket())).toContain("s behind the cluster's")
    expect(member.received).toHaveLength(0)
    expect(existsSync(etc)).toBe(false)
  })

  test('prints the port if the port is in use', async () => {
    const taken = await listener()
    const { port } = taken.address() as AddressInfo
    try {
      for (const flag of ['bindCluster', 'bindRouter', 'bindApi']) {
        const sentence = await refused(member.ticket(), { [flag]: `127.0.0.1:${port}` })
        expect(sentence, flag).toContain(`127.0.0.1:${port} is in use by another process`)
      }
    } finally {
      taken.close()
    }
    expect(existsSync(etc)).toBe(false)
  })

  test('prints the trust domain of the existing configuration if the ticket is from another trust domain', async () => {
    const { text } = planConfig(config, flags, 'mine.internal')
    mkdirSync(etc)
    writeFileSync(config, text)
    expect(await refused(member.ticket())).toContain('has trustDomain mine.internal')
  })

  test('sends and writes nothing if another controller answers at its mesh address', async () => {
    const other = await member.controllerAt('ctrl3')
    const advertise = `127.0.0.1:${other.port}`
    const { text } = planConfig(config, flags, member.trustDomain)
    mkdirSync(etc)
    writeFileSync(
      config,
      text.replace(/(cluster:\n(?: {2}.*\n)*? {2}advertise: )\S+/, `$1${advertise}`),
    )
    await expect(attempt(member.ticket())).rejects.toThrow(
      `ctrl3 answers at ${advertise}, the address that ctrl2 would have`,
    )
    await other.close()
    expect(member.received).toEqual([])
    expect(readdirSync(etc)).toEqual(['config.yml'])
  })

  test('does not change an existing key file that has no certificate', async () => {
    mkdirSync(etc)
    writeFileSync(join(etc, 'controller.key'), 'an older key', { mode: 0o600 })
    expect(await refused(member.ticket())).toContain('move both away')
    expect(readFileSync(join(etc, 'controller.key'), 'utf8')).toBe('an older key')
  })
})

describe('The members in a join ticket', () => {
  test('are tried one after the other, and each failed address is printed with a reason', async () => {
    const closed = await listener()
    const { port } = closed.address() as AddressInfo
    await new Promise((done) => closed.close(done))
    const nowhere = `https://127.0.0.1:${port}/fabric/v1`
    const checks = new CheckList(true)
    const text = member.ticket({ addresses: [nowhere, member.address] })
    const reached = await checkJoinMembers(parseTicket(text), checks)
    expect(reached.map(({ id }) => id)).toEqual(['ctrl1'])
    expect(checks.checks[0]).toMatchObject({ check: 'members', result: 'warning' })
    expect(checks.checks[0]?.detail).toContain(`${nowhere} refused the connection`)
    const sentence = await refused(member.ticket({ addresses: [nowhere] }))
    expect(sentence).toContain('no member of the ticket is reachable')
    expect(existsSync(etc)).toBe(false)
  })

  test('are tried again if none of them responded', async () => {
    let connections = 0
    const relay = createServer((socket) => {
      connections += 1
      if (connections <= 2) {
        socket.destroy()
        return
      }
      const onward = connect(member.port, '127.0.0.1')
      socket.pipe(onward).pipe(socket)
      socket.once('close', () => onward.destroy())
      for (const one of [socket, onward]) one.on('error', () => undefined)
    })
    await new Promise<void>((done) => relay.listen(0, '127.0.0.1', done))
    const { port } = relay.address() as AddressInfo
    const ticket = {
      ...parseTicket(member.ticket()),
      addresses: [`https://127.0.0.1:${port}/fabric/v1`],
    }
    try {
      const reached = await checkJoinMembers(ticket, new CheckList(true))
      expect(reached.map(({ id }) => id)).toEqual(['ctrl1'])
      expect(connections).toBe(3)
    } finally {
      relay.close()
    }
  })

  test('must present a certificate of the CA in the ticket', async () => {
    const other = await FakeMember.start()
    try {
      const sentence = await refused(member.ticket({ addresses: [other.address] }))
      expect(sentence).toContain('presented a certificate of an unknown CA')
      expect(other.received).toHaveLength(0)
    } finally {
      await other.close()
    }
  })

  test('must present a certificate of the CA in the ticket even at an address that the user gives', async () => {
    const nowhere = `https://127.0.0.1:${await freePort()}/fabric/v1`
    const ticket = join(folder, 'ticket')
    const other = await FakeMember.start()
    try {
      writeFileSync(ticket, member.ticket({ addresses: [nowhere] }), { mode: 0o600 })
      const done = await joinAt(ticket, other.address.replace('/fabric/v1', ''))
      expect(done.code).toBe(1)
      expect(done.stderr).toContain('presented a certificate of an unknown CA')
      expect(other.received).toHaveLength(0)
    } finally {
      await other.close()
    }
  })

  test('must be controllers of the trust domain', async () => {
    const sentence = await refused(member.ticket({ trustDomain: 'other.internal' }))
    expect(sentence).toContain('is not a controller of this cluster')
  })

  test('may have slightly different clocks, which causes a warning', async () => {
    member.clockOffsetMs = 10_000
    const checks = await attempt(member.ticket())
    const clock = checks.checks.find(({ check }) => check === 'clock')
    expect(clock).toMatchObject({ result: 'warning' })
    expect(clock?.detail).toMatch(/clock is (9|10)\.\d s behind/)
  })
})

function listener(): Promise<Server> {
  return new Promise((done) => {
    const server = createServer()
    server.listen(0, '127.0.0.1', () => done(server))
  })
}
