import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'

import type { ClusterStatus } from '../../src/api/cluster/cluster-status.ts'
import { sendToAdminSocket } from '../../src/cli/client/admin-socket.ts'
import { clusterOperationRequest } from '../../src/cli/client/connection.ts'
import { freePortBlock } from '../support/ports.ts'
import { flotilla } from '../support/program.ts'
import { isRunning, until } from './support/client.ts'
import { run } from './support/page.ts'

// Goal: an operator who follows docs/start/production.md on three hosts gets a cluster of three
// voters, a backup, metrics and an edge router. Method: each host is a folder with a separate /etc,
// /usr, /var and /opt; names and ports resolve to loopback. A script replaces each command that
// changes the system (users, units, packages) and makes the corresponding change for a controller.

const root = resolve(import.meta.dirname, '../..')
const page = readFileSync(join(root, 'docs/start/production.md'), 'utf8')
const installPage = readFileSync(join(root, 'docs/start/install.md'), 'utf8')
const HOSTS = [1, 2, 3]
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  readonly version: string
}

let dir = ''
let port = 0

/** Creates the folder of a version, which contains the program and files under test. */
const unpacks = `
  folder="$SYSTEM/opt/flotilla/flotilla-${version}"
  mkdir -p "$folder/bin"
  ln -sfn '${flotilla}' "$folder/bin/flotilla"
  ln -sfn '${join(root, 'deploy')}' "$folder/deploy"`

/**
 * Scripts that replace the programs of a host that need root or systemd. SYSTEM is the folder of
 * the host.
 */
const standIns: Readonly<Record<string, string>> = {
  timedatectl: 'echo NTPSynchronized=yes',
  tar: unpacks,
  npm: unpacks,
  dpkg: `mkdir -p "$SYSTEM/usr/bin" && ln -sfn '${flotilla}' "$SYSTEM/usr/bin/flotilla"`,
  'systemd-sysusers': ':',
  'systemd-tmpfiles': ':',
  // Ignores the owner option, because this user may not change owners.
  install: `
    kept=''; skip=
    for word; do
      if [ -n "$skip" ]; then skip=; continue; fi
      case $word in -o|-g) skip=1 ;; *) kept="$kept '$word'" ;; esac
    done
    eval "exec /usr/bin/install $kept"`,
  runuser: 'while [ "$1" != -- ]; do shift; done; shift; exec "$@"',
  systemctl: `
    [ "$1" = daemon-reload ] && exit 0
    for word; do unit=$word; done
    case $unit in flotilla-router@*)
      folder="$SYSTEM/etc/flotilla/\${unit#flotilla-router@}"
      setsid "$SYSTEM/opt/flotilla/bin/flotilla" router run "$folder/router.yml" >> "$SYSTEM/output.log" 2>&1 < /dev/null &
      pid=$!
      echo $pid > "$folder/pid"
      # The end of the calling script kills its process group, which the router has to leave first.
      session=
      while [ "$session" != $pid ] && kill -0 $pid; do
        read -r _ _ _ _ _ session _ < /proc/$pid/stat || :
      done
      exit 0 ;;
    esac
    id=\${unit#flotilla-controller@}
    folder="$SYSTEM/etc/flotilla/$id"
    if [ "$1" = reload ]; then
      exec "$SYSTEM/opt/flotilla/bin/flotilla" controller reload "$folder/config.yml"
    fi
    rm -f "$folder/pid"
    setsid "$SYSTEM/opt/flotilla/bin/flotilla" controller run "$folder/config.yml" >> "$SYSTEM/output.log" 2>&1 < /dev/null &
    until [ -s "$folder/pid" ]; do sleep 0.1; done`,
}

