import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import { runHere } from './run-here.ts'

// Each command fails before it writes, so no test needs a cluster.

/** IDs of a user without a name, and of a user that owns no files here. */
const UNNAMED = 54_321
const NOBODY = 65_534
const isRoot = process.geteuid?.() === 0
const skipped = isRoot ? '' : '(skipped: only root can give a folder to another user)'

let folder: string
beforeEach(() => {
  folder = mkdtempSync('/tmp/flotilla-owner-')
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** A folder of another user, with a configuration in it. */
function folderOf(uid: number): string {
  const path = join(folder, 'ctrl1')
  mkdirSync(path)
  chownSync(path, uid, uid)
  return path
}

describe.skipIf(!isRoot)(`root ${skipped}`, () => {
  test('creates no cluster in a folder of another user, and prints a command with which that user can create one', async () => {
    const path = folderOf(NOBODY)
    const words = ['cluster', 'init', join(path, 'config.yml'), '--id', 'ctrl1']
    const { code, stderr } = await runHere(words, { SUDO_USER: '' })
    expect(stderr).toMatch(
      /^flotilla: .*\/ctrl1 belongs to user nobody, who could not open the files that root creates; type: (sudo -u|runuser -u) nobody /m,
    )
    expect(code).toBe(2)
    expect(readdirSync(path)).toEqual([])
  })

  test('creates no key for a certificate request in a folder of another user', async () => {
    const path = folderOf(NOBODY)
    const config = join(path, 'config.yml')
    writeFileSync(
      config,
      'id: ctrl1\ndata: data\ntrustDomain: net.example.org\nidentity: { cert: cert.pem, key: controller.key, ca: ca.pem }\ncluster: { bind: "127.0.0.1:1480", advertise: "127.0.0.1:1480" }\nweb: [{ bind: "127.0.0.1:1280", advertise: "127.0.0.1:1280" }]\n',
    )
    const words = ['pki', 'csr', '--config', config, '--out', join(folder, 'csr.pem')]
    const { code, stderr } = await runHere(words)
    expect(stderr).toContain(`${path} belongs to user nobody`)
    expect(code).toBe(2)
    expect(readdirSync(path)).toEqual(['config.yml'])
  })

  test('prints the user ID of a user without a name', async () => {
    const path = folderOf(UNNAMED)
    const { code, stderr } = await runHere(['cluster', 'init', join(path, 'config.yml')])
    expect(stderr).toContain(`belongs to user id ${UNNAMED}, who`)
    expect(stderr).toContain(
      `setpriv --reuid=${UNNAMED} --regid=${UNNAMED} --clear-groups flotilla`,
    )
    expect(code).toBe(2)
  })

  test('runs no controller on another user’s data', async () => {
    const path = folderOf(NOBODY)
    const config = join(folder, 'config.yml')
    const { code } = await runHere(['cluster', 'init', config, '--id', 'ctrl1'])
    expect(code).toBe(0)
    chownSync(join(folder, 'data'), NOBODY, NOBODY)
    const before = readdirSync(folder, { recursive: true })
    const run = await runHere(['controller', 'run', config])
    expect(run.stderr).toContain(`${join(folder, 'data')} belongs to user nobody`)
    expect(run.code).toBe(2)
    expect(readdirSync(folder, { recursive: true })).toEqual(before)
    expect(readdirSync(path)).toEqual([])
  })

  test('creates a cluster below a folder that every user may write to', async () => {
    const path = folderOf(NOBODY)
    chmodSync(path, 0o1777)
    const words = ['cluster', 'init', join(path, 'own/config.yml'), '--id', 'ctrl1']
    expect(await runHere(words)).toMatchObject({ code: 0 })
  })

  test('enrolls no router into a folder of another user', async () => {
    const path = folderOf(NOBODY)
    const { code, stderr } = await runHere([
      'router',
      'enroll',
      routerConfig(path),
      '--jwt',
      join(folder, 'missing.jwt'),
    ])
    expect(stderr).toContain(`${path} belongs to user nobody`)
    expect(code).toBe(2)
  })
})

function routerConfig(path: string): string {
  const file = join(folder, 'router.yml')
  const lines = [
    'v: 3',
    `identity: { cert: ${path}/a.cert, server_cert: ${path}/b.cert, key: ${path}/a.key, ca: ${path}/ca }`,
    "ctrl: { endpoints: ['tls:127.0.0.1:1380'] }",
    "csr: { sans: { ip: ['127.0.0.1'] } }",
  ]
  writeFileSync(file, lines.join('\n'))
  return file
}
