import { type ChildProcess, spawn } from 'node:child_process'
import {
  closeSync,
  copyFileSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'

import type { ClusterStatus } from '../../src/api/cluster/cluster-status.ts'
import { askController } from '../../src/cli/client/admin-socket.ts'
import { requestOf } from '../../src/cli/client/connection.ts'
import { flotilla } from '../support/program.ts'
import { until } from './support/client.ts'
import { Fleet } from './support/fleet.ts'
import { run } from './support/page.ts'

// Goal: whoever follows docs/operating.md word for word forms a cluster, looks after it and
// recovers it.
// Method: each block of the page, typed as it stands there. Hosts are folders; only paths and
// addresses are other ones.

const page = readFileSync(resolve(import.meta.dirname, '../../docs/operating.md'), 'utf8')
const blocks = [...page.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = '']) => block)

/** Blocks that are typed elsewhere, by how they begin. */
const elsewhere: Readonly<Record<string, string>> = {
  'npm install --global': 'package.test.ts',
  'flotilla identity enroll': 'typed-pages.test.ts',
  'flotilla router check': 'router-program.test.ts',
  'grep -h': 'only searches files',
}

let fleet: Fleet
/** Where the operator works; files are carried from host to host by being there. */
let folder = ''
const children = new Map<number, ChildProcess>()
const typed = new Set<string>()

beforeAll(async () => {
  fleet = await Fleet.create(4)
  folder = join(fleet.dir, 'operator')
  for (const path of [folder, ...[1, 2, 3, 4].map((k) => fleet.folder(k))]) mkdirSync(path)
})
afterAll(async () => {
  await Promise.all([...children.keys()].map(stop))
  await fleet[Symbol.asyncDispose]()
})

/** The block that begins so, and is ticked off. */
function block(beginning: string): string {
  const found = blocks.filter((one) => one.startsWith(beginning))
  expect(found, beginning).toHaveLength(1)
  const [text = ''] = found
  typed.add(text)
  return text
}

/** Paths and addresses as they are on that host. */
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

/** Types lines at a host; all of them work. */
async function type(k: number, text: string): Promise<string> {
  const env = `PATH='${dirname(flotilla)}':$PATH\nexport FLOTILLA_CONFIG='${fleet.config(k)}'\n`
  const { code, output } = await run(env + onHost(k, text), folder)
  expect(code, `${output}\n${onHost(k, text)}`).toBe(0)
  return output
}

/** A line that runs on in the foreground. */
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
    const status = (await askController(fleet.data(k), requestOf('status'))) as ClusterStatus
    return status.leaderId === `ctrl${k}`
  })
}

async function join4(): Promise<void> {
  const invite = block('flotilla cluster invite --out ctrl2.ticket          #')
  const joinLine = block('flotilla cluster join')
  for (const k of [2, 3, 4]) {
    const own = invite.replace('ctrl2.ticket', `ctrl${k}.ticket${k === 4 ? ' --learner' : ''}`)
    await type(1, own)
    begin(k, joinLine.replace('ctrl2.ticket', `ctrl${k}.ticket`))
  }
  for (const k of [2, 3, 4]) {
    const joined = k === 4 ? 'joined: ctrl4 is a learner' : `joined: ctrl${k} is a voter`
    await until(joined, () => Promise.resolve(fleet.log(k).includes(joined)))
  }
}

test('a cluster is created, controllers join it, and it is asked with a session', async () => {
  const [init = '', runs = '', ...more] = block('flotilla cluster init').split(/(?<=\n)/)
  expect(more).toEqual([])
  expect(await type(1, init)).toMatch(/^root key: .*move it offline/m)
  renameSync(join(fleet.folder(1), 'pki/root.key'), join(folder, 'root.key'))
  begin(1, runs)
  await leads(1)
  await join4()
  expect(await type(1, 'flotilla cluster tickets list')).toMatch(/ctrl4$/m)

  copyFileSync(join(fleet.folder(1), 'ca.pem'), join(folder, 'ca.pem'))
  const { username, password } = JSON.parse(
    readFileSync(join(fleet.folder(1), 'admin.json'), 'utf8'),
  ) as { username: string; password: string }
  const login = JSON.stringify({ username, password })
  writeFileSync(join(folder, 'login.json'), login, { mode: 0o600 })
  expect(await type(4, block('(umask 077 && curl'))).toMatch(/^ctrl4 .* no +no +yes/m)
})

