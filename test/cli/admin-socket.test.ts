import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'

import { AdminError, askController } from '../../src/cli/cluster/admin-client.ts'
import { adminSocketAddress } from '../../src/controller/admin/protocol.ts'
import { AdminServer } from '../../src/controller/admin/server.ts'
import { Problem } from '../../src/lib/problems.ts'
import { actorName } from '../../src/ports/actor.ts'

let folder = ''
let server: AdminServer
let unexpected: string[] = []

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'flotilla-admin-'))
  unexpected = []
  server = new AdminServer(
    {
      echo: (params) => Promise.resolve(params),
      who: (_params, by) => Promise.resolve(actorName(by)),
      refuse: () => Promise.reject(new Problem('CLUSTER_NO_LEADER')),
      break: () => Promise.reject(new TypeError('a mistake')),
      never: () => new Promise(() => undefined),
    },
    (verb, error) => unexpected.push(`${verb} ${String(error)}`),
  )
})
afterEach(async () => {
  await server.close()
  rmSync(folder, { recursive: true, force: true })
})

async function codeOf(asked: Promise<unknown>): Promise<string> {
  try {
    await asked
    return 'none'
  } catch (error) {
    if (error instanceof AdminError) return error.code
    throw error
  }
}

/** Sends bytes and gathers what comes back until the server closes, or `lines` lines are there. */
function exchange(bytes: string, lines: number): Promise<string[]> {
  return new Promise((resolve, reject) => {
    const socket = connect(join(folder, 'admin.sock'))
    let text = ''
    const finish = (): void => {
      socket.destroy()
      resolve(text.trimEnd().split('\n'))
    }
    socket.on('error', reject)
    socket.on('close', finish)
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString()
      if (text.split('\n').length > lines) finish()
    })
    socket.write(bytes)
  })
}

test('The admin socket answers verbs, is open to its owner alone, and is removed at the end', async () => {
  await server.listen(folder)
  expect(statSync(join(folder, 'admin.sock')).mode & 0o777).toBe(0o600)
  expect(await askController(folder, 'echo', { a: [1, 'ä'] })).toEqual({ a: [1, 'ä'] })
  await server.close()
  expect(existsSync(join(folder, 'admin.sock'))).toBe(false)
})

test('A refusal keeps its code; a mistake is told to the log as well', async () => {
  await server.listen(folder)
  expect(await codeOf(askController(folder, 'refuse'))).toBe('CLUSTER_NO_LEADER')
  expect(unexpected).toEqual([])
  expect(await codeOf(askController(folder, 'break'))).toBe('UNHANDLED')
  expect(unexpected).toEqual(['break TypeError: a mistake'])
})

test('An unknown verb is refused, one that every object has included', async () => {
  await server.listen(folder)
  expect(await codeOf(askController(folder, 'no-such'))).toBe('UNKNOWN_VERB')
  expect(await codeOf(askController(folder, 'constructor'))).toBe('UNKNOWN_VERB')
})

test('A controller that is not running, or does not answer, is said to be so', async () => {
  expect(await codeOf(askController(folder, 'echo'))).toBe('NOT_RUNNING')
  expect(await codeOf(askController(join(folder, 'none'), 'echo'))).toBe('NOT_RUNNING')
  await server.listen(folder)
  expect(await codeOf(askController(folder, 'never', {}, 50))).toBe('NO_ANSWER')
})

test('A socket left by a killed process is replaced', async () => {
  const left = new AdminServer({}, () => undefined)
  await left.listen(folder)
  // A second one on the same path, as after a crash: the owner of the folder's lock may take it.
  await server.listen(folder)
  expect(await askController(folder, 'echo', { b: 1 })).toEqual({ b: 1 })
  await left.close()
})

test('A data folder too deep for the path of a socket works all the same', async () => {
  const deep = join(folder, ...Array.from({ length: 8 }, () => 'x'.repeat(30)))
  mkdirSync(deep, { recursive: true })
  await server.listen(deep)
  expect(statSync(join(deep, 'admin.sock')).mode & 0o777).toBe(0o600)
  expect(await askController(deep, 'echo', { deep: true })).toEqual({ deep: true })
  const address = adminSocketAddress(deep)
  expect(Buffer.byteLength(address.path)).toBeLessThan(108)
  address.release()
})

test('Requests on one connection are answered in order, bad ones without harm to the next', async () => {
  await server.listen(folder)
  const requests = ['{', '5', 'null', '[]', '{"verb":5}', '{"verb":"echo","params":[]}']
  const good = '{"verb":"echo","params":{"n":1}}'
  const answers = await exchange([...requests, good, ''].join('\n'), requests.length + 1)
  const codes = answers.map((line) => (JSON.parse(line) as { code?: string }).code ?? 'none')
  expect(codes).toEqual([...requests.map(() => 'BAD_REQUEST'), 'none'])
})

test('A line without end, and a flood of requests, end the connection', async () => {
  await server.listen(folder)
  const [long] = await exchange('x'.repeat(70_000), 10)
  expect(long).toContain('the line is too long')
  const flood = await exchange('{"verb":"never","params":{}}\n'.repeat(100), 10)
  expect(flood.at(-1)).toContain('too many requests')
})

test('who asks at the socket is the user of the controller or root, whatever it says of itself', async () => {
  await server.listen(folder)
  const { uid, username } = userInfo()
  expect(await askController(folder, 'who')).toBe(`uid:${uid} (${username})`)
  const claims = [
    [{ uid: 0, name: 'root' }, 'uid:0 (root)'],
    [{ uid: 4711, name: 'somebody-else' }, `uid:${uid} (${username})`],
    [{ uid, name: 'a "quoted"\nname' }, `uid:${uid} (${username})`],
    ['nonsense', `uid:${uid} (${username})`],
    [undefined, `uid:${uid} (${username})`],
  ] as const
  for (const [caller, expected] of claims) {
    const [answer = ''] = await exchange(
      `${JSON.stringify({ verb: 'who', params: {}, caller })}\n`,
      1,
    )
    expect(JSON.parse(answer)).toEqual({ ok: true, data: expected })
  }
})
