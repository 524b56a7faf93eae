import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

import { ADMIN_FILE_NAME } from './admin-file.ts'
import type { AdminFile } from './admin-file.ts'
import { CommandFailure, EXIT_FAILED, EXIT_USAGE } from './failure.ts'
import { runningPid } from './pid-file.ts'

export const LOOPBACK = '127.0.0.1'
const ROUTER_PORT_OFFSET = 100
const MESH_PORT_OFFSET = 200

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

/** Where everything goes, for N controllers. @throws {CommandFailure} exit 2 when the ports do not fit. */
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

/** Names that a forming that did not end may have left in DIR. */
const FORMED_NAME = /^(?:\.forming|ca\.pem|pki|ctrl[1-9])$/

/**
 * Looks at an existing DIR.
 * @throws {CommandFailure} when it is not ours, holds another cluster than the one asked for, or has lost a part.
 */
export function inspectFolder(plan: QuickstartPlan): FolderState {
  const names = readdirSync(plan.dir)
  if (names.length === 0) return 'empty'
  if (names.includes(ADMIN_FILE_NAME)) {
    checkSameCluster(plan)
    checkComplete(plan)
    return 'complete'
  }
  const foreign = names.find((name) => !FORMED_NAME.test(name))
  if (foreign !== undefined) {
    throw new CommandFailure(
      EXIT_FAILED,
      `${plan.dir} holds ${foreign}, which quickstart did not make, and no ${ADMIN_FILE_NAME}; choose an empty folder with --dir`,
    )
  }
  const used = names.find((name) => wasUsed(join(plan.dir, name)))
  if (used !== undefined) {
    throw new CommandFailure(
      EXIT_FAILED,
      `${plan.dir} holds a cluster that has run (${used}) but no ${ADMIN_FILE_NAME}; put that file back, or remove the folder to begin anew`,
    )
  }
  return 'half-made'
}

/** Controllers are first started when all is made, so one that has run shows that forming had ended. */
function wasUsed(folder: string): boolean {
  try {
    const names = readdirSync(folder)
    const config = join(folder, 'config.yml')
    return names.includes('controller.log') || names.includes('pid') || runningPid(config) !== null
  } catch {
    return false
  }
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

function checkComplete(plan: QuickstartPlan): void {
  for (const { configPath, dataFolder, id } of plan.controllers) {
    for (const path of [configPath, join(dataFolder, 'IDENTITY')]) {
      if (canRead(path)) continue
      throw new CommandFailure(
        EXIT_FAILED,
        `${path} is missing, so ${id} can not start; put it back, or remove ${plan.dir} to begin anew`,
      )
    }
  }
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
  try {
    const admin = JSON.parse(readFileSync(path, 'utf8')) as AdminFile
    if (admin.controllers.every((url) => typeof url === 'string')) return admin
    throw new TypeError('controllers is no list of texts')
  } catch (error) {
    throw new CommandFailure(
      EXIT_FAILED,
      `${path} cannot be read as what quickstart wrote; put it back, or remove the folder to begin anew`,
      error,
    )
  }
}
