import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'

import { upgradeText } from '../../src/cli/cluster/upgrade.ts'
import { programVersion } from '../../src/controller/version.ts'
import { runHere } from './run-here.ts'
import { serveSocket } from './served-socket.ts'
import { layOut } from './support.ts'
import type { ClusterView, MemberView } from '../../src/ports/cluster-view.ts'
import { type UpgradeStatus, deriveUpgradeStatus } from '../../src/api/cluster/upgrade-status.ts'

type Told = Partial<
  Pick<MemberView, 'voter' | 'connected' | 'version' | 'featureLevel' | 'progress' | 'vitals'>
>

const old = { version: 'v0.1.0', featureLevel: 1 }
const present = { version: 'v0.2.0', featureLevel: 2 }

const at100 = { commit: 100, applied: 100 } as MemberView['progress']

function statusOf(inForce: number, ...members: readonly Told[]): UpgradeStatus {
  const views = members.map((told, at) => ({
    id: `ctrl${at + 1}`,
    voter: true,
    connected: true,
    progress: at100,
    vitals: null,
    ...told,
  })) as unknown as readonly MemberView[]
  const cluster = {
    featureLevel: inForce,
    members: () => views,
    leaderId: () => 'ctrl1',
  } as unknown as ClusterView
  return deriveUpgradeStatus(cluster)
}

test('a voter with the previous release prevents the next feature level, and must be upgraded', () => {
  const status = statusOf(1, present, present, old)
  expect(status).toMatchObject({ featureLevel: 1, nextFeatureLevel: 2, state: 'mixed' })
  expect(status.members.map(({ holdsBack }) => holdsBack)).toEqual([false, false, true])
  expect(upgradeText(status)).toContain('feature level: 1\nfeature level 2 waits for ctrl3;')
  expect(upgradeText(status)).toMatch(/^ctrl3 .* v0\.1\.0 .* upgrade it to v0\.2\.0$/m)
  expect(upgradeText(status)).toMatch(/^ctrl1 .* -$/m)
})

test('a disconnected voter prevents the next feature level, even if it supports the level', () => {
  const status = statusOf(1, present, present, { ...present, connected: false })
  expect(status.members[2]).toMatchObject({
    holdsBack: true,
    action: 'start it, or remove it from the members',
  })
  const never = statusOf(2, present, present, { connected: false, version: '', featureLevel: 0 })
  expect(never).toMatchObject({ state: 'waiting', nextFeatureLevel: null })
  expect(never.advice).toBe('the versions of ctrl3 are unknown; every other member runs v0.2.0')
})

test('a learner with the previous release does not prevent the next feature level, but stops when the level is activated', () => {
  const status = statusOf(1, present, { ...old, voter: false })
  expect(status.members[1]).toMatchObject({ holdsBack: false })
  expect(status.members[1]?.action).toContain('it stops when the level is activated')
  expect(status.advice).toContain('is about to be activated')
})

test('an upgrade is complete when every member runs the same version and the feature level of that version is active', () => {
  expect(statusOf(2, present, present)).toMatchObject({
    state: 'complete',
    nextFeatureLevel: null,
    advice: 'the upgrade is complete; every member runs v0.2.0',
  })
  expect(statusOf(1, present, present)).toMatchObject({ state: 'waiting', nextFeatureLevel: 2 })
  const patched = { ...present, version: 'v0.2.1' }
  expect(statusOf(2, present, patched)).toMatchObject({ state: 'mixed', nextFeatureLevel: null })
})

test('no controller should be stopped while a voter is disconnected, is not serving or is far behind', () => {
  const behind = { commit: 900, applied: 100 } as MemberView['progress']
  const failing = { isFailing: true } as MemberView['vitals']
  const cases: readonly (readonly [Told, string])[] = [
    [{ ...present }, ''],
    [{ ...present, connected: false }, 'ctrl2 is not connected'],
    [{ ...present, progress: null }, 'ctrl2 is not connected'],
    [{ ...present, vitals: failing }, 'ctrl2 does not serve'],
    [{ ...present, progress: behind }, 'ctrl1 is 800 entries behind'],
    [{ ...present, connected: false, voter: false }, ''],
  ]
  for (const [told, notNow] of cases) expect(statusOf(2, present, told).notNow).toBe(notNow)
})

test('an upgrade is not complete while the voter that restarted last is disconnected', () => {
  expect(statusOf(2, present, present, { ...present, connected: false })).toMatchObject({
    state: 'waiting',
    notNow: 'ctrl3 is not connected',
    advice:
      'every member runs v0.2.0; the upgrade is complete once this is over: ctrl3 is not connected',
  })
})

test('an upgrade is not complete on a host whose installed program is newer than the running controller', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'flotilla-upgrade-status-'))
  const { dir } = await layOut(folder, 1)
  const config = join(dir, 'ctrl1', 'config.yml')
  const server = await serveSocket(join(dir, 'ctrl1', 'data'))
  const { cluster } = server.controller
  const [member] = cluster.members()
  const runs = (version: string): void => {
    cluster.members = () => [{ ...(member as MemberView), id: 'ctrl1', version, progress: at100 }]
  }
  const ask = (...words: string[]) =>
    runHere(['cluster', 'upgrade', 'status', '--config', config, '--wait', '1s', ...words])
  const installed = `v${programVersion()}`
  try {
    runs('v0.0.9')
    const older = await ask()
    expect([older.code, older.stderr]).toEqual([0, ''])
    expect(older.stdout.split('\n').slice(0, 3)).toEqual([
      `feature level: ${cluster.featureLevel}`,
      `ctrl1 runs v0.0.9, but ${installed} is installed on this host; stop it, and start it again with: flotilla controller run ${config}`,
      'the next controller can be stopped',
    ])
    expect(JSON.parse((await ask('--json')).stdout)).toMatchObject({
      pendingRestart: { id: 'ctrl1', runningVersion: 'v0.0.9', installedVersion: installed },
    })
    for (const one of [installed, 'v999.0.0']) {
      runs(one)
      expect((await ask()).stdout).toContain(`the upgrade is complete; every member runs ${one}\n`)
      expect(JSON.parse((await ask('--json')).stdout)).toMatchObject({ pendingRestart: null })
    }
  } finally {
    await server.close()
    rmSync(folder, { recursive: true, force: true })
  }
})
