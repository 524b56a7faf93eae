import { spawn } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'

import { formCluster } from '../../src/cli/quickstart-form.ts'
import { planQuickstart } from '../../src/cli/quickstart-plan.ts'
import type { QuickstartPlan } from '../../src/cli/quickstart-plan.ts'
import type { CertifiedKey } from '../../src/pki/authority.ts'
import { formedSecret } from '../support/formed-secret.ts'
import { freePortBlock } from '../support/ports.ts'

export const flotilla = resolve(import.meta.dirname, '../../bin/flotilla')

export interface Finished {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs the program as a person does, and waits for its end. */
export function run(words: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Finished> {
  return new Promise((done, reject) => {
    const child = spawn(flotilla, words, {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let stdout = ''
    let stderr = ''
    child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
    child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
    child.once('error', reject)
    child.once('close', (code) => done({ code, stdout, stderr }))
  })
}

/** A cluster laid out in `folder` as quickstart does, on ports that were free a moment ago. */
export async function layOut(folder: string, nodes: number): Promise<QuickstartPlan> {
  const plan = planQuickstart(join(folder, 'net'), nodes, await freePortBlock(nodes))
  mkdirSync(plan.dir)
  await formCluster(plan, Date.now())
  return plan
}

/** The authority that signs leaves in a cluster just laid out. */
export async function issuingAuthorityOf(plan: QuickstartPlan): Promise<CertifiedKey> {
  const folder = join(plan.dir, 'ctrl1')
  const { secret, certificatePem } = await formedSecret(folder, 'ctrl1', 'issuingAuthority')
  return { certificatePem, privateKeyPem: Buffer.from(secret).toString() }
}
