import { create, toBinary } from '@bufbuild/protobuf'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'

import { ConfigurationSchema } from '../../proto/gen/membership_pb.ts'
import { checkRaftLog, NO_FINDINGS } from '../../src/cli/controller/check-command.ts'
import { createDataFolder } from '../../src/store/folder/create-data-folder.ts'
import { writeMembershipCacheFile } from '../../src/store/folder/membership-cache-file.ts'
import { someEntries } from '../store/support/entries.ts'
import { identity, smallLog } from '../store/support/folders.ts'

let folder = ''
let data = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'flotilla-check-log-'))
  data = join(folder, 'data')
  createDataFolder(data, { ...identity, entries: someEntries(1, 5) }, smallLog)
})
afterEach(() => {
  rmSync(folder, { recursive: true, force: true })
})

const check = (): typeof NO_FINDINGS =>
  checkRaftLog({ id: 'ctrl1', data, identity: { key: join(data, 'key') }, cluster: { seeds: [] } })

function knowVoters(...ids: readonly string[]): void {
  const members = ids.map((id) => ({ id, voter: true, address: `${id}:6262` }))
  const configuration = toBinary(ConfigurationSchema, create(ConfigurationSchema, { members }))
  writeMembershipCacheFile(data, { configuration, index: 2, claims: [], marks: [] })
}

function spoil(name: string, at: number): void {
  const bytes = readFileSync(join(data, name))
  bytes[at] = (bytes[at] ?? 0) ^ 1
  writeFileSync(join(data, name), bytes)
}

test('controller check reports nothing for an intact or a missing log', () => {
  expect(check()).toEqual(NO_FINDINGS)
  rmSync(data, { recursive: true })
  expect(check()).toEqual(NO_FINDINGS)
})

test('controller check warns that a start repairs a damaged log, if there are other voters', () => {
  spoil('wal/0000000000000001-00000001.seg', 4096 + 40)
  expect(check().faults).toEqual([expect.stringContaining('nothing was changed on disk')])
  knowVoters('ctrl1')
  expect(check().faults.length).toBe(1)
  knowVoters('ctrl1', 'ctrl2')
  expect(check()).toEqual({
    faults: [],
    warnings: [expect.stringMatching(/at byte 4096: .*; a start repairs it from the other/)],
  })
})

test('controller check warns that a start requests re-admission if the stored vote was lost', () => {
  for (const name of ['meta.0', 'meta.1']) spoil(name, 50)
  expect(check().faults).toEqual([expect.stringContaining('are lost; nothing changed on disk')])
  knowVoters('ctrl1', 'ctrl2')
  expect(check().warnings).toEqual([
    expect.stringContaining('a start requests re-admission with an empty data folder'),
  ])
})

test('controller check reports a damaged file IDENTITY as a fault even if there are other voters', () => {
  knowVoters('ctrl1', 'ctrl2')
  spoil('IDENTITY', 20)
  expect(check().faults).toEqual([expect.stringContaining('IDENTITY')])
})
