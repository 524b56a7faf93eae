import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

import { IDENTITY_NAME } from '../../store/log/identity.ts'
import { ADMIN_FILE_NAME, type AdminFile } from '../cluster/admin-file.ts'
import { CommandFailure, EXIT_FAILED, EXIT_USAGE } from '../../controller/failure.ts'

export const LOOPBACK = '127.0.0.1'
const ROUTER_PORT_OFFSET = 100
const MESH_PORT_OFFSET = 200
/** In DIR while its cluster is being formed, 0600. */
export const FORMING_NAME = '.forming'

export interface FormingState {
  readonly nodes: number
  readonly port: number
  readonly trustDomain: string
  readonly password: string
}

export interface ControllerPlan {
  readonly id: string
  readonly folder: string
  readonly configPath: string
  readonly logPath: string
  readonly dataFolder: string
  readonly webPort: number
  readonly routerPort: number
  readonly meshPort: number
  readonly url: string
}

export interface QuickstartPlan {
  /** Absolute. */
  readonly dir: string
  readonly port: number
  readonly controllers: readonly ControllerPlan[]
}

/**
 * Where everything goes, for N controllers.
 * @throws {CommandFailure} exit 2 when the ports do not fit.
 */
export function planQuickstart(dir: string, nodes: number, port: number): QuickstartPlan {
  if (port + MESH_PORT_OFFSET + nodes - 1 > 65_535) {
    const max = 65_535 - MESH_PORT_OFFSET - nodes + 1
    throw new CommandFailure(EXIT_USAGE, `--port ${port} leaves no room; choose ${max} or lower`)
  }
  const root = resolve(dir)
  const controllers = Array.from({ length: nodes }, (_, at) => {
    const id = `ctrl${at + 1}`
    const folder = join(root, id)
    const webPort = port + at
    return {
      id,
      folder,
      configPath: join(folder, 'config.yml'),
      logPath: join(folder, 'controller.log'),
      dataFolder: join(folder, 'data'),
      webPort,
      routerPort: webPort + ROUTER_PORT_OFFSET,
      meshPort: webPort + MESH_PORT_OFFSET,
      url: `https://${LOOPBACK}:${webPort}`,
    }
  })
  return { dir: root, port, controllers }
}

export type FolderState = 'empty' | 'half-made' | 'complete'

/** What a write that was cut off may have left before anything else was there. */
const PARTIAL_NAME = /\.partial$/

/**
 * Looks at an existing DIR.
 * @throws {CommandFailure} when it is not ours, holds another cluster than the one asked for, or
 * has lost a part.
 */
export function inspectFolder(plan: QuickstartPlan): FolderState {
  const names = readdirSync(plan.dir).filter((name) => !PARTIAL_NAME.test(name))
  if (names.length === 0) return 'empty'
  if (names.includes(ADMIN_FILE_NAME)) {
    checkSameCluster(plan)
    checkComplete(plan)
    return 'complete'
  }
  if (names.includes(FORMING_NAME)) {
    checkSameForming(plan)
    return 'half-made'
  }
  const isCluster = names.includes('ctrl1')
  throw new CommandFailure(
    EXIT_FAILED,
    isCluster
      ? `${plan.dir} holds a cluster but no ${ADMIN_FILE_NAME}; restore that file, or remove the folder to start over`
      : `${plan.dir} holds ${names[0] ?? ''}, which quickstart did not create; choose an empty folder with --dir`,
  )
}

function checkSameForming(plan: QuickstartPlan): void {
  const path = join(plan.dir, FORMING_NAME)
  const { nodes, port } = readJson(path) as FormingState
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
 * A lost data folder is not missed: its controller gets it back from the others, as long as there
 * is one of them.
 */
function checkComplete({ controllers, dir }: QuickstartPlan): void {
  const missing = controllers.find(({ configPath }) => !canRead(configPath))
  const hasData = controllers.some(({ dataFolder }) => canRead(join(dataFolder, IDENTITY_NAME)))
  if (missing === undefined && hasData) return
  const what = missing === undefined ? 'every data folder' : missing.configPath
  throw new CommandFailure(
    EXIT_FAILED,
    `${what} is missing; restore it, or remove ${dir} to start over`,
  )
}

function canRead(path: string): boolean {
  try {
    readFileSync(path)
    return true
  } catch {
    return false
  }
}

/** @throws {CommandFailure} exit 1. */
function readAdminFile(path: string): AdminFile {
  const admin = readJson(path) as AdminFile
  if (Array.isArray(admin.controllers)) return admin
  throw unreadable(path)
}

function readJson(path: string): unknown {
  try {
    const value: unknown = JSON.parse(readFileSync(path, 'utf8'))
    if (typeof value === 'object' && value !== null) return value
  } catch (error) {
    throw unreadable(path, error)
  }
  throw unreadable(path)
}

function unreadable(path: string, cause?: unknown): CommandFailure {
  return new CommandFailure(
    EXIT_FAILED,
    `${path} is damaged; restore it, or remove the folder to start over`,
    cause,
  )
}
