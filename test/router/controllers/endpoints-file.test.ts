import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'

import { readEndpoints, writeEndpoints } from '../../../src/router/controllers/endpoints-file.ts'

const folder = mkdtempSync(join(tmpdir(), 'flotilla-endpoints-'))
const path = join(folder, 'endpoints.yml')
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const known = {
  endpoints: ['tls:a.test:1', 'tls:[::1]:2'],
  controllers: [
    { id: 'a', addresses: ['tls:a.test:1'], keySha256: 'ab'.repeat(32), toldBy: null },
    {
      id: 'b',
      addresses: ['tls:b.test:1'],
      keySha256: null,
      toldBy: ['a'],
      answeredAt: ['tls:c.test:1'],
    },
  ],
  removed: [{ id: 'c', keySha256: 'cd'.repeat(32) }],
  apis: ['https://a.test:1280'],
  trustDomain: 'test.example',
}

test('A written endpoints file can be read again, and only its owner may read it', () => {
  writeEndpoints(path, known)
  expect(readEndpoints(path)).toEqual({ kind: 'known', known })
  expect(statSync(path).mode & 0o777).toBe(0o600)
  expect(readFileSync(path, 'utf8')).toContain('endpoints:\n')
})

test('An endpoints file in the format of OpenZiti routers is read, without its invalid entries', () => {
  writeFileSync(
    path,
    `endpoints: ["tls:a.test:1", "http:no.test:1", 5, "tls:b.test:0"]
controllers:
  - {id: a, endpoints: [{address: "tls:a.test:1", groups: [default]}, {address: nowhere}]}
  - {endpoints: [{address: "tls:b.test:1"}]}
  - {id: "../c", endpoints: [{address: "tls:c.test:1"}]}
  - {id: d, endpoints: []}
removed: [{id: e}, {id: f, keySha256: "no key"}, {keySha256: "00"}, 7]
`,
  )
  expect(readEndpoints(path)).toEqual({
    kind: 'known',
    known: {
      endpoints: ['tls:a.test:1'],
      controllers: [{ id: 'a', addresses: ['tls:a.test:1'], keySha256: null, toldBy: null }],
      removed: [],
      apis: [],
      trustDomain: null,
    },
  })
})

test.each([
  ['empty', ''],
  ['truncated', 'endpoints: ["tls:a.te'],
  ['a list', '- tls:a.test:1\n'],
  ['without a controller', 'endpoints: []\n'],
  ['full of zero bytes', '\0'.repeat(512)],
  ['too large', `# ${'a'.repeat(300_000)}\nendpoints: ["tls:a.test:1"]\n`],
])('An endpoints file that is %s counts as damaged, and causes no exception', (_, text) => {
  writeFileSync(path, text)
  expect(readEndpoints(path).kind).toBe('damaged')
})

test('A missing endpoints file does not count as damaged', () => {
  expect(readEndpoints(join(folder, 'none.yml'))).toEqual({ kind: 'absent' })
})
