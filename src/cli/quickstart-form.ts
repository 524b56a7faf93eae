import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'

import { writeSecretFile } from '../pki/key-file.ts'
import { ADMIN_FILE_NAME } from './admin-file.ts'
import type { AdminFile } from './admin-file.ts'
import { planConfig } from './config-from-flags.ts'
import type { PlannedConfig } from './config-from-flags.ts'
import { formCluster } from './form.ts'
import { writePublicFile } from './public-file.ts'
import { LOOPBACK } from './quickstart-plan.ts'
import type { ControllerPlan, QuickstartPlan } from './quickstart-plan.ts'

export async function formQuickstart(plan: QuickstartPlan, nowMs: number): Promise<void> {
  const trustDomain = `quickstart-${randomBytes(4).toString('hex')}.flotilla.internal`
  for (const { folder } of plan.controllers) rmSync(folder, { recursive: true, force: true })
  const [first, ...rest] = plan.controllers.map((one) => configOf(one, trustDomain))
  if (first === undefined) return
  const password = randomBytes(18).toString('base64url')
  const { caPem } = await formCluster({
    controllers: [first, ...rest],
    adminName: 'admin',
    password,
    nowMs,
  })
  writePublicFile(join(plan.dir, 'ca.pem'), caPem)
  const admin: AdminFile = {
    username: 'admin',
    password,
    controllers: plan.controllers.map(({ url }) => url),
    ca: join(plan.dir, 'ca.pem'),
  }
  writeSecretFile(join(plan.dir, ADMIN_FILE_NAME), `${JSON.stringify(admin, null, 2)}\n`)
}

function configOf(one: ControllerPlan, trustDomain: string): PlannedConfig {
  const flags = {
    id: one.id,
    bindApi: `${LOOPBACK}:${one.webPort}`,
    bindRouter: `${LOOPBACK}:${one.routerPort}`,
    bindCluster: `${LOOPBACK}:${one.meshPort}`,
  }
  return planConfig(one.configPath, flags, trustDomain)
}
