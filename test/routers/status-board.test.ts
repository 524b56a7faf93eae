import { expect, test } from 'vitest'

import { noRouterStatuses } from '../../src/ports/router-status.ts'
import type { RouterStatus } from '../../src/ports/router-status.ts'
import type { SoftState, SoftTopic, SoftTopicOptions } from '../../src/ports/soft-state.ts'
import { RouterStatusBoard, routerTopic } from '../../src/routers/status-board.ts'

type Listener = Parameters<SoftTopic<RouterStatus>['onChange']>[0]

const version = { version: 'v2.0.3', revision: '', buildDate: '', os: '', arch: '' }
const statusOf = (hostname: string): RouterStatus => ({ hostname, protocols: {}, version })

/** A topic whose other controllers are the test. */
function heard(): { readonly board: RouterStatusBoard; readonly say: Listener } {
  const listeners: Listener[] = []
  const topic: SoftTopic<RouterStatus> = {
    publish: () => true,
    withdraw: () => undefined,
    get: () => undefined,
    values: () => [],
    onChange: (listener) => listeners.push(listener),
  }
  const board = new RouterStatusBoard('ctrl2', topic)
  return { board, say: (...said) => listeners.forEach((listener) => listener(...said)) }
}

test('a router is online while any controller holds a channel to it', () => {
  const { board, say } = heard()
  expect(board.of('er1')).toBeNull()
  board.publish('er1', statusOf(''))
  say('ctrl1', 'er1', statusOf('edge'))
  board.withdraw('er1')
  expect(board.of('er1')).toEqual(statusOf('edge'))
  say('ctrl1', 'er1', undefined)
  expect(board.of('er1')).toBeNull()
  say('ctrl9', 'er1', undefined)
  expect(board.of('er1')).toBeNull()
})

test('of several, the same one is shown everywhere: one that names its host, then by id', () => {
  const { board, say } = heard()
  board.publish('er1', statusOf('b'))
  say('ctrl1', 'er1', statusOf(''))
  expect(board.of('er1')?.hostname).toBe('b')
  say('ctrl1', 'er1', statusOf('a'))
  expect(board.of('er1')?.hostname).toBe('a')
  expect(noRouterStatuses.of('er1')).toBeNull()
})

test('what a router says of itself is bounded on its way to the others, and once more there', () => {
  let options: SoftTopicOptions<RouterStatus> | null = null
  const soft = {
    topic: (of: SoftTopicOptions<RouterStatus>) => {
      options = of
      return null
    },
  } as unknown as SoftState
  routerTopic(soft)
  const { encode, decode } = options as unknown as SoftTopicOptions<RouterStatus>
  const long = 'x'.repeat(10_000)
  const protocols = Object.fromEntries(Array.from({ length: 99 }, (_, at) => [`p${at}`, long]))
  const bytes = encode({ hostname: long, protocols, version: { ...version, os: long } })
  expect(bytes.length).toBeLessThan(8192)
  const status = decode(bytes)
  expect(status.hostname).toHaveLength(255)
  expect(Object.keys(status.protocols)).toHaveLength(16)
  expect(status.version.os).toHaveLength(255)
  expect(decode(encode(statusOf('edge')))).toEqual(statusOf('edge'))
  expect(() => decode(Uint8Array.of(0xff))).toThrow()
})
