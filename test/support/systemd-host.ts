import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { until } from '../process/support/client.ts'

const execute = promisify(execFile)
const script = join(import.meta.dirname, 'systemd-host.sh')
const BOOT_MS = 120_000
const POLL_MS = 200
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/** Root folder of a Linux with systemd. */
const lower = process.env['FLOTILLA_SYSTEMD_ROOT'] ?? '/'

/**
 * The reason why this machine cannot run systemd in namespaces, in parentheses; null when it can.
 */
export function missingSystemd(): string | null {
  if (process.geteuid?.() !== 0) return '(skipped: only root can start a systemd in namespaces)'
  if (!existsSync(join(lower, 'lib/systemd/systemd'))) return `(skipped: ${lower} has no systemd)`
  if (!readFileSync('/proc/mounts', 'utf8').includes(' cgroup2 '))
    return '(skipped: no cgroup2 hierarchy is mounted)'
  try {
    execFileSync('unshare', ['--mount', '--pid', '--net', '--cgroup', '--fork', 'true'])
    return null
  } catch {
    return '(skipped: this machine lets no program make namespaces)'
  }
}

/** A host whose process 1 is systemd, without a network except loopback. */
export class SystemdHost {
  readonly #folder: string
  readonly #child: ChildProcess
  #pid = 0

  private constructor(folder: string, child: ChildProcess) {
    this.#folder = folder
    this.#child = child
  }

  static async boot(name: string): Promise<SystemdHost> {
    const folder = mkdtempSync(join(tmpdir(), 'flotilla-host-'))
    // The host ends with this process, in whichever way that ends.
    const words = ['--pdeathsig', 'KILL', 'sh', script, lower, folder, name]
    const child = spawn('setpriv', words, { stdio: ['ignore', 'ignore', 'pipe'] })
    let said = ''
    child.stderr?.on('data', (chunk: Buffer) => (said += chunk.toString()))
    const host = new SystemdHost(folder, child)
    try {
      await until(
        'systemd has started its basic units',
        async () => {
          if (child.exitCode !== null) throw new Error(`no systemd: ${said}`)
          host.#pid = firstChild(child.pid ?? 0)
          if (host.#pid === 0) return false
          return (await host.try('systemctl is-active basic.target')) === 'active\n'
        },
        BOOT_MS,
        POLL_MS,
      )
      await host.run('ip link set lo up')
      return host
    } catch (error) {
      await host[Symbol.asyncDispose]()
      throw error
    }
  }

  /** Runs shell lines as root. @throws with their output. @returns standard output. */
  async run(lines: string, input?: string): Promise<string> {
    const words = [`--target=${this.#pid}`, '--all', 'env', '-i', `PATH=${PATH}`, 'HOME=/root']
    const running = execute('nsenter', [...words, 'sh', '-ec', lines], {
      maxBuffer: 64 * 1024 * 1024,
    })
    running.child.stdin?.end(input)
    try {
      return (await running).stdout
    } catch (error) {
      const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string }
      throw new Error(`failed on the host:\n${lines}\n${stdout}\n${stderr}`, { cause: error })
    }
  }

  /** Like `run`. @returns standard output, also if lines fail; '' if they cannot run. */
  async try(lines: string): Promise<string> {
    return await this.run(`{\n${lines}\n} || :`).catch(() => '')
  }

  async write(path: string, text: string): Promise<void> {
    await this.run(`mkdir -p "$(dirname '${path}')" && cat > '${path}'`, text)
  }

  /** Copies the content of a folder of this machine to a folder of the host. */
  async copyIn(from: string, to: string): Promise<void> {
    const words = ['--target', `${this.#pid}`, '--all', 'tar', '--extract', '--directory', to]
    await this.run(`mkdir -p '${to}'`)
    const source = spawn('tar', ['--create', '--directory', from, '.'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const sink = spawn('nsenter', words, { stdio: ['pipe', 'inherit', 'inherit'] })
    source.stdout.pipe(sink.stdin)
    const [code] = (await once(sink, 'exit')) as [number | null]
    if (code !== 0) throw new Error(`${from} was not copied to ${to}`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = this.#child.exitCode === null ? once(this.#child, 'exit') : null
    this.#child.kill('SIGKILL')
    await ended
    const file = join(this.#folder, 'group')
    const group = existsSync(file) ? readFileSync(file, 'utf8').trim() : null
    if (group !== null && existsSync(group)) {
      writeFileSync(join(group, 'cgroup.kill'), '1')
      await until('the processes of the host have ended', () => Promise.resolve(isRemoved(group)))
    }
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

function firstChild(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ')[0])
  } catch {
    return 0
  }
}

/**
 * Tries to remove a control group and its descendants. @returns false while a process is in one of
 * them.
 */
function isRemoved(group: string): boolean {
  try {
    for (const entry of readdirSync(group, { withFileTypes: true })) {
      if (entry.isDirectory() && !isRemoved(join(group, entry.name))) return false
    }
    rmdirSync(group)
    return true
  } catch {
    return !existsSync(group)
  }
}
