import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'

import { joinInstruction } from '../../src/cli/cluster/membership-commands.ts'
import type { QuickstartPlan } from '../../src/cli/quickstart/plan.ts'
import { Problem } from '../../src/lib/problems.ts'
import type {
  ControllerAdmission,
  ChangePlan,
  MembershipControl,
} from '../../src/ports/membership.ts'
import { freePort } from '../support/ports.ts'
import { type ServedSocket, serveSocket } from './served-socket.ts'
import { layOut, run } from './support.ts'

// Goal: an operator sees the effect of a change before it is made, and nothing is changed without a
// confirmation.

const wanted = 'remove ctrl3 and tolerate 0 failures'
const plan: ChangePlan = {
  change: { verb: 'remove', id: 'ctrl3', isCompromised: false },
  isNeeded: true,
  votersBefore: ['ctrl1', 'ctrl2', 'ctrl3'],
  votersAfter: ['ctrl1', 'ctrl2'],
  toleranceBefore: 1,
  toleranceAfter: 0,
  warnings: ['two voters bear no more than one'],
  confirmation: wanted,
}

let folder = ''
let quickstart: QuickstartPlan
let config = ''
let next: ChangePlan = plan
const asked: [string, Readonly<Record<string, unknown>>][] = []

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'flotilla-verbs-'))
  quickstart = await layOut(folder, 1)
  config = join(quickstart.dir, 'ctrl1', 'config.yml')
})
afterAll(() => {
  rmSync(folder, { recursive: true, force: true })
})
beforeEach(() => {
  asked.length = 0
  next = plan
})

