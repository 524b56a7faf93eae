import { hash } from 'node:crypto'
import { expect, test } from 'vitest'

import { BackupContainerWriter } from '../../src/backup/container.ts'
import { encodeSecrets } from '../../src/backup/content.ts'
import { checkWholeBackup } from '../../src/backup/load-backup.ts'
import { type BackupManifest, encodeCanonicalJson } from '../../src/backup/manifest.ts'
import { checkBackup } from '../../src/backup/read-backup.ts'
import { newCa } from '../support/authorities.ts'
import { BackedUp, faultOf, newKeyPair, pieces } from './backup-fixture.ts'

// Goal: for every fault, a backup that is incomplete, modified or unsupported is refused with one
// sentence.

const source = await BackedUp.make()
const key = newKeyPair()
const plain = await source.save()
const sealed = await source.save({ publicPem: key.publicPem })

function whole(bytes: Uint8Array, privateKeyPem: string | null = null) {
  return checkWholeBackup(pieces(bytes), { privateKeyPem })
}

/** Offsets at which a section of a container ends. */
function boundaries(bytes: Buffer): number[] {
  const found = [0, 8, 12]
  let at = 12 + bytes.readUInt32LE(8) + 32
  for (let length = -1; length !== 0;) {
    found.push(at, at + 4)
    length = bytes.readUInt32LE(at)
    at += 4 + (length === 0 ? 0 : length + 32)
  }
  const summary = bytes.readUInt32LE(at)
  found.push(at, at + 4, at + 4 + summary, at + 4 + summary + 32, at + 4 + summary + 36)
  return found
}

/** A container with the same content and another manifest. */
async function withManifest(changes: Partial<BackupManifest>): Promise<Buffer> {
  const { manifest, summary } = await checkBackup(pieces(plain))
  const container = new BackupContainerWriter()
  const parts = container.head(encodeCanonicalJson({ ...manifest, ...changes }))
  const bounds = boundaries(plain)
  for (let at = 3; at + 1 < bounds.length; at += 2) {
    const from = bounds[at + 1] ?? 0
    const length = plain.readUInt32LE(bounds[at] ?? 0)
    if (length === 0) break
    parts.push(...container.frame(plain.subarray(from, from + length)))
  }
  return Buffer.concat([...parts, ...container.tail(summary)])
}

test('a saved backup can be read back completely: every record, the secrets, the header and the trailer', async () => {
  const { manifest, summary, secrets, findings, sha256, endChecksum } = await whole(plain)
  expect(manifest).toMatchObject({
    format: 1,
    clusterId: source.cluster.machine.clusterId,
    generation: 1,
    featureLevel: 1,
    controllerId: 'ctrl1',
    members: ['ctrl1', 'ctrl2'],
    hasSecrets: true,
    encryption: null,
    index: source.cluster.machine.appliedIndex,
  })
  expect(summary.counts).toMatchObject({ identity: 2, service: 3, apiSession: 1, admission: 2 })
  expect(secrets?.map(({ name }) => name)).toEqual(['factorKey', 'issuingAuthority'])
  expect(findings).toEqual([])
  expect(sha256).toBe(hash('sha256', plain))
  expect(endChecksum).toBe(plain.subarray(-32).toString('hex'))
  expect(endChecksum).toBe(hash('sha256', plain.subarray(0, -32)))
})

test('an encrypted backup reveals no record and no secret, and only its own key can decrypt it', async () => {
  const { secrets, manifest } = await whole(sealed, key.privatePem)
  expect(manifest.encryption).not.toBeNull()
  const [, issuing] = secrets ?? []
  const shown = Buffer.from(issuing?.secret ?? []).toString('utf8')
  expect(shown).toContain('PRIVATE KEY')
  expect(plain.includes(Buffer.from(issuing?.secret ?? []).toString('base64'))).toBe(true)
  expect(sealed.includes(Buffer.from(issuing?.secret ?? []).toString('base64'))).toBe(false)
  expect(sealed.includes('Alice')).toBe(false)
  expect(await faultOf(whole(sealed))).toBe('KEY_NEEDED')
  expect(await faultOf(whole(sealed, newKeyPair().privatePem))).toBe('WRONG_KEY')
  expect(await faultOf(whole(sealed, newKeyPair('rsa').privatePem))).toBe('WRONG_KEY')
  // The checksums can be verified without the key.
  expect((await checkBackup(pieces(sealed))).manifest.hasSecrets).toBe(true)
})

test('a backup can be encrypted for an RSA key or a certificate', async () => {
  const rsa = newKeyPair('rsa')
  const saved = await source.save({ publicPem: rsa.publicPem })
  expect((await whole(saved, rsa.privatePem)).findings).toEqual([])
  const { certificatePem, privateKeyPem } = source.cluster.member('ctrl2').leaf
  const forLeaf = await source.save({ publicPem: certificatePem })
  expect((await whole(forLeaf, privateKeyPem)).findings).toEqual([])
  await expect(source.save({ publicPem: rsa.privatePem })).rejects.toThrow(/is a private key/)
})

test('a backup file that is truncated at or near any boundary between its parts is refused', async () => {
  for (const bytes of [plain, sealed]) {
    const at = boundaries(bytes).flatMap((bound) => [bound - 1, bound, bound + 1])
    for (const end of at.filter((one) => one >= 0 && one < bytes.length)) {
      const expected = end < 8 ? 'NOT_A_BACKUP' : 'CUT_OFF'
      expect(await faultOf(checkBackup(pieces(bytes.subarray(0, end)))), `cut at ${end}`).toBe(
        expected,
      )
    }
    expect(await faultOf(checkBackup(pieces(Buffer.concat([bytes, Buffer.from('x')]))))).toBe(
      'DAMAGED',
    )
  }
})

