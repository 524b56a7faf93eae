import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import {
  firstStartCommand,
  restartAdvice,
  startCommand,
  unitName,
} from '../../src/cli/terminal/start-command.ts'

let folder: string
let units: readonly string[]
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'flotilla-units-'))
  units = [join(folder, 'none'), join(folder, 'units')]
  mkdirSync(join(folder, 'units'))
  for (const name of ['controller', 'router'])
    writeFileSync(join(folder, 'units', `flotilla-${name}@.service`), '')
})
afterAll(() => rmSync(folder, { recursive: true }))

describe('The printed command that starts a program', () => {
  test('is systemctl start with the unit that reads the configuration', () => {
    expect(startCommand('controller', '/etc/flotilla/ctrl1/config.yml', units)).toBe(
      'systemctl start flotilla-controller@ctrl1',
    )
    expect(startCommand('router', '/etc/flotilla/edge1/router.yml', units)).toBe(
      'systemctl start flotilla-router@edge1',
    )
  })

  test('also enables the unit if the program has never run', () => {
    expect(firstStartCommand('router', '/etc/flotilla/edge1/router.yml', units)).toBe(
      'systemctl enable --now flotilla-router@edge1',
    )
    expect(firstStartCommand('router', 'router.yml', units)).toBe('flotilla router run router.yml')
  })

  test('restarts the unit, or the program if no unit runs it', () => {
    expect(restartAdvice('controller', '/etc/flotilla/ctrl1/config.yml', units)).toBe(
      'restart it with: systemctl restart flotilla-controller@ctrl1',
    )
    expect(restartAdvice('controller', 'config.yml', units)).toBe(
      'stop it, and start it again with: flotilla controller run config.yml',
    )
  })

  test('names the unit of the configuration if the unit is installed', () => {
    expect(unitName('router', '/etc/flotilla/edge1/router.yml', units)).toBe(
      'flotilla-router@edge1',
    )
    expect(unitName('router', '/etc/flotilla/edge1/router.yml', [])).toBe(null)
  })

  test.each([
    ['no unit is installed', '/etc/flotilla/ctrl1/config.yml', []],
    ['the file has another name', '/etc/flotilla/ctrl1/other.yml', null],
    ['the file is in another folder', '/etc/flotilla/config.yml', null],
    ['systemd does not accept the name unescaped', "/etc/flotilla/it's/config.yml", null],
  ])('is flotilla controller run if %s', (_why, path, installed) => {
    const word = path.includes("'") ? `'/etc/flotilla/it'\\''s/config.yml'` : path
    expect(startCommand('controller', path, installed ?? units)).toBe(
      `flotilla controller run ${word}`,
    )
  })
})
