import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { create } from '@bufbuild/protobuf'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import { ConfigurationSchema } from '../../proto/gen/membership_pb.ts'
import { Alarms } from '../../src/cluster/health/alarms.ts'
import { SeedsFile } from '../../src/controller/membership/seeds-file.ts'
import { knownSeeds, readSeeds, seedsPath } from '../../src/controller/start/known-seeds.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { RecordedLog } from '../cluster/mesh-fixture.ts'

let folder = ''
let alarms: Alarms
let seeds: string[]
let members: Record<string, string>
let live: Record<string, string>
let isCommitted: boolean

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'flotilla-seeds-'))
  alarms = new Alarms(systemClock, new RecordedLog().log)
  seeds = []
  members = { ctrl1: 'a.test:1', ctrl2: 'b.test:1', ctrl3: 'c.test:1' }
  live = {}
  isCommitted = true
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const located = () => ({
  id: 'ctrl1',
  identity: { key: join(folder, 'etc', 'controller.key') },
  cluster: { seeds },
})

function file(): SeedsFile {
  return new SeedsFile({
    config: located(),
    configuration: () => ({
      index: 1,
      isCommitted,
      record: create(ConfigurationSchema, {
        members: Object.entries(members).map(([id, address]) => ({ id, address, voter: true })),
      }),
    }),
    addressOf: (id) => live[id] ?? null,
    alarms,
  })
}

describe('The seeds file of a controller', () => {
  test('contains the current addresses of all other members, and is written into the folder of the key', () => {
    mkdirSync(join(folder, 'etc'))
    const kept = file()
    kept.look()
    expect(readSeeds(located())).toEqual(['b.test:1', 'c.test:1'])
    expect(seedsPath(located())).toBe(join(folder, 'etc', 'ctrl1.seeds'))
    live = { ctrl3: 'moved.test:1' }
    kept.look()
    expect(readSeeds(located())).toEqual(['b.test:1', 'moved.test:1'])
    seeds = ['mine.test:1', 'b.test:1']
    expect(knownSeeds(located())).toEqual(['mine.test:1', 'b.test:1', 'moved.test:1'])
  })

  test('is written only after the members or their addresses have changed', () => {
    mkdirSync(join(folder, 'etc'))
    const kept = file()
    kept.look()
    rmSync(seedsPath(located()))
    kept.look()
    expect(existsSync(seedsPath(located()))).toBe(false)
  })

  test('does not change while a membership change is in progress, or if the cluster does not contain this controller', () => {
    mkdirSync(join(folder, 'etc'))
    file().look()
    const before = readFileSync(seedsPath(located()), 'utf8')
    isCommitted = false
    members = { ctrl1: 'a.test:1' }
    file().look()
    isCommitted = true
    members = { ctrl4: 'd.test:1' }
    file().look()
    expect(readFileSync(seedsPath(located()), 'utf8')).toBe(before)
  })

  test('is removed if this controller is the only member, because no other member could then restore a lost data folder', () => {
    mkdirSync(join(folder, 'etc'))
    const kept = file()
    kept.look()
    members = { ctrl1: 'a.test:1' }
    kept.look()
    expect(existsSync(seedsPath(located()))).toBe(false)
    expect(knownSeeds(located())).toEqual([])
  })

  test('raises the alarm NO_SEEDS if it cannot be written and the configuration has no seeds', () => {
    const kept = file()
    kept.look()
    expect(alarms.list().map(({ code, text }) => [code, text])).toEqual([
      ['NO_SEEDS', expect.stringContaining(`${seedsPath(located())} (ENOENT`)],
    ])
    mkdirSync(join(folder, 'etc'))
    kept.look()
    expect(alarms.list()).toEqual([])
    rmSync(join(folder, 'etc'), { recursive: true })
    seeds = ['mine.test:1']
    file().look()
    expect(alarms.list()).toEqual([])
  })

  test('is treated as missing if it is damaged', () => {
    mkdirSync(join(folder, 'etc'))
    writeFileSync(seedsPath(located()), '\0\0b.test\nhttps://b.test:1\n# c.test:1\n')
    expect(readSeeds(located())).toEqual([])
    rmSync(seedsPath(located()))
    mkdirSync(seedsPath(located()))
    expect(readSeeds(located())).toEqual([])
  })
})