describe('A cluster command at the admin socket', () => {
  let server: ServedSocket
  const membership: MembershipControl = {
    plan: (change) => {
      const { verb, ...params } = change
      asked.push(['plan', { verb, ...params }])
      return Promise.resolve(next)
    },
    change: ({ verb, ...params }, confirmation) => {
      asked.push([verb, { ...params, confirmation }])
      if (confirmation === next.confirmation) return Promise.resolve(next)
      return Promise.reject(new Problem('TOLERANCE_REFUSED'))
    },
    transferLeadership: () => Promise.reject(new Problem('CLUSTER_NO_LEADER')),
  }
  const admission: ControllerAdmission = {
    invite: (params) => {
      asked.push(['invite', params])
      return Promise.resolve({ ticket: 'flotilla-ticket-1.secret', id: 't1', expiresAtMs: 0 })
    },
    tickets: () => {
      const common = { createdAtMs: 0, expiresAtMs: 3_600_000 }
      return Promise.resolve([
        { ...common, id: 't2', isVoter: false, usedBy: null },
        { ...common, id: 't1', isVoter: true, usedBy: 'ctrl4' },
      ])
    },
    revoke: (id) => {
      asked.push(['revoke-ticket', { id }])
      if (id === 't2') return Promise.resolve()
      const detail = `joinTicket with id ${id} not found`
      if (id === 'ID') return Promise.reject(new Problem('NOT_FOUND', { detail }))
      return Promise.reject(new Problem('MEMBERSHIP_REFUSED', { detail: 'ctrl4 has joined' }))
    },
    admit: () => Promise.reject(new Problem('TICKET_REFUSED')),
  }
  beforeAll(async () => {
    const folder = join(quickstart.dir, 'ctrl1', 'data')
    server = await serveSocket(folder, { membership, admission })
  })
  afterAll(async () => {
    await server.close()
  })

  function cluster(...words: string[]): ReturnType<typeof run> {
    return run(['cluster', ...words, '--config', config])
  }

  test('shows the voters and the remaining failure tolerance before a removal, and stops without a confirmation', async () => {
    const done = await cluster('remove', 'ctrl3')
    expect(done.code).toBe(1)
    expect(done.stdout).toContain('before: 3 voters (ctrl1, ctrl2, ctrl3), failure tolerance 1')
    expect(done.stdout).toContain('after:  2 voters (ctrl1, ctrl2), failure tolerance 0')
    expect(done.stdout).toContain('warning: two voters bear no more than one')
    expect(done.stderr).toContain(`nothing changed. Pass --confirm '${wanted}'`)
    expect(asked.map(([verb]) => verb)).toEqual(['plan'])
  })

  test('changes nothing after a wrong confirmation, and removes the member after the right one', async () => {
    const wrong = await cluster('remove', 'ctrl3', '--confirm', 'yes')
    expect(wrong.stderr).toContain(`does not match "${wanted}"; nothing changed`)
    expect(asked.map(([verb]) => verb)).toEqual(['plan'])
    const done = await cluster('remove', 'ctrl3', '--compromised', '--confirm', wanted)
    expect(done).toMatchObject({ code: 0, stderr: '' })
    expect(done.stdout).toContain('removed ctrl3')
    expect(asked.slice(1)).toEqual([
      ['plan', { verb: 'remove', id: 'ctrl3', isCompromised: true }],
      ['remove', { id: 'ctrl3', isCompromised: true, confirmation: wanted }],
    ])
  })

  test('runs immediately if it needs no confirmation, also with the output format JSON', async () => {
    next = { ...plan, confirmation: null }
    const done = await cluster('replace', 'ctrl2', 'ctrl4', '--json')
    expect(JSON.parse(done.stdout)).toMatchObject({ isDone: true, toleranceAfter: 0 })
    expect(asked[1]).toEqual(['replace', { oldId: 'ctrl2', newId: 'ctrl4', confirmation: null }])
  })

  test('prints that no change is needed, without asking for a confirmation', async () => {
    next = { ...plan, isNeeded: false, confirmation: null }
    const done = await cluster('promote', 'ctrl3')
    expect(done).toMatchObject({ code: 0 })
    expect(done.stdout).toContain('no change needed')
    expect(asked.map(([verb]) => verb)).toEqual(['plan'])
  })

  test('as invite, prints only the ticket on stdout', async () => {
    const done = await cluster('invite', '--learner', '--lifetime', '30m')
    expect(done.stdout).toBe('flotilla-ticket-1.secret\n')
    expect(done.stderr).toContain('for one learner')
    expect(asked).toEqual([['invite', { isVoter: false, lifetimeMs: 1_800_000 }]])
  })

  test('as invite, writes the ticket to a file that only its owner can read, and does not print the ticket', async () => {
    const out = join(folder, 'ticket')
    const done = await cluster('invite', '--out', out)
    expect(readFileSync(out, 'utf8')).toBe('flotilla-ticket-1.secret\n')
    expect(statSync(out).mode & 0o777).toBe(0o600)
    expect(done.stdout + done.stderr).not.toContain('secret')
  })

  test('as invite on a host with a systemd unit, prints the commands that create the folders, join the cluster and start the unit on the new host', () => {
    expect(joinInstruction('a ticket', false)).toBe(
      "on the new host: flotilla cluster join CONFIG --ticket-file 'a ticket'",
    )
    const [, folders, join, start] = joinInstruction('ctrl2.ticket', true).split('\n')
    expect(folders).toMatch(/ -o flotilla .* \/etc\/flotilla\/ID \/var\/lib\/flotilla\/ID$/)
    expect(join).toMatch(/ --data \S+ --advertise HOST --ticket-file - --no-run < ctrl2\.ticket$/)
    expect(start).toBe('  systemctl enable --now flotilla-controller@ID')
  })

  test('as invite, is refused if the ticket would overwrite a file', async () => {
    const out = join(folder, 'earlier')
    writeFileSync(out, 'a ticket that may still be good\n')
    const done = await cluster('invite', '--out', out)
    expect([done.code, done.stderr]).toEqual([1, expect.stringContaining('already exists')])
    expect(readFileSync(out, 'utf8')).toBe('a ticket that may still be good\n')
    expect(asked).toEqual([])
  })

  test('as tickets list, shows for each ticket its role, its times and the controller that joined with it', async () => {
    const done = await cluster('tickets', 'list')
    expect(done.stdout.split('\n')).toEqual([
      'id  role     created               expires               used by',
      't2  learner  1970-01-01T00:00:00Z  1970-01-01T01:00:00Z  -',
      't1  voter    1970-01-01T00:00:00Z  1970-01-01T01:00:00Z  ctrl4',
      '',
    ])
    const json = JSON.parse((await cluster('tickets', 'list', '--json')).stdout) as unknown[]
    expect(json).toHaveLength(2)
  })

  test('as tickets revoke, revokes a ticket, or prints why it cannot', async () => {
    const done = await cluster('tickets', 'revoke', 't2')
    expect(done).toMatchObject({ code: 0, stderr: '' })
    expect(done.stdout).toContain('revoked ticket t2')
    const refused = await cluster('tickets', 'revoke', 't1')
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('ctrl4 has joined')])
    const unknown = await cluster('tickets', 'revoke', 'ID')
    expect(unknown.code).toBe(4)
    expect(unknown.stderr).toMatch(/no ticket "ID"; 'flotilla cluster tickets list' shows/)
  })

  test.each(['8d', '0h', '59s', '1', 'soon'])('refuses a lifetime of %s', async (lifetime) => {
    expect((await cluster('invite', '--lifetime', lifetime)).code).toBe(2)
    expect(asked).toEqual([])
  })
})

