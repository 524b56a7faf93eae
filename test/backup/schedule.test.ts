import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'

import { checkWholeBackup } from '../../src/backup/load-backup.ts'
import { readFileChunks } from '../../src/backup/backup-files.ts'
import { Alarms } from '../../src/cluster/health/alarms.ts'
import { BackupFolder } from '../../src/controller/backups/backup-folder.ts'
import {
  BackupSchedule,
  type BackupScheduleDeps,
} from '../../src/controller/backups/backup-schedule.ts'
import { Problem } from '../../src/lib/problems.ts'
import { startMs } from '../cluster/secrets-fixture.ts'
import { temporaryFolder } from '../store/support/folders.ts'
import { eventually } from '../support/eventually.ts'
import { sha256sum } from '../support/sha256sum.ts'
import { BackedUp, newKeyPair } from './backup-fixture.ts'

// Goal: backups are created on schedule, the newest ones are kept, and a failure is reported and
// removes no older backup.

const HOUR_MS = 3_600_000
const source = await BackedUp.make()
const key = newKeyPair()

let dir = ''
let folder = ''
let alarms: Alarms
beforeEach(() => {
  dir = temporaryFolder()
  folder = join(dir, 'backups')
  writeFileSync(join(dir, 'backup.pem'), key.publicPem)
  source.cluster.clock.ms = startMs
  source.refused = null
  alarms = new Alarms(source.cluster.clock, source.cluster.log)
})

function scheduleWith(changes: Partial<BackupScheduleDeps> = {}): BackupSchedule {
  return new BackupSchedule({
    backups: source.parts,
    alarms,
    log: source.cluster.log,
    recipientPath: join(dir, 'backup.pem'),
    everyMs: HOUR_MS,
    keep: 3,
    hook: null,
    folder: new BackupFolder({ folder, controllerId: 'ctrl1', freeBytesMin: 0 }),
    ...changes,
  })
}

function pass(ms: number): void {
  source.cluster.clock.ms += ms
}

const names = (): string[] => (existsSync(folder) ? readdirSync(folder).sort() : [])
const codes = (): string[] => alarms.list().map(({ code }) => code)

/** A program that records its arguments and ends with the given shell lines. */
function program(name: string, lines: string): string {
  const path = join(dir, name)
  writeFileSync(path, `#!/bin/sh\n${lines}\n`)
  chmodSync(path, 0o755)
  return path
}

test('the schedule creates the first backup immediately and the next one when it is due, and each is complete and intact', async () => {
  const schedule = scheduleWith()
  await schedule.look()
  expect(names()).toHaveLength(1)
  const [line] = source.cluster.recorded.lines.filter((one) => one.includes('backup taken'))
  expect(line).toContain(sha256sum(join(folder, names()[0] ?? '')))
  expect(names()[0]).toMatch(/^flotilla-ctrl1-\d{8}T\d{6}Z-\d+\.backup$/)
  pass(HOUR_MS - 1000)
  await schedule.look()
  expect(names()).toHaveLength(1)
  pass(1000)
  await schedule.look()
  expect(names()).toHaveLength(2)
  expect(schedule.lastTakenMs).toBe(startMs + HOUR_MS)
  for (const name of names()) {
    const path = join(folder, name)
    expect(statSync(path).mode & 0o777).toBe(0o600)
    const privateKeyPem = key.privatePem
    const { manifest, findings } = await checkWholeBackup(readFileChunks(path), { privateKeyPem })
    expect({ hasSecrets: manifest.hasSecrets, findings }).toEqual({
      hasSecrets: true,
      findings: [],
    })
  }
  expect(statSync(folder).mode & 0o777).toBe(0o700)
})

test('a restarted schedule creates no backup early, because the folder shows when the last backup was created', async () => {
  await scheduleWith().look()
  pass(HOUR_MS / 2)
  const restarted = scheduleWith()
  await restarted.look()
  expect(names()).toHaveLength(1)
  expect(restarted.lastTakenMs).toBe(Math.floor(startMs / 1000) * 1000)
  pass(HOUR_MS / 2)
  await restarted.look()
  expect(names()).toHaveLength(2)
})

test('the schedule removes all but the newest of its backups, and no other files', async () => {
  const schedule = scheduleWith()
  mkdirSync(folder)
  const others = ['flotilla-ctrl10-20200101T000000Z-1.backup', 'by-hand.backup', 'notes.txt']
  for (const name of others) writeFileSync(join(folder, name), 'of somebody else')
  const left = '.flotilla-ctrl1-20200101T000000Z-1.backup.7.partial'
  writeFileSync(join(folder, left), 'of a process that was killed')
  const taken: string[] = []
  for (let n = 0; n < 5; n += 1) {
    await schedule.look()
    taken.push(...names().filter((name) => ![...others, left, ...taken].includes(name)))
    pass(HOUR_MS)
  }
  expect(taken).toHaveLength(5)
  expect(names()).toEqual([...others, ...taken.slice(2)].sort())
})

test('if the backup folder is not writable, the schedule raises an alarm, keeps older backups, and retries soon', async () => {
  const schedule = scheduleWith()
  await schedule.look()
  const before = names()
  const away = join(dir, 'away')
  // With a file instead of the folder, the backup fails for root as well, for whom permissions do
  // not count.
  renameSync(folder, away)
  writeFileSync(folder, 'no folder')
  pass(HOUR_MS)
  await schedule.look()
  expect(codes()).toEqual(['BACKUP_FAILED'])
  expect(alarms.list()[0]?.text).toMatch(/backup failed: .*older backups are kept$/)
  rmSync(folder)
  renameSync(away, folder)
  expect(names()).toEqual(before)
  pass(5 * 60_000)
  await schedule.look()
  expect(codes()).toEqual([])
  expect(names()).toHaveLength(before.length + 1)
})

