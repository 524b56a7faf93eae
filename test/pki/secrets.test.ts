import { chmodSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs'
import { mkdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import {
  CLUSTER_KEY_VERSIONS_MAX,
  ClusterKeyError,
  formatClusterKey,
  newClusterKey,
  parseClusterKey,
  rotateClusterKey,
  signingVersion,
} from '../../src/pki/cluster-key.ts'
import { readSecretFile, SecretFileError, writeSecretFile } from '../../src/pki/key-file.ts'

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'flotilla-pki-'))
})
afterEach(() => {
  rmSync(folder, { recursive: true, force: true })
})

describe('A secret file', () => {
  test('is 0600 whatever the umask, and replaces an older one whole', () => {
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

  test('is read without a word when only its owner can', () => {
    const path = join(folder, 'a.key')
    writeSecretFile(path, 'text')
    expect(readSecretFile(path)).toEqual({ text: 'text', warning: null })
  })

  test('that its group can read gives a warning; that others can read or change is refused', () => {
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

  test('that is missing, a folder, or too large is refused with a sentence', () => {
    expect(() => readSecretFile(join(folder, 'none'))).toThrow('there is no such file')
    mkdirSync(join(folder, 'dir'), { mode: 0o700 })
    expect(() => readSecretFile(join(folder, 'dir'))).toThrow('no regular file')
    writeFileSync(join(folder, 'big'), Buffer.alloc(64 * 1024 + 1), { mode: 0o600 })
    expect(() => readSecretFile(join(folder, 'big'))).toThrow('larger than')
  })
})

describe('A cluster key', () => {
  test('reads back as it was written', () => {
    const key = rotateClusterKey(newClusterKey())
    expect(parseClusterKey(formatClusterKey(key))).toEqual(key)
    expect(key.map(({ version }) => version)).toEqual([1, 2])
    expect(key[0].secret).not.toEqual(key[1]?.secret)
  })

  test('rotates with overlap: the newest signs, and the oldest leaves at the cap', () => {
    let key = newClusterKey()
    for (let at = 0; at < CLUSTER_KEY_VERSIONS_MAX + 2; at += 1) key = rotateClusterKey(key)
    expect(key).toHaveLength(CLUSTER_KEY_VERSIONS_MAX)
    expect(signingVersion(key).version).toBe(CLUSTER_KEY_VERSIONS_MAX + 3)
    expect(parseClusterKey(formatClusterKey(key))).toEqual(key)
  })

  const secret = Buffer.alloc(32, 7).toString('base64url')
  test.each([
    ['an empty file', '', 'line 1'],
    ['another title', `other 1\n1 ${secret}\n`, 'line 1'],
    ['a title alone', 'flotilla-cluster-key 1\n', 'no key'],
    ['a short secret', `flotilla-cluster-key 1\n1 ${secret.slice(1)}\n`, 'line 2'],
    ['a version zero', `flotilla-cluster-key 1\n0 ${secret}\n`, 'line 2'],
    ['versions out of order', `flotilla-cluster-key 1\n2 ${secret}\n2 ${secret}\n`, 'line 3'],
    ['too many versions', `flotilla-cluster-key 1\n${`1 ${secret}\n`.repeat(99)}`, 'more than'],
  ])('is refused from %s, without showing it', (_title, text, part) => {
    expect(() => parseClusterKey(text)).toThrow(ClusterKeyError)
    expect(() => parseClusterKey(text)).toThrow(part)
    expect(() => parseClusterKey(text)).not.toThrow(secret)
  })
})
