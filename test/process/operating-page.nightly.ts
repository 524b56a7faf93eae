import { type ChildProcess, spawn } from 'node:child_process'
import {
  closeSync,
  copyFileSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'

import type { ClusterStatus } from '../../src/api/cluster/cluster-status.ts'
import { sendToAdminSocket } from '../../src/cli/client/admin-socket.ts'
import { clusterOperationRequest } from '../../src/cli/client/connection.ts'
import { pageNames, pageText, shellBlocks, shownOutput } from '../support/pages.ts'
import { flotilla } from '../support/program.ts'
import { until } from './support/client.ts'
import { Fleet } from './support/fleet.ts'
import { run } from './support/page.ts'

// Goal: an operator who follows docs/operate forms a cluster, maintains it and recovers it. Method:
// this test runs each block of these pages unchanged. Folders represent hosts; only paths and
// addresses differ.

/** Pages that another test runs completely. */
const typedPages: Readonly<Record<string, string>> = {
  'operate/backup-and-restore.md': 'backup-page.nightly.ts',
  'operate/load-balancers.md': 'load-balancers-page.nightly.ts',
  'operate/own-pki.md': 'own-pki.nightly.ts',
  'operate/upgrade.md': 'rolling-upgrade.test.ts',
}
/** Blocks that another test runs, by the beginning of the block. */
const typedBlocks: Readonly<Record<string, string>> = {
  'install -D -m 0644': 'units.nightly.ts',
  'flotilla history': 'test/cli/history/history.test.ts',
  'flotilla identity enroll': 'typed-pages.nightly.ts',
  'flotilla router check': 'router-program.test.ts',
  'grep -h': 'only searches files',
}

const pages = pageNames('operate').filter((name) => !(name in typedPages))
/** If several pages have the same block, the test runs it once. */
const blocks = new Set(pages.flatMap((name) => shellBlocks(pageText(name))))

let fleet: Fleet
/**
 * The folder in which the operator works. All hosts share it, so no file has to be copied between
 * hosts.
 */
let folder = ''
const children = new Map<number, ChildProcess>()
const typed = new Set<string>()
/** The output of all commands, except the log lines of processes in the foreground. */
let printed = ''

beforeAll(async () => {
  fleet = await Fleet.create(5)
  folder = join(fleet.dir, 'operator')
  for (const path of [folder, ...[1, 2, 3, 4, 5].map((k) => fleet.folder(k))]) mkdirSync(path)
})
afterAll(async () => {
  await Promise.all([...children.keys()].map(stop))
  await fleet[Symbol.asyncDispose]()
})

/** @returns the only block with this beginning, and records that the test runs it. */
function block(beginning: string): string {
  const found = [...blocks].filter((one) => one.startsWith(beginning))
  expect(found, beginning).toHaveLength(1)
  const [text = ''] = found
  typed.add(text)
  return text
}

/** Replaces paths and addresses in a text by those of host k. */
function onHost(k: number, text: string): string {
  return text
    .replaceAll('/etc/flotilla/config.yml', fleet.config(k))
    .replaceAll('/etc/flotilla/', `${fleet.folder(k)}/`)
    .replaceAll('/mnt/usb/', `${folder}/`)
    .replaceAll(/https:\/\/ctrl(\d)\.example\.net:1280/g, (_, one: string) =>
      fleet.url(Number(one)),
    )
    .replace(/--advertise ctrl\d\.example\.net/, fleet.flags(k).join(' '))
}

/** Runs lines on a host, and fails if a line fails. */
async function type(k: number, text: string): Promise<string> {
  const env = `PATH='${dirname(flotilla)}':$PATH\nexport FLOTILLA_CONFIG='${fleet.config(k)}'\n`
  const { code, output } = await run(env + onHost(k, text), folder)
  expect(code, `${output}\n${onHost(k, text)}`).toBe(0)
  printed += `${output}\n`
  return output
}

/** Starts a command that keeps running in the foreground. */
function begin(k: number, line: string): void {
  const log = openSync(join(fleet.folder(k), 'output.log'), 'a')
  const env = { ...fleet.env, FLOTILLA_CONFIG: fleet.config(k) }
  const script = `PATH='${dirname(flotilla)}':$PATH; exec ${onHost(k, line).trim()}`
  children.set(k, spawn('sh', ['-c', script], { cwd: folder, env, stdio: ['ignore', log, log] }))
  closeSync(log)
}

async function stop(k: number): Promise<void> {
  const child = children.get(k)
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
  const ended = new Promise((done) => child.once('exit', done))
  child.kill('SIGKILL')
  await ended
}

async function leads(k: number): Promise<void> {
  await until(`ctrl${k} leads`, async () => {
    const status = (await sendToAdminSocket(
      fleet.data(k),
      clusterOperationRequest('status'),
    )) as ClusterStatus
    return status.leaderId === `ctrl${k}`
  })
}

async function join4(): Promise<void> {
  const invite = block('flotilla cluster invite --out ctrl2.ticket\n')
  const joinLine = block('flotilla cluster join /etc/flotilla/config.yml --ticket-file ctrl2')
  for (const k of [2, 3]) {
    await type(1, invite.replace('ctrl2', `ctrl${k}`))
    begin(k, joinLine.replace('ctrl2', `ctrl${k}`))
  }
  await type(1, block('flotilla cluster invite --learner --out ctrl4'))
  begin(4, block('flotilla cluster join /etc/flotilla/config.yml --ticket-file ctrl4'))
  for (const k of [2, 3, 4]) {
    const joined = k === 4 ? 'joined: ctrl4 is a learner' : `joined: ctrl${k} is a voter`
    await until(joined, () => Promise.resolve(fleet.log(k).includes(joined)))
  }
}

test('the commands in docs/operate create a cluster, join controllers and log in', async () => {
  expect(await type(1, block('flotilla cluster init'))).toMatch(/^root key: .*move it offline/m)
  renameSync(join(fleet.folder(1), 'pki/root.key'), join(folder, 'root.key'))
  expect(await type(1, block('flotilla controller check /etc'))).toContain(': ctrl1 can start')
  begin(1, block('flotilla controller run /etc'))
  await leads(1)
  await join4()
  expect(await type(1, block('flotilla cluster tickets list'))).toMatch(/ctrl4$/m)

  copyFileSync(join(fleet.folder(1), 'ca.pem'), join(folder, 'ca.pem'))
  const { username, password } = JSON.parse(
    readFileSync(join(fleet.folder(1), 'admin.json'), 'utf8'),
  ) as { username: string; password: string }
  const login = JSON.stringify({ username, password })
  writeFileSync(join(folder, 'login.json'), login, { mode: 0o600 })
  expect(await type(4, block('(umask 077 && curl'))).toMatch(/^ctrl4 .* no +no +yes/m)
})

test('the commands in docs/operate add a second controller to a host, and create the configuration of a second router', async () => {
  await type(1, block('flotilla cluster invite --learner --out ctrl1b'))
  const [folderLine = '', ...joinLines] = block('mkdir -m 0700 /etc/flotilla/ctrl1b').split('\n')
  await type(5, folderLine)
  begin(5, joinLines.join('\n'))
  await until('ctrl1b joins', () =>
    Promise.resolve(fleet.log(5).includes('joined: ctrl5 is a learner')),
  )
  await stop(5)
  await type(1, 'flotilla cluster remove ctrl5\n')
  const made = await type(1, block('mkdir -m 0700 /etc/flotilla/edge1b'))
  expect(made).toContain('router.yml')
})

test('the commands in docs/operate for status, health, metrics, a snapshot, the log level and a debug bundle succeed', async () => {
  const status = block('flotilla cluster status  ').replace(
    /^(.*--watch).*$/m,
    'timeout -s INT 4 $1 || [ $? = 124 ]',
  )
  const watched = await type(1, status)
  // Without a terminal, each refresh prints one line.
  expect(watched.match(/^\d{4}-.*Z .*ctrl1/gm)?.length).toBeGreaterThan(0)
  const health = await type(1, block('curl --cacert /etc/flotilla/ca.pem https'))
  expect(health).toMatch(/"healthy":true.*"ready":true/s)
  // The second line needs a context; the exit code follows the convention of Nagios plugins.
  const [atHost = ''] = block('flotilla cluster health').split('#')
  const plugin = await type(1, `${atHost} || [ $? = 1 ]`)
  expect(plugin).toMatch(/^(OK|WARNING): 4 of 4 controllers answer, leader ctrl\d, /m)
  const made = await type(1, block('flotilla router init edge router.yml'))
  expect(made).toContain('router.yml')
  const socket = await type(1, block('curl -s --unix-socket /etc/flotilla/data/admin.sock http'))
  expect(socket).toMatch(/^"leaderId":"ctrl\d"\n.*"name":"Default Admin"/s)
  expect(await type(1, block('flotilla pki issue --name prometheus'))).toMatch(/^flotilla_/m)
  const copied = await type(1, block('curl -s --unix-socket /etc/flotilla/data/admin.sock -H'))
  expect(copied).toContain('/data/snapshots/before-upgrade"')
  const since = await type(1, block('flotilla cluster snapshot diff /etc/flotilla/data'))
  expect(since).toMatch(/ index \d+/)
  expect(await type(1, block('flotilla log level debug'))).toContain(
    'debug (after a restart: info)',
  )
  expect(
    await type(
      1,
      block('curl --cacert ca.pem -H "net-session: $(cat session)" -H') + 'flotilla log level',
    ),
  ).toContain('info')
  expect(await type(1, block('flotilla debug bundle'))).toMatch(/^wrote .*\.tar\.gz$/m)
})

test('the commands in docs/operate inspect, renew and issue certificates, and replace the issuing CA', async () => {
  expect(await type(1, block('flotilla pki inspect'))).toMatch(/in use: CN=ctrl1/)
  copyFileSync(join(fleet.folder(3), 'cert.pem'), join(folder, 'ctrl3-cert.pem'))
  const renewed = await type(1, block('flotilla pki renew --member-cert'))
  expect(renewed).toContain('install it as identity.cert of ctrl3')
  expect(await type(1, block('flotilla pki issue --name proxy'))).toContain('proxy.pem.key')
  const replaced = await type(1, block('flotilla pki renew-issuing'))
  expect(replaced).toContain('new issuing authority')
})

test('the commands in docs/operate check and reload a changed configuration', async () => {
  const path = join(fleet.folder(1), 'config.yml')
  const text = readFileSync(path, 'utf8')
  writeFileSync(path, `${text}logLevel: debug\nthreads: false\n`)
  const check = block('flotilla controller check --config-only')
  expect(await type(1, check)).toContain('the configuration is valid')
  const reload = block('flotilla controller reload')
  expect(await type(1, reload)).toContain('threads: true -> false, needs a restart')
  writeFileSync(path, text)
  expect(await type(1, reload)).toContain('logLevel: debug -> info, in force')
})

test('the command in docs/operate that resets log time does not change log time if it is not ahead', async () => {
  expect(await type(1, block('flotilla cluster reset-log-time'))).toContain('no change needed')
})

test('the commands in docs/operate recover an administrator’s access, and remove MFA', async () => {
  writeFileSync(join(folder, 'password'), 'the harbour at night\n', { mode: 0o600 })
  const recovered = await type(1, block('flotilla cluster recover-admin'))
  expect(recovered).toContain('can log in as admin with the new password')
  const login = { username: 'admin', password: 'the harbour at night' }
  writeFileSync(join(folder, 'login.json'), JSON.stringify(login), { mode: 0o600 })
  await type(1, block('(umask 077 && curl'))
  const list = await type(
    1,
    'flotilla cluster status --url https://ctrl2.example.net:1280 --ca ca.pem --session-file session',
  )
  expect(list).toContain('seen from ctrl2')
  const found = await type(
    1,
    `curl -s --cacert ca.pem -H "net-session: $(cat session)" https://ctrl1.example.net:1280/edge/management/v1/current-identity`,
  )
  const { id } = (JSON.parse(found) as { data: { id: string } }).data
  const removed = await type(
    1,
    block('curl --cacert ca.pem -H "net-session: $(cat session)" -X DELETE').replace(
      '/ID/',
      `/${id}/`,
    ),
  )
  expect(removed).toContain('"data":{}')
})

async function votesAgain(k: number): Promise<void> {
  await until(`ctrl${k} is a voter again`, async () => {
    const status = (await sendToAdminSocket(fleet.data(k), clusterOperationRequest('status')).catch(
      () => null,
    )) as ClusterStatus | null
    return status?.members.some(({ id, role }) => id === `ctrl${k}` && role === 'follower') === true
  })
}

test('a controller that lost its data folder becomes a voter again, as docs/operate describes', async () => {
  await stop(3)
  rmSync(fleet.data(3), { recursive: true })
  expect(await type(3, block('flotilla controller check\n'))).toContain('ctrl3 can start')
  begin(3, block('flotilla controller run\n'))
  await votesAgain(3)
  expect(await type(3, block('flotilla cluster status\n'))).toMatch(/^ctrl3 +follower/m)
})

test('a controller with a damaged log repairs its log, as docs/operate describes', async () => {
  await stop(2)
  const [segment = ''] = readdirSync(join(fleet.data(2), 'wal')).filter((file) =>
    file.endsWith('.seg'),
  )
  const file = openSync(join(fleet.data(2), 'wal', segment), 'r+')
  writeSync(file, 'damage', 0)
  closeSync(file)
  const checked = await type(2, block('flotilla controller check\n'))
  expect(checked).toContain('is damaged; a start repairs it from the other controllers')
  begin(2, block('flotilla controller run\n'))
  await votesAgain(2)
})

test('the commands in docs/operate change members, and recover the remaining controller after the majority is lost', async () => {
  const listed = await type(1, block('flotilla cluster list\n'))
  expect(listed).toMatch(/^ctrl3 .* yes +no +yes/m)
  const voters = ['promote ctrl4', 'demote ctrl4', 'replace ctrl2 ctrl4'].map((verb) =>
    block(`flotilla cluster ${verb}`),
  )
  const changed = await type(1, voters.join(''))
  for (const line of ['promoted ctrl4', 'demoted ctrl4', 'replaced ctrl2 by ctrl4']) {
    expect(changed).toContain(line)
  }
  expect(await type(1, block('flotilla cluster transfer-leadership'))).toContain('leader: ctrl3')
  const remove = block('flotilla cluster remove ctrl4\n').trim()
  expect(await type(1, `! ${remove}`)).toContain('nothing changed')
  const compromised = block('flotilla cluster remove ctrl4 --compromised').trim()
  const confirmed = `${compromised} --confirm 'remove ctrl4 and tolerate 0 failures'`
  expect(await type(1, confirmed)).toMatch(/^removed ctrl4.*all API sessions end/m)

  await stop(1)
  await stop(3)
  await type(3, block('flotilla cluster recover --inspect --json'))
  expect(await type(1, `! ${block('flotilla cluster recover --survivor')}`)).toContain(
    'which is a majority; start them',
  )
  rmSync(fleet.data(3), { recursive: true })
  expect(await type(1, block('flotilla cluster recover --inspect\n'))).toMatch(
    /^members: +ctrl1, ctrl3/m,
  )
  const recover = block('flotilla cluster recover\n').trim()
  expect(await type(1, `! ${recover}`)).toContain("pass --confirm 'without ctrl3' to proceed")
  expect(await type(1, `${recover} --confirm 'without ctrl3'`)).toContain('is now the only member')
  expect(await type(1, block('flotilla pki renew --root-key'))).toContain(
    'it renews the certificate itself',
  )
  begin(1, block('flotilla controller run\n'))
  await leads(1)
  const invite = block('flotilla cluster invite --out ctrl2.ticket\n')
  await type(1, invite.replace('ctrl2.ticket', 'ctrl2.again.ticket'))
})

test('every command block in the pages of docs/operate is executed by this or another test, except one that only searches files', () => {
  const names = Object.keys(typedBlocks)
  const left = [...blocks].filter(
    (one) => !typed.has(one) && !names.some((name) => one.startsWith(name)),
  )
  expect(left).toEqual([])
})

/** The words of a line without IDs, numbers, paths and addresses, which differ between runs. */
function wordsOf(line: string): string {
  return line
    .split(/\s+/)
    .filter((word) => /^\(?[A-Za-z-]+[,;:)]*$/.test(word))
    .join(' ')
}

test('commands print each line that the pages of docs/operate show below the command, except rows of members and JSON', () => {
  const known = new Set(
    `${printed}\n${[1, 2, 3, 4].map((k) => fleet.log(k)).join('\n')}`.split('\n').map(wordsOf),
  )
  const isTyped = (block: string): boolean => typed.has(block)
  const shown = pages.flatMap((name) => shownOutput(pageText(name), isTyped))
  // Rows of members and JSON answers depend on the run, and names in a certificate depend on the
  // host.
  const lines = shown.filter((line) => !/^ *(?:ctrl\d .*|names \..*|\{.*|.*…|)$/.test(line))
  expect(lines.length).toBeGreaterThan(40)
  expect(lines.filter((line) => !known.has(wordsOf(line)))).toEqual([])
})