test('it is looked at, measured, copied and told what to log', async () => {
  const status = block('flotilla cluster status ').replace(
    /^(.*--watch).*$/m,
    'timeout -s INT 4 $1 || [ $? = 124 ]',
  )
  const looked = await type(1, status)
  expect(looked).toContain('"healthy":true')
  // Where nobody reads along, each look is a line.
  expect(looked.match(/^\d{4}-.*Z .*ctrl1/gm)?.length).toBeGreaterThan(0)
  const socket = await type(1, block('curl -s --unix-socket /etc/flotilla/data/admin.sock http'))
  expect(socket).toMatch(/^"leaderId":"ctrl\d"\n.*"name":"Default Admin"/s)
  expect(await type(1, block('flotilla pki issue --name prometheus'))).toMatch(/^flotilla_/m)
  const copied = await type(1, block('curl -s --unix-socket /etc/flotilla/data/admin.sock -H'))
  expect(copied).toContain('/data/snapshots/before-upgrade"')
  expect(await type(1, block('flotilla log level debug'))).toContain(
    'debug (after a restart: info)',
  )
  expect(await type(1, 'flotilla log level')).toContain('info')
})

test('certificates are inspected, renewed and issued, and the issuing authority is replaced', async () => {
  expect(await type(1, block('flotilla pki inspect'))).toMatch(/in use: CN=ctrl1/)
  copyFileSync(join(fleet.folder(3), 'cert.pem'), join(folder, 'ctrl3-cert.pem'))
  const renewed = await type(1, block('flotilla pki renew --member-cert'))
  expect(renewed).toContain('install it as identity.cert of ctrl3')
  expect(await type(1, block('flotilla pki issue --name proxy'))).toContain('proxy.pem.key')
  const replaced = await type(1, block('flotilla pki renew-issuing'))
  expect(replaced).toContain('new issuing authority')
})

test('log time that is not ahead stays as it is', async () => {
  expect(await type(1, block('flotilla cluster reset-log-time'))).toContain('no change needed')
})

test('an administrator is let in again, and another factor than theirs is removed', async () => {
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

test('members are changed, the majority is lost, and one that is left goes on', async () => {
  const [all = '', ...rest] = block('flotilla cluster list\n')
    .trim()
    .split(/\n(?=.* remove )/)
  const changed = await type(1, all)
  for (const line of ['promoted ctrl4', 'demoted ctrl4', 'replaced ctrl2 by ctrl4']) {
    expect(changed).toContain(line)
  }
  expect(changed).toContain('leader: ctrl3')
  const [remove = ''] = rest
  const [asked = ''] = remove.split(' #')
  const confirmed = `${asked} --confirm 'remove ctrl4 and tolerate 0 failures'`
  expect(await type(1, `! ${asked}\n${confirmed}`)).toMatch(/nothing changed.*removed ctrl4/s)

  await stop(1)
  await stop(3)
  rmSync(fleet.data(3), { recursive: true })
  expect(await type(1, block('flotilla cluster recover --inspect'))).toMatch(
    /^members: +ctrl1, ctrl3/m,
  )
  const recover = block('flotilla cluster recover --survivor').split(' --survivor')[0] ?? ''
  expect(await type(1, `! ${recover}`)).toContain("pass --confirm 'without ctrl3' to proceed")
  expect(await type(1, `${recover} --confirm 'without ctrl3'`)).toContain('is now the only member')
  expect(await type(1, block('flotilla pki renew --root-key'))).toContain('it renews itself')
  const [start = '', invite = ''] = block('flotilla controller run\n').split(/(?<=\n)/)
  begin(1, start)
  await leads(1)
  await type(1, invite.replace('ctrl2.ticket', 'ctrl2.again.ticket'))
})

test('no block of the page was left out', () => {
  const names = Object.keys(elsewhere)
  const left = blocks.filter(
    (one) => !typed.has(one) && !names.some((name) => one.startsWith(name)),
  )
  expect(left).toEqual([])
})
