import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

import { loadControllerConfig } from '../../config/controller/load.ts'
import { IDENTITY_FILE_NAME } from '../../store/log/data-identity.ts'
import { JOIN_STATE_FILE_NAME } from '../bootstrap/join-state.ts'
import { ADMIN_FILE_NAME, type AdminFile } from '../bootstrap/admin-file.ts'
import { CommandFailure, EXIT_FAILED, EXIT_USAGE } from '../../controller/command-failure.ts'

export const LOOPBACK = '127.0.0.1'
const ROUTER_PORT_OFFSET = 100
const MESH_PORT_OFFSET = 200
const LINK_PORT_OFFSET = 300
const ENTRY_PORT_OFFSET = 400
const EDGE_PORT_OFFSET = 500

/** A controller or router in DIR. */
export interface ProcessPlan {
  readonly program: 'controller' | 'router'
  readonly id: string
  readonly folder: string
  readonly configPath: string
  readonly logPath: string
  /** Null for a router, which has no data folder. */
  readonly dataFolder: string | null
}

export interface ControllerPlan extends ProcessPlan {
  readonly program: 'controller'
  readonly dataFolder: string
  readonly webPort: number
  readonly routerPort: number
  readonly meshPort: number
  readonly url: string
}

export interface RouterPlan extends ProcessPlan {
  readonly program: 'router'
  readonly dataFolder: null
  /** Port to which the other routers in DIR connect. */
  readonly linkPort: number
  /** Port at which a client reaches the service of `flotilla demo`. */
  readonly entryPort: number
  /** Port to which SDKs and tunnels connect. */
  readonly edgePort: number
}

export interface QuickstartPlan {
  /** Absolute path. */
  readonly dir: string
  readonly port: number
  readonly controllers: readonly ControllerPlan[]
  readonly routers: readonly RouterPlan[]
}

/**
 * Plans ports and paths.
 * @throws {CommandFailure} exit 2 when the ports are not in the valid range.
 */
export function planQuickstart(
  dir: string,
  nodes: number,
  port: number,
  routerCount = 0,
): QuickstartPlan {
  const above =
    routerCount === 0 ? MESH_PORT_OFFSET + nodes - 1 : EDGE_PORT_OFFSET + routerCount - 1
  if (port + above > 65_535) {
    const max = 65_535 - above
    throw new CommandFailure(EXIT_USAGE, `--port ${port} leaves no room; choose ${max} or lower`)
  }
  const root = resolve(dir)
  const controllers = Array.from({ length: nodes }, (_, at): ControllerPlan => {
    const id = `ctrl${at + 1}`
    const webPort = port + at
    return {
      ...filesOf(root, 'controller', id),
      program: 'controller',
      dataFolder: join(root, id, 'data'),
      webPort,
      routerPort: webPort + ROUTER_PORT_OFFSET,
      meshPort: webPort + MESH_PORT_OFFSET,
      url: `https://${LOOPBACK}:${webPort}`,
    }
  })
  const routers = Array.from({ length: routerCount }, (_, at): RouterPlan => {
    return {
      ...filesOf(root, 'router', `router${at + 1}`),
      program: 'router',
      dataFolder: null,
      linkPort: port + LINK_PORT_OFFSET + at,
      entryPort: port + ENTRY_PORT_OFFSET + at,
      edgePort: port + EDGE_PORT_OFFSET + at,
    }
  })
  return { dir: root, port, controllers, routers }
}

/**
 * @returns the plan of an existing quickstart DIR.
 * @throws {CommandFailure}
 */
export function readQuickstartPlan(dir: string): QuickstartPlan {
  const { controllers } = readAdminFile(join(dir, ADMIN_FILE_NAME))
  const port = Number(new URL(controllers[0] ?? 'https://none').port)
  const routers = readdirSync(dir).filter((name) => /^router\d$/.test(name))
  return planQuickstart(dir, controllers.length, port, routers.length)
}

function filesOf(root: string, program: string, id: string) {
  const folder = join(root, id)
  const [configPath, logPath] = [join(folder, 'config.yml'), join(folder, `${program}.log`)]
  return { id, folder, configPath, logPath }
}

type FolderState = 'empty' | 'half-made' | 'complete'

/**
 * Files from an interrupted write (first alternative), or from earlier releases (second
 * alternative).
 */
