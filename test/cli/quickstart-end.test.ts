import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'

import { processExitMessage } from '../../src/cli/quickstart/quickstart.ts'
import { type ControllerPlan, planQuickstart } from '../../src/cli/quickstart/plan.ts'
import { requirePresent } from '../../src/lib/assert.ts'
import type { ClusterView, MemberView } from '../../src/ports/cluster-view.ts'
import { type ServedSocket, serveSocket } from './served-socket.ts'

// Method: a simulated admin socket instead of the running controllers reports the members.

let folder = ''
let gone: ControllerPlan
let others: readonly ControllerPlan[]
let server: ServedSocket
let members: readonly string[] = []
const cluster: ClusterView = {
  selfId: 'ctrl2',
  clusterId: 'c-1',
  generation: 1,
  featureLevel: 1,
  members: () => members.map(memberNamed),
  leaderId: () => null,
  leaderContactMs: () => 0,
  quorumClockMs: () => null,
  readIndex: () => Promise.resolve(0),
}

function memberNamed(id: string): MemberView {
  return {
    id,
    address: '127.0.0.1:1480',
    voter: true,
    leader: false,
    connected: true,
    version: '',
    apiAddresses: [],
    routerAddresses: [],
    certificatePem: '',
    featureLevel: 1,
    startedAtMs: 1,
    lastContactMs: 0,
    progress: null,
    readOnly: true,
    vitals: null,
  }
}

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'flotilla-end-'))
  const plans = planQuickstart(join(folder, 'net'), 3, 1280).controllers
  for (const { dataFolder } of plans) mkdirSync(dataFolder, { recursive: true })
  gone = requirePresent(plans[2], 'ctrl3')
  others = plans.slice(0, 2)
  // The first controller does not run.
  server = await serveSocket(requirePresent(plans[1], 'ctrl2').dataFolder, { cluster })
})
afterEach(async () => {
  await server.close()
  rmSync(folder, { recursive: true, force: true })
})

const told = async (): Promise<string> => {
  return (await processExitMessage(gone, 'ended with exit code 0', others, '/bin/flotilla')).join(
    '\n',
  )
}

test('quickstart reports that a controller was removed, and prints no start command for it', async () => {
  members = ['ctrl1', 'ctrl2']
  expect(await told()).toContain('ctrl3 was removed from the cluster')
  expect(await told()).not.toContain('controller run')
})

test('quickstart prints the command that starts a stopped member again', async () => {
  members = ['ctrl1', 'ctrl2', 'ctrl3']
  expect(await told()).toContain('ctrl3 ended with exit code 0')
  expect(await told()).toContain(`/bin/flotilla controller run ${gone.configPath}`)
})

test('quickstart prints the command that starts a controller whose membership is unknown', async () => {
  await server.close()
  expect(await told()).toContain('To start it again:')
})
