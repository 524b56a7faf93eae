import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import { CLUSTER_KEY_BYTES, newClusterKey } from '../../src/pki/secrets/cluster-key.ts'
import { formatPemBlock } from '../../src/lib/text/pem-text.ts'
import { readSecretFile, SecretFileError, writeSecretFile } from '../../src/pki/secret-file.ts'

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'flotilla-pki-'))
})
afterEach(() => {
  rmSync(folder, { recursive: true, force: true })
})

describe('A secret file', () => {
  test('has mode 0600 with a umask of 0777, and replaces an older file', () => {
    const path = join(folder, 'a.key')
    const umask = process.umask(0o777)
    try {
      writeSecretFile(path, 'first')
    } finally {
      process.umask(umask)
    }
    expect(statSync(path).mode & 0o777).toBe(0o600)
    chmodSync(path, 0o644)
    writeSecretFile(path, 'second')
    expect(statSync(path).mode & 0o777).toBe(0o600)
    expect(readFileSync(path, 'utf8')).toBe('second')
    expect(readdirSync(folder)).toEqual(['a.key'])
  })

  test('is read without a warning if only its owner may read it', () => {
    const path = join(folder, 'a.key')
    writeSecretFile(path, 'text')
    expect(readSecretFile(path)).toEqual({ text: 'text', warning: null })
  })

  test('causes a warning if its group may read it, and is refused if its group may change it or others may read or change it', () => {
    const path = join(folder, 'a.key')
    writeSecretFile(path, 'secret-content')
    chmodSync(path, 0o640)
    expect(readSecretFile(path).warning).toContain(`chmod 600 ${path}`)
    for (const mode of [0o644, 0o604, 0o602, 0o620, 0o666]) {
      chmodSync(path, mode)
      expect(() => readSecretFile(path)).toThrow(SecretFileError)
      expect(() => readSecretFile(path)).toThrow(`chmod 600 ${path}`)
      expect(() => readSecretFile(path)).not.toThrow('secret-content')
    }
  })

  test.each([
    ['a public key', 'PUBLIC KEY'],
    ['a certificate', 'CERTIFICATE'],
    ['a certificate request', 'CERTIFICATE REQUEST'],
  ])('is refused because it contains %s, and not because of its mode', (what, label) => {
    const path = join(folder, 'a.pem')
    for (const mode of [0o644, 0o600]) {
      writeFileSync(path, formatPemBlock({ label, base64: 'AAAA' }))
      chmodSync(path, mode)
      expect(() => readSecretFile(path)).toThrow(
        `${path} holds ${what} and no private key; name the file with the private key`,
      )
    }
    const key = formatPemBlock({ label: 'PRIVATE KEY', base64: 'AAAA' })
    writeFileSync(path, formatPemBlock({ label, base64: 'AAAA' }) + key)
    expect(readSecretFile(path).text).toContain('PRIVATE KEY')
  })

  test('is refused with one sentence if it is missing, a folder, or too large', () => {
    expect(() => readSecretFile(join(folder, 'none'))).toThrow('file not found')
    mkdirSync(join(folder, 'dir'), { mode: 0o700 })
    expect(() => readSecretFile(join(folder, 'dir'))).toThrow('not a regular file')
    writeFileSync(join(folder, 'big'), Buffer.alloc(64 * 1024 + 1), { mode: 0o600 })
    expect(() => readSecretFile(join(folder, 'big'))).toThrow('larger than')
  })
})

test('a new cluster key is random each time', () => {
  expect(newClusterKey()).toHaveLength(CLUSTER_KEY_BYTES)
  expect(newClusterKey()).not.toEqual(newClusterKey())
})