describe('A cluster command at the public API with a session', () => {
  let server: Server
  let url = ''
  const seen: { path: string; session: unknown; body: string }[] = []
  const ownKey = (): { cert: Buffer; key: Buffer } => {
    const ctrl1 = join(quickstart.dir, 'ctrl1')
    return {
      cert: readFileSync(join(ctrl1, 'cert.pem')),
      key: readFileSync(join(ctrl1, 'controller.key')),
    }
  }

  /** Data in the responses of a controller, by path. */
  function dataAt(path: string): object {
    if (path.startsWith('/fabric/v1/pki/')) {
      return { certificates: [], issuingPem: null, refused: null, alarm: null }
    }
    if (path !== '/fabric/v1/cluster/status') return next
    const names = { clusterId: 'c', selfId: 'ctrl1', leaderId: 'ctrl1', nextRisk: '' }
    return { ...names, members: [], alarms: [] }
  }

  beforeAll(async () => {
    server = createServer(ownKey(), (request, response) => {
      let body = ''
      request.on('data', (chunk: Buffer) => (body += chunk.toString()))
      request.on('end', () => {
        const session = request.headers['net-session']
        seen.push({ path: request.url ?? '', session, body })
        const isKnown = session === 'token-1'
        response.writeHead(isKnown ? 200 : 401, {
          'content-type': 'application/json',
          ...(isKnown ? {} : { 'www-authenticate': 'zt-session' }),
        })
        const error = { code: 'UNAUTHORIZED', message: 'no' }
        const data = dataAt(request.url ?? '')
        response.end(JSON.stringify(isKnown ? { data, meta: {} } : { error, meta: {} }))
      })
    })
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
    url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  afterAll(async () => {
    server.closeAllConnections()
    await new Promise((done) => server.close(done))
  })

  function remote(session: string, ...words: string[]): ReturnType<typeof run> {
    const file = join(folder, 'session')
    writeFileSync(file, `${session}\n`, { mode: 0o600 })
    const where = ['--url', url, '--ca', join(quickstart.dir, 'ca.pem'), '--session-file', file]
    return run(['cluster', ...words, ...where])
  }

  test('calls the same operation as at the admin socket', async () => {
    const done = await remote('token-1', 'remove', 'ctrl3', '--confirm', wanted)
    expect(done).toMatchObject({ code: 0, stderr: '' })
    expect(seen.map(({ path }) => path)).toEqual([
      '/fabric/v1/cluster/plan',
      '/fabric/v1/cluster/remove-member',
    ])
    expect(JSON.parse(seen[1]?.body ?? '')).toEqual({
      id: 'ctrl3',
      isCompromised: false,
      confirmation: wanted,
    })
  })

  test('works for status, pki renew and pki reload of a controller on another host, but not for pki renew with a root key', async () => {
    const of = ['--url', url, '--ca', join(quickstart.dir, 'ctrl1', 'ca.pem'), '--json']
    const session = join(folder, 'session')
    writeFileSync(session, 'token-1\n', { mode: 0o600 })
    const asked = [...of, '--session-file', session]
    for (const [words, path] of [
      [['cluster', 'status'], '/fabric/v1/cluster/status'],
      [['pki', 'renew'], '/fabric/v1/pki/renew'],
      [['pki', 'reload'], '/fabric/v1/pki/reload'],
    ] as const) {
      expect(await run([...words, ...asked])).toMatchObject({ code: 0, stderr: '' })
      expect(seen.at(-1)).toMatchObject({ path, session: 'token-1' })
    }
    const root = await run(['pki', 'renew', '--root-key', 'root.key', ...asked])
    expect([root.code, root.stderr]).toEqual([2, expect.stringContaining('needs --config')])
  })

  test('reports an ended session without printing its token', async () => {
    const done = await remote('token-of-yesterday', 'list')
    expect(done.code).toBe(3)
    expect(done.stderr).toContain('log in again')
    expect(done.stderr).not.toContain('token-of-yesterday')
  })

  test('uses the session that flotilla login stored for the controller', async () => {
    const caPem = readFileSync(join(quickstart.dir, 'ctrl1', 'ca.pem'), 'utf8')
    const keep = (token: string | null): void => {
      const logIn = { method: 'password', username: 'admin' }
      const controllers = ['https://other.example:1', url]
      const here = { controllers, named: [url], caPem, logIn, token }
      const file = join(folder, 'flotilla', 'contexts.json')
      mkdirSync(join(folder, 'flotilla'), { recursive: true })
      writeFileSync(file, JSON.stringify({ current: null, contexts: { here } }), { mode: 0o600 })
    }
    const env = { XDG_CONFIG_HOME: folder }
    const words = ['cluster', 'remove', 'ctrl3', '--confirm', wanted, '--url', url]
    keep('token-1')
    expect(await run(words, env)).toMatchObject({ code: 0, stderr: '' })
    expect(seen.at(-1)).toMatchObject({ path: '/fabric/v1/cluster/remove-member' })
    keep(null)
    const loggedOut = await run(words, env)
    expect([loggedOut.code, loggedOut.stderr]).toEqual([
      3,
      expect.stringContaining('not logged in to here; log in with: flotilla login'),
    ])
    const elsewhere = await run(['cluster', 'list', '--url', 'https://127.0.0.1:9'], env)
    expect([elsewhere.code, elsewhere.stderr]).toEqual([
      2,
      expect.stringContaining('log in with flotilla login https://127.0.0.1:9, or pass --ca FILE'),
    ])
  })

  /**
   * Stores a log-in that knows these controllers. @returns the flags with which a command names the
   * first one.
   */
  function keepLogIn(...controllers: readonly string[]): string[] {
    const caPem = readFileSync(join(quickstart.dir, 'ctrl1', 'ca.pem'), 'utf8')
    const logIn = { method: 'password', username: 'admin' }
    const named = controllers.slice(0, 1)
    const here = { controllers, named, caPem, logIn, token: 'token-1' }
    mkdirSync(join(folder, 'flotilla'), { recursive: true })
    const file = join(folder, 'flotilla', 'contexts.json')
    writeFileSync(file, JSON.stringify({ current: null, contexts: { here } }), { mode: 0o600 })
    return ['--url', String(controllers[0])]
  }
  const env = (): Record<string, string> => ({ XDG_CONFIG_HOME: folder })

  test('uses the current context, or the context that the user gives before or after the command', async () => {
    keepLogIn(url)
    const file = join(folder, 'flotilla', 'contexts.json')
    const stored = JSON.parse(readFileSync(file, 'utf8')) as { contexts: object }
    const none = await run(['cluster', 'status'], env())
    expect([none.code, none.stderr]).toEqual([2, expect.stringContaining('name a controller')])
    for (const words of [
      ['--context', 'here', 'cluster', 'status'],
      ['--context=here', 'cluster', 'status', '-o', 'json'],
      ['cluster', 'status', '--context', 'here'],
    ]) {
      expect(await run(words, env()), words.join(' ')).toMatchObject({ code: 0, stderr: '' })
    }
    writeFileSync(file, JSON.stringify({ ...stored, current: 'here' }), { mode: 0o600 })
    expect(await run(['cluster', 'status'], env())).toMatchObject({ code: 0, stderr: '' })
    for (const [words, sentence] of [
      [['log', 'level'], 'this command is about one controller; name it'],
      [['cluster', 'status', '--context', 'here', '--url', url], 'exclude each other'],
      [['cluster', 'status', '--ca', 'ca.pem'], '--ca and --session-file need --url'],
    ] as const) {
      const refused = await run(words, env())
      expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining(sentence)])
    }
  })

  test('uses another controller if one is unreachable, unless the command concerns the unreachable one', async () => {
    const away = `https://127.0.0.1:${await freePort()}`
    const at = keepLogIn(away, url)
    expect(await run(['cluster', 'status', '--json', ...at], env())).toMatchObject({ code: 0 })
    expect(seen.at(-1)).toMatchObject({ path: '/fabric/v1/cluster/status' })
    const asked = seen.length
    for (const words of [
      ['log', 'level', 'debug'],
      ['pki', 'renew'],
      ['pki', 'reload'],
    ]) {
      const done = await run([...words, ...keepLogIn(away, url)], env())
      expect([done.code, done.stderr]).toEqual([
        5,
        expect.stringContaining(`${away}: it refused the connection`),
      ])
    }
    expect(seen).toHaveLength(asked)
  })

  test('does not repeat a change at another controller after a lost response', async () => {
    let received = 0
    const lossy = createServer(ownKey(), (request) => {
      received += 1
      request.socket.destroy()
    })
    await new Promise<void>((done) => lossy.listen(0, '127.0.0.1', done))
    const first = `https://127.0.0.1:${(lossy.address() as AddressInfo).port}`
    const asked = seen.length
    const done = await run(['cluster', 'tickets', 'revoke', 'id', ...keepLogIn(first, url)], env())
    lossy.close()
    expect([done.code, done.stderr]).toEqual([
      1,
      expect.stringContaining('outcome unknown, check before repeating'),
    ])
    expect([received, seen.length - asked]).toEqual([1, 0])
  })

  test('refuses incomplete or contradictory connection options', async () => {
    expect((await run(['cluster', 'list'])).stderr).toContain('--config FILE on its host')
    expect((await run(['cluster', 'list', '--url', url])).stderr).toContain('--session-file')
    const both = ['cluster', 'list', '--url', url, '--config', config]
    expect((await run(both)).code).toBe(2)
  })
})
