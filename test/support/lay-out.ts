import { mkdirSync } from 'node:fs'
import { join } from 'node:path'

import { createCluster } from '../../src/cli/bootstrap/create-cluster.ts'
import {
  finishClusterCreation,
  planQuickstartConfig,
} from '../../src/cli/quickstart/create-quickstart-cluster.ts'
import { planQuickstart, type QuickstartPlan } from '../../src/cli/quickstart/plan.ts'
import { freePortBlock } from './ports.ts'

/**
 * Creates in `folder` the folder of a quickstart cluster: all its controllers are formed, and none
 * of them is started.
 */
export async function layOut(folder: string, nodes: number): Promise<QuickstartPlan> {
  const plan = planQuickstart(join(folder, 'net'), nodes, await freePortBlock(nodes))
  mkdirSync(plan.dir, { mode: 0o700 })
  const password = 'laid out'
  const [first, ...rest] = plan.controllers.map((one) =>
    planQuickstartConfig(one, 'laid.out.internal'),
  )
  if (first === undefined) throw new Error('no controllers')
  await createCluster({
    controllers: [first, ...rest],
    adminName: 'admin',
    password,
    nowMs: Date.now(),
  })
  finishClusterCreation(plan, password)
  return plan
}
