import { randomBytes } from 'node:crypto'
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'

import { setConfigOptions } from '../../config/controller/compose.ts'
import { writePublicFile, writeSecretFile } from '../../pki/secret-file.ts'
import { parseTicket } from '../../pki/secrets/ticket.ts'
import { ADMIN_FILE_NAME, type AdminFile } from '../bootstrap/admin-file.ts'
import { CheckList } from '../terminal/check-list.ts'
import { openClusterConnection } from '../client/connection.ts'
import { planConfig, type PlannedConfig } from '../bootstrap/config-from-flags.ts'
import { initController } from '../bootstrap/init.ts'
import { prepareJoin } from '../bootstrap/join.ts'
import { createJoinTicket } from '../cluster/membership-commands.ts'
import { type ControllerPlan, LOOPBACK, type QuickstartPlan } from './plan.ts'

const ADMIN_NAME = 'admin'
const TICKET_LIFETIME_MS = 10 * 60 * 1000

/**
 * Creates the first controller like `cluster init`; repeating it is safe. Its admin.json stays
 * until everything is written.
 */
export async function createFirstController(controller: ControllerPlan): Promise<void> {
  const trustDomain = `quickstart-${randomBytes(4).toString('hex')}.flotilla.internal`
  await initController(planQuickstartConfig(controller, trustDomain), ADMIN_NAME, null)
}

/**
 * Joins a controller like `cluster join`, with a ticket from the first controller, which is the
 * leader; repeating it is safe.
 * @throws {CommandFailure}
 */
export async function joinNextController(
  controller: ControllerPlan,
  first: ControllerPlan,
): Promise<void> {
  const ask = openClusterConnection({ config: first.configPath })
  const { ticket: text } = await createJoinTicket(ask, true, TICKET_LIFETIME_MS)
  const ticket = parseTicket(text)
  const planned = planQuickstartConfig(controller, ticket.trustDomain)
  await prepareJoin(planned, ticket, text, new CheckList(true))
}

/**
 * Adds the other controllers as seeds to the configuration of the first controller, which started
 * without seeds. It needs them if it loses its disk.
 */
export function addSeedsToFirstController({
  controllers: [first, ...others],
}: QuickstartPlan): void {
  if (first === undefined || others.length === 0) return
  const seeds = others.map(({ meshPort }) => `${LOOPBACK}:${meshPort}`)
  writePublicFile(
    first.configPath,
    setConfigOptions(readFileSync(first.configPath, 'utf8'), { 'cluster.seeds': seeds }),
  )
}

/** Writes DIR/admin.json; the existence of this file shows that everything else is written. */
export function finishClusterCreation(plan: QuickstartPlan, password: string): void {
  const [first] = plan.controllers
  if (first === undefined) return
  writePublicFile(join(plan.dir, 'ca.pem'), readFileSync(join(first.folder, 'ca.pem'), 'utf8'))
  const admin: AdminFile = {
    username: ADMIN_NAME,
    password,
    controllers: plan.controllers.map(({ url }) => url),
    ca: join(plan.dir, 'ca.pem'),
  }
  writeSecretFile(join(plan.dir, ADMIN_FILE_NAME), `${JSON.stringify(admin, null, 2)}\n`)
  removeFirstAdminFile(plan)
}

/**
 * Removes the first controller's admin.json, which DIR/admin.json replaces. A run that is killed
 * right after it has written DIR/admin.json leaves the other file behind.
 */
export function removeFirstAdminFile({ controllers: [first] }: QuickstartPlan): void {
  if (first !== undefined) rmSync(join(first.folder, ADMIN_FILE_NAME), { force: true })
}

/**
 * The configuration of a controller: read from its file if it exists, otherwise as `init` or `join`
 * will write it.
 */
export function planQuickstartConfig(
  controller: ControllerPlan,
  trustDomain: string,
): PlannedConfig {
  const flags = {
    id: controller.id,
    bindApi: `${LOOPBACK}:${controller.webPort}`,
    bindRouter: `${LOOPBACK}:${controller.routerPort}`,
    bindCluster: `${LOOPBACK}:${controller.meshPort}`,
  }
  return planConfig(controller.configPath, flags, trustDomain)
}
