import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import type { LightMyRequestResponse } from 'fastify'
import { afterAll, describe, expect, test } from 'vitest'

import { acceptedCodings } from '../../src/api/http/responses/accepted-codings.ts'
import type { FileMount } from '../../src/api/files/file-mount.ts'
import { FileSet } from '../../src/api/files/file-set.ts'
import { fileMediaType } from '../../src/api/files/file-types.ts'
import { createApi } from '../../src/api/server.ts'
import { controllerForFile } from './support/for-file.ts'

// Goal: a controller serves a folder from memory with the headers that browsers need, and serves no
// files outside of the folder.

const folder = mkdtempSync(join(tmpdir(), 'flotilla-files-'))
mkdirSync(join(folder, 'assets'))
const script = 'console.log("a script that is long enough to be worth it")'
writeFileSync(join(folder, 'index.html'), '<!doctype html><title>page</title>')
writeFileSync(join(folder, 'assets/main-B3xk9_2a.js'), script)
writeFileSync(join(folder, 'assets/main-B3xk9_2a.js.gz'), gzipSync(script))
writeFileSync(join(folder, 'assets/worker-settings.js'), script)
writeFileSync(join(folder, 'icon.svg'), '<svg/>')
writeFileSync(join(folder, '.secret'), 'not for anybody')
symlinkSync('/etc/hostname', join(folder, 'link.txt'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const { controller } = await controllerForFile()
const mounts: readonly FileMount[] = [
  { path: '/console', policy: 'console', files: FileSet.load(folder), missing: '' },
  { path: '/zac', policy: 'spa', files: FileSet.load(folder), missing: '' },
  { path: '/unbuilt', policy: 'console', files: null, missing: "run 'make console'" },
]
const app = createApi(controller.parts).listener({ apis: ['management'], mounts, https: null })

type Headers = Readonly<Record<string, string>>
const get = (url: string, headers: Headers = {}): Promise<LightMyRequestResponse> =>
  app.inject({ method: 'GET', url, headers })

describe('The file server of the console', () => {
  test.each(['/console', '/console/', '/console/?a=b', '/console/services/a%2Eb', '/zac/'])(
    'returns the index page for %s, and forbids caching it',
    async (url) => {
      const answer = await get(url)
      expect([answer.statusCode, answer.headers['content-type']]).toEqual([
        200,
        'text/html; charset=utf-8',
      ])
      expect(answer.headers['cache-control']).toBe('no-store')
      expect(answer.body).toContain('<title>page</title>')
    },
  )

  test('lets browsers cache a file with a hash in its name for a year, and makes them revalidate other files', async () => {
    const hashed = await get('/console/assets/main-B3xk9_2a.js')
    expect(hashed.headers['cache-control']).toBe('public, max-age=31536000, immutable')
    const icon = await get('/console/icon.svg')
    expect(icon.headers['cache-control']).toBe('no-cache')
    expect(icon.headers['content-type']).toBe('image/svg+xml')
    const named = await get('/console/assets/worker-settings.js')
    expect(named.headers['cache-control']).toBe('no-cache')
  })

  test('sends the accepted content encoding, and gives each encoding of a file a separate ETag', async () => {
    const url = '/console/assets/main-B3xk9_2a.js'
    const plain = await get(url)
    const packed = await get(url, { 'accept-encoding': 'br;q=0, gzip' })
    expect([plain.headers['content-encoding'], plain.body]).toEqual([undefined, script])
    expect(packed.headers['content-encoding']).toBe('gzip')
    expect(packed.headers['vary']).toBe('accept-encoding')
    expect(packed.rawPayload).toEqual(gzipSync(script))
    expect(packed.headers['etag']).not.toBe(plain.headers['etag'])
  })

  test('returns 304 for a file that the browser already has', async () => {
    const { headers } = await get('/console/icon.svg')
    const again = await get('/console/icon.svg', {
      'if-none-match': `W/${String(headers['etag'])}`,
    })
    expect([again.statusCode, again.body]).toEqual([304, ''])
  })

  test('answers a HEAD request like GET, without the body', async () => {
    const answer = await app.inject({ method: 'HEAD', url: '/console/icon.svg' })
    expect([answer.statusCode, answer.body]).toEqual([200, ''])
    expect(answer.headers['content-length']).toBe('6')
  })

  test.each([
    '/console/none.js',
    '/console/assets/none-B3xk9_2a.css',
    '/console/.secret/index.js',
    '/console/link.txt',
    '/console/../etc/hostname',
    '/console/%2e%2e/%2e%2e/etc/passwd',
    '/console/..%2f..%2fetc%2fhostname.txt',
    '/consoles',
  ])('returns 404 for %s', async (url) => {
    expect((await get(url)).statusCode).toBe(404)
  })

  test('refuses a POST request with the status 405', async () => {
    const answer = await app.inject({ method: 'POST', url: '/console/', payload: '{}' })
    expect(answer.statusCode).toBe(405)
  })

  test('explains how to build the console if the console is not built', async () => {
    const answer = await get('/unbuilt/')
    expect([answer.statusCode, answer.body]).toEqual([404, expect.stringContaining('make console')])
  })
})

test('a file set omits hidden files and symbolic links, counts a file and its compressed copy once, and fails if the folder is missing', () => {
  expect(() => FileSet.load(join(folder, 'nowhere'))).toThrow('ENOENT')
  expect(FileSet.load(folder).fileCount).toBe(4)
})

test.each([
  ['gzip, br', ['gzip', 'br']],
  ['GZIP;q=1.0', ['gzip']],
  ['gzip;q=0, *', ['*']],
  [undefined, ['']],
])('the header Accept-Encoding: %s is parsed to the encodings %j', (header, names) => {
  expect([...acceptedCodings(header)]).toEqual(names)
})

test('the API sends its OpenAPI document compressed to clients that accept this', async () => {
  const url = '/edge/management/v1/openapi.json'
  const plain = await get(url)
  const packed = await get(url, { 'accept-encoding': 'gzip' })
  expect(plain.headers['content-encoding']).toBeUndefined()
  expect(packed.headers['content-encoding']).toBe('gzip')
  expect(gunzipSync(packed.rawPayload).toString()).toBe(plain.body)
  expect(packed.rawPayload.length * 10).toBeLessThan(plain.body.length)
})

test('a file with an unknown extension has the media type application/octet-stream', () => {
  expect(fileMediaType('a.HTML')).toBe('text/html; charset=utf-8')
  expect(fileMediaType('program.exe')).toBe('application/octet-stream')
})
