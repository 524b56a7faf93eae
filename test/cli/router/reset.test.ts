import {
  chmodSync,
  chownSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'

import { acquirePathLock } from '../../../src/cli/terminal/process-lock.ts'
import {
  type KnownEndpoints,
  writeEndpoints,
} from '../../../src/router/controllers/endpoints-file.ts'
import { runHere } from '../run-here.ts'

/** ID of a user that owns no files here. */
const NOBODY = 65_534
const isRoot = process.geteuid?.() === 0
const COPY = /^endpoints\.yml\.set-aside-\d{8}T\d{6}\.\d{3}Z$/

const CONFIG = `v: 3
identity: {cert: r.cert, key: r.key}
ctrl: {endpoints: ["tls:ctrl1.test:6262", "tls:ctrl2.test:6262"]}
`

const learned: KnownEndpoints = {
  endpoints: ['tls:ctrl1.test:6262', 'tls:ctrl3.test:6262'],
  controllers: ['ctrl1', 'ctrl3'].map((id) => ({
    id,
    addresses: [`tls:${id}.test:6262`],
    keySha256: 'ab'.repeat(32),
    toldBy: null,
  })),
  removed: [{ id: 'ctrl9', keySha256: 'cd'.repeat(32) }],
  apis: [],
  trustDomain: 'test.flotilla',
}

let folder = ''
let config = ''
let file = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'flotilla-router-reset-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  config = join(folder, 'router.yml')
  file = join(folder, 'endpoints.yml')
  writeFileSync(config, CONFIG)
  writeEndpoints(file, learned)
})

const copies = (): string[] => readdirSync(folder).filter((name) => COPY.test(name))
const reset = (...words: readonly string[]) => runHere(['router', 'reset', config, ...words])

describe('router reset', () => {
  test('moves the file of learned controllers and keys to a copy, and prints the controller addresses that the router will use at its next start', async () => {
    const before = readFileSync(file, 'utf8')
    const done = await reset()
    expect(done).toMatchObject({ code: 0, stderr: '' })
    expect(existsSync(file)).toBe(false)
    const [copy = ''] = copies()
    expect(readFileSync(join(folder, copy), 'utf8')).toBe(before)
    expect(statSync(join(folder, copy)).mode & 0o777).toBe(0o600)
    expect(done.stdout).toBe(
      [
        `forgot the controllers ctrl1, ctrl3, and 1 key of removed controllers; the former list is now ${join(folder, copy)}`,
        'the router begins with the controllers of its configuration: tls:ctrl1.test:6262, tls:ctrl2.test:6262',
        `start it with: flotilla router run ${config}\n`,
      ].join('\n'),
    )
  })

  test('prints one JSON document for scripts, and changes nothing if the router has learned nothing', async () => {
    const controllers = ['tls:ctrl1.test:6262', 'tls:ctrl2.test:6262']
    const first = JSON.parse((await reset('--json')).stdout) as { copy: string }
    expect(first).toEqual({
      file,
      copy: join(folder, copies()[0] ?? ''),
      forgotten: ['ctrl1', 'ctrl3'],
      forgottenRemovedKeys: 1,
      controllers,
    })
    const again = await reset('--json')
    expect(JSON.parse(again.stdout)).toEqual({
      file: null,
      copy: null,
      forgotten: [],
      forgottenRemovedKeys: 0,
      controllers,
    })
    expect((await reset()).stdout).toContain('the router had learned no controllers')
    expect(copies()).toHaveLength(1)
  })

  test('also moves a damaged file of learned controllers, and keeps only the last two copies', async () => {
    for (const text of ['one', 'two', 'three: [']) {
      writeFileSync(file, text)
      expect((await reset()).stdout).toContain('forgot the controllers (none)')
    }
    const kept = copies().map((name) => readFileSync(join(folder, name), 'utf8'))
    expect(kept.toSorted()).toEqual(['three: [', 'two'])
  })

  test('changes nothing while the router runs, and prints that the user must stop the router first', async () => {
    const lock = await acquirePathLock('router', realpathSync(config))
    onTestFinished(() => void lock.close())
    const done = await reset()
    expect(done.code).toBe(1)
    expect(done.stderr).toContain(
      `is running and would write its list of controllers again, so nothing was changed; stop it with SIGTERM or ^C, repeat this command, and start it with: flotilla router run ${config}`,
    )
    expect(existsSync(file)).toBe(true)
    expect(copies()).toEqual([])
  })

  test('changes nothing if the configuration names no controller, and prints the learned addresses', async () => {
    writeFileSync(config, CONFIG.replace(/^ctrl: .*$/m, 'ctrl: {}'))
    const done = await reset()
    expect(done.code).toBe(1)
    expect(done.stderr).toContain(
      'ctrl names no controller, so a router without its list would reach none; add the addresses of the present controllers to ctrl.endpoints (the router had learned tls:ctrl1.test:6262, tls:ctrl3.test:6262)',
    )
    expect(existsSync(file)).toBe(true)
  })

  test('exits with 2 if the configuration is invalid', async () => {
    writeFileSync(config, 'v: 2\n')
    expect((await reset()).code).toBe(2)
    expect(existsSync(file)).toBe(true)
  })
})

describe.runIf(isRoot)('router reset by root, with a configuration of another user', () => {
  beforeEach(() => {
    // In /tmp, because the other user may have no access to the folder of temporary files.
    folder = mkdtempSync('/tmp/flotilla-router-reset-')
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    config = join(folder, 'router.yml')
    file = join(folder, 'endpoints.yml')
    writeFileSync(config, CONFIG)
    writeEndpoints(file, learned)
    for (const path of [folder, config, file]) chownSync(path, NOBODY, NOBODY)
  })

  test('keeps that user as the owner of the moved file of learned controllers', async () => {
    expect(await reset()).toMatchObject({ code: 0 })
    expect(copies().map((name) => statSync(join(folder, name)).uid)).toEqual([NOBODY])
  })

  test('detects the router of that user', async () => {
    const { getuid } = process
    process.getuid = () => NOBODY
    const lock = await acquirePathLock('router', realpathSync(config)).finally(() => {
      Object.assign(process, { getuid })
    })
    onTestFinished(() => void lock.close())
    expect((await reset()).stderr).toContain('is running')
    expect(existsSync(file)).toBe(true)
  })

  test.each([
    ['owns the folder of the configuration', [NOBODY, 0]],
    ['owns the configuration', [0, NOBODY]],
  ])(
    'moves no file that belongs to root, even if that user %s',
    async (_who, [ofFolder, ofFile]) => {
      const foreign = mkdtempSync('/tmp/flotilla-of-root-')
      onTestFinished(() => rmSync(foreign, { recursive: true, force: true }))
      chmodSync(foreign, 0o755)
      const target = join(foreign, 'shadow')
      writeFileSync(target, 'secret of root', { mode: 0o600 })
      writeFileSync(config, CONFIG.replace('ctrl: {', `ctrl: {endpointsFile: ${target}, `))
      chmodSync(folder, 0o755)
      chownSync(folder, ofFolder ?? 0, 0)
      chownSync(config, ofFile ?? 0, 0)
      const done = await reset()
      expect(done.code).toBe(1)
      expect(done.stderr).not.toContain('secret of root')
      expect(readdirSync(foreign)).toEqual(['shadow'])
    },
  )
})
