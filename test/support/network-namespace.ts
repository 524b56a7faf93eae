import { execFile, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { promisify } from 'node:util'

const execute = promisify(execFile)
const root = join(import.meta.dirname, '../..')
const RUN_MS_MAX = 180_000
const TEST_MS_MAX = 30_000

/**
 * Whether this machine lets a program create a network namespace, and has `ip` to change routes. A
 * namespace has separate interfaces, routes and ports, so tests in it do not change those of the
 * machine.
 */
export function allowsNamespaces(): boolean {
  try {
    const options = { stdio: 'ignore' } as const
    execFileSync('unshare', ['--map-root-user', '--net', 'ip', 'link', 'set', 'lo', 'up'], options)
    return true
  } catch {
    return false
  }
}

/** Whether this machine has `nft`, which redirects wide ranges of ports. */
export function hasNft(): boolean {
  try {
    execFileSync('nft', ['--version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/**
 * Runs a test file, `*.namespaced.ts`, in a separate network namespace. @returns the output of
 * vitest. @throws with that output if a test fails.
 */
export async function runInNamespace(file: string): Promise<string> {
  const vitest = join(root, 'node_modules/.bin/vitest')
  const command = `ip link set lo up && exec ${vitest} run --project namespaced --testTimeout ${TEST_MS_MAX} ${file}`
  const args = ['--map-root-user', '--net', '--fork', '--kill-child', 'sh', '-c', command]
  const env = { ...process.env, FLOTILLA_TEST_NAMESPACE: '1', NO_COLOR: '1' }
  const options = { cwd: root, env, timeout: RUN_MS_MAX }
  try {
    const { stdout } = await execute('unshare', args, options)
    return stdout
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string }
    throw new Error(`tests in the namespace failed:\n${stdout}\n${stderr}`, { cause: error })
  }
}

/**
 * Runs a whole program, `file`, in a separate network namespace: the program starts itself again in
 * the namespace. If this machine allows no namespaces, prints this and runs nothing.
 */
export async function driveInNamespace(file: string, drive: () => Promise<void>): Promise<void> {
  if (process.env['FLOTILLA_DRIVE_NAMESPACE'] === '1') {
    await drive()
    return
  }
  if (!allowsNamespaces()) {
    console.log('skipped: this machine lets no program make a network namespace (unshare, ip)')
    return
  }
  const command = `ip link set lo up && exec "${process.execPath}" "${file}"`
  const args = ['--map-root-user', '--net', '--fork', '--kill-child', 'sh', '-c', command]
  const env = { ...process.env, FLOTILLA_DRIVE_NAMESPACE: '1' }
  const [code] = (await once(spawn('unshare', args, { stdio: 'inherit', env }), 'exit')) as [number]
  process.exitCode = code
}
