import {
  existsSync,
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
import { fromBinary } from '@bufbuild/protobuf'
import { afterEach, beforeEach, expect, test } from 'vitest'

import { ConfigurationSchema } from '../../proto/gen/membership_pb.ts'
import { CommandFailure } from '../../src/controller/command-failure.ts'
import {
  finishClusterCreation,
  createFirstController,
} from '../../src/cli/quickstart/create-quickstart-cluster.ts'
import {
  inspectFolder,
  isControllerPrepared,
  planQuickstart,
  type QuickstartPlan,
} from '../../src/cli/quickstart/plan.ts'
import { loadControllerConfig } from '../../src/config/controller/load.ts'
import { requirePresent } from '../../src/lib/assert.ts'
import { leafControllerId, parseCertificates } from '../../src/pki/certificate.ts'
import { openLog } from '../../src/store/log/open-log.ts'
import { layOut } from '../support/lay-out.ts'

let folder = ''
let plan: QuickstartPlan

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'flotilla-quickstart-'))
  plan = planQuickstart(join(folder, 'net'), 3, 1280)
})
afterEach(() => {
  rmSync(folder, { recursive: true, force: true })
})

function failureOf(wanted: QuickstartPlan): CommandFailure {
  try {
    inspectFolder(wanted)
  } catch (error) {
    if (error instanceof CommandFailure) return error
    throw error
  }
  throw new Error('it was accepted')
}

test('the ports of a quickstart cluster follow the documented rule', () => {
  expect(
    plan.controllers.map(({ webPort, routerPort, meshPort }) => [webPort, routerPort, meshPort]),
  ).toEqual([
    [1280, 1380, 1480],
    [1281, 1381, 1481],
    [1282, 1382, 1482],
  ])
  expect(() => planQuickstart(folder, 3, 65_334)).toThrow('choose 65333 or lower')
})

test('each controller of a quickstart cluster matches its member record, and all controllers start with the same log', async () => {
  plan = await layOut(folder, 3)
  const logs: Uint8Array[][] = []
  for (const { configPath, dataFolder, id } of plan.controllers) {
    const loaded = loadControllerConfig(configPath, {})
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.faults))
    const { identity, trustDomain } = loaded.config
    const [leaf] = parseCertificates(readFileSync(identity.cert, 'utf8'))
    expect(leafControllerId(leaf, trustDomain)).toBe(id)
    const opened = openLog(dataFolder, {})
    opened.disk.closeNow()
    const { entries, commit } = opened.restored
    expect(entries.map(({ index, term, type }) => [index, term, type])).toEqual([
      [1, 1, 'configuration'],
      [2, 1, 'command'],
    ])
    expect(commit).toBe(2)
    logs.push(entries.map(({ data }) => data))
    const { members } = fromBinary(ConfigurationSchema, requirePresent(entries[0], 'entry').data)
    const member = requirePresent(
      members.find((one) => one.id === id),
      'its member record',
    )
    expect(Buffer.from(member.publicKeySha256)).toEqual(Buffer.from(leaf.publicKeySha256))
    expect(Buffer.from(member.storeId)).toEqual(Buffer.from(opened.identity.storeId))
  }
  expect(logs[1]).toEqual(logs[0])
  expect(logs[2]).toEqual(logs[0])
})

test('only the owner can read the secrets of a quickstart folder, and only admin.json contains the password', async () => {
  plan = await layOut(folder, 3)
  const admin = JSON.parse(readFileSync(join(plan.dir, 'admin.json'), 'utf8')) as {
    password: string
  }
  const open: string[] = []
  for (const name of readdirSync(plan.dir, { recursive: true }) as string[]) {
    const path = join(plan.dir, name)
    if (!statSync(path).isFile()) continue
    const isOpen = (statSync(path).mode & 0o077) !== 0
    const text = readFileSync(path)
    if (isOpen && text.includes('PRIVATE KEY')) open.push(name)
    if (isOpen && /key|admin/.test(name)) open.push(name)
    if (name !== 'admin.json') expect(text.includes(admin.password), name).toBe(false)
  }
  expect(open).toEqual([])
})

