import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { Administrator } from './client/support.ts'
import { freePort } from '../support/ports.ts'

// Goal: a bundle contains what support needs about a router or tunnel on a host, and no secret.
// test/process/debug-bundle.test.ts tests the same for controllers.

let person: Administrator
beforeAll(async () => {
  person = await Administrator.loggedIn()
})
afterAll(() => person.close())

const at = (name: string): string => join(person.folder, name)

/** Text lines of all private keys in the folder. */
function secretLines(): string[] {
  const text = readdirSync(person.folder)
    .filter((name) => /\.(key|json)$/.test(name))
    .map((name) => readFileSync(at(name), 'utf8'))
  const keys = text.flatMap((one) => one.match(/-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]+/g) ?? [])
  return keys.flatMap((key) =>
    key.split(/\\n|\n/).filter((line) => /^[A-Za-z0-9+/=]{20,}$/.test(line)),
  )
}

async function bundle(...words: string[]): Promise<Record<string, unknown>> {
  const out = at(`${words[0]?.slice(2) ?? ''}.tar.gz`)
  const made = JSON.parse(
    await person.out('debug', 'bundle', ...words, '--out', out, '-o', 'json'),
  ) as object
  expect(made).toMatchObject({ missing: [] })
  expect(statSync(out).mode & 0o777).toBe(0o600)
  const all = gunzipSync(readFileSync(out)).toString('latin1')
  const secrets = secretLines()
  expect(secrets.length).toBeGreaterThan(1)
  for (const secret of secrets) expect(all).not.toContain(secret)
  const names = execFileSync('tar', ['-tzf', out], { encoding: 'utf8' }).trim().split('\n')
  return Object.fromEntries(
    names.map((path) => {
      const text = execFileSync('tar', ['-xzOf', out, path], { encoding: 'utf8' })
      return [path.slice(path.indexOf('/') + 1), JSON.parse(text)]
    }),
  )
}

test('a debug bundle for a router contains its configuration, the result of router check, its controllers and its certificates', async () => {
  const id = / id (\S+)/.exec(await person.out('create', 'edge-router', 'name=gate'))?.[1] ?? ''
  const router = JSON.parse(await person.out('get', 'edge-router', 'gate', '-o', 'json')) as {
    enrollmentJwt: string
  }
  const ports = ['--edge-port', String(await freePort()), '--link-port', String(await freePort())]
  const flags = ['--name', 'gate', '--advertise', '127.0.0.1', '--controller', '127.0.0.1:1']
  await person.out('router', 'init', 'edge', at('gate.yml'), ...flags, ...ports)
  const jwt = person.file('gate.jwt', router.enrollmentJwt)
  const enrolled = await person.run('router', 'enroll', at('gate.yml'), '--jwt', jwt)
  expect([enrolled.code, enrolled.stderr]).toEqual([0, expect.any(String)])
  const parts = await bundle('--router', at('gate.yml'))
  expect(parts).toMatchObject({
    'manifest.json': { router: id, missing: [] },
    'check.json': { isRunning: false, faults: [] },
    'controllers.json': { kind: 'known', known: { endpoints: ['tls:127.0.0.1:1'] } },
    'certificate.json': [{ subject: expect.stringContaining(id) as string }, {}],
    'server-certificate.json': [{ names: expect.arrayContaining(['127.0.0.1']) as string[] }, {}],
  })
  const keys = (parts['configuration.json'] as { key: string }[]).map(({ key }) => key)
  expect(keys).toContain('listeners[0].bind')
})

test('a debug bundle for a tunnel contains its certificate, and the controllers that the host can reach', async () => {
  await person.out('create', 'identity', 'name=laptop', 'enrollment.ott=true')
  const laptop = JSON.parse(await person.out('get', 'identity', 'laptop', '-o', 'json')) as {
    id: string
    enrollment: { ott: { jwt: string } }
  }
  const jwt = person.file('laptop.jwt', laptop.enrollment.ott.jwt)
  await person.out('identity', 'enroll', jwt, '--out', at('laptop.json'))
  const parts = await bundle('--tunnel', at('laptop.json'))
  const { origin } = person
  expect(parts).toMatchObject({
    'manifest.json': { tunnel: laptop.id },
    'certificate.json': [{ subject: expect.stringContaining(laptop.id) as string }, {}],
    'file.json': { mode: '600' },
    'controllers.json': expect.arrayContaining([
      { origin, status: 200, clockAheadMs: expect.any(Number) as number },
    ]) as object[],
  })
})

test('debug bundle reports a file that it cannot use', async () => {
  const none = await person.run('debug', 'bundle', '--router', at('none.yml'))
  expect([none.code, none.stderr]).toEqual([2, expect.stringContaining('none.yml: file not found')])
  const no = await person.run('debug', 'bundle', '--tunnel', person.file('x.json', '{}'))
  expect([no.code, no.stderr]).toEqual([2, expect.stringContaining('--identity')])
})
