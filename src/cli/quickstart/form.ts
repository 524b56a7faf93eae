import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'

import { withSeeds } from '../../config/controller/compose.ts'
import { readSecretFile, writePublicFile, writeSecretFile } from '../../pki/key-file.ts'
import { parseTicket } from '../../pki/secrets/ticket.ts'
import { IDENTITY_NAME } from '../../store/log/identity.ts'
import { ADMIN_FILE_NAME, type AdminFile } from '../cluster/admin-file.ts'
import { CheckList } from '../terminal/check-list.ts'
import { connectTo } from '../client/connection.ts'
import { planConfig, type PlannedConfig } from '../config-from-flags.ts'
import { initController } from '../init/init.ts'
import { layDownJoin } from '../join/join.ts'
import { JOINING_NAME } from '../join/state.ts'
import { invite } from '../cluster/membership-commands.ts'
import {
  type ControllerPlan,
  FORMING_NAME,
  type FormingState,
  LOOPBACK,
  type QuickstartPlan,
} from './plan.ts'

const ADMIN_NAME = 'admin'
/** 24 characters of base64url: 144 random bits. */
const PASSWORD_BYTES = 18
const TICKET_LIFETIME_MS = 10 * 60 * 1000

/**
 * What a forming must still know when it is taken up again. Written first, and removed once
 * admin.json is there: in between, every step is one that can be repeated.
 */
export function beginForming(plan: QuickstartPlan): FormingState {
  const path = join(plan.dir, FORMING_NAME)
  if (existsSync(path)) return JSON.parse(readSecretFile(path).text) as FormingState
  const forming: FormingState = {
    nodes: plan.controllers.length,
    port: plan.port,
    trustDomain: `quickstart-${randomBytes(4).toString('hex')}.flotilla.internal`,
    password: randomBytes(PASSWORD_BYTES).toString('base64url'),
  }
  writeSecretFile(path, `${JSON.stringify(forming)}\n`)
  return forming
}

/** Whether a controller has all that it needs to run. */
export function isPrepared({ folder, dataFolder }: ControllerPlan): boolean {
  return existsSync(join(dataFolder, IDENTITY_NAME)) && !existsSync(join(folder, JOINING_NAME))
}

export async function formFirst(controller: ControllerPlan, forming: FormingState): Promise<void> {
  await initController(plannedConfigOf(controller, forming), ADMIN_NAME, forming.password)
}

/** By a ticket of the first controller, which leads. @throws {CommandFailure} */
export async function joinNext(
  controller: ControllerPlan,
  first: ControllerPlan,
  forming: FormingState,
): Promise<void> {
  const ask = connectTo({ config: first.configPath })
  const { ticket } = await invite(ask, true, TICKET_LIFETIME_MS)
  const planned = plannedConfigOf(controller, forming)
  await layDownJoin(planned, parseTicket(ticket), ticket, new CheckList(true))
}

/** admin.json is the sign that all of it is there. */
export function finishForming(plan: QuickstartPlan, { password }: FormingState): void {
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
  rmSync(join(plan.dir, FORMING_NAME), { force: true })
}

/** The first one was there before all others: this is how it finds them should its disk be lost. */
export function nameSeeds(plan: QuickstartPlan): void {
  const [first, ...others] = plan.controllers
  if (first === undefined) return
  const seeds = others.map(({ meshPort }) => `${LOOPBACK}:${meshPort}`)
  writePublicFile(first.configPath, withSeeds(readFileSync(first.configPath, 'utf8'), seeds))
}

/** The configuration that `init` or `join` writes for it, unless it has one. */
export function plannedConfigOf(
  controller: ControllerPlan,
  { trustDomain }: FormingState,
): PlannedConfig {
  const flags = {
    id: controller.id,
    bindApi: `${LOOPBACK}:${controller.webPort}`,
    bindRouter: `${LOOPBACK}:${controller.routerPort}`,
    bindCluster: `${LOOPBACK}:${controller.meshPort}`,
  }
  return planConfig(controller.configPath, flags, trustDomain)
}