test('a quickstart folder resumes with the controller count and port of its first run, and refuses other values with advice', async () => {
  mkdirSync(plan.dir)
  expect(inspectFolder(plan)).toBe('empty')
  rmSync(plan.dir, { recursive: true })
  plan = await layOut(folder, 3)
  expect(inspectFolder(plan)).toBe('complete')
  for (const [nodes, port] of [
    [5, plan.port],
    [3, plan.port + 1000],
  ] as const) {
    const failure = failureOf(planQuickstart(plan.dir, nodes, port))
    expect(failure.exitCode).toBe(2)
    expect(failure.message).toContain(`run it with --nodes 3 --port ${plan.port}`)
  }
})

test('a quickstart folder resumes only if it has every configuration and at least one data folder', async () => {
  plan = await layOut(folder, 3)
  const [first, second, third] = plan.controllers.map(({ dataFolder }) => dataFolder)
  rmSync(requirePresent(second, 'a second'), { recursive: true })
  expect(inspectFolder(plan)).toBe('complete')
  rmSync(requirePresent(first, 'a first'), { recursive: true })
  rmSync(requirePresent(third, 'a third'), { recursive: true })
  expect(failureOf(plan).message).toContain('every data folder is missing')
  rmSync(join(plan.dir, 'ctrl2', 'config.yml'))
  expect(failureOf(plan).message).toContain(join('ctrl2', 'config.yml'))
})

test('the folder of an interrupted quickstart counts as incomplete, its complete controllers are kept, and other values are refused', async () => {
  mkdirSync(plan.dir)
  writeFileSync(join(plan.dir, '.forming.4711.partial'), 'cut off')
  expect(inspectFolder(plan)).toBe('empty')
  const [first, second] = plan.controllers.map((one) => requirePresent(one, 'a controller'))
  if (first === undefined || second === undefined) throw new Error('no controllers')
  // The folder after a kill, before the first controller was complete.
  mkdirSync(first.folder)
  writeFileSync(join(first.folder, '.forming'), '')
  expect(inspectFolder(plan)).toBe('half-made')
  await createFirstController(first)
  expect(inspectFolder(plan)).toBe('half-made')
  expect(plan.controllers.map(isControllerPrepared)).toEqual([true, false, false])
  mkdirSync(second.folder)
  writeFileSync(join(second.folder, '.joining'), '')
  expect(plan.controllers.map(isControllerPrepared)).toEqual([true, false, false])
  for (const [nodes, port] of [
    [1, 1280],
    [3, 2280],
  ] as const) {
    const failure = failureOf(planQuickstart(plan.dir, nodes, port))
    expect(failure.exitCode).toBe(2)
    expect(failure.message).toContain('that is incomplete; run it with --nodes')
    expect(failure.message).toContain('--port 1280')
  }
  finishClusterCreation(plan, 'the password')
  expect(existsSync(join(first.folder, 'admin.json'))).toBe(false)
})

test('quickstart refuses an incomplete folder of an earlier release, and advises the user to remove the folder', async () => {
  mkdirSync(plan.dir)
  writeFileSync(join(plan.dir, '.forming'), '{"nodes":3,"port":1280,"password":"secret"}')
  expect(inspectFolder(plan)).toBe('empty')
  const first = requirePresent(plan.controllers[0], 'a first')
  await createFirstController(first)
  rmSync(join(first.folder, 'admin.json'))
  expect(failureOf(plan).message).toContain('remove the folder to start over')
})

test('quickstart refuses a folder that contains any other file', () => {
  mkdirSync(plan.dir)
  writeFileSync(join(plan.dir, 'thesis.txt'), 'two years of work')
  expect(failureOf(plan).message).toContain('holds thesis.txt')
})

test('quickstart refuses a folder that contains a cluster but no admin.json', async () => {
  plan = await layOut(folder, 3)
  rmSync(join(plan.dir, 'admin.json'))
  expect(failureOf(plan).message).toContain('holds a cluster but no admin.json')
})