const LEFTOVER = /\.partial$|^\.forming$/

/**
 * Determines the state of DIR.
 * @throws {CommandFailure} when DIR is not a quickstart folder, contains another cluster than the
 * requested one, or lacks required files.
 */
export function inspectFolder(plan: QuickstartPlan): FolderState {
  const names = readdirSync(plan.dir).filter((name) => !LEFTOVER.test(name))
  if (names.length === 0) return 'empty'
  if (names.includes(ADMIN_FILE_NAME)) {
    checkSameCluster(plan)
    checkComplete(plan)
    return 'complete'
  }
  const [first] = plan.controllers
  if (!names.includes('ctrl1') || first === undefined) {
    throw new CommandFailure(
      EXIT_FAILED,
      `${plan.dir} holds ${names[0] ?? ''}, which quickstart did not create; choose an empty folder with --dir`,
    )
  }
  if (isControllerPrepared(first) && !existsSync(join(first.folder, ADMIN_FILE_NAME))) {
    throw new CommandFailure(
      EXIT_FAILED,
      `${plan.dir} holds a cluster but no ${ADMIN_FILE_NAME}; restore that file, or remove the folder to start over`,
    )
  }
  checkSameForming(plan, first, names)
  return 'half-made'
}

/** True if a controller has everything it needs to run. */
export function isControllerPrepared({ folder, dataFolder }: ControllerPlan): boolean {
  return (
    existsSync(join(dataFolder, IDENTITY_FILE_NAME)) &&
    !existsSync(join(folder, JOIN_STATE_FILE_NAME))
  )
}

function checkSameForming(
  plan: QuickstartPlan,
  { configPath }: ControllerPlan,
  names: readonly string[],
): void {
  const loaded = loadControllerConfig(configPath, {})
  const bind = loaded.ok ? loaded.config.web[0]?.bind : undefined
  const port = bind === undefined ? plan.port : Number(bind.slice(bind.lastIndexOf(':') + 1))
  const numbers = names.flatMap((name) => Number(/^ctrl(\d)$/.exec(name)?.[1] ?? 0))
  const nodes = Math.max(plan.controllers.length, ...numbers)
  if (nodes === plan.controllers.length && port === plan.port) return
  throw new CommandFailure(
    EXIT_USAGE,
    `${plan.dir} holds a cluster of ${nodes} on port ${port} that is incomplete; run it with --nodes ${nodes} --port ${port}, or remove the folder to start over`,
  )
}

function checkSameCluster(plan: QuickstartPlan): void {
  const path = join(plan.dir, ADMIN_FILE_NAME)
  const there = readAdminFile(path).controllers
  const wanted = plan.controllers.map(({ url }) => url)
  if (there.length === wanted.length && there.every((url, at) => url === wanted[at])) return
  const port = new URL(there[0] ?? 'https://none').port
  throw new CommandFailure(
    EXIT_USAGE,
    `${plan.dir} holds a cluster of ${there.length} on port ${port}, not of ${wanted.length} on port ${plan.port}; run it with --nodes ${there.length} --port ${port}, or choose another --dir`,
  )
}

/**
 * Checks that DIR is complete. A missing data folder is not a fault if another controller has a
 * data folder, from which the controller gets its data.
 */
function checkComplete({ controllers, dir }: QuickstartPlan): void {
  const missing = controllers.find(({ configPath }) => !existsSync(configPath))
  const hasData = controllers.some(({ dataFolder }) =>
    existsSync(join(dataFolder, IDENTITY_FILE_NAME)),
  )
  if (missing === undefined && hasData) return
  const what = missing === undefined ? 'every data folder' : missing.configPath
  throw new CommandFailure(
    EXIT_FAILED,
    `${what} is missing; restore it, or remove ${dir} to start over`,
  )
}

/** @throws {CommandFailure} exit 1. */
export function readAdminFile(path: string): AdminFile {
  try {
    const admin = JSON.parse(readFileSync(path, 'utf8')) as Partial<AdminFile> | null
    if (Array.isArray(admin?.controllers)) return admin as AdminFile
  } catch {
    // The parser's message is not shown, because it could contain the password.
  }
  throw new CommandFailure(
    EXIT_FAILED,
    `${path} is damaged; restore it, or remove the folder to start over`,
  )
}
