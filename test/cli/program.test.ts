import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse } from 'yaml'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { Problem } from '../../src/lib/problems.ts'
import { clusterStatusText } from '../../src/cli/cluster/status-screen.ts'
import type { ClusterView, MemberView } from '../../src/ports/cluster-view.ts'
import { nodeHealthExample } from '../api/support/node-examples.ts'
import { type ServedSocket, serveSocket } from './served-socket.ts'
import { layOut, run } from './support.ts'
import type { QuickstartPlan } from '../../src/cli/quickstart/plan.ts'

let folder = ''
let plan: QuickstartPlan
let config = ''

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'flotilla-program-'))
  plan = await layOut(folder, 1)
  config = join(plan.dir, 'ctrl1', 'config.yml')
})
afterAll(() => {
  rmSync(folder, { recursive: true, force: true })
})

describe('The program flotilla', () => {
  test.each([
    ['no command', []],
    ['an unknown command', ['fly']],
    ['an unknown option', ['version', '--fast']],
    ['a missing argument', ['controller', 'run']],
    ['a missing option', ['cluster', 'status']],
    ['one argument too many', ['controller', 'check', 'a', 'b']],
    ['a number out of range', ['quickstart', '--nodes', '0']],
    ['an invalid number', ['quickstart', '--port', '12x']],
    ['a port after which too few ports are left', ['quickstart', '--port', '65400']],
    ['a configuration that does not exist', ['cluster', 'status', '--config', '/nonexistent.yml']],
    ['a configuration that does not exist', ['controller', 'run', '/nonexistent.yml']],
  ])('exits 2 with a message on stderr if there is %s', async (_title, words) => {
    const done = await run(words)
    expect(done.stderr).not.toBe('')
    expect(done.stderr).not.toContain('    at ')
    expect(done.stdout).toBe('')
    expect(done.code).toBe(2)
  })

  test.each([
    ['a folder that cannot be created', ['quickstart', '--dir', '/proc/flotilla']],
    ['a folder below a file', ['quickstart', '--dir', '/etc/hostname/flotilla']],
    ['a configuration that cannot be written', ['cluster', 'init', '/proc/flotilla/config.yml']],
  ])('exits 1 with one sentence and its remedy if there is %s', async (_title, words) => {
    const done = await run(words)
    expect([done.code, done.stdout]).toEqual([1, ''])
    expect(done.stderr.trimEnd().split('\n')).toHaveLength(1)
    expect(done.stderr).toMatch(/; .*choose another location/)
  })

  test.each([
    [2, 'USAGE', ['version', '--fast', '-o', 'json']],
    [2, 'USAGE', ['cluster', '--json']],
    [2, 'USAGE', ['cluster', 'status', '--config', '/nonexistent.yml', '-o', 'json']],
    [1, 'EEXIST', ['cluster', 'init', '/etc/hostname/x/config.yml', '--json']],
  ])('exits %i with the JSON error %s for the arguments %j', async (code, error, words) => {
    const done = await run(words)
    expect([done.code, done.stdout]).toEqual([code, ''])
    expect(JSON.parse(done.stderr)).toEqual({
      error: { code: error, message: expect.stringMatching(/^\S.+/) as string },
    })
  })

  test.each([
    ['quickstrat', "unknown command 'quickstrat'; did you mean 'flotilla quickstart'?"],
    ['statsu', "unknown command 'statsu'; did you mean 'flotilla cluster status'?"],
    ['status', "did you mean 'flotilla cluster status' or 'flotilla cluster upgrade status'?"],
    ['members', "did you mean 'flotilla cluster list'?"],
    ['help cluster statsu', "did you mean 'flotilla cluster status'?"],
    ['cluster stat', "did you mean 'flotilla cluster status'?"],
    ['cluster snapshot sav', "did you mean 'flotilla cluster snapshot save'?"],
    ['xyzzy', "unknown command 'xyzzy'; flotilla --help lists all"],
  ])('answers the unknown command %s with: %s', async (line, sentence) => {
    expect((await run(line.split(' '))).stderr).toContain(sentence)
  })

  test('shows the whole usage line if an argument is missing', async () => {
    const { stderr } = await run(['cluster', 'promote'])
    expect(stderr).toContain("missing required argument 'id'")
    expect(stderr).toContain('usage: flotilla cluster promote [options] <id>')
  })

  test.each(['ctrl1:1280', 'http://ctrl1:1280/'])(
    'suggests the address that the user probably meant when the user types %s',
    async (text) => {
      const { stderr } = await run(['login', text, '--user', 'admin'])
      expect(stderr).toContain('did you mean https://ctrl1:1280?')
    },
  )

  test('explains how to list records if the user calls get without a record', async () => {
    expect((await run(['get', 'identities'])).stderr).toContain('flotilla list identities')
  })

  test.each([[['--help']], [['quickstart', '--help']], [['cluster', 'status', '--help']]])(
    'prints help on stdout and exits 0 for the arguments %j',
    async (words) => {
      const done = await run(words)
      expect(done.code).toBe(0)
      expect(done.stdout).toContain('Usage: flotilla')
    },
  )

  test('prints its version, also as JSON', async () => {
    const line = (await run(['version'])).stdout
    expect(line).toMatch(/^flotilla \d+\.\d+\.\d+ \(node v\d+/)
    expect((await run(['--version'])).stdout).toBe(line)
    const { stdout } = await run(['version', '--json'])
    expect(JSON.parse(stdout)).toMatchObject({ version: expect.stringMatching(/^\d+\.\d+\.\d+/) })
  })

  test('prints the documentation of the configuration options', async () => {
    expect((await run(['controller', 'options'])).stdout).toContain('`raft.electionTimeoutMs`')
  })
})

const member: MemberView = {
  id: 'ctrl1',
  address: '127.0.0.1:1480',
  voter: true,
  leader: true,
  connected: true,
  version: 'v0.1.0',
  apiAddresses: [],
  routerAddresses: [],
  certificatePem: '',
  featureLevel: 1,
  startedAtMs: 1,
  lastContactMs: 0,
  progress: {
    role: 'leader',
    term: 3,
    commit: 9,
    applied: 8,
    persisted: 7,
    digestIndex: 6,
    digest: '00112233445566778899',
    entitiesDigest: '',
  },
  readOnly: false,
  vitals: null,
}
const silent: MemberView = {
  ...member,
  id: 'ctrl2',
  leader: false,
  connected: false,
  version: '',
  lastContactMs: null,
  progress: null,
}

function viewOf(members: readonly MemberView[]): ClusterView {
  return {
    selfId: 'ctrl1',
    clusterId: 'c-1',
    generation: 1,
    featureLevel: 1,
    members: () => members,
    leaderId: () => members.find(({ leader }) => leader)?.id ?? null,
    leaderContactMs: () => 0,
    quorumClockMs: () => null,
    readIndex: () => Promise.resolve(9),
  }
}

const unasked = (): Promise<never> => Promise.reject(new Error('nobody asks for it'))

describe('The cluster commands', () => {
  let server: ServedSocket
  const asked: (string | null)[] = []

  beforeAll(async () => {
    const transferLeadership = (to: string | null): Promise<string> => {
      asked.push(to)
      if (to === 'ctrl1') return Promise.resolve(to)
      return Promise.reject(
        new Problem('TRANSFER_LEADERSHIP_ERROR', { detail: 'there is no such member' }),
      )
    }
    server = await serveSocket(join(plan.dir, 'ctrl1', 'data'), {
      cluster: viewOf([member, silent]),
      health: () => ({ isHealthy: true, checks: [], node: nodeHealthExample }),
      membership: { transferLeadership, plan: unasked, change: unasked },
    })
  })
  afterAll(async () => {
    await server.close()
  })

  test('print a status as JSON with all fields of members that scripts use', async () => {
    const { code, stdout } = await run(['cluster', 'status', '--config', config, '--json'])
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toEqual({
      clusterId: 'c-1',
      generation: 1,
      featureLevel: 1,
      selfId: 'ctrl1',
      leaderId: 'ctrl1',
      members: [
        {
          id: 'ctrl1',
          address: '127.0.0.1:1480',
          version: 'v0.1.0',
          role: 'leader',
          term: 3,
          commit: 9,
          applied: 8,
          persisted: 7,
          digestIndex: 6,
          digest: '00112233445566778899',
          lastContactMs: 0,
          isFailing: false,
          featureLevel: 1,
        },
        {
          id: 'ctrl2',
          address: '127.0.0.1:1480',
          version: '',
          role: 'unknown',
          term: 0,
          commit: 0,
          applied: 0,
          persisted: 0,
          digestIndex: 0,
          digest: '',
          lastContactMs: null,
          isFailing: false,
          featureLevel: 1,
        },
      ],
      failureTolerance: 0,
      failureToleranceMax: 1,
      nextRisk: 'losing one more voter stops writes',
      alarms: [{ code: 'CLOCK_SKEW', text: 'a clock is off', sinceMs: 1, isCritical: false }],
    })
  })

  test('print a status as a readable table', async () => {
    const { stdout } = await run(['cluster', 'status', '--config', config])
    expect(stdout).toContain('leader: ctrl1')
    expect(stdout).toMatch(
      /^ctrl1 +leader +3 +9 +8 +7 +6:001122334455 +0 ms ago +v0\.1\.0 +127\.0\.0\.1:1480$/m,
    )
    expect(stdout).toMatch(/^ctrl2 +unreachable +- .* never +- +127\.0\.0\.1:1480$/m)
  })

  test('print in a status the active feature level, and the member that prevents a higher level', () => {
    const of = (id: string, featureLevel: number) => ({
      id,
      address: '',
      version: '',
      role: 'follower',
      term: 1,
      commit: 1,
      applied: 1,
      persisted: 1,
      digestIndex: 1,
      digest: '',
      lastContactMs: 0,
      isFailing: false,
      featureLevel,
    })
    const status = {
      clusterId: 'c',
      generation: 1,
      selfId: 'a',
      leaderId: 'a',
      featureLevel: 1,
      members: [of('a', 2), of('b', 1), of('c', 0)],
      failureTolerance: 1,
      nextRisk: '',
      alarms: [],
    }
    expect(clusterStatusText(status)).toMatch(/^feature level: 1$/m)
    const nextFeatureLevel = { level: 2, waitsFor: ['b', 'c'] }
    expect(clusterStatusText({ ...status, nextFeatureLevel })).toMatch(
      /^feature level: 1; 2 waits for b \(supports up to 1\), c \(not connected\)$/m,
    )
    expect(
      clusterStatusText({ ...status, nextFeatureLevel: { level: 2, waitsFor: [] } }),
    ).toContain('2 is about to be activated')
  })

  test('print a status as YAML with the same fields', async () => {
    const { code, stdout } = await run(['cluster', 'status', '--config', config, '-o', 'yaml'])
    expect(code).toBe(0)
    const json = await run(['cluster', 'status', '--config', config, '-o', 'json'])
    expect(parse(stdout)).toEqual(JSON.parse(json.stdout))
  })

  test('find the configuration file through the environment', async () => {
    const words = ['cluster', 'list', '-o', 'json']
    expect((await run(words, { FLOTILLA_CONFIG: config })).code).toBe(0)
    const named = await run([...words, '--config', config], { FLOTILLA_CONFIG: '/nonexistent.yml' })
    expect(named.code).toBe(0)
    const checked = await run(['controller', 'check'], { FLOTILLA_CONFIG: '/nonexistent.yml' })
    expect(checked.stderr).toContain('/nonexistent.yml')
  })

  test('show and set the log level', async () => {
    const words = ['log', 'level', '--config', config, '-o', 'json']
    expect(JSON.parse((await run(words)).stdout)).toEqual({ level: 'info', configured: 'info' })
    const done = await run(['log', 'level', 'debug', '--config', config])
    expect(done).toMatchObject({ code: 0, stdout: 'debug (after a restart: info)\n' })
    expect((await run(['log', 'level', 'loud', '--config', config])).code).toBe(2)
  })

  test('list the members', async () => {
    const { stdout } = await run(['cluster', 'list', '--config', config, '--json'])
    expect(JSON.parse(stdout)).toHaveLength(2)
    const table = await run(['cluster', 'list', '--config', config])
    expect(table.stdout).toMatch(/^ctrl1 +127\.0\.0\.1:1480 +yes +yes +yes +v0\.1\.0$/m)
  })

  test('print the new leader after a leadership transfer, and exit 1 with the reason if the transfer is refused', async () => {
    const words = ['cluster', 'transfer-leadership', '--config', config]
    const done = await run([...words, 'ctrl1', '--json'])
    expect(JSON.parse(done.stdout)).toEqual({ leaderId: 'ctrl1' })
    const refused = await run([...words, 'ctrl9'])
    expect(refused).toMatchObject({ code: 1, stdout: '' })
    expect(refused.stderr).toBe('flotilla: ctrl1: there is no such member\n')
    expect(asked).toEqual(['ctrl1', 'ctrl9'])
  })

  test('report that the controller is not running, with the command that starts it', async () => {
    const other = join(folder, 'other.yml')
    const text = readFileSync(config, 'utf8')
    writeFileSync(other, text.replace('data: data', `data: ${join(folder, 'nowhere')}`))
    const done = await run(['cluster', 'status', '--config', other])
    expect(done.code).toBe(5)
    expect(done.stderr).toContain(`start it with: flotilla controller run ${other}`)
  })

  test('report a controller that has no admin socket yet as starting', async () => {
    const starting = join(folder, 'starting.yml')
    const data = join(folder, 'nowhere yet')
    const text = readFileSync(config, 'utf8')
    writeFileSync(starting, text.replace('data: data', `data: ${JSON.stringify(data)}`))
    const child = spawn('sh', ['-c', 'read line', 'controller', 'run', starting])
    try {
      mkdirSync(join(data, 'lock'), { recursive: true })
      writeFileSync(join(data, 'lock', 'holder'), `${child.pid}\n`)
      const asked = run(['cluster', 'status', '--config', starting])
      const sentence = `the controller (process ${child.pid}) is starting; ask again in a moment`
      expect(await asked).toMatchObject({ code: 5, stderr: `flotilla: ctrl1: ${sentence}\n` })
    } finally {
      child.kill('SIGKILL')
    }
  })
})
