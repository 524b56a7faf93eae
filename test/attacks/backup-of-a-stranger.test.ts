import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { BackupContainerWriter } from '../../src/backup/container.ts'
import { type BackupManifest, encodeCanonicalJson } from '../../src/backup/manifest.ts'
import { checkBackup } from '../../src/backup/read-backup.ts'
import { BackedUp, pieces } from '../backup/backup-fixture.ts'
import { runHere } from '../cli/run-here.ts'

// The attack: somebody who can write a single file to the backup folder creates one with a false
// head, so that an administrator sees no other backups, reads forged lines, or restores from an
// unusable file.

const ESC = '\u001b]0;owned\u0007\u001b[2J\u202e'
const HUGE = 9_007_199_254_740_991

let folder: string
let plain: Buffer
let head: BackupManifest
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'flotilla-backups-'))
  const source = await BackedUp.make()
  plain = await source.save()
  head = (await checkBackup(pieces(plain))).manifest
  writeFileSync(join(folder, 'good.backup'), plain)
})
afterAll(() => rmSync(folder, { recursive: true }))

/** A container with valid checksums, the content of the valid backup and another head. */
async function withHead(changes: Record<string, unknown>): Promise<Buffer> {
  const { summary } = await checkBackup(pieces(plain))
  const container = new BackupContainerWriter()
  const parts = container.head(encodeCanonicalJson({ ...head, ...changes }))
  let at = 12 + plain.readUInt32LE(8) + 32
  for (let length = plain.readUInt32LE(at); length > 0; length = plain.readUInt32LE(at)) {
    parts.push(...container.frame(plain.subarray(at + 4, at + 4 + length)))
    at += 4 + length + 32
  }
  return Buffer.concat([...parts, ...container.tail(summary)])
}

const odd: readonly Record<string, unknown>[] = [
  { takenAtMs: HUGE },
  { logTimeMs: HUGE },
  { takenAtMs: -1 },
  { index: 1.5 },
  { controllerId: `c${ESC}` },
  { clusterId: `c\nc` },
  { version: `v${ESC}` },
  { trustDomain: 'x'.repeat(10_000) },
  { digest: ESC },
  { members: Array.from({ length: 900 }, () => 'x'.repeat(1000)) },
  { members: [`m${ESC}`] },
  { encryption: { wrappedKey: `a.b.c.d.e${ESC}`, recipientSha256: 'r' } },
  { encryption: { wrappedKey: 'a.b.c.d.e', recipientSha256: `r${ESC}` } },
]

test('a backup file with an invalid header is listed as invalid, and the list still contains the valid files', async () => {
  for (const [at, changes] of odd.entries()) {
    writeFileSync(join(folder, `bad${at}.backup`), await withHead(changes))
  }
  writeFileSync(
    join(folder, 'zero.backup'),
    Buffer.concat([plain.subarray(0, 8), Buffer.alloc(99)]),
  )
  writeFileSync(join(folder, `name${ESC}.backup`), plain)
  const listed = await runHere(['cluster', 'snapshot', 'list', folder])
  expect([listed.code, listed.stderr]).toEqual([0, ''])
  expect(listed.stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e]/)
  const rows = listed.stdout.trimEnd().split('\n').slice(1)
  expect(rows).toHaveLength(odd.length + 3)
  const states = rows.map((row) => [
    basename(row.split(' ')[0] ?? ''),
    /(complete|malformed|damaged|cut off|checksum)/.exec(row)?.[0],
  ])
  expect(states).toContainEqual(['good.backup', 'complete'])
  for (const [at, changes] of odd.entries()) {
    expect(states, JSON.stringify(changes)).toContainEqual([`bad${at}.backup`, 'malformed'])
    const path = join(folder, `bad${at}.backup`)
    const verified = await runHere(['cluster', 'snapshot', 'verify', path])
    expect([verified.code, verified.stderr]).toEqual([
      1,
      `flotilla: ${path}: ${Object.keys(changes)[0]} in the head of the backup is malformed; use another copy or an older backup\n`,
    ])
  }
})

test('a backup without valid CA certificates is not reported as intact', async () => {
  const path = join(folder, 'ca.backup')
  for (const caPem of ['x'.repeat(900_000), '', head.caPem.slice(0, -60)]) {
    writeFileSync(path, await withHead({ caPem }))
    const { code, stderr } = await runHere(['cluster', 'snapshot', 'verify', path])
    expect([code, stderr]).toEqual([
      1,
      `flotilla: ${path}: the CA certificates in the head of the backup cannot be read; use another copy or an older backup\n`,
    ])
  }
  copyFileSync(join(folder, 'good.backup'), path)
  expect((await runHere(['cluster', 'snapshot', 'verify', path])).code).toBe(0)
})