test('the schedule writes no backup that would use the reserved free space of the disk', async () => {
  const huge = Number.MAX_SAFE_INTEGER
  const full = new BackupFolder({ folder, controllerId: 'ctrl1', freeBytesMin: huge })
  const schedule = scheduleWith({ folder: full })
  await schedule.look()
  expect(names()).toEqual([])
  expect(alarms.list()[0]?.text).toMatch(/bytes left, \d+ must stay free .*; free space there/)
})

test('a missing key, a private key instead of a public key, the key of a controller, and a quarantined state each raise a backup alarm', async () => {
  const schedule = scheduleWith()
  writeFileSync(join(dir, 'backup.pem'), key.privatePem)
  await schedule.look()
  expect(alarms.list()[0]?.text).toMatch(/the recipient is a private key/)
  expect(alarms.list()[0]?.text).not.toMatch(/BEGIN/)
  rmSync(join(dir, 'backup.pem'))
  pass(HOUR_MS)
  await schedule.look()
  // The alarm names the key and its option, not the folder of the backups.
  const missing = join(dir, 'backup.pem')
  expect(alarms.list()[0]?.text).toContain(
    `backup failed: backup.recipient: ${missing}: does not exist; `,
  )
  expect(alarms.list()[0]?.text).not.toContain(folder)
  writeFileSync(join(dir, 'backup.pem'), source.cluster.member('ctrl2').leaf.certificatePem)
  pass(HOUR_MS)
  await schedule.look()
  expect(alarms.list()[0]?.text).toContain(
    `backup.recipient: ${missing}: the recipient has the key of controller ctrl2, so only the host of ctrl2 could decrypt the backup; `,
  )
  expect(names()).toEqual([])
  writeFileSync(join(dir, 'backup.pem'), key.publicPem)
  source.refused = 'NODE_QUARANTINED'
  pass(HOUR_MS)
  await schedule.look()
  expect(codes()).toEqual(['BACKUP_FAILED'])
  expect(names()).toEqual([])
})

test('without a leader, the schedule backs up the state that this controller has applied', async () => {
  const cluster = {
    ...source.parts.cluster,
    readIndex: () => Promise.reject(new Problem('CLUSTER_NO_LEADER')),
  }
  const schedule = scheduleWith({ backups: { ...source.parts, cluster } })
  await schedule.look()
  expect(names()).toHaveLength(1)
  expect(codes()).toEqual([])
})

test('the backup hook receives the path unchanged, without a shell', async () => {
  const noted = join(dir, 'noted')
  const command = [program('hook', `printf '%s\\n' "$@" >> '${noted}'`), 'to; false', '$(id)']
  const schedule = scheduleWith({ hook: { command, timeoutMs: 10_000 } })
  await schedule.look()
  expect(codes()).toEqual([])
  const [name = ''] = names()
  expect(readFileSync(noted, 'utf8')).toBe(`to; false\n$(id)\n${join(folder, name)}\n`)
})

test('a backup hook that fails or never ends raises a separate alarm, and the backup is kept', async () => {
  const failing = { command: [program('failing', 'exit 3')], timeoutMs: 10_000 }
  await scheduleWith({ hook: failing }).look()
  expect(codes()).toEqual(['BACKUP_HOOK_FAILED'])
  expect(alarms.list()[0]?.text).toMatch(/the hook ended with code 3 for/)
  pass(HOUR_MS)
  const pidFile = join(dir, 'pid')
  const endless = program('endless', `sleep 600 &\necho $! > '${pidFile}'\nwait`)
  await scheduleWith({ hook: { command: [endless], timeoutMs: 500 } }).look()
  expect(alarms.list()[0]?.text).toMatch(/took longer than 500 ms and was killed/)
  const child = Number(readFileSync(pidFile, 'utf8'))
  await eventually(() => expect(isRunning(child)).toBe(false))
  pass(HOUR_MS)
  await scheduleWith({ hook: { command: ['/no/such/program'], timeoutMs: 500 } }).look()
  expect(alarms.list()[0]?.text).toMatch(/the hook could not be run .*ENOENT/)
  expect(names()).toHaveLength(3)
  pass(HOUR_MS)
  await scheduleWith({ hook: { command: [program('good', 'exit 0')], timeoutMs: 10_000 } }).look()
  expect(codes()).toEqual([])
})

test('stopping the schedule kills the backup hook, and no further backup is created', async () => {
  const started = join(dir, 'started')
  const endless = program('endless', `echo $$ > '${started}'\nsleep 600`)
  const schedule = scheduleWith({ hook: { command: [endless], timeoutMs: 600_000 } })
  const looking = schedule.look()
  await eventually(() => expect(readFileSync(started, 'utf8')).toMatch(/^\d+\n$/))
  await schedule.close()
  await looking
  expect(isRunning(Number(readFileSync(started, 'utf8')))).toBe(false)
  pass(HOUR_MS)
  await schedule.look()
  expect(names()).toHaveLength(1)
  expect(codes()).toEqual([])
})

function isRunning(pid: number): boolean {
  try {
    // A killed process whose parent has not waited for it is no longer running.
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}
