import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'

import { FileSet } from '../../src/api/files/file-set.ts'
import { pageSecurityHeaders } from '../../src/api/files/page-headers.ts'
import { createApi } from '../../src/api/server.ts'
import { controllerForFile } from '../api/support/for-file.ts'

// The attack: a foreign page shows the console in a frame and makes the administrator click, a
// stored text runs as a script, or a compromised member makes the browsers of administrators
// connect to another host.

const folder = mkdtempSync(join(tmpdir(), 'flotilla-pages-'))
writeFileSync(join(folder, 'index.html'), '<!doctype html>')
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const { controller } = await controllerForFile()
const files = FileSet.load(folder)
const app = createApi(controller.parts).listener({
  apis: ['management'],
  mounts: [
    { path: '/console', policy: 'console', files, missing: '' },
    { path: '/zac', policy: 'spa', files, missing: '' },
  ],
  https: null,
})

/** Directives of the content security policy by name. */
function policyIn(header: unknown): ReadonlyMap<string, string> {
  const directives = String(header).split('; ')
  return new Map(
    directives.map((one) => {
      const at = one.indexOf(' ')
      return at === -1 ? [one, ''] : [one.slice(0, at), one.slice(at + 1)]
    }),
  )
}

test.each(['/console/', '/zac/'])('no page of another site can show %s in a frame', async (url) => {
  const { headers } = await app.inject({ method: 'GET', url })
  expect(policyIn(headers['content-security-policy']).get('frame-ancestors')).toBe("'none'")
  expect(headers['x-frame-options']).toBe('DENY')
  expect(headers['cross-origin-opener-policy']).toBe('same-origin')
  expect(headers['x-content-type-options']).toBe('nosniff')
})

test('the content security policy of the console allows only scripts from its own files, and no markup from strings', async () => {
  const { headers } = await app.inject({ method: 'GET', url: '/console/' })
  const policy = policyIn(headers['content-security-policy'])
  expect(Object.fromEntries(policy)).toEqual({
    'default-src': "'none'",
    'script-src': "'self'",
    'style-src': "'self'",
    'img-src': "'self' data:",
    'font-src': "'self'",
    'connect-src': expect.stringContaining("'self'"),
    'worker-src': "'self'",
    'manifest-src': "'self'",
    'base-uri': "'none'",
    'form-action': "'none'",
    'frame-ancestors': "'none'",
    'require-trusted-types-for': "'script'",
  })
})

const member = (...urls: readonly string[]) => ({
  apiAddresses: urls.map((url) => ({ api: 'edge-management', url, version: 'v1' })),
})

const connectOf = (...members: readonly ReturnType<typeof member>[]): string | undefined =>
  policyIn(pageSecurityHeaders('console', members)['content-security-policy']).get('connect-src')

test('the console can connect only to members of the cluster', () => {
  expect(connectOf(member('https://b.test:1281/edge/management/v1'))).toBe(
    "'self' https://b.test:1281",
  )
})

test.each([
  'http://b.test:1281/edge/management/v1',
  'https://*:1281/',
  'wss://b.test/',
  "https://b.test;script-src 'unsafe-inline'/",
  'https://user:secret@*.test/',
  'no address',
])('a member address that is %s adds nothing to the content security policy', (url) => {
  expect(connectOf(member(url))).toBe("'self'")
})

test('members beyond the limit are not in the content security policy', () => {
  const many = Array.from({ length: 500 }, (_, at) => member(`https://m${at}.test/`))
  expect(connectOf(...many)?.split(' ')).toHaveLength(65)
})
