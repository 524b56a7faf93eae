import { fromBinary } from '@bufbuild/protobuf'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { ConfigurationSchema } from '../../proto/gen/membership_pb.ts'
import { startNewGeneration } from '../../src/controller/recover/new-generation.ts'
import { readSurvivor } from '../../src/controller/recover/survivor.ts'
import { inspectLog } from '../../src/store/log/inspect-log.ts'
import { readFence, writeFence } from '../../src/store/folder/fence-file.ts'
import { writeDataIdentity } from '../../src/store/log/data-identity.ts'
import { logFolder } from '../../src/store/log/open-log.ts'
import { readMembershipCacheFile } from '../../src/store/folder/membership-cache-file.ts'
import { layOut } from '../support/lay-out.ts'

// Goal: a data folder that continues alone has one member, a new term and generation, and all
// earlier entries, also after a crash during the change and with a damaged log. Method: folders as
// a cluster of three creates them.

let dir: string
let data: string
beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'flotilla-generation-'))
  await layOut(dir, 3)
  data = join(dir, 'net', 'ctrl1', 'data')
})
afterEach(() => rmSync(dir, { recursive: true }))

const nowMs = Date.UTC(2030, 0, 1)

test('a recovered data folder has one member, and a new term that is higher than that of all earlier entries', async () => {
  const before = inspectLog(data)
  const read = await readSurvivor(data)
  expect(read.survivor.members.map(({ id }) => id)).toEqual(['ctrl1', 'ctrl2', 'ctrl3'])
  startNewGeneration(data, read, { generation: 2, nowMs })
  const after = inspectLog(data)
  expect(after.identity).toEqual({ ...before.identity, generation: 2 })
  expect(after.entries.slice(0, -1)).toEqual(before.entries)
  const last = after.entries.at(-1)
  expect(last).toMatchObject({ index: before.last.index + 1, type: 'configuration', timeMs: nowMs })
  expect(last?.term).toBe(before.hardState.term + 1)
  const record = fromBinary(ConfigurationSchema, last?.data ?? new Uint8Array(0))
  expect(record.members.map(({ id, voter }) => [id, voter])).toEqual([['ctrl1', true]])
  expect(record.departed.map(({ id }) => id)).toEqual(['ctrl2', 'ctrl3'])
  const keys = record.departed.map(({ id, publicKeySha256 }) => ({ id, publicKeySha256 }))
  expect(record.removed, 'the configuration lists the removed keys').toMatchObject(keys)
  expect(readMembershipCacheFile(data)).toMatchObject({ index: last?.index, marks: [] })
  expect((await readSurvivor(data)).survivor).toMatchObject({ generation: 2, finding: null })
})

test('a recovery can be repeated and completes after a crash between writing the generation and writing the log entry', async () => {
  const read = await readSurvivor(data)
  writeDataIdentity(data, { ...inspectLog(data).identity, generation: 2 })
  const again = await readSurvivor(data)
  expect(again.configuration).toEqual(read.configuration)
  startNewGeneration(data, again, { generation: 3, nowMs })
  expect(inspectLog(data)).toMatchObject({ identity: { generation: 3 }, finding: null })
})

test('a new generation from a damaged log keeps the entries before the damage, and records no missing tail', async () => {
  const folder = logFolder(data)
  const [segment = ''] = readdirSync(folder).filter((name) => name.endsWith('.seg'))
  const bytes = readFileSync(join(folder, segment))
  const { entries } = inspectLog(data)
  // Damages the last synced record, so that the damage does not look like a torn tail.
  let end = bytes.length
  while (bytes[end - 1] === 0) end -= 1
  bytes.fill(0xff, end - 64, end - 32)
  writeFileSync(join(folder, segment), bytes)
  const read = await readSurvivor(data)
  expect(read.survivor.finding).toContain('damaged')
  expect(read.survivor.last.index).toBeLessThan(entries.at(-1)?.index ?? 0)
  startNewGeneration(data, read, { generation: 2, nowMs })
  const after = inspectLog(data)
  expect(after).toMatchObject({ finding: null, hasMissingTail: false })
  expect(after.entries.slice(0, -1)).toEqual(entries.slice(0, -1))
})

test('a FENCE file is read back as written, and an unreadable one fences every generation', () => {
  expect(readFence(data)).toBeNull()
  writeFence(data, { generation: 2, by: 'ctrl1' })
  expect(readFence(data)).toEqual({ generation: 2, by: 'ctrl1' })
  for (const text of ['', '{}', '{"generation":1.5,"by":"a"}', 'x'.repeat(5000)]) {
    writeFileSync(join(data, 'FENCE'), text)
    expect(readFence(data)?.generation).toBe(Number.MAX_SAFE_INTEGER)
  }
})
