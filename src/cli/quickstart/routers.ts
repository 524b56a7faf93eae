import { execFile } from 'node:child_process'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { CommandFailure, EXIT_FAILED } from '../../controller/command-failure.ts'
import { writeNewFile } from '../../pki/secret-file.ts'
import { composeRouterConfig } from '../../config/router/compose.ts'
import { ApiClient, type ApiClientOptions } from '../client/api-client.ts'
import { ADMIN_FILE_NAME } from '../bootstrap/admin-file.ts'
import { makeFolder } from '../terminal/make-folder.ts'
import { LOOPBACK, type QuickstartPlan, readAdminFile, type RouterPlan } from './plan.ts'

/** Name of the service that the `proxy` listeners of the routers in DIR offer. */
export const DEMO_SERVICE = 'demo'
/** Role attribute of the routers in DIR, the same as in OpenZiti's quickstart. */
const ROUTER_ROLE = 'public'
const ENROLL_MS_MAX = 60_000

type Row = Readonly<Record<string, unknown>>

/** Creates the configuration and identity of a router as an operator would, unless they exist. */
export async function prepareRouter(
  router: RouterPlan,
  plan: QuickstartPlan,
  program: string,
): Promise<void> {
  const { id: name, folder, configPath } = router
  makeFolder(folder, 0o700)
  if (!existsSync(configPath)) {
    const endpoints = plan.controllers.map(({ routerPort }) => `tls:${LOOPBACK}:${routerPort}`)
    const config = { name, endpoints, ip: LOOPBACK, sections: sectionsOf(router) }
    writeNewFile(configPath, composeRouterConfig(config), 0o600)
  }
  if (existsSync(join(folder, `${name}.cert`))) return
  const token = await tokenOf(name, plan)
  // Removes the key of an earlier enrollment, which belongs to another token and cannot be used.
  rmSync(join(folder, `${name}.key.enrolling`), { force: true })
  const words = ['router', 'enroll', configPath, '--jwt', '-', '--force']
  const enrolling = promisify(execFile)(program, words, { timeout: ENROLL_MS_MAX })
  enrolling.child.stdin?.on('error', () => undefined)
  enrolling.child.stdin?.end(token)
  await enrolling.catch((error: unknown) => {
    const { stderr } = error as { readonly stderr: string }
    throw new CommandFailure(EXIT_FAILED, `its enrollment failed: ${stderr.trim()}`, error)
  })
}

/**
 * Sections of the router's configuration: listeners for clients and for links to the other routers
 * in DIR, the dialer for terminators, and a port for the demo's service.
 */
function sectionsOf({
  linkPort,
  entryPort,
  edgePort,
}: RouterPlan): Readonly<Record<string, unknown>> {
  const address = `tls:${LOOPBACK}:${linkPort}`
  const link = { binding: 'transport', bind: address, advertise: address }
  const entry = `tcp:${LOOPBACK}:${entryPort}`
  const edge = `${LOOPBACK}:${edgePort}`
  return {
    edge: {},
    link: {
      listeners: [link],
      dialers: [{ binding: 'transport', healthyDialBackoff: { minRetryInterval: '500ms' } }],
    },
    listeners: [
      { binding: 'edge', bind: `tls:${edge}`, options: { advertise: edge } },
      { binding: 'proxy', bind: entry, advertise: entry, service: DEMO_SERVICE },
    ],
    dialers: [{ binding: 'transport' }],
  }
}

/** @returns options for an API client that acts as the first administrator of DIR. */
export async function administratorClientOptions(dir: string): Promise<ApiClientOptions> {
  const { username, password, controllers, ca } = readAdminFile(join(dir, ADMIN_FILE_NAME))
  const at = { controllers, caPem: readFileSync(ca, 'utf8'), logInAgain: 'flotilla login' }
  const body = { username, password }
  const path = '/authenticate?method=password'
  const logIn = await new ApiClient({ ...at, token: null }).ask({ method: 'POST', path, body })
  return { ...at, token: String((logIn.data as Row)['token']) }
}

/** Enrollment token for the router with this name; creates the router if it does not exist. */
async function tokenOf(name: string, { dir }: QuickstartPlan): Promise<string> {
  const client = new ApiClient(await administratorClientOptions(dir))
  const ask = async (method: 'GET' | 'POST', below: string, sent?: unknown): Promise<unknown> =>
    (await client.ask({ method, path: `/edge-routers${below}`, body: sent })).data
  const filter = encodeURIComponent(`name = "${name}"`)
  const made = { name, roleAttributes: [ROUTER_ROLE] }
  const [found] = (await ask('GET', `?filter=${filter}`)) as readonly Row[]
  const id = String((found ?? ((await ask('POST', '', made)) as Row))['id'])
  // A router that exists already needs a new token: it has lost its files after an enrollment, or
  // its token may have expired.
  if (found !== undefined) await ask('POST', `/${id}/re-enroll`, {})
  const { enrollmentJwt } = (await ask('GET', `/${id}`)) as Row
  if (typeof enrollmentJwt === 'string') return enrollmentJwt
  throw new CommandFailure(EXIT_FAILED, `router ${name} has no enrollment`)
}
