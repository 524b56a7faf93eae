import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { pause } from '../../test/process/support/client.ts'
import { freePort } from '../../test/support/ports.ts'
import { LeanClient } from './lean-client.ts'

export const MANAGEMENT = '/edge/management/v1'
export const CLIENT = '/edge/client/v1'
/** Beginning of the session header that both Flotilla and OpenZiti accept. */
export const TOKEN_HEADER = 'zt-session: '

/** A network under test, with the session of an administrator at its first controller. */
export interface Target {
  /** Process IDs of the controllers. */
  readonly pids: readonly number[]
  readonly title: string
  readonly controllers: readonly string[]
  readonly ca: string
  readonly token: string
  readonly folder: string
}

export type Item = Readonly<Record<string, unknown>> & { readonly id: string }

export async function asked<T>(
  target: Target,
  method: string,
  path: string,
  body?: unknown,
): Promise<T> {
  const client = await LeanClient.connect(target.controllers[0] ?? '', target.ca, TOKEN_HEADER)
  const text = body === undefined ? '' : JSON.stringify(body)
  const answer = await client.request(method, `${MANAGEMENT}/${path}`, target.token, text)
  client.close()
  if (answer.status >= 300) throw new Error(`${target.title}: ${method} ${path}: ${answer.body}`)
  return (JSON.parse(answer.body) as { readonly data: T }).data
}

export const made = async (target: Target, path: string, body: unknown): Promise<string> =>
  (await asked<Item>(target, 'POST', path, body)).id

/** The quickstart of OpenZiti, which runs until it is disposed. */
export class PeerNetwork implements AsyncDisposable {
  readonly target: Target
  readonly #child: ChildProcess

  private constructor(target: Target, child: ChildProcess) {
    this.target = target
    this.#child = child
  }

  static async start(binary: string): Promise<PeerNetwork> {
    const folder = mkdtempSync(join(tmpdir(), 'flotilla-beside-'))
    const [port, routerPort] = [await freePort(), await freePort()]
    const local = ['--ctrl-address', '127.0.0.1', '--router-address', '127.0.0.1']
    const ports = ['--ctrl-port', String(port), '--router-port', String(routerPort)]
    const args = ['edge', 'quickstart', '--home', join(folder, 'home'), ...local, ...ports]
    const env = { ...process.env, HOME: folder }
    const child = spawn(binary, args, { env, stdio: 'ignore' })
    const title = 'OpenZiti'
    const ca = join(folder, 'home/pki/root-ca/certs/root-ca.cert')
    const controllers = [`https://127.0.0.1:${port}`]
    for (;;) {
      const token = await tokenOf(controllers[0] ?? '', ca).catch(() => null)
      const target = { title, pids: [child.pid ?? 0], controllers, ca, token: token ?? '', folder }
      const online =
        token === null ? [] : await asked<readonly Item[]>(target, 'GET', 'edge-routers')
      if (online.some(({ isOnline }) => isOnline === true)) return new PeerNetwork(target, child)
      if (child.exitCode !== null) throw new Error(`the quickstart of ${binary} has ended`)
      await pause(500)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill('SIGKILL')
    if (this.#child.exitCode === null) await once(this.#child, 'exit')
    rmSync(this.target.folder, { recursive: true, force: true })
  }
}

async function tokenOf(url: string, ca: string): Promise<string> {
  const client = await LeanClient.connect(url, ca)
  const path = `${MANAGEMENT}/authenticate?method=password`
  const body = JSON.stringify({ username: 'admin', password: 'admin' })
  const answer = await client.request('POST', path, null, body)
  client.close()
  return (JSON.parse(answer.body) as { data: { token: string } }).data.token
}
