import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

import { checkWholeBackup, loadBackup } from '../../src/backup/load-backup.ts'
import { MemoryStateStore } from '../../src/store/state/memory-state-store.ts'
import { BackedUp, factorSeed, newKeyPair, pieces } from './backup-fixture.ts'

// Goal: a backup of format 1 stays readable forever. Method: two files and their expected content,
// which a run with FLOTILLA_MAKE=1 created once; it never creates them again. The key in the test
// decrypts only these files.

const folder = join(import.meta.dirname, 'format-1')
const [plain, sealed, keyFile, told] = [
  'plain.backup',
  'sealed.backup',
  'sealed.key',
  'expected.json',
].map((name) => join(folder, name)) as [string, string, string, string]

if (process.env['FLOTILLA_MAKE'] === '1' && !existsSync(told)) {
  const source = await BackedUp.make(3, [factorSeed()])
  const key = newKeyPair()
  mkdirSync(folder, { recursive: true })
  writeFileSync(plain, await source.save())
  writeFileSync(sealed, await source.save({ publicPem: key.publicPem }))
  writeFileSync(keyFile, key.privatePem)
  writeFileSync(told, `${JSON.stringify(await contentOf(plain, null), null, 1)}\n`)
}

async function contentOf(
  file: string,
  privateKeyPem: string | null,
): Promise<Record<string, unknown>> {
  const bytes = pieces(readFileSync(file))
  const { state, manifest, summary, secrets } = await loadBackup(bytes, new MemoryStateStore(), {
    privateKeyPem,
  })
  // Records in their stored form, without fields of later releases.
  const records = [...state.tables].flatMap(([name, table]) => {
    if (table.entity.name !== name) return []
    const stored = [...table.rows.values()].map(({ record }) => table.stored(record))
    return stored.map((text) => ({ kind: name, ...(JSON.parse(text) as object) }))
  })
  const shown = secrets?.map((one) => ({ ...one, secret: Buffer.from(one.secret).toString('hex') }))
  return {
    manifest: { ...manifest, encryption: null },
    counts: summary.counts,
    secrets: shown,
    digest: state.stateDigest(),
    records,
  }
}

test.each([
  ['in the clear', plain, null],
  ['encrypted', sealed, readFileSync(keyFile, 'utf8')],
])(
  'a backup file in format 1, %s, can be read with its original content',
  async (_how, file, key) => {
    const expected = JSON.parse(readFileSync(told, 'utf8')) as Record<string, unknown>
    const { manifest: _head, ...content } = await contentOf(file, key)
    expect(content).toEqual(
      Object.fromEntries(Object.keys(content).map((it) => [it, expected[it]])),
    )
    const { findings, manifest } = await checkWholeBackup(pieces(readFileSync(file)), {
      privateKeyPem: key,
    })
    expect(findings).toEqual([])
    expect(manifest).toMatchObject({ format: 1, featureLevel: 1, version: 'v0.1.0' })
  },
)