test('a change of any byte of an encrypted backup can be detected without its key', async () => {
  const step = Math.max(1, Math.floor(sealed.length / 700))
  const places = new Set([...Array(sealed.length).keys()].filter((at) => at % step === 0))
  for (const bound of boundaries(sealed)) places.add(bound).add(Math.max(0, bound - 1))
  for (const at of [...places].filter((one) => one < sealed.length)) {
    const changed = Buffer.from(sealed)
    changed[at] = (changed[at] ?? 0) ^ (1 << (at % 8))
    expect(await faultOf(checkBackup(pieces(changed, 64 * 1024))), `byte ${at}`).not.toBe('none')
  }
})

test('an encrypted backup with a forged header is refused when it is decrypted, although all checksums match', async () => {
  const other = await withManifest({ generation: 7 })
  expect((await whole(other)).manifest.generation).toBe(7)
  // Anyone can recompute checksums, but without the key cannot encrypt frames that fit another
  // head.
  const head = (await checkBackup(pieces(sealed))).manifest
  const somebodyElse = await newCa('somebody else', Date.now())
  const container = new BackupContainerWriter()
  const bounds = boundaries(sealed)
  const parts = container.head(encodeCanonicalJson({ ...head, caPem: somebodyElse.certificatePem }))
  for (let at = 3; sealed.readUInt32LE(bounds[at] ?? 0) !== 0; at += 2) {
    const from = bounds[at + 1] ?? 0
    const length = sealed.readUInt32LE(bounds[at] ?? 0)
    parts.push(...container.frame(sealed.subarray(from, from + length)))
  }
  const { summary } = await checkBackup(pieces(sealed))
  const forged = Buffer.concat([...parts, ...container.tail(summary)])
  expect(await faultOf(checkBackup(pieces(forged)))).toBe('none')
  expect(await faultOf(whole(forged, key.privatePem))).toBe('DAMAGED')
})

test('a backup whose header does not match the state in the backup is refused', async () => {
  expect(await faultOf(whole(await withManifest({})))).toBe('none')
  expect(await faultOf(whole(await withManifest({ index: 1 })))).toBe('DAMAGED')
  expect(await faultOf(whole(await withManifest({ digest: '00' })))).toBe('DAMAGED')
  expect(await faultOf(whole(await withManifest({ hasSecrets: false })))).toBe('DAMAGED')
})

test('a backup with the header of another cluster’s backup is refused, whether it is encrypted or not', async () => {
  await expect(whole(await withManifest({ clusterId: 'another' }))).rejects.toThrow(
    /of another cluster than the state in it/,
  )
  const head = (await checkBackup(pieces(sealed))).manifest
  const { summary } = await checkBackup(pieces(sealed))
  const container = new BackupContainerWriter()
  const bytes = Buffer.concat([
    ...container.head(encodeCanonicalJson({ ...head, clusterId: 'another' })),
    ...container.tail({ ...summary, frames: 0 }),
  ])
  // The wrapped key is bound to its cluster.
  expect(await faultOf(whole(bytes, key.privatePem))).toBe('WRONG_KEY')
})

test('a backup with a newer format or feature level is refused with this reason', async () => {
  const newer = Buffer.from(plain)
  newer.write('2', 7)
  expect(await faultOf(checkBackup(pieces(newer)))).toBe('NEWER_FORMAT')
  expect(await faultOf(whole(await withManifest({ format: 2 })))).toBe('NEWER_FORMAT')
  const level = await withManifest({ featureLevel: 99, version: 'v9.9.9' })
  expect(await faultOf(checkBackup(pieces(level)))).toBe('NEWER_LEVEL')
  await expect(whole(level)).rejects.toThrow(/feature level 99 .* levels up to 3.*v9\.9\.9/)
})

test('a file that is not a backup is reported as such', async () => {
  for (const text of ['', 'FLOT', 'FLOTSNP1 and more', 'x'.repeat(5000)]) {
    expect(await faultOf(checkBackup(pieces(Buffer.from(text))))).toBe('NOT_A_BACKUP')
  }
})

test('malformed secrets in a backup are refused, and the error does not contain them', async () => {
  const container = new BackupContainerWriter()
  const { manifest, summary } = await checkBackup(pieces(plain))
  const json = Buffer.from('[{"name":"issuingAuthority","secret":"c2VjcmV0"}]')
  const secrets = Buffer.concat([Buffer.alloc(4), json])
  secrets.writeUInt32LE(json.length)
  const bytes = Buffer.concat([
    ...container.head(encodeCanonicalJson(manifest)),
    ...container.frame(secrets),
    ...container.tail({ ...summary, frames: 1 }),
  ])
  expect(await faultOf(whole(bytes))).toBe('DAMAGED')
  await expect(whole(bytes)).rejects.not.toThrow(/c2VjcmV0/)
  expect(encodeSecrets(null)).toHaveLength(4)
})

test('a quarantined controller creates no backup, and a backup that is requested without secrets contains no secrets', async () => {
  source.refused = 'NODE_QUARANTINED'
  await expect(source.save()).rejects.toMatchObject({ code: 'NODE_QUARANTINED' })
  source.refused = null
  const without = await source.save({ hasSecrets: false })
  expect((await whole(without)).secrets).toBeNull()
})
