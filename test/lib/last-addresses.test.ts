import {
  chownSync,
  lstatSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import {
  CachedResolver,
  lastAddressLimits,
  type LookupResult,
} from '../../src/lib/runtime/cached-resolver.ts'

let folder: string
let path: string
let nowMs: number
let asked: string[]
let records: Map<string, LookupResult | Promise<LookupResult>>
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'flotilla-last-addresses-'))
  path = join(folder, 'last.json')
  nowMs = 0
  asked = []
  records = new Map()
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const down: LookupResult = { addresses: [], isAnswered: false }
const absent: LookupResult = { addresses: [], isAnswered: true }
const found = (...addresses: readonly string[]): LookupResult => ({ addresses, isAnswered: true })

function opened(file: string | null = path): CachedResolver {
  return new CachedResolver({
    path: file,
    clock: { monotonicMs: () => nowMs },
    lookUp: async (host) => {
      asked.push(host)
      return await (records.get(host) ?? absent)
    },
  })
}

describe('The last known addresses of a DNS name', () => {
  test('are used while no DNS server responds, which is logged', async () => {
    const names = opened()
    records.set('a.test', found('10.0.0.2'))
    expect(await names.resolve('a.test')).toEqual({ addresses: ['10.0.0.2'], fault: null })
    records.set('a.test', down)
    expect(await names.resolve('a.test')).toEqual({
      addresses: ['10.0.0.2'],
      fault: 'a.test: the name server did not answer; trying the last address 10.0.0.2',
    })
    records.set('b.test', down)
    expect(await names.resolve('b.test')).toEqual({
      addresses: [],
      fault: 'b.test: the name server did not answer',
    })
  })

  test('are not used for a name that, according to the DNS server, does not exist', async () => {
    const names = opened()
    records.set('a.test', found('10.0.0.2'))
    await names.resolve('a.test')
    records.set('a.test', absent)
    expect(await names.resolve('a.test')).toEqual({
      addresses: [],
      fault: 'a.test: the name server knows no address',
    })
  })

  test('survive a restart of the program', async () => {
    const names = opened()
    records.set('a.test', found('10.0.0.2', 'fd77::2'))
    await names.resolve('a.test')
    await names.saved()
    records.set('a.test', down)
    expect((await opened().resolve('a.test')).addresses).toEqual(['10.0.0.2', 'fd77::2'])
  })

  test('are used without waiting for a DNS lookup that hangs, until its response arrives', async () => {
    const names = opened()
    records.set('a.test', found('10.0.0.2'))
    await names.resolve('a.test')
    const { promise, resolve } = Promise.withResolvers<LookupResult>()
    records.set('a.test', promise)
    expect((await names.resolve('a.test')).addresses).toEqual(['10.0.0.2'])
    nowMs += lastAddressLimits.lookupAgainMs
    resolve(found('10.0.0.3'))
    expect(await names.resolve('a.test')).toEqual({ addresses: ['10.0.0.3'], fault: null })
    expect(asked).toEqual(['a.test', 'a.test'])
  })

  test('are used without another lookup for a while if no DNS server responded', async () => {
    const names = opened()
    records.set('a.test', found('10.0.0.2'))
    await names.resolve('a.test')
    records.set('a.test', down)
    await names.resolve('a.test')
    records.set('a.test', found('10.0.0.3'))
    expect((await names.resolve('a.test')).addresses).toEqual(['10.0.0.2'])
    nowMs += lastAddressLimits.lookupAgainMs
    expect((await names.resolve('a.test')).addresses).toEqual(['10.0.0.3'])
  })

  test('are limited in number, and the oldest are evicted first', async () => {
    const { hostsMax, addressesPerHostMax } = lastAddressLimits
    const names = opened()
    const many = Array.from({ length: 50 }, (_, at) => `10.0.0.${at + 1}`)
    for (let at = 0; at <= hostsMax; at += 1) {
      records.set(`h${at}.test`, found(...many))
      await names.resolve(`h${at}.test`)
    }
    await names.saved()
    const saved = JSON.parse(readFileSync(path, 'utf8')) as Record<string, string[]>
    expect(Object.keys(saved)).toHaveLength(hostsMax)
    expect(saved['h0.test']).toBeUndefined()
    expect(saved['h1.test']).toEqual(many.slice(0, addressesPerHostMax))
  })

  test.each([
    ['text that is not JSON', '{'],
    ['JSON that is not an object', '[]'],
    [
      'values that are not lists of addresses',
      '{"a.test": "10.0.0.2", "b.test": [1, "no address"]}',
    ],
    ['too much text', ' '.repeat(lastAddressLimits.fileBytesMax + 1)],
  ])('are empty if the file contains %s', async (_what, text) => {
    writeFileSync(path, text)
    records.set('a.test', down)
    records.set('b.test', down)
    const names = opened()
    for (const host of ['a.test', 'b.test']) {
      expect((await names.resolve(host)).addresses).toEqual([])
    }
  })

  test('remain in memory if the file cannot be written', async () => {
    const names = opened(join(folder, 'nowhere', 'last.json'))
    records.set('a.test', found('10.0.0.2'))
    await names.resolve('a.test')
    await names.saved()
    records.set('a.test', down)
    expect((await names.resolve('a.test')).addresses).toEqual(['10.0.0.2'])
  })
})

test.skipIf(process.geteuid?.() !== 0)(
  'root writes the file of addresses as the user who owns the folder, and follows no link that this user has placed there',
  async () => {
    chownSync(folder, 65_534, 65_534)
    const target = join(folder, 'of root')
    writeFileSync(target, 'before')
    symlinkSync(target, `${path}.new`)
    const names = opened()
    records.set('a.test', found('10.0.0.2'))
    await names.resolve('a.test')
    await names.saved()
    const { uid, gid, mode } = lstatSync(path)
    expect({ uid, gid, mode: mode & 0o777 }).toEqual({ uid: 65_534, gid: 65_534, mode: 0o600 })
    expect(readFileSync(target, 'utf8')).toBe('before')
  },
)

test('an IP address instead of a DNS name is not looked up', async () => {
  expect(await opened().resolve('10.0.0.9')).toEqual({ addresses: ['10.0.0.9'], fault: null })
  expect(asked).toEqual([])
})

describe('A DNS lookup for a socket', () => {
  const lookedUp = async (host: string, options: { family?: number; all?: boolean }) => {
    const faults: string[] = []
    const names = opened()
    const { promise, resolve } = Promise.withResolvers<unknown[]>()
    names.lookupFor((fault) => faults.push(fault))(host, options, (...answer) => resolve(answer))
    return { answer: await promise, faults }
  }

  test('returns the addresses of the requested family', async () => {
    records.set('a.test', found('fd77::2', '10.0.0.2'))
    expect((await lookedUp('a.test', { all: true })).answer).toEqual([
      null,
      [
        { address: 'fd77::2', family: 6 },
        { address: '10.0.0.2', family: 4 },
      ],
    ])
    expect((await lookedUp('a.test', { family: 4 })).answer).toEqual([null, '10.0.0.2', 4])
  })

  test('fails with the reason of the failure', async () => {
    records.set('a.test', down)
    const { answer, faults } = await lookedUp('a.test', { all: true })
    const error = new Error('a.test: the name server did not answer')
    expect(answer).toEqual([Object.assign(error, { code: 'EAI_AGAIN' }), ''])
    expect(faults).toEqual(['a.test: the name server did not answer'])
  })
})