beforeAll(async () => {
  port = await freePortBlock(5)
  dir = mkdtempSync(join(tmpdir(), 'flotilla-production-'))
  mkdirSync(join(dir, 'bin'))
  for (const [name, script] of Object.entries(standIns)) {
    writeFileSync(join(dir, 'bin', name), `#!/bin/sh\n${script}\n`)
    chmodSync(join(dir, 'bin', name), 0o700)
  }
  // The folder in which the operator works. All hosts share it, so no file has to be copied between
  // hosts.
  mkdirSync(join(dir, 'work'))
  for (const k of HOSTS) {
    for (const folder of ['etc/systemd/system', 'etc/flotilla', 'usr/lib/sysusers.d']) {
      mkdirSync(join(system(k), folder), { recursive: true })
    }
    mkdirSync(join(system(k), 'usr/lib/tmpfiles.d'))
  }
})
afterAll(() => {
  for (const folder of [...HOSTS.map(folderOf), routerFolder()]) {
    const file = join(folder, 'pid')
    const pid = existsSync(file) ? Number(readFileSync(file, 'utf8')) : null
    if (pid !== null && isRunning(pid)) process.kill(pid, 'SIGKILL')
  }
  rmSync(dir, { recursive: true, force: true })
})

const system = (k: number): string => join(dir, `host${k}`)
const folderOf = (k: number): string => join(system(k), `etc/flotilla/ctrl${k}`)

/**
 * The edge router runs on the first host, at an address for which no controller certificate is
 * valid.
 */
const ROUTER_ADDRESS = '127.0.0.2'
const routerFolder = (): string => join(system(1), 'etc/flotilla/edge1')

/** Blocks of the page, each with the host on which the reader runs it. */
function blocks(): { readonly at: string; readonly text: string }[] {
  return [...page.matchAll(/^```sh\n# on ([^\n]*)\n(.*?)^```$/gms)].map(
    ([, at = '', text = '']) => ({ at, text }),
  )
}

