import { expect, test } from 'vitest'

import { type Hello, helloAcceptedMessage, readHello } from '../../src/channel/hello.ts'
import { encodeFlag, encodeText } from '../../src/channel/headers.ts'

const version = 'v2.0.3|abc|2026-01-01|linux|amd64'

function helloOf(headers: readonly (readonly [number, Uint8Array])[]): Hello {
  const message = {
    contentType: 0,
    sequence: -1,
    headers: new Map(headers),
    body: encodeText('er1'),
  }
  const hello = readHello(message)
  if (hello === null) throw new Error('it is a hello')
  return hello
}

const text = (value: Uint8Array | undefined): string => Buffer.from(value ?? []).toString()

test('a hello message contains the ID, the version and the socket group', () => {
  const hello = helloOf([
    [4, encodeText(version)],
    [7, encodeText('ctrl.default')],
    [9, encodeFlag(true)],
    [11, encodeFlag(true)],
  ])
  expect(hello).toMatchObject({
    token: 'er1',
    type: 'ctrl.default',
    version: { version: 'v2.0.3', revision: 'abc', os: 'linux', arch: 'amd64' },
    group: { isFirst: true, id: '', secret: null },
  })
  expect(
    readHello({ contentType: 1, sequence: 1, headers: new Map(), body: encodeText('') }),
  ).toBeNull()
})

test.each(['', 'v1|a|b|c', 'v1|a|b|c|d|e', `${'v'.repeat(129)}|a|b|c|d`])(
  'the version line %j in a hello message is invalid',
  (line) => expect(helloOf([[4, encodeText(line)]]).version).toBeNull(),
)

test('in a hello without the flag for a socket group, the header keys that describe the group have other meanings', () => {
  const older = helloOf([
    [10, encodeText('listeners')],
    [11, encodeFlag(true)],
    [0, encodeText('id')],
  ])
  expect(older.group).toBeNull()
  const { headers } = helloAcceptedMessage(older, 'ctrl1', new Map())
  expect(headers.has(9)).toBe(false)
  expect(headers.has(10)).toBe(false)
  expect(text(headers.get(0))).toMatch(/^[0-9a-f-]{36}$/)
})

test('a new socket group gets an ID and a secret, and an additional socket gets the same ID and secret', () => {
  const first = helloAcceptedMessage(helloOf([[9, encodeFlag(true)]]), 'ctrl1', new Map())
  expect(text(first.headers.get(10))).toMatch(/^[0-9a-f-]{36}$/)
  expect(first.headers.get(9)).toEqual(encodeFlag(true))
  const again = helloAcceptedMessage(
    helloOf([
      [0, encodeText('old-1')],
      [9, encodeFlag(true)],
      [10, encodeText('secret')],
      [11, encodeFlag(true)],
    ]),
    'ctrl1',
    new Map([[1002, Uint8Array.of(0x5e)]]),
  )
  expect(text(again.headers.get(0))).toBe('old-1')
  expect(text(again.headers.get(10))).toBe('secret')
  expect(again.headers.get(1002)).toEqual(Uint8Array.of(0x5e))
})