/** Replaces names, ports and paths in a text by those of host k in this test. */
function onHost(k: number, text: string): string {
  return text
    .replaceAll(/https:\/\/ctrl(\d)\.example\.net:1280/g, (_, one: string) => {
      return `https://127.0.0.1:${port + Number(one) - 1}`
    })
    .replaceAll(/ctrl(\d)\.example\.net:1480/g, (_, one: string) => {
      return `127.0.0.1:${port + 200 + Number(one) - 1}`
    })
    .replace(
      /--advertise ctrl\d\.example\.net/,
      `--advertise 127.0.0.1 --bind-api 127.0.0.1:${port + k - 1} ` +
        `--bind-router 127.0.0.1:${port + 100 + k - 1} --bind-cluster 127.0.0.1:${port + 200 + k - 1}`,
    )
    .replaceAll(/ctrl(\d)\.example\.net:1380/g, (_, one: string) => {
      return `127.0.0.1:${port + 100 + Number(one) - 1}`
    })
    .replace(
      /--advertise edge1\.example\.net/,
      `--advertise ${ROUTER_ADDRESS} --edge-port ${port + 3} --link-port ${port + 4}`,
    )
    .replaceAll(/(?<![\w.])\/(etc|opt|usr|var)\//g, `${system(k)}/$1/`)
}

/** Runs lines on a host, and fails if a line fails. */
async function type(k: number, text: string): Promise<string> {
  const env = [
    `export SYSTEM='${system(k)}' PATH='${join(dir, 'bin')}':'${dirname(flotilla)}':$PATH`,
    `export XDG_CONFIG_HOME='${join(dir, 'config')}'`,
    'export FLOTILLA_RAFT_ELECTION_TIMEOUT_MS=3000 FLOTILLA_RAFT_ELECTION_TIMEOUT_MAX_MS=6000',
  ]
  const { code, output } = await run(`${env.join('\n')}\n${onHost(k, text)}`, join(dir, 'work'))
  expect(code, `${output}\n${onHost(k, text)}\n${log(k)}`).toBe(0)
  if (text.includes('flotilla-controller@')) await serves(k)
  return output
}

/** A person needs longer than this wait to type the next block. */
async function serves(k: number): Promise<void> {
  await until(`ctrl${k} serves`, async () => {
    const status = await statusOf(k).catch(() => null)
    return status !== null && status.leaderId !== null
  }).catch((error: unknown) => {
    throw new Error(`${String(error)}\n${log(k)}`)
  })
}

function log(k: number): string {
  const file = join(system(k), 'output.log')
  return existsSync(file) ? readFileSync(file, 'utf8').slice(-2000) : ''
}

async function statusOf(k: number): Promise<ClusterStatus> {
  const data = join(system(k), `var/lib/flotilla/ctrl${k}/data`)
  return (await sendToAdminSocket(data, clusterOperationRequest('status'))) as ClusterStatus
}

async function allVote(): Promise<void> {
  for (const k of HOSTS) {
    await until(`ctrl${k} sees three voters`, async () => {
      const { members } = await statusOf(k)
      return (
        members.filter(({ role, lastContactMs }) => {
          return ['leader', 'follower'].includes(role ?? '') && lastContactMs !== null
        }).length === 3
      )
    })
  }
}

/**
 * Runs a block that belongs on several hosts, with the name of each host instead of the first
 * host's name.
 */
async function typeAt(at: string, text: string): Promise<string> {
  if (at === 'every host') {
    for (const k of HOSTS) await type(k, text)
    return ''
  }
  if (at === 'your machine' || at === 'edge1') return await type(1, text)
  const [first = 0, second] = [...at.matchAll(/ctrl(\d)/g)].map(([, k]) => Number(k))
  const output = await type(first, text)
  const other = second ?? (at.startsWith('ctrl1, and on ctrl2') ? 2 : undefined)
  if (other === undefined) return output
  return output + (await type(other, text.replaceAll(`ctrl${first}`, `ctrl${other}`)))
}

test('the commands of docs/start/production.md work when pasted on three hosts', async () => {
  const shown: string[] = []
  for (const { at, text } of blocks()) {
    if (text.includes('flotilla login')) carryToOwnMachine()
    if (text.includes('cluster backups')) await backupTaken()
    if (/^export .*\nflotilla cluster status$/m.test(text)) await allVote()
    if (text.includes('list edge-routers')) await routerOnline(text)
    shown.push(await typeAt(at, text))
  }
  const output = shown.join('\n')
  expect(output).toMatch(/^root key: .*move it offline/m)
  for (const expected of page.matchAll(/^```text\n(.*?)\n```$/gms)) {
    expect(output).toContain(`\n${expected[1]}\n`)
  }
  expect(output).toMatch(/^logged in to https:\/\/127\.0\.0\.1:\d+ as Default Admin/m)
  expect(output).toMatch(/flotilla-ctrl1-\S+\.backup/)
  await allVote()
})

test('the commands of docs/start/install.md install a program that can print its version', async () => {
  const lines = [...installPage.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, text = '']) => text)
  const [build, ...ways] = lines
  // test/process/package.nightly.ts and units.nightly.ts build and install the packages themselves.
  expect(build).toBe('make package\n')
  const printed: string[] = []
  for (const way of ways) printed.push(await type(1, way))
  const isVersion = printed.map((text) => /^flotilla \d+\.\d+\.\d+ \(node v/.test(text))
  expect(isVersion).toEqual([true, true, false, true])
})

/** Copies the CA certificates and the password, as the page says. */
function carryToOwnMachine(): void {
  const { password } = JSON.parse(readFileSync(join(folderOf(1), 'admin.json'), 'utf8')) as {
    readonly password: string
  }
  writeFileSync(join(dir, 'work/password'), password, { mode: 0o600 })
  writeFileSync(join(dir, 'work/ca.pem'), readFileSync(join(folderOf(1), 'ca.pem')))
}

async function backupTaken(): Promise<void> {
  const folder = join(system(1), 'var/lib/flotilla/ctrl1/backups')
  await until('a backup is taken', () => {
    return Promise.resolve(readdirSync(folder).some((name) => name.endsWith('.backup')))
  })
}

async function routerOnline(lines: string): Promise<void> {
  await until('edge1 is connected', async () => (await type(1, lines)).includes('yes')).catch(
    (error: unknown) => {
      throw new Error(`${String(error)}\n${log(1)}`)
    },
  )
}
